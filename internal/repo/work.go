package repo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/queue"
)

// lane is the queue lane for background jobs that read or rewrite whole
// repositories. They run one at a time, and other background jobs do not wait
// for them.
const lane = "repositories"

// handleWork registers the background jobs of this feature.
func (s *Service) handleWork() {
	s.Queue.Lane(lane, 1)
	queue.Handle(s.Queue, s.tidy, queue.Timeout(2*time.Hour))
	queue.Handle(s.Queue, s.finishRemove, queue.Timeout(time.Hour))
	queue.Handle(s.Queue, s.copyFork, queue.Timeout(2*time.Hour))
	queue.Handle(s.Queue, s.deleteMerged, queue.Timeout(time.Hour))
	s.Queue.Every("repo_sweep", sweepAge, s.sweep)
	s.Queue.Every("repo_drafts", draftAge, s.SweepDrafts)
	s.Queue.Every("repo_recorded_pushes", time.Hour, s.forgetRecorded)
	s.Queue.Every("repo_settle_pushes", settleEvery, s.SettlePushes)
}

// tidyWork is the background job that updates the statistics of a changed
// repository and does its housekeeping.
type tidyWork struct {
	ProjectID int64 `json:"project_id"`
	Full      bool  `json:"full,omitempty"`
}

// Kind implements queue.Work.
func (tidyWork) Kind() string { return "repo_tidy" }

func (s *Service) addTidying(ctx context.Context, tx *db.Tx, projectID int64) error {
	return s.Queue.Add(ctx, tx, tidyWork{ProjectID: projectID}, queue.In(lane), queue.Unique(), queue.Priority(4))
}

func (s *Service) tidy(ctx context.Context, w tidyWork) error {
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(w.ProjectID), project.NoAccess)
	if err != nil {
		return err // deleted in the meantime
	}
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return err
	}
	needs, err := r.Needs(ctx)
	if errors.Is(err, git.ErrNoRepository) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at repository of project %d: %w", p.ID, err)
	}
	if (needs.Any() || w.Full) && !p.ReadOnly {
		_, err := r.Housekeep(ctx, git.HousekeepOptions{Now: s.Now(), Full: w.Full})
		if errors.Is(err, git.ErrBusy) && !w.Full {
			err = nil // another node does it now
		}
		if err != nil {
			return fmt.Errorf("housekeeping of project %d: %w", p.ID, err)
		}
	}
	return s.measure(ctx, p, r)
}

// sweepAge is the interval of the full housekeeping of changed repositories.
const sweepAge = 7 * 24 * time.Hour

