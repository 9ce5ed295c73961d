package merge

import (
	"context"
	"fmt"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/plan"
	"svc/internal/project"
)

// mergedWork is the background job that runs after a merge: it removes the
// source branch if requested, and closes issues.
type mergedWork struct {
	ID     int64 `json:"id"`
	UserID int64 `json:"user_id"`
	Remove bool  `json:"remove"`
}

// Kind implements queue.Work.
func (mergedWork) Kind() string { return "merge_merged" }

func (s *Service) workMerged(ctx context.Context, w mergedWork) error {
	m, err := findRequestByID(ctx, s.DB, w.ID)
	if err != nil {
		return ignoreRefusal(db.NotFound(err, "Merge Request"))
	}
	// Commits that were pushed just before the merge may also close issues.
	if err := s.collect(ctx, m.ID); err != nil {
		return err
	}
	in, err := s.system(ctx, &m.ProjectID)
	if err != nil || in == nil {
		return err
	}
	by, err := s.Users.As(ctx, w.UserID)
	if err != nil {
		return ignoreRefusal(err)
	}
	if w.Remove {
		if err := s.removeSource(ctx, by, m); err != nil {
			return fmt.Errorf("remove the source branch of merge request %d: %w", m.ID, err)
		}
	}
	if m.TargetBranch != in.DefaultBranch || !in.Settings.AutocloseReferencedIssues {
		return nil
	}
	ids, err := findIssuesOf(ctx, s.DB, m.ID, true)
	if err != nil {
		return fmt.Errorf("issues of merge request %d: %w", m.ID, err)
	}
	list, err := s.Plan.IssuesAmong(ctx, by, ids)
	if err != nil {
		return err
	}
	for _, i := range list {
		if err := s.closeIssue(ctx, by, in, i, fmt.Sprintf("merge request !%d", m.IID)); err != nil {
			return err
		}
	}
	return nil
}

// closeIssue closes an issue if the actor has permission. The system note on an
// issue of another project does not name the merge request, because not all readers
// of the issue can see it.
func (s *Service) closeIssue(ctx context.Context, by actor.Actor, in *project.Project, i *plan.Issue, via string) error {
	if i.State != plan.Opened {
		return nil
	}
	f := plan.IssueFields{Fields: plan.Fields{Event: "close"}}
	if i.ProjectID == in.ID {
		f.Via = via
	}
	_, err := s.Plan.UpdateIssue(ctx, by, project.RefTo(i.ProjectID), i.IID, f)
	return ignoreRefusal(err)
}

// removeSource deletes the source branch of a merged merge request, unless it was
// changed since, is protected, or the actor may not push to it.
func (s *Service) removeSource(ctx context.Context, by actor.Actor, m *MergeRequest) error {
	source, err := s.system(ctx, m.SourceProjectID)
	if err != nil || source == nil {
		return err
	}
	if guarded, err := s.Repos.Guarded(ctx, source, m.SourceBranch); err != nil || guarded {
		return err
	}
	return ignoreRefusal(s.Repos.DeleteBranchAt(ctx, by, project.RefTo(source.ID), m.SourceBranch, git.OID(m.Head)))
}

// closeByCommits adds cross-references to the objects that the commits of a push to
// the default branch mention, and closes the issues that closing patterns reference.
func (s *Service) closeByCommits(ctx context.Context, in *project.Project, w landedWork) error {
	if w.Old == string(git.ZeroOID) {
		return nil
	}
	page, err := s.Repos.CommitsOf(ctx, in, git.OID(w.Old), git.OID(w.New), db.Paging{Limit: maxRead})
	if errs.Is(err, errs.KindNotFound) {
		return nil // a commit was overwritten by another push
	}
	if err != nil {
		return err
	}
	var by *actor.Actor
	for _, c := range page.Items {
		named := issuesIn(c.Message, s.URL)
		if len(named) == 0 && !strings.Contains(c.Message, "!") {
			continue
		}
		if by == nil {
			who, err := s.Users.As(ctx, w.UserID)
			if err != nil {
				return ignoreRefusal(err)
			}
			by = &who
		}
		if err := s.noteCommit(ctx, *by, in, c); err != nil {
			return err
		}
		if !in.Settings.AutocloseReferencedIssues {
			continue
		}
		for ref, closes := range named {
			if !closes {
				continue
			}
			i, err := s.findIssue(ctx, *by, in, ref)
			if err != nil {
				return err
			}
			if i == nil {
				continue
			}
			if err := s.closeIssue(ctx, *by, in, i, "commit "+strings.ToLower(string(c.ID[:8]))); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteCommit adds cross-references to the objects that a commit mentions.
func (s *Service) noteCommit(ctx context.Context, by actor.Actor, in *project.Project, c *git.Commit) error {
	crossed, err := s.Plan.Mentioned(ctx, by, in, c.Message)
	if err != nil || len(crossed) == 0 {
		return err
	}
	from := plan.Source{Kind: plan.CommitKind, SHA: string(c.ID), In: in}
	return s.DB.Tx(ctx, func(tx *db.Tx) error { return s.Plan.CrossReference(ctx, tx, by, from, crossed) })
}
