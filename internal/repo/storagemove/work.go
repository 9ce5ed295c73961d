package storagemove

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/queue"
	"svc/internal/repo"
)

const (
	// moveLane is the queue lane for moves. They take long, and a disk copies
	// fastest one at a time.
	moveLane = "storage_moves"
	// moveTries is practically unlimited: moves end by themselves.
	moveTries = 10_000
	// maxCutOff is how often a move may be interrupted by the end of the
	// process.
	maxCutOff = 5
	// writersWait is how long a move waits for writers. It is longer than it
	// takes until the pushes of a crashed node are settled.
	writersWait = 2 * repo.SettleAge
	// moveStale is the age of a move that is no longer worked on.
	moveStale = 10 * time.Minute
	moveBeat  = time.Minute
)

func (m *Service) handleWork() {
	q := m.Repos.Queue
	q.Lane(moveLane, 1)
	q.Lane(cleanLane, 32)
	queue.Handle(q, m.work, queue.Timeout(12*time.Hour))
	queue.Handle(q, m.workClean, queue.Timeout(leaveLimit+time.Hour))
	queue.Handle(q, m.workAll, queue.Timeout(time.Hour))
	q.Every("storage_moves", moveStale, m.wake)
	m.Notices.Subscribe(moveTopic, m.heard)
}

// moveWork is the background job that runs a move.
type moveWork struct {
	MoveID int64 `json:"move_id"`
}

// Kind implements queue.Work.
func (moveWork) Kind() string { return "storage_move" }

