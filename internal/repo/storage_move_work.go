package repo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/queue"
)

const (
	// moveLane is for moves alone: they take long, and one at a time is what a
	// disk does best.
	moveLane = "storage_moves"
	// moveTries is more than ever happens: a move comes to its end by itself.
	moveTries = 10_000
	// maxCutOff is how often a move may be cut off by the end of the process.
	maxCutOff = 5
	// writersWait is how long a move waits for those who write: longer than it
	// takes until what a dead node has begun is settled.
	writersWait = 2 * settleAge
	// moveStale is the age of a move on which nobody works.
	moveStale = 10 * time.Minute
	moveBeat  = time.Minute
)

func (m *Mover) handleWork() {
	q := m.Repos.Queue
	q.Lane(moveLane, 1)
	q.Lane(cleanLane, 32)
	queue.Handle(q, m.work, queue.Timeout(12*time.Hour))
	queue.Handle(q, m.workClean, queue.Timeout(leaveLimit+time.Hour))
	queue.Handle(q, m.workAll, queue.Timeout(time.Hour))
	q.Every("storage_moves", moveStale, m.wake)
	m.Notices.Subscribe(moveTopic, m.heard)
}

// moveWork brings a move to its end.
type moveWork struct {
	MoveID int64 `json:"move_id"`
}

// Kind names the work in the queue.
func (moveWork) Kind() string { return "storage_move" }

// moveAllWork makes a move for everything on a storage.
type moveAllWork struct {
	Of          MoveKind `json:"of"`
	Source      string   `json:"source"`
	Destination string   `json:"destination"`
}

// Kind names the work in the queue.
func (moveAllWork) Kind() string { return "storage_move_all" }