// sweep adds background jobs for the full housekeeping of recently changed
// repositories. Only this removes old reflog entries and unreachable objects.
func (s *Service) sweep(ctx context.Context) error {
	var last int64
	for {
		ids, err := s.Projects.ActiveSince(ctx, s.Now().Add(-2*sweepAge), last, 500)
		if err != nil {
			return fmt.Errorf("sweep repositories: %w", err)
		}
		if len(ids) == 0 {
			return nil
		}
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			for _, id := range ids {
				if err := s.Queue.Add(ctx, tx, tidyWork{id, true}, queue.In(lane), queue.Unique(), queue.Priority(4)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("sweep repositories: %w", err)
		}
		last = ids[len(ids)-1]
	}
}

// measure updates the statistics of a project.
func (s *Service) measure(ctx context.Context, p *project.Project, r git.Repo) error {
	var m project.Statistics
	var err error
	if m.RepositorySize, err = r.Size(ctx); err != nil {
		return fmt.Errorf("size of project %d: %w", p.ID, err)
	}
	// The default branch may have changed since the project was read.
	branch, err := r.DefaultBranch(ctx)
	if err != nil {
		return fmt.Errorf("default branch of project %d: %w", p.ID, passing(err))
	}
	n, err := r.Count(ctx, git.LogOptions{From: []string{git.Heads + branch}})
	if err != nil && !errs.Is(missing(err, "Branch"), errs.KindNotFound) {
		return fmt.Errorf("count commits of project %d: %w", p.ID, err)
	}
	m.CommitCount = int64(n)
	found, err := contents(ctx, r, git.Heads+branch)
	if err != nil {
		return fmt.Errorf("contents of project %d: %w", p.ID, err)
	}
	return s.Projects.Measured(ctx, p.ID, m, found)
}

// contents returns the statistics of the files of a branch, if it exists.
func contents(ctx context.Context, r git.Repo, head string) (project.Contents, error) {
	var found project.Contents
	list, err := r.Languages(ctx, head)
	if errs.Is(missing(err, "Branch"), errs.KindNotFound) {
		return found, nil
	}
	if err != nil {
		return found, fmt.Errorf("find languages: %w", err)
	}
	found.Languages = make(map[string]float64, len(list))
	for _, l := range list {
		found.Languages[l.Name] = l.Share
	}
	found.Readme, err = readmeOf(ctx, r, head)
	return found, err
}

// readmeOf finds the README in the root directory of a revision; empty if there
// is none.
func readmeOf(ctx context.Context, r git.Repo, rev string) (string, error) {
	entries, err := r.Tree(ctx, git.TreeOptions{Rev: rev})
	if errs.Is(missing(err, "Branch"), errs.KindNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for a README: %w", passing(err))
	}
	e, _ := Readme(entries)
	return e.Path, nil
}

// readmeTypes returns the file extensions of a README, the best to render
// first.
func readmeTypes() []string {
	return []string{".md", ".markdown", ".mdown", ".mkd", ".adoc", ".ad", ".asciidoc", ".rst", ".org", ".textile", ".rdoc", ".creole", ".wiki", ".txt", ""}
}

// Readme finds the README among the entries of a directory: the one that is
// best to render, or else an index file.
func Readme(entries []git.Entry) (best git.Entry, ok bool) {
	rank := math.MaxInt
	for _, e := range entries {
		name := strings.ToLower(e.Name)
		ext := filepath.Ext(name)
		at := slices.Index(readmeTypes(), ext)
		if name == "index.md" {
			at = math.MaxInt - 1
		} else if name != "readme"+ext {
			at = -1
		}
		if e.Type == git.TypeBlob && at >= 0 && at < rank {
			best, rank, ok = e, at, true
		}
	}
	return best, ok
}

// removeWork is the background job that removes the repository of a deleted
// project.
type removeWork struct {
	ProjectID int64  `json:"project_id"`
	Storage   string `json:"storage"`
}

// Kind implements queue.Work.
func (removeWork) Kind() string { return "repo_remove" }

// ProjectsDeleted adds background jobs that remove the repositories of deleted
// projects, their wikis and snippets.
func (s *Service) ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	for _, g := range gone {
		if err := s.Queue.Add(ctx, tx, removeWork{g.ID, g.Storage}, queue.In(lane)); err != nil {
			return err
		}
	}
	return s.DropOrphans(ctx, tx)
}

func (s *Service) finishRemove(ctx context.Context, w removeWork) error {
	r, err := s.open(w.Storage, w.ProjectID)
	if err != nil {
		return err
	}
	if err := Discard(ctx, r); err != nil {
		return fmt.Errorf("remove repository of project %d: %w", w.ProjectID, err)
	}
	return nil
}

// Discard removes a repository.
func Discard(ctx context.Context, r git.Repo) error {
	r.Forget()
	if removed, err := r.Remove(ctx); removed || err != nil {
		return err
	}
	// Renamed first: it is gone at once, even if the removal is interrupted.
	going := filepath.Join(filepath.Dir(r.Path()), "+gone-"+filepath.Base(r.Path()))
	if err := os.RemoveAll(going); err != nil { // from an interrupted removal
		return err
	}
	if err := os.Rename(r.Path(), going); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(going)
}
