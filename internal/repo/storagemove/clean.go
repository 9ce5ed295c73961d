package storagemove

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/queue"
	"svc/internal/repo"
)

// location is the directory of a repository in a storage.
type location struct {
	Storage string
	Path    string
}

// moveTopic is the topic of notices about moved repositories. Each node stops
// using the old directory and records that.
const moveTopic = "storage_move"

// leaveLimit is the maximum time for nodes to stop using the old directory. It is longer than
// any operation on a repository.
const leaveLimit = 3 * time.Hour

// heard handles a notice with the ID of a move.
func (m *Service) heard(key string) {
	if !m.Repos.DB.Postgres() {
		return // a single node: workClean does it
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
		defer cancel()
		ids := []int64{}
		if id, err := strconv.ParseInt(key, 10, 64); err == nil {
			ids = append(ids, id)
		} else if ids, err = movesLeaving(ctx, m.Repos.DB); err != nil {
			m.Log.Debug("storage moves cannot be read", "error", err)
		}
		for _, id := range ids {
			if err := m.leave(ctx, id); err != nil {
				m.Log.Debug("the old copy of a storage move cannot be removed", "move", id, "error", err)
			}
		}
	}()
}

// leave waits until this node no longer uses the old directories of a move, and
// records that.
func (m *Service) leave(ctx context.Context, id int64) error {
	node := m.Repos.Queue.Node()
	mv, err := findMove(ctx, m.Repos.DB, id)
	if err != nil || mv.State != Replicated {
		return err
	}
	olds := m.olds(mv)
	left := make(chan error, len(olds))
	for _, old := range olds { // concurrently, because each of them waits
		go func() { left <- old.Leave(ctx, m.Quiet) }()
	}
	for range olds {
		err = errors.Join(err, <-left)
	}
	if err != nil {
		return err
	}
	if node == "" {
		return nil // the node runs no background jobs yet and is not waited for
	}
	return insertMoveNode(ctx, m.Repos.DB, id, node)
}

func (m *Service) olds(mv *Move) []git.Repo {
	var list []git.Repo
	for _, l := range mv.left {
		if root, ok := m.Repos.Storages[l.Storage]; ok {
			list = append(list, m.Repos.Git.Repo(filepath.Join(root, l.Path)))
		}
	}
	return list
}

// cleanLane is the queue lane for cleanups, which mostly wait.
const cleanLane = "storage_cleanups"

// cleanWork is the background job that removes the old directories of a move.
type cleanWork struct {
	MoveID int64 `json:"move_id"`
}

// Kind implements queue.Work.
func (cleanWork) Kind() string { return "storage_move_cleanup" }

func (m *Service) addCleaning(ctx context.Context, tx *db.Tx, id int64, o ...queue.AddOption) error {
	return m.Repos.Queue.Add(ctx, tx, cleanWork{id}, append(o, queue.In(cleanLane), queue.Tries(moveTries))...)
}

// workClean removes the old directories of a move when they have no more
// readers.
func (m *Service) workClean(ctx context.Context, w cleanWork) error {
	mv, err := findMove(ctx, m.Repos.DB, w.MoveID)
	if errors.Is(err, db.ErrNoRows) || err == nil && mv.State != Replicated {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find storage move %d: %w", w.MoveID, err)
	}
	m.Step("leave")
	if err := m.leaveOrOpen(ctx, mv); err != nil {
		return err
	}
	free, err := m.everyoneLeft(ctx, mv)
	if err != nil {
		return err
	}
	if !free {
		if m.Repos.Now().Sub(mv.UpdatedAt) > m.Patience {
			if err := m.openEarly(ctx, mv); err != nil {
				return err
			}
		}
		// A node may have missed the notice, or have started since.
		return m.Repos.DB.Tx(ctx, func(tx *db.Tx) error {
			if err := m.Notices.Send(ctx, tx, moveTopic, strconv.FormatInt(mv.ID, 10)); err != nil {
				return err
			}
			return m.addCleaning(ctx, tx, mv.ID, queue.Delay(time.Second))
		})
	}
	m.Step("clean")
	to := Finished
	if err := m.remove(ctx, mv); err != nil {
		if ctx.Err() != nil {
			return err
		}
		to, mv.Error = CleanupFailed, err.Error()
	}
	m.Step("finish")
	return mine(m.enterState(ctx, mv, to, func(tx *db.Tx) error {
		if err := deleteMoveNodes(ctx, tx, mv.ID); err != nil {
			return err
		}
		return m.open(ctx, tx, mv)
	}))
}

// leaveOrOpen is leave, but makes the repository writable after Patience, if
// its old directory still has readers.
func (m *Service) leaveOrOpen(ctx context.Context, mv *Move) error {
	soon, cancel := context.WithTimeout(ctx, m.Patience)
	defer cancel()
	err := m.leave(soon, mv.ID)
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err
	}
	if err := m.openEarly(ctx, mv); err != nil {
		return err
	}
	return m.leave(ctx, mv.ID)
}

// openEarly makes a moved repository writable before its move is finished.
func (m *Service) openEarly(ctx context.Context, mv *Move) error {
	err := m.Repos.DB.Tx(ctx, func(tx *db.Tx) error { return m.open(ctx, tx, mv) })
	if err != nil {
		return fmt.Errorf("storage move %d: %w", mv.ID, err)
	}
	m.Log.InfoContext(ctx, "storage move: the old copy still has readers; the repository is writable again", "move", mv.ID, "kind", mv.Kind, "id", mv.OwnerID)
	return nil
}

// everyoneLeft reports whether all running nodes have stopped using the old
// directories, or leaveLimit has passed.
func (m *Service) everyoneLeft(ctx context.Context, mv *Move) (bool, error) {
	if !m.Repos.DB.Postgres() || m.Repos.Now().Sub(mv.UpdatedAt) > leaveLimit {
		return true, nil
	}
	for range 10 {
		nodes, err := m.Repos.Queue.Nodes(ctx)
		if err != nil {
			return false, fmt.Errorf("find nodes: %w", err)
		}
		left, err := moveNodes(ctx, m.Repos.DB, mv.ID)
		if err != nil {
			return false, fmt.Errorf("find nodes: %w", err)
		}
		if !slices.ContainsFunc(nodes, func(node string) bool { return !slices.Contains(left, node) }) {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return false, nil
}

// remove removes the old directories. Shared file systems may need several
// attempts.
func (m *Service) remove(ctx context.Context, mv *Move) error {
	// The database is authoritative: nothing is removed if the repository is in one of
	// these directories after all.
	list, err := m.Repos.Located(ctx, m.Repos.DB, mv.owner())
	if err == nil {
		for _, p := range list {
			if slices.Contains(mv.left, location{p.Storage, p.Path}) {
				return fmt.Errorf("%s is on storage %s again", p.Path, p.Storage)
			}
		}
	}
	for _, old := range m.olds(mv) {
		for try := range 3 {
			if err = repo.Discard(ctx, old); err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(try) * time.Second):
			}
		}
		if err != nil {
			return fmt.Errorf("%s is left behind: %w", old.Path(), err)
		}
	}
	if len(m.olds(mv)) < len(mv.left) {
		return errors.New("the storage that it came from is not configured any more")
	}
	return nil
}
