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

// SettleAge is the age from which any unrecorded push is considered interrupted.
// It is much longer than updating refs can take.
const SettleAge = 10 * time.Minute

// Recover settles the pushes that a previous process left, before this one
// accepts requests. It is for a single node; with several nodes the age of a
// push decides whether it is still in progress (see SettlePushes). Git
// processes may have outlived the previous process: Reclaim waits for them, so
// that the refs are final.
func (s *Service) Recover(ctx context.Context) error {
	return s.settle(ctx, s.Now(), git.Repo.Reclaim)
}

// SettlePushes settles the interrupted pushes of all nodes. It runs in the
// background.
func (s *Service) SettlePushes(ctx context.Context) error {
	return errors.Join(s.settleMoved(ctx), s.settle(ctx, s.Now().Add(-SettleAge), unprepared))
}

func unprepared(git.Repo, context.Context) error { return nil }

const (
	// settleEvery is how often SettlePushes runs.
	settleEvery = 10 * time.Second
	// leaseAge is the minimum age of a push whose node is checked. It ensures that nodes
	// have sent a heartbeat since they started.
	leaseAge = 15 * time.Second
)

// settleMoved records the pushes of nodes without heartbeats if all their refs have moved, so
// that users see them soon. A frozen node may still move refs, so its other pushes wait for
// SettleAge; nothing is missing meanwhile.
func (s *Service) settleMoved(ctx context.Context) error {
	living, err := s.Queue.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("find nodes: %w", err)
	}
	before := s.Now().Add(-leaseAge)
	left, err := findNodeLeftovers(ctx, s.DB, before, living)
	if err != nil {
		return fmt.Errorf("find pushes of nodes that are gone: %w", err)
	}
	var faults []error
	for _, l := range left {
		if err := s.settleOne(ctx, l, onlyMoved(l)); err != nil && !errors.Is(err, errNotMoved) {
			faults = append(faults, fmt.Errorf("settle push %d to project %d: %w", l.id, l.projectID, err))
		}
	}
	if left, err = findAuxRepoNodeLeftovers(ctx, s.DB, before, living); err != nil {
		return fmt.Errorf("find pushes to auxiliary repositories of nodes that are gone: %w", err)
	}
	for _, l := range left {
		if err := s.settleAuxRepo(ctx, l, onlyMoved(l)); err != nil && !errors.Is(err, errNotMoved) {
			faults = append(faults, fmt.Errorf("settle push %d to auxiliary repository %d: %w", l.id, l.projectID, err))
		}
	}
	return errors.Join(faults...)
}

// errNotMoved means that a push may still be in progress.
var errNotMoved = errors.New("not all refs have moved")

// onlyMoved returns errNotMoved for a push whose refs have not all moved.
func onlyMoved(l leftover) func(git.Repo, context.Context) error {
	return func(r git.Repo, ctx context.Context) error {
		var was journal
		if err := json.Unmarshal([]byte(l.what), &was); err != nil {
			return err
		}
		came, err := landed(ctx, r, was)
		if err == nil && (len(was.Changes) == 0 || len(came.Changes) < len(was.Changes)) {
			err = errNotMoved
		}
		return err
	}
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

// landLater repeats land in the background for a push that could not be recorded because the
// database was unavailable for a moment. As this node is running, other nodes would settle
// the push only after SettleAge, which they do if landLater does not succeed.
func (s *Service) landLater(ctx context.Context, land func(context.Context) error) {
	ctx = context.WithoutCancel(ctx)
	go func() {
		for wait := time.Second; wait <= landWait; wait *= 2 {
			time.Sleep(wait)
			if land(ctx) == nil {
				return
			}
		}
	}()
}

// landWait is the longest wait between two attempts of landLater. All attempts together take
// about twice as long.
const landWait = 64 * time.Second

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
	came := journal{Options: j.Options, About: j.About, Mark: j.Mark, settled: j.settled, found: true}
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
