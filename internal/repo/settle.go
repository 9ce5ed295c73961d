package repo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// settleAge is the age from which an unrecorded push is considered interrupted.
// It is much longer than updating refs can take.
const settleAge = 10 * time.Minute

// Recover settles the pushes that a previous process left, before this one
// accepts requests. It is for a single node; with several nodes the age of a
// push decides whether it is still in progress (see settlePushes). Git
// processes may have outlived the previous process: Reclaim waits for them, so
// that the refs are final.
func (s *Service) Recover(ctx context.Context) error {
	return s.settle(ctx, s.Now(), git.Repo.Reclaim)
}

// settlePushes settles the interrupted pushes of all nodes.
func (s *Service) settlePushes(ctx context.Context) error {
	return s.settle(ctx, s.Now().Add(-settleAge), func(git.Repo, context.Context) error { return nil })
}

// settle records the interrupted pushes whose refs have moved, and drops the
// others.
func (s *Service) settle(ctx context.Context, before time.Time, prepare func(git.Repo, context.Context) error) error {
	left, err := findLeftovers(ctx, s.DB, before)
	if err != nil {
		return fmt.Errorf("find pushes that were cut off: %w", err)
	}
	var faults []error
	for _, l := range left { // an error does not stop the others
		if err := s.settleOne(ctx, l, prepare); err != nil {
			faults = append(faults, fmt.Errorf("settle push %d to project %d: %w", l.id, l.projectID, err))
		}
	}
	return errors.Join(append(faults, s.settleAuxRepos(ctx, before, prepare))...)
}

func (s *Service) settleOne(ctx context.Context, l leftover, prepare func(git.Repo, context.Context) error) error {
	var by actor.Actor
	if err := json.Unmarshal([]byte(l.who), &by); err != nil {
		return err
	}
	var was journal
	if err := json.Unmarshal([]byte(l.what), &was); err != nil {
		return err
	}
	was.settled = l.what
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(l.projectID), project.NoAccess)
	if errs.Is(err, errs.KindNotFound) {
		return s.drop(ctx, l.id)
	}
	if err != nil {
		return err
	}
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return err
	}
	if err := prepare(r, ctx); err != nil && !errors.Is(err, git.ErrNoRepository) {
		return err
	}
	return s.land(ctx, l.id, by, p, r, was)
}

// land determines from the refs which changes of a push were made, and records
// them.
func (s *Service) land(ctx context.Context, id int64, by actor.Actor, p *project.Project, r git.Repo, j journal) error {
	came, err := landed(ctx, r, j)
	if err != nil {
		return err
	}
	if len(came.Changes) == 0 {
		return s.drop(ctx, id)
	}
	return s.finish(ctx, id, by, p, r, came)
}

// happened reports whether a change of a push was made. The mark in the reflog
// shows which push made it: the client may have sent the same push again, to
// another node.
func happened(ctx context.Context, r git.Repo, mark string, c Change) (bool, error) {
	if mark == "" {
		return r.WasAt(ctx, c.Ref, c.New)
	}
	return r.Happened(ctx, git.Update{Ref: c.Ref, Old: c.Old, New: c.New}, mark)
}

// landed returns the changes of a push that were made according to the refs;
// none if there is no repository.
func landed(ctx context.Context, r git.Repo, j journal) (journal, error) {
	came := journal{Options: j.Options, About: j.About, Mark: j.Mark, settled: j.settled}
	for _, c := range j.Changes {
		moved, err := happened(ctx, r, j.Mark, c)
		if errors.Is(err, git.ErrNoRepository) {
			return journal{}, nil
		}
		if err != nil {
			return journal{}, err
		}
		if moved {
			came.Changes = append(came.Changes, c)
		}
	}
	return came, nil
}
