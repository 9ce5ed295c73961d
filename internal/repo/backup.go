package repo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
)

// Held is a repository in a database backup.
type Held struct {
	ProjectID int64 // 0 for an auxiliary repository
	AuxRepoID int64
	Kind      AuxRepoKind
	Storage   string
	// Filled means that the repository had a push and must exist.
	Filled bool
	// Branch is the default branch if the database knows it.
	Branch string
}

// Path returns the path of the repository in its storage.
func (h Held) Path() string {
	if h.ProjectID != 0 {
		return pathOf(h.ProjectID)
	}
	return auxRepoPath(h.Kind, h.AuxRepoID)
}

// Recorded are the pushes that a snapshot of the database has recorded, by the ID of their
// row in RecordedTable.
type Recorded map[int64]bool

// Bundle writes a repository as a bundle and returns its default branch. Pushes
// may go on at the same time: the bundle has the refs as they were before all
// pushes that are not among the known ones, so that it fits the database of the
// backup. If known is nil, it has the current refs. Only the system may call it,
// for svc backup. NotFound if the repository does not exist. The caller may retry
// after an error: the repository may have been moved to another storage.
func (s *Service) Bundle(ctx context.Context, by actor.Actor, h Held, known Recorded, w io.Writer) (branch string, err error) {
	if by.ID != actor.SystemID {
		return "", errs.Forbidden("")
	}
	table, id := "annexes", h.AuxRepoID
	if h.ProjectID != 0 {
		table, id = "projects", h.ProjectID
	}
	storage, err := findStorage(ctx, s.DB, table, id)
	if errors.Is(err, db.ErrNoRows) {
		storage, err = h.Storage, nil // its files may still exist
	}
	if err != nil {
		return "", fmt.Errorf("find %s: %w", h.Path(), err)
	}
	r, err := s.at(storage, h.Path())
	if err != nil {
		return "", err
	}
	branch, _, err = r.BundleAll(ctx, w, func(refs []git.Ref) ([]git.Ref, error) {
		if known == nil {
			return refs, nil
		}
		return s.undo(ctx, r, h, known, refs)
	})
	if errors.Is(err, git.ErrNoRepository) {
		return "", errs.NotFound("Repository").Because(err)
	}
	return cmp.Or(h.Branch, branch), err
}

// undo takes the changes of all pushes that are not known back from refs.
func (s *Service) undo(ctx context.Context, r git.Repo, h Held, known Recorded, refs []git.Ref) ([]git.Ref, error) {
	late, err := s.latePushes(ctx, r, h, known)
	if err != nil {
		return nil, fmt.Errorf("pushes to %s since the snapshot: %w", h.Path(), err)
	}
	was := map[string]git.OID{}
	for _, push := range late {
		for _, c := range push.changes {
			if _, found := was[c.Ref]; !found {
				was[c.Ref] = c.Old
			}
		}
	}
	refs = slices.DeleteFunc(slices.Clone(refs), func(ref git.Ref) bool {
		_, found := was[ref.Name]
		return found
	})
	for name, id := range was {
		if id != git.ZeroOID {
			refs = append(refs, git.Ref{Name: name, ID: id})
		}
	}
	slices.SortFunc(refs, func(a, b git.Ref) int { return cmp.Compare(a.Name, b.Name) })
	return refs, nil
}

// latePush is a push that a snapshot does not know.
type latePush struct {
	id      int64 // of its row in pushes or annex_pushes; 0 without one (move_tx.go)
	changes []Change
}

// orderPushes sorts pushes by the order in which they happened. recorded are in the order in
// which they were recorded; left are not recorded yet. inDB reports whether the refs are in the
// database now.
//
// Pushes without a row are recorded in their order. Those with a row may be recorded in any
// order, but a push is begun after the pushes that it builds on have moved their refs. A
// repository that moves to another kind of storage has no push in progress.
func orderPushes(recorded, left []latePush, inDB bool) []latePush {
	at := len(recorded)
	for inDB && at > 0 && recorded[at-1].id == 0 {
		at-- // those in progress precede the move
	}
	list := slices.Insert(slices.Clone(recorded), at, left...)
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && (list[to].id == 0) == (list[from].id == 0) {
			to++
		}
		slices.SortStableFunc(list[from:to], func(a, b latePush) int { return cmp.Compare(a.id, b.id) })
		from = to
	}
	return list
}

