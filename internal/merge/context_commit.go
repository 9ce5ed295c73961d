package merge

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// maxContextCommits is the maximum number of context commits of a merge request.
const maxContextCommits = 100

// commitName matches a commit ID, which may be abbreviated.
var commitName = regexp.MustCompile(`^[0-9a-fA-F]{7,64}$`)

// ContextCommits lists the context commits of a merge request in the order in which
// they were added, for users who can see it and the repository. Commits that no
// longer exist in the repository are left out. NotFound.
func (s *Service) ContextCommits(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*project.Project, []*git.Commit, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, nil, err
	}
	src, err := s.Repos.SourceOf(by, in)
	if err != nil {
		return nil, nil, err
	}
	ids, err := findContextCommits(ctx, s.DB, m.ID)
	if err != nil || len(ids) == 0 {
		return in, nil, err
	}
	found, err := src.Commits(ctx, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("context commits of merge request %d: %w", m.ID, err)
	}
	var list []*git.Commit
	for _, id := range ids {
		if c := found[id]; c != nil {
			list = append(list, c)
		}
	}
	return in, list, nil
}

// AddContextCommits adds commits of the target project to a merge request as context
// commits and returns them, for users who may edit it. NotFound; Forbidden; Invalid
// if a commit does not exist or is already a context commit, or there are too many.
func (s *Service) AddContextCommits(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, names []string) (*project.Project, []*git.Commit, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, nil, err
	}
	if err := m.CheckEdit(by, in); err != nil {
		return nil, nil, err
	}
	if len(names) == 0 || len(names) > maxContextCommits {
		return nil, nil, errs.InvalidField("commits", "must have between 1 and %d commits", maxContextCommits)
	}
	src, err := s.Repos.SourceOf(by, in)
	if err != nil {
		return nil, nil, err
	}
	var list []*git.Commit
	for _, name := range names {
		if !commitName.MatchString(name) {
			return nil, nil, errs.Invalid("One or more context commits' sha is not valid.")
		}
		c, err := src.Commit(ctx, name)
		if errs.Is(err, errs.KindNotFound) || errs.Is(err, errs.KindInvalid) {
			return nil, nil, errs.Invalid("One or more context commits' sha is not valid.")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("add context commits to merge request %d: %w", m.ID, err)
		}
		if !slices.ContainsFunc(list, func(o *git.Commit) bool { return o.ID == c.ID }) {
			list = append(list, c)
		}
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if _, err := lockRequest(ctx, tx, m.ID); err != nil {
			return err
		}
		have, err := findContextCommits(ctx, tx, m.ID)
		if err != nil {
			return err
		}
		if len(have)+len(list) > maxContextCommits {
			return errs.Invalid("A merge request can have at most %d context commits", maxContextCommits)
		}
		for _, c := range list {
			if slices.Contains(have, string(c.ID)) {
				return errs.Invalid("The commit %s is a context commit already", c.ID)
			}
			if err := insertContextCommit(ctx, tx, m.ID, string(c.ID), s.Now()); err != nil {
				return err
			}
		}
		return s.Plan.AddSystemNote(ctx, tx, by, m.Target(), m.IID, m.ProjectID, "added "+countContext(len(list)))
	})
	if err != nil {
		return nil, nil, fmt.Errorf("add context commits to merge request %d: %w", m.ID, err)
	}
	return in, list, nil
}

// DeleteContextCommits removes context commits from a merge request, for users who
// may edit it. NotFound, also if one of them is not a context commit; Forbidden;
// Invalid.
func (s *Service) DeleteContextCommits(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, ids []string) error {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return err
	}
	if err := m.CheckEdit(by, in); err != nil {
		return err
	}
	if len(ids) == 0 || len(ids) > maxContextCommits {
		return errs.InvalidField("commits", "must have between 1 and %d commits", maxContextCommits)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if _, err := lockRequest(ctx, tx, m.ID); err != nil {
			return err
		}
		for _, id := range ids {
			if err := deleteContextCommit(ctx, tx, m.ID, id); err != nil {
				return db.NotFound(err, "Context commit")
			}
		}
		return s.Plan.AddSystemNote(ctx, tx, by, m.Target(), m.IID, m.ProjectID, "removed "+countContext(len(ids)))
	})
	if err != nil {
		return fmt.Errorf("remove context commits of merge request %d: %w", m.ID, err)
	}
	return nil
}

func countContext(n int) string {
	if n == 1 {
		return "1 context commit"
	}
	return fmt.Sprintf("%d context commits", n)
}