func (m *Mover) workAll(ctx context.Context, w moveAllWork) error {
	var last int64
	total := 0
	for {
		ids, err := ownersOn(ctx, m.Repos.DB, w.Of, w.Source, last, 200)
		if err != nil {
			return fmt.Errorf("find what lies on storage %s: %w", w.Source, err)
		}
		if len(ids) == 0 {
			m.Log.InfoContext(ctx, "storage moves are made", "kind", w.Of, "source", w.Source, "destination", w.Destination, "moves", total)
			return nil
		}
		last = ids[len(ids)-1]
		made := 0
		err = m.Repos.DB.Tx(ctx, func(tx *db.Tx) error {
			made = 0
			for _, id := range ids {
				mv := &StorageMove{
					Kind: w.Of, OwnerID: id, Source: w.Source, Destination: w.Destination, State: MoveInitial, CreatedAt: m.Repos.Now(), UpdatedAt: m.Repos.Now(),
				}
				if mv.Destination == "" {
					mv.Destination = m.roomiest(mv.Source)
				}
				err := insertMove(ctx, tx, mv)
				if errors.Is(err, db.ErrNoRows) {
					continue // it goes already
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

// wake has moves gone on with that somebody has left lying.
func (m *Mover) wake(ctx context.Context) error {
	ids, err := staleMoves(ctx, m.Repos.DB, m.Repos.Now().Add(-moveStale), m.Repos.Now().Add(-leaveLimit))
	if err != nil {
		return fmt.Errorf("find storage moves that lie: %w", err)
	}
	return m.Repos.DB.Tx(ctx, func(tx *db.Tx) error {
		for _, id := range ids { // the one that does not fit its state does nothing
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

// work brings a repository to its new place. It may be cut off anywhere, and is
// done again then.
func (m *Mover) work(ctx context.Context, w moveWork) error {
	mv, err := m.begin(ctx, w.MoveID)
	if err != nil || mv == nil {
		return err
	}
	err = m.carry(ctx, mv)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err() // the server stops; the next one goes on
	case err == nil, errors.Is(err, errNotMine):
		return nil
	}
	return m.fail(context.WithoutCancel(ctx), mv, err)
}

// errNotMine says that somebody else has taken a move over, or ended it.
var errNotMine = errors.New("the move is in other hands")

// begin takes a move in hand. It gives nil for one that has come to its new
// place, or failed, or has to wait for those who write.
func (m *Mover) begin(ctx context.Context, id int64) (*StorageMove, error) {
	mv, err := findMove(ctx, m.Repos.DB, id)
	if errors.Is(err, db.ErrNoRows) || err == nil && (mv.State.Over() || mv.State == MoveReplicated) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find storage move %d: %w", id, err)
	}
	if named, err := m.Get(ctx, actor.System(), MoveFilter{ID: id}); err == nil {
		mv.Name = named.Name // for the record
	}
	if err := m.possible(mv.Source, mv.Destination); err != nil { // the configuration has changed
		return nil, m.fail(ctx, mv, err)
	}
	if mv.State == MoveInitial {
		err := m.enterState(ctx, mv, MoveScheduled, func(tx *db.Tx) error { return m.close(ctx, tx, mv) })
		if errs.KindOf(err) != 0 {
			return nil, m.fail(ctx, mv, err)
		}
		if err != nil {
			return nil, mine(err)
		}
	}
	if mv.State == MoveScheduled {
		if free, err := m.await(ctx, mv); err != nil || !free {
			return nil, err
		}
	}
	if mv.tries++; mv.tries > maxCutOff {
		return nil, m.fail(ctx, mv, fmt.Errorf("it was cut off %d times", maxCutOff))
	}
	m.Step("start")
	at := m.Repos.Now()
	if mv.StartedAt == nil {
		mv.StartedAt = &at
	}
	if err := m.enterState(ctx, mv, MoveStarted, nil); err != nil {
		return nil, mine(err)
	}
	return mv, nil
}

// mine makes nothing of a move that somebody else has taken.
func mine(err error) error {
	if errors.Is(err, errNotMine) {
		return nil
	}
	return err
}

// enterState brings a move into its next state, with what belongs to it in one
// transaction. errNotMine.
func (m *Mover) enterState(ctx context.Context, mv *StorageMove, to MoveState, with func(*db.Tx) error) error {
	next := *mv
	next.State, next.UpdatedAt = to, m.Repos.Now()
	if to == MoveStarted {
		next.run = rand.Text() // who had it before has it no more
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
	m.Log.InfoContext(ctx, "storage move", "move", mv.ID, "state", to, "kind", mv.Kind, "id", mv.OwnerID, "source", mv.Source, "destination", mv.Destination, "error", mv.Error)
	return nil
}

// await tells whether nobody writes any more. While somebody does, the move
// waits in the queue and keeps no other from its turn.
func (m *Mover) await(ctx context.Context, mv *StorageMove) (bool, error) {
	for range 40 {
		n, err := countWriters(ctx, m.Repos.DB, mv.Kind, mv.OwnerID)
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
		return false, m.fail(ctx, mv, errors.New("somebody is writing to the repository, and does not come to an end"))
	}
	return false, m.Repos.DB.Tx(ctx, func(tx *db.Tx) error {
		return m.Repos.Queue.Add(ctx, tx, moveWork{mv.ID}, queue.In(moveLane), queue.Tries(moveTries), queue.Delay(time.Second))
	})
}

// part is one of the repositories of a move.
type part struct {
	annex   *Annex // nil for the code of a project
	storage string
	path    string // in the storage
}

// parts are all repositories of a move, where they lie now. NotFound when the
// owner is gone.
func (m *Mover) parts(ctx context.Context, q db.Q, mv *StorageMove) ([]part, error) {
	var list []part
	if mv.Kind == ProjectMove {
		at, err := findPlace(ctx, q, "projects", mv.OwnerID)
		if errors.Is(err, db.ErrNoRows) {
			return nil, errs.NotFound("Project")
		}
		if err != nil {
			return nil, err
		}
		list = append(list, part{storage: at.storage, path: pathOf(mv.OwnerID)})
	}
	a, err := findAnnex(ctx, q, mv.Kind.owner().annex, mv.OwnerID)
	switch {
	case err == nil:
		list = append(list, part{a, a.Storage, annexPath(a.Kind, a.ID)})
	case !errors.Is(err, db.ErrNoRows):
		return nil, err
	case mv.Kind != ProjectMove:
		return nil, errs.NotFound("Repository")
	}
	return list, nil
}

// place puts the parts of a move on a storage, or only closes or opens them
// where they are.
func (m *Mover) place(ctx context.Context, tx *db.Tx, mv *StorageMove, list []part, storage string, readOnly bool) error {
	for _, p := range list {
		to := p.storage
		if storage != "" {
			to = storage
		}
		var err error
		if p.annex != nil {
			err = saveAnnexPlace(ctx, tx, p.annex.ID, to, readOnly)
		} else {
			err = m.Repos.Projects.Placed(ctx, tx, mv.OwnerID, to, readOnly)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lockParts is parts, held until the end of the transaction.
func (m *Mover) lockParts(ctx context.Context, tx *db.Tx, mv *StorageMove) ([]part, error) {
	if mv.Kind == ProjectMove {
		if err := tx.Lock(ctx, "projects", mv.OwnerID); err != nil {
			return nil, err
		}
	}
	list, err := m.parts(ctx, tx, mv)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if p.annex != nil {
			if err := tx.Lock(ctx, "annexes", p.annex.ID); err != nil {
				return nil, err
			}
		}
	}
	return m.parts(ctx, tx, mv) // as they are now that nobody changes them
}

// close makes the repositories of a move read-only. InvalidField when they are
// so already, or are not where the move begins.
func (m *Mover) close(ctx context.Context, tx *db.Tx, mv *StorageMove) error {
	list, err := m.lockParts(ctx, tx, mv)
	if err != nil {
		return err
	}
	if mv.Kind == ProjectMove {
		at, err := findPlace(ctx, tx, "projects", mv.OwnerID)
		if err != nil {
			return err
		}
		if at.readOnly {
			return errs.InvalidField(string(mv.Kind), "is read-only")
		}
		importing, err := m.Repos.Projects.Importing(ctx, tx, mv.OwnerID)
		if err != nil {
			return err
		}
		if importing {
			return errs.InvalidField(string(mv.Kind), "is being imported")
		}
	}
	for _, p := range list {
		if p.annex != nil && p.annex.ReadOnly {
			return errs.InvalidField(string(mv.Kind), "is read-only")
		}
	}
	if list[0].storage != mv.Source {
		return errs.InvalidField(string(mv.Kind), "is on another storage by now")
	}
	return m.place(ctx, tx, mv, list, "", true)
}

// carry copies the repositories, checks the copies, and puts them in the place
// of the originals.
func (m *Mover) carry(ctx context.Context, mv *StorageMove) error {
	defer m.beat(ctx, mv)()
	list, err := m.parts(ctx, m.Repos.DB, mv)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.storage == mv.Destination {
			continue
		}
		m.Step("copy")
		from, to, err := m.ends(mv, p)
		if err != nil {
			return err
		}
		if err := discard(to); err != nil { // what an earlier try left
			return err
		}
		_, err = m.Repos.Git.Copy(ctx, from, to.Path())
		if errors.Is(err, git.ErrNoRepository) {
			continue // nobody has written to it yet
		}
		if err != nil {
			return err
		}
		m.Step("verify")
		if err := m.verify(ctx, mv, from, to); err != nil {
			return err
		}
	}
	m.Step("switch")
	return m.enterState(ctx, mv, MoveReplicated, func(tx *db.Tx) error { return m.swap(ctx, tx, mv, list) })
}

// ends are the two directories of a part. That they are not one and the same,
// whatever links there are, is asked here once more: one of them is going to
// be removed.
func (m *Mover) ends(mv *StorageMove, p part) (from, to git.Repo, err error) {
	source, ok := m.Repos.Storages[p.storage]
	target, there := m.Repos.Storages[mv.Destination]
	if !ok || !there {
		return from, to, fmt.Errorf("one of the storages %s and %s is not configured", p.storage, mv.Destination)
	}
	from, to = m.Repos.Git.Repo(filepath.Join(source, p.path)), m.Repos.Git.Repo(filepath.Join(target, p.path))
	if sameDir(source, target) || sameDir(from.Path(), to.Path()) {
		return from, to, fmt.Errorf("%s and %s are the same directory", from.Path(), to.Path())
	}
	return from, to, nil
}

// verify reads all of a copy. What was broken before it was copied is broken in
// the copy as well, and no reason to leave it.
func (m *Mover) verify(ctx context.Context, mv *StorageMove, from, to git.Repo) error {
	differs, err := from.Differs(ctx, to)
	if err == nil && differs != "" {
		err = fmt.Errorf("the copy is not the same: %s", differs)
	}
	if err != nil {
		return err
	}
	problems, err := to.Fsck(ctx)
	if err != nil || len(problems) == 0 {
		return err
	}
	before, err := from.Fsck(ctx)
	if err != nil {
		return err
	}
	known := map[git.Problem]bool{}
	for _, p := range before {
		known[p] = true
	}
	for _, p := range problems {
		if !known[p] {
			return fmt.Errorf("the copy is not whole: %s", p.Text)
		}
	}
	m.Log.WarnContext(ctx, "a repository that is moved is not whole", "move", mv.ID, "repository", from.Path(), "problems", len(problems))
	return nil
}

// swap makes the copies what everybody reads and writes. It is done when the
// transaction is.
func (m *Mover) swap(ctx context.Context, tx *db.Tx, mv *StorageMove, copied []part) error {
	now, err := m.lockParts(ctx, tx, mv)
	if err != nil {
		return err
	}
	if len(now) != len(copied) {
		return errors.New("the repositories have changed while they were copied")
	}
	mv.left = nil
	for i, p := range now {
		if p.path != copied[i].path || p.storage != copied[i].storage {
			return errors.New("the repositories have moved while they were copied")
		}
		if p.storage != mv.Destination {
			mv.left = append(mv.left, remains{p.storage, p.path})
		}
		if p.annex != nil {
			if err := m.Repos.addAnnexTidying(ctx, tx, p.annex.ID, false); err != nil {
				return err
			}
		} else if err := m.Repos.addTidying(ctx, tx, mv.OwnerID); err != nil {
			return err
		}
	}
	if err := m.place(ctx, tx, mv, now, mv.Destination, false); err != nil {
		return err
	}
	if err := m.record(ctx, tx, actor.System(), mv, "repository_storage_updated"); err != nil {
		return err
	}
	if err := m.addCleaning(ctx, tx, mv.ID); err != nil {
		return err
	}
	return m.Notices.Send(ctx, tx, moveTopic, strconv.FormatInt(mv.ID, 10))
}

// fail ends a move that can not be done: the repositories stay where they are,
// and may be written to again.
func (m *Mover) fail(ctx context.Context, mv *StorageMove, cause error) error {
	if errs.Is(cause, errs.KindNotFound) {
		cause = errors.New("it was deleted")
	}
	list, err := m.parts(ctx, m.Repos.DB, mv)
	if errs.Is(err, errs.KindNotFound) && mv.Kind == ProjectMove { // the copy of what is gone has nobody else
		list, err = []part{{storage: mv.Source, path: pathOf(mv.OwnerID)}}, nil
	}
	if err != nil && !errs.Is(err, errs.KindNotFound) {
		return err
	}
	if mv.State == MoveStarted {
		for _, p := range list {
			if p.storage == mv.Destination {
				continue
			}
			if _, to, err := m.ends(mv, p); err == nil {
				cause = errors.Join(cause, discard(to))
			}
		}
	}
	closed := mv.State == MoveScheduled || mv.State == MoveStarted
	mv.Error = cause.Error()
	err = m.enterState(ctx, mv, MoveFailed, func(tx *db.Tx) error {
		if !closed {
			return nil
		}
		now, err := m.lockParts(ctx, tx, mv)
		if errs.Is(err, errs.KindNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return m.place(ctx, tx, mv, now, "", false)
	})
	return mine(err)
}

// beat shows that somebody works on a move, until what it gives is called.
func (m *Mover) beat(ctx context.Context, mv *StorageMove) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	id, run := mv.ID, mv.run
	go func() {
		pause := time.NewTicker(moveBeat)
		defer pause.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
				if err := touchMove(ctx, m.Repos.DB, id, run, m.Repos.Now()); err != nil && ctx.Err() == nil {
					m.Log.WarnContext(ctx, "a storage move can not say that it goes on", "move", id, "error", err)
				}
			}
		}
	}()
	return cancel
}