// latePushes returns the pushes that are not known and whose refs have moved, in their order. Those
// in progress are recorded soon; for the others the refs show what happened, for example
// if their node was killed.
func (s *Service) latePushes(ctx context.Context, r git.Repo, h Held, known Recorded) ([]latePush, error) {
	begun, err := s.awaitPushes(ctx, h)
	if err != nil {
		return nil, err
	}
	var list, left []latePush
	for id, j := range begun {
		came, err := landed(ctx, r, j)
		if err != nil {
			return nil, err
		}
		left = append(left, latePush{id, came.Changes})
	}
	const some = 500
	for last := int64(0); ; {
		found, err := findRecorded(ctx, s.DB, h, last, some)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			last = f.id
			if known[f.id] {
				continue
			}
			push := latePush{id: f.pushID}
			if err := json.Unmarshal([]byte(f.changes), &push.changes); err != nil {
				return nil, err
			}
			list = append(list, push)
		}
		if len(found) < some {
			return orderPushes(list, left, inDatabase(r) != nil), nil
		}
	}
}

// backupPatience is how long a backup waits for pushes to a repository to be recorded.
const backupPatience = 10 * time.Second

// awaitPushes waits until the pushes to a repository that are in progress have ended,
// and returns those that have not ended in time, by the IDs of their rows.
func (s *Service) awaitPushes(ctx context.Context, h Held) (map[int64]journal, error) {
	first, err := s.pushesInProgress(ctx, h)
	for waited, pause := time.Duration(0), 5*time.Millisecond; err == nil && len(first) > 0 && waited < backupPatience; pause = min(2*pause, time.Second) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
		waited += pause
		var now map[int64]journal
		now, err = s.pushesInProgress(ctx, h)
		maps.DeleteFunc(first, func(id int64, _ journal) bool {
			_, left := now[id]
			return !left
		})
	}
	return first, err
}

// pushesInProgress returns the pushes to a repository that are in progress. Rows of
// other changes, such as housekeeping, have no changes of refs.
func (s *Service) pushesInProgress(ctx context.Context, h Held) (map[int64]journal, error) {
	rows, err := findPushesInProgress(ctx, s.DB, h)
	if err != nil {
		return nil, err
	}
	list := map[int64]journal{}
	for _, row := range rows {
		var j journal
		if err := json.Unmarshal([]byte(row.what), &j); err != nil {
			return nil, err
		}
		if len(j.Changes) > 0 {
			list[row.id] = j
		}
	}
	return list, nil
}

// Pushing reports whether a push to a ref of a project is in progress. It checks no
// permissions.
func (s *Service) Pushing(ctx context.Context, projectID int64, ref string) (bool, error) {
	list, err := s.pushesInProgress(ctx, Held{ProjectID: projectID})
	if err != nil {
		return false, fmt.Errorf("pushes in progress to project %d: %w", projectID, err)
	}
	for _, j := range list {
		if slices.ContainsFunc(j.Changes, func(c Change) bool { return c.Ref == ref }) {
			return true, nil
		}
	}
	return false, nil
}

// KeepRecorded is how long recorded pushes are kept, and so the longest time of a
// backup that undoes all pushes after its snapshot.
const KeepRecorded = 2 * 24 * time.Hour

// forgetRecorded deletes the recorded pushes that no backup needs any more.
func (s *Service) forgetRecorded(ctx context.Context) error {
	if err := deleteRecorded(ctx, s.DB, s.Now().Add(-KeepRecorded)); err != nil {
		return fmt.Errorf("delete recorded pushes: %w", err)
	}
	return nil
}

// recordFor records the changes of a push for backups, in the transaction that removes
// the row of the push, or that updates the refs if pushID is 0. One of projectID and auxRepoID is 0.
func recordFor(ctx context.Context, tx *db.Tx, projectID, auxRepoID, pushID int64, changes []Change, at time.Time) error {
	text, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	return insertRecorded(ctx, tx, projectID, auxRepoID, pushID, string(text), at)
}
