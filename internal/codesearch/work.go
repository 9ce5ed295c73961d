package codesearch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
)

// lane is the queue lane of builds, one at a time on each node.
const lane = "code_index"

const (
	// checkEvery is the interval of the search for projects that are not indexed.
	checkEvery = 10 * time.Minute
	// sweepEvery is the interval of the removal of files that no index refers to, and
	// sweepAge the time for which they are kept, for searches that have just begun.
	sweepEvery = 6 * time.Hour
	sweepAge   = time.Hour
	// maxShare limits builds of one project that take longer than slowBuild: they take
	// at most one maxShare-th of the time.
	maxShare  = 10
	slowBuild = 5 * time.Second
)

func (s *Service) handleWork() {
	s.Queue.Lane(lane, 1)
	queue.Handle(s.Queue, s.build, queue.Timeout(2*time.Hour))
	queue.Handle(s.Queue, s.finishRemove, queue.Timeout(time.Hour))
	s.Queue.Every("code_index_check", checkEvery, s.check)
	s.Queue.Every("code_index_sweep", sweepEvery, s.Sweep)
}

// buildWork is the background job that builds the index of a project.
type buildWork struct {
	ProjectID int64 `json:"project_id"`
	Force     bool  `json:"force,omitempty"` // write files that exist again
}

// Kind implements queue.Work.
func (buildWork) Kind() string { return "code_index_build" }

func (s *Service) add(ctx context.Context, tx *db.Tx, w buildWork, opts ...queue.AddOption) error {
	if !s.Enabled() {
		return nil
	}
	return s.Queue.Add(ctx, tx, w, append(opts, queue.In(lane), queue.Unique(), queue.Priority(3))...)
}

// Pushed adds a background job that indexes the default branch if it was pushed. It
// also handles the first push, which creates the default branch.
func (s *Service) Pushed(ctx context.Context, tx *db.Tx, p repo.Push) error {
	for _, c := range p.Changes {
		if p.Project.DefaultBranch == "" || c.Ref == git.Heads+p.Project.DefaultBranch {
			return s.add(ctx, tx, buildWork{ProjectID: p.Project.ID})
		}
	}
	return nil
}

// Build adds the background job that indexes a project that was imported, in the
// transaction that makes it visible.
func (s *Service) Build(ctx context.Context, tx *db.Tx, projectID int64) error {
	return s.add(ctx, tx, buildWork{ProjectID: projectID})
}

