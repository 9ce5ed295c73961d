package repo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/user"
)

// Status is what a program from outside found out about a commit.
type Status struct {
	ID           int64
	SHA          string
	Ref          string
	Name         string
	State        string // pending, running, success, failed, canceled or skipped
	TargetURL    string
	Description  string
	Coverage     *float64
	AllowFailure bool
	AuthorID     *int64
	Author       *user.User // nil for one who is gone
	CreatedAt    time.Time
	StartedAt    *time.Time
	FinishedAt   *time.Time
}

// finished reports whether nothing more is to come.
func (s *Status) finished() bool { return s.State != "pending" && s.State != "running" }

// StatusFilter chooses statuses; zero values choose the present state of each
// name.
type StatusFilter struct {
	Ref  string
	Name string
	All  bool // what was replaced too
	Desc bool
}

// Statuses lists the statuses of a commit in the order in which they were
// made, for those who read the project's code; NotFound.
func (s *Service) Statuses(ctx context.Context, by actor.Actor, ref project.Ref, rev string, f StatusFilter, pg db.Paging) (db.Page[*Status], error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return db.Page[*Status]{}, err
	}
	id, err := r.ResolveCommit(ctx, rev)
	if err != nil {
		return db.Page[*Status]{}, missing(err, "Commit")
	}
	page, err := listStatuses(ctx, s.DB, p.ID, string(id), f, pg)
	if err != nil {
		return page, fmt.Errorf("list statuses: %w", err)
	}
	return page, s.fillStatusAuthors(ctx, page.Items...)
}

func (s *Service) fillStatusAuthors(ctx context.Context, list ...*Status) error {
	var ids []int64
	for _, one := range list {
		if one.AuthorID != nil {
			ids = append(ids, *one.AuthorID)
		}
	}
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return fmt.Errorf("find authors: %w", err)
	}
	for _, one := range list {
		if one.AuthorID != nil {
			one.Author = users[*one.AuthorID]
		}
	}
	return nil
}

// NewStatus is what is said about a commit; nil leaves what was said before.
type NewStatus struct {
	State       string
	Ref         string // the first branch that has the commit unless given
	Name        string // "default" unless given
	TargetURL   *string
	Description *string
	Coverage    *float64
}

// SetStatus says something about a commit. Developers and above may. One of
// the same name that is under way is changed, one that is over is replaced.
// NotFound of the commit, or when no branch has it and no ref is given.
func (s *Service) SetStatus(ctx context.Context, by actor.Actor, in project.Ref, rev string, n NewStatus) (*Status, error) {
	p, r, err := s.write(ctx, by, in)
	if err != nil {
		return nil, err
	}
	id, err := r.ResolveCommit(ctx, rev)
	if err != nil {
		return nil, missing(err, "Commit")
	}
	if n.Ref, err = refOf(ctx, r, id, n.Ref); err != nil {
		return nil, err
	}
	if n.Name == "" {
		n.Name = "default"
	}
	var set *Status
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil {
			return err
		}
		set, err = s.setStatus(ctx, tx, by, p.ID, string(id), n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("set status of %s: %w", id, err)
	}
	return set, s.fillStatusAuthors(ctx, set)
}

// refOf is the ref that a status is about.
func refOf(ctx context.Context, r git.Repo, id git.OID, ref string) (string, error) {
	if ref != "" {
		return strings.TrimPrefix(strings.TrimPrefix(ref, git.Heads), git.Tags), nil
	}
	names, err := r.Contains(ctx, string(id), git.Heads, 1)
	if err != nil {
		return "", missing(err, "Commit")
	}
	if len(names) == 0 {
		return "", errs.NotFound("References for commit")
	}
	return strings.TrimPrefix(names[0], git.Heads), nil
}

func (s *Service) setStatus(ctx context.Context, tx *db.Tx, by actor.Actor, projectID int64, sha string, n NewStatus) (*Status, error) {
	now := s.Now()
	was, err := findLatest(ctx, tx, projectID, sha, n.Ref, n.Name)
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return nil, err
	}
	next := &Status{SHA: sha, Ref: n.Ref, Name: n.Name, AuthorID: &by.ID, CreatedAt: now}
	if err == nil && (!was.finished() || was.State == n.State) {
		next = was
	} else if err == nil {
		if err := retireStatus(ctx, tx, was.ID); err != nil {
			return nil, err
		}
	}
	next.become(n, now)
	if next.ID != 0 {
		return next, saveStatus(ctx, tx, next)
	}
	return next, insertStatus(ctx, tx, projectID, next)
}

// become takes over what was said.
func (s *Status) become(n NewStatus, now time.Time) {
	s.State = n.State
	if n.TargetURL != nil {
		s.TargetURL = *n.TargetURL
	}
	if n.Description != nil {
		s.Description = *n.Description
	}
	if n.Coverage != nil {
		s.Coverage = n.Coverage
	}
	if s.StartedAt == nil && s.State != "pending" {
		s.StartedAt = &now
	}
	if s.FinishedAt == nil && s.finished() {
		s.FinishedAt = &now
	}
}

// statusOf sums up what programs said about a commit; empty when none did.
func (s *Service) statusOf(ctx context.Context, projectID int64, sha string) (string, error) {
	states, err := latestStates(ctx, s.DB, projectID, sha)
	if err != nil {
		return "", fmt.Errorf("status of %s: %w", sha, err)
	}
	if len(states) == 0 {
		return "", nil
	}
	// What is bad or still to come outweighs what is good.
	for _, state := range []string{"running", "pending", "failed", "canceled", "success"} {
		if slices.Contains(states, state) {
			return state, nil
		}
	}
	return "skipped", nil
}