// moveAllWork is the background job that creates the moves of a MoveAll.
type moveAllWork struct {
	Of          Kind   `json:"of"`
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

// Kind implements queue.Work.
func (moveAllWork) Kind() string { return "storage_move_all" }

func (m *Service) workAll(ctx context.Context, w moveAllWork) error {
	var last int64
	total := 0
	for {
		ids, err := ownersOn(ctx, m.Repos.DB, w.Of, w.Source, last, 200)
		if err != nil {
			return fmt.Errorf("find repositories on storage %s: %w", w.Source, err)
		}
		if len(ids) == 0 {
			m.Log.InfoContext(ctx, "creating storage moves", "kind", w.Of, "source", w.Source, "destination", w.Destination, "moves", total)
			return nil
		}
		last = ids[len(ids)-1]
		made := 0
		err = m.Repos.DB.Tx(ctx, func(tx *db.Tx) error {
			made = 0
			for _, id := range ids {
				mv := &Move{
					Kind: w.Of, OwnerID: id, Source: w.Source, Destination: w.Destination, State: Initial, CreatedAt: m.Repos.Now(), UpdatedAt: m.Repos.Now(),
				}
				if mv.Destination == "" {
					mv.Destination = m.roomiest(mv.Source)
				}
				err := insertMove(ctx, tx, mv)
				if errors.Is(err, db.ErrNoRows) {
					continue // a move is already in progress
				}
				if err != nil {
					return err
				}
				made++
				if err := m.Repos.Queue.Add(ctx, tx, moveWork{mv.ID}, queue.In(moveLane), queue.Tries(moveTries), queue.Priority(2)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("move all %ss of storage %s: %w", w.Of, w.Source, err)
		}
		total += made
	}
}

// wake adds background jobs for moves that were interrupted.
func (m *Service) wake(ctx context.Context) error {
	ids, err := staleMoves(ctx, m.Repos.DB, m.Repos.Now().Add(-moveStale))
	if err != nil {
		return fmt.Errorf("find stalled storage moves: %w", err)
	}
	return m.Repos.DB.Tx(ctx, func(tx *db.Tx) error {
		for _, id := range ids { // the one that does not match the state does nothing
			if err := m.Repos.Queue.Add(ctx, tx, moveWork{id}, queue.In(moveLane), queue.Tries(moveTries), queue.Unique()); err != nil {
				return err
			}
			if err := m.addCleaning(ctx, tx, id, queue.Unique()); err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *Service) work(ctx context.Context, w moveWork) error { return m.Run(ctx, w.MoveID) }

// Run moves a repository to its new storage, in a background job. If it is interrupted at any
// point, it is run again.
func (m *Service) Run(ctx context.Context, id int64) error {
	mv, err := m.begin(ctx, id)
	if err != nil || mv == nil {
		return err
	}
	err = m.carry(ctx, mv)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err() // the server stops; the next process continues
	case err == nil, errors.Is(err, errNotMine):
		return nil
	}
	return m.fail(context.WithoutCancel(ctx), mv, err)
}

// errNotMine means that another process has taken over the move, or that it is over.
var errNotMine = errors.New("another process has taken over the move")

// begin takes over a move. It returns nil if the move is already replicated or
// over, or must wait for writers.
func (m *Service) begin(ctx context.Context, id int64) (*Move, error) {
	mv, err := findMove(ctx, m.Repos.DB, id)
	if errors.Is(err, db.ErrNoRows) || err == nil && (mv.State.Over() || mv.State == Replicated) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find storage move %d: %w", id, err)
	}
	if named, err := m.Get(ctx, actor.System(), Filter{ID: id}); err == nil {
		mv.Name = named.Name // for audit events
	}
	if err := m.possible(mv.Source, mv.Destination); err != nil { // the configuration has changed
		return nil, m.fail(ctx, mv, err)
	}
	if mv.State == Initial {
		err := m.enterState(ctx, mv, Scheduled, func(tx *db.Tx) error { return m.close(ctx, tx, mv) })
		if errs.IsRefusal(err) {
			return nil, m.fail(ctx, mv, err)
		}
		if err != nil {
			return nil, mine(err)
		}
	}
	if mv.State == Scheduled {
		if free, err := m.await(ctx, mv); err != nil || !free {
			return nil, err
		}
	}
	if mv.tries++; mv.tries > maxCutOff {
		return nil, m.fail(ctx, mv, fmt.Errorf("it was interrupted %d times", maxCutOff))
	}
	m.Step("start")
	at := m.Repos.Now()
	if mv.StartedAt == nil {
		mv.StartedAt = &at
	}
	err = m.enterState(ctx, mv, Started, func(tx *db.Tx) error { return m.planCopies(ctx, tx, mv) })
	if errs.IsRefusal(err) {
		return nil, m.fail(ctx, mv, err)
	}
	if err != nil {
		return nil, mine(err)
	}
	return mv, nil
}

// mine ignores errNotMine.
func mine(err error) error {
	if errors.Is(err, errNotMine) {
		return nil
	}
	return err
}

// enterState changes the state of a move and runs with, in one transaction.
// errNotMine.
func (m *Service) enterState(ctx context.Context, mv *Move, to State, with func(*db.Tx) error) error {
	next := *mv
	next.State, next.UpdatedAt = to, m.Repos.Now()
	if to == Started {
		next.run = rand.Text() // invalidates the previous owner
	}
	if to.Over() {
		next.EndedAt = &next.UpdatedAt
	}
	err := m.Repos.DB.Tx(ctx, func(tx *db.Tx) error {
		if with != nil {
			if err := with(tx); err != nil {
				return err
			}
		}
		next.left = mv.left
		err := saveMove(ctx, tx, &next, mv.State, mv.run)
		if errors.Is(err, db.ErrNoRows) {
			return errNotMine
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("storage move %d: %w", mv.ID, err)
	}
	*mv = next
	m.publish(ctx, mv)
	return nil
}

// publish logs the state of a move, and at its end the number of remaining
// moves.
func (m *Service) publish(ctx context.Context, mv *Move) {
	attrs := []any{"move", mv.ID, "state", mv.State, "kind", mv.Kind, "id", mv.OwnerID, "source", mv.Source, "destination", mv.Destination}
	if mv.Error != "" {
		attrs = append(attrs, "error", mv.Error)
	}
	if mv.State.Over() {
		if left, err := countMoves(ctx, m.Repos.DB); err == nil { // only for the log
			attrs = append(attrs, "left", left.all())
		}
	}
	m.Log.InfoContext(ctx, "storage move", attrs...)
}

// await reports whether there are no more writers. Otherwise the move is queued
// again with a delay, so that other moves can run.
func (m *Service) await(ctx context.Context, mv *Move) (bool, error) {
	for range 40 {
		n, err := m.Repos.CountWriters(ctx, m.Repos.DB, mv.owner())
		if err != nil {
			return false, fmt.Errorf("writers of storage move %d: %w", mv.ID, err)
		}
		if n == 0 {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	if m.Repos.Now().Sub(mv.UpdatedAt) > writersWait {
		return false, m.fail(ctx, mv, errors.New("a push to the repository does not end"))
	}
	return false, m.Repos.DB.Tx(ctx, func(tx *db.Tx) error {
		return m.Repos.Queue.Add(ctx, tx, moveWork{mv.ID}, queue.In(moveLane), queue.Tries(moveTries), queue.Delay(time.Second))
	})
}

// carry copies the repositories, verifies the copies, and switches to them. An empty wiki
// that was created in the meantime is copied too.
func (m *Service) carry(ctx context.Context, mv *Move) (err error) {
	ctx, stop := m.beat(ctx, mv)
	defer func() {
		if stop(); errors.Is(context.Cause(ctx), errNotMine) {
			err = errNotMine
		}
	}()
	copied := map[location]bool{}
	for {
		list, err := m.Repos.Located(ctx, m.Repos.DB, mv.owner())
		if err != nil {
			return err
		}
		for _, p := range list {
			if p.Storage == mv.Destination || copied[locationOf(p)] {
				continue
			}
			if err := m.copy(ctx, mv, p); err != nil {
				return err
			}
			copied[locationOf(p)] = true
		}
		m.Step("switch")
		err = m.enterState(ctx, mv, Replicated, func(tx *db.Tx) error { return m.swap(ctx, tx, mv, copied) })
		if !errors.Is(err, errMore) {
			return err
		}
	}
}

// fail ends a move that cannot be completed: the repositories stay on the old storage and
// become writable again.
func (m *Service) fail(ctx context.Context, mv *Move, cause error) error {
	if mv.State == Started {
		// Takes the move over from this run too: its switch may be committed although
		// the reply was lost, or later, and then the copies are the repositories. This
		// waits for such a commit.
		if err := m.enterState(ctx, mv, Started, nil); err != nil {
			return mine(err)
		}
	}
	now, err := m.Repos.Located(ctx, m.Repos.DB, mv.owner())
	if errs.Is(err, errs.KindNotFound) {
		now, cause, err = nil, errors.New("it was deleted"), nil
	}
	if err != nil {
		return err
	}
	if mv.State == Started { // nothing else removes the copies
		left := m.removeCopies(ctx, mv, now)
		if errors.Is(left, errNotMine) {
			return nil
		}
		cause = errors.Join(cause, left)
	}
	closed := mv.State == Scheduled || mv.State == Started
	mv.Error, mv.left = cause.Error(), nil
	m.Step("fail")
	return mine(m.enterState(ctx, mv, Failed, func(tx *db.Tx) error {
		if !closed {
			return nil
		}
		return m.open(ctx, tx, mv)
	}))
}

// removeCopies removes the copies of a move, except directories that are in
// use. errNotMine.
func (m *Service) removeCopies(ctx context.Context, mv *Move, now []repo.Located) error {
	made := slices.Clone(mv.left)
	for _, p := range now { // including those that were added since
		if one := (location{mv.Destination, p.Path}); !slices.Contains(made, one) {
			made = append(made, one)
		}
	}
	var faults []error
	for _, one := range made {
		if _, ok := m.Repos.Storages[one.Storage]; !ok {
			continue
		}
		err := m.discard(ctx, mv, one)
		if errors.Is(err, errNotMine) {
			return err
		}
		if !errors.Is(err, errInUse) && !errors.Is(err, syscall.ENOTDIR) { // ENOTDIR: there cannot be a copy
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// errInUse means that a directory is that of a repository, not of a copy.
var errInUse = errors.New("the repository is in this directory")

// discard removes a copy that the move has made. The database is read immediately before:
// if this process was stalled for long, another one may have completed the move, and the copy
// is the repository now. errNotMine; errInUse.
func (m *Service) discard(ctx context.Context, mv *Move, made location) error {
	root := m.Repos.Storages[made.Storage]
	list, err := m.Repos.Located(ctx, m.Repos.DB, mv.owner())
	if err != nil && !errs.Is(err, errs.KindNotFound) { // the repositories of a deleted owner are removed
		return err
	}
	if slices.ContainsFunc(list, func(p repo.Located) bool { return p.Path == made.Path && sameDir(m.Repos.Storages[p.Storage], root) }) {
		return errInUse
	}
	if err := ownsMove(ctx, m.Repos.DB, mv); errors.Is(err, db.ErrNoRows) {
		return errNotMine
	} else if err != nil {
		return err
	}
	return repo.Discard(ctx, m.Repos.Git.Repo(filepath.Join(root, made.Path)))
}

// beat updates the time of a move in progress regularly, until stop is called. It cancels the
// returned context with errNotMine when another process has taken over the move.
func (m *Service) beat(ctx context.Context, mv *Move) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	id, run := mv.ID, mv.run
	go func() {
		pause := time.NewTicker(moveBeat)
		defer pause.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
				err := touchMove(ctx, m.Repos.DB, id, run, m.Repos.Now())
				if errors.Is(err, db.ErrNoRows) {
					cancel(errNotMine)
				} else if err != nil && ctx.Err() == nil {
					m.Log.WarnContext(ctx, "a storage move cannot record its progress", "move", id, "error", err)
				}
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