// build indexes the default branch of a project. Without a branch the index is empty.
func (s *Service) build(ctx context.Context, w buildWork) error {
	if !s.Enabled() {
		return nil
	}
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(w.ProjectID), project.NoAccess)
	if errs.Is(err, errs.KindNotFound) {
		return nil // deleted in the meantime
	}
	if err != nil {
		return err
	}
	r, err := s.Repos.Of(p)
	if err != nil {
		return err
	}
	head, err := headOf(ctx, r, p.DefaultBranch)
	if err != nil {
		return fmt.Errorf("index project %d: %w", p.ID, err)
	}
	before, err := findIndex(ctx, s.DB, p.ID)
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return fmt.Errorf("index project %d: %w", p.ID, err)
	}
	now, known := s.Now(), err == nil
	if known && before.Branch == p.DefaultBranch && before.Commit == string(head) && !w.Force {
		return nil
	}
	if wait := before.IndexedAt.Add(maxShare * before.Duration).Sub(now); known && !w.Force && before.Duration > slowBuild && wait > 0 {
		return s.DB.Tx(ctx, func(tx *db.Tx) error { return s.add(ctx, tx, w, queue.Delay(wait)) })
	}
	x := index{ProjectID: p.ID}
	if head != "" {
		if x, err = s.write(ctx, p.ID, r, head, before.Shards, w.Force); err != nil {
			return fmt.Errorf("index project %d: %w", p.ID, err)
		}
	}
	x.Branch, x.IndexedAt = p.DefaultBranch, s.Now()
	x.Duration = x.IndexedAt.Sub(now)
	latest, err := headOf(ctx, r, p.DefaultBranch)
	if err != nil {
		return fmt.Errorf("index project %d: %w", p.ID, err)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := saveIndex(ctx, tx, x); err != nil {
			return fmt.Errorf("index project %d: %w", p.ID, err)
		}
		if latest != head { // pushed meanwhile, perhaps indexed by another node
			return s.add(ctx, tx, buildWork{ProjectID: p.ID})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range before.Shards { // searches may still read them
		if !slices.Contains(x.Shards, name) {
			_ = os.Chtimes(s.pathOf(p.ID, name), now, now)
		}
	}
	return nil
}

// headOf returns the commit of a branch; empty if there is none.
func headOf(ctx context.Context, r git.Repo, branch string) (git.OID, error) {
	if branch == "" {
		return "", nil
	}
	head, err := r.ResolveCommit(ctx, git.Heads+branch)
	if errors.Is(err, git.ErrNotFound) || errors.Is(err, git.ErrBadRevision) || errors.Is(err, git.ErrNoRepository) {
		return "", nil
	}
	return head, err
}

// removeWork is the background job that removes the files of a deleted project.
type removeWork struct {
	ProjectID int64 `json:"project_id"`
}

// Kind implements queue.Work.
func (removeWork) Kind() string { return "code_index_remove" }

// ProjectsDeleted adds background jobs that remove the indexes of deleted projects.
func (s *Service) ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	for _, g := range gone {
		if err := s.Queue.Add(ctx, tx, removeWork{g.ID}, queue.In(lane)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) finishRemove(ctx context.Context, w removeWork) error {
	err := os.RemoveAll(s.dirOf(w.ProjectID))
	if err == nil && s.Store != nil {
		err = s.removeStored(ctx, w.ProjectID)
	}
	if err != nil {
		return fmt.Errorf("remove index of project %d: %w", w.ProjectID, err)
	}
	return nil
}

// check adds background jobs for projects that are not indexed: projects that are older
// than the index, and projects whose default branch has changed.
func (s *Service) check(ctx context.Context) error {
	return s.addEach(ctx, false, func(after int64, limit int) ([]int64, error) { return listOutdated(ctx, s.DB, after, limit) })
}

// Rebuild adds background jobs that build all indexes again. Administrators may call
// it. Forbidden.
func (s *Service) Rebuild(ctx context.Context, by actor.Actor) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	return s.addEach(ctx, true, func(after int64, limit int) ([]int64, error) { return listAll(ctx, s.DB, after, limit) })
}

func (s *Service) addEach(ctx context.Context, force bool, list func(after int64, limit int) ([]int64, error)) error {
	if !s.Enabled() {
		return nil
	}
	var last int64
	for {
		ids, err := list(last, 500)
		if err != nil {
			return fmt.Errorf("check the code index: %w", err)
		}
		if len(ids) == 0 {
			return nil
		}
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			for _, id := range ids {
				if err := s.add(ctx, tx, buildWork{id, force}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("check the code index: %w", err)
		}
		last = ids[len(ids)-1]
	}
}

// Sweep removes files that no index has any more.
func (s *Service) Sweep(ctx context.Context) error {
	if s.Store != nil {
		if err := s.sweepStored(ctx); err != nil {
			return fmt.Errorf("sweep the code index: %w", err)
		}
	}
	return s.sweepFiles(ctx)
}

// sweepFiles is Sweep for the directory of the index.
func (s *Service) sweepFiles(ctx context.Context) error {
	before := s.Now().Add(-sweepAge)
	parents, err := filepath.Glob(filepath.Join(s.Dir, "*", "*"))
	if err != nil {
		return err
	}
	for _, dir := range parents {
		id, err := strconv.ParseInt(filepath.Base(dir), 10, 64)
		if err != nil {
			continue
		}
		x, err := findIndex(ctx, s.DB, id)
		if err != nil && !errors.Is(err, db.ErrNoRows) {
			return fmt.Errorf("sweep the code index: %w", err)
		}
		files, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("sweep the code index: %w", err)
		}
		for _, f := range files {
			info, err := f.Info()
			if err != nil || slices.Contains(x.Shards, strings.TrimSuffix(f.Name(), ".zoekt")) || info.ModTime().After(before) {
				continue
			}
			if err := os.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("sweep the code index: %w", err)
			}
		}
		_ = os.Remove(dir) // if it is empty
	}
	return nil
}
