package bucket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
)

// errRepacked means that packs were replaced while an update was prepared.
var errRepacked = fmt.Errorf("%w: the packs of the repository were replaced", git.ErrBusy)

// Update implements refstore.Store. The objects that become reachable are in the directory of
// the cache; those that were not reachable from a ref before are stored as a pack.
func (r *refs) Update(ctx context.Context, mark string, updates []git.Update) error {
	return r.UpdateIn(ctx, mark, updates, nil)
}

// inTx is a function that runs in the transaction of an update, with the default branch and
// whether it exists now. Its error undoes the update.
type inTx = func(ctx context.Context, tx *db.Tx, branch string, exists bool) error

// UpdateIn is Update for a push, if prepare is not nil. It sets the default branch as
// git.Repo.AdoptBranch does. prepare is called after the objects were stored, and returns what
// to run in the transaction. If that fails, prepare is called with the error: it returns
// a function for another attempt, or an error, which is returned.
func (r *refs) UpdateIn(ctx context.Context, mark string, updates []git.Update, prepare func(ctx context.Context, last error) (inTx, error)) error {
	if len(updates) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for _, u := range updates {
		if err := u.Check(); err != nil {
			return err
		}
		if seen[u.Ref] {
			return &git.RefConflict{Ref: u.Ref, Why: "multiple updates for the ref are not allowed"}
		}
		seen[u.Ref] = true
	}
	var err error
	for range 5 {
		if err = r.s.update(ctx, r.dir, mark, updates, prepare); !errors.Is(err, errRepacked) {
			return err
		}
	}
	return err
}

func (s *Storage) update(ctx context.Context, dir, mark string, updates []git.Update, prepare func(ctx context.Context, last error) (inTx, error)) error {
	row, err := s.find(ctx, dir)
	if err != nil {
		return err
	}
	before, err := s.snapshot(ctx, dir, row)
	if err != nil {
		return err
	}
	if before.id != row.id || before.epoch != row.epoch {
		return errRepacked // the row is outdated
	}
	e := s.entry(dir)
	e.writing.Add(1)
	defer e.writing.Add(-1)
	if _, err := s.Refresh(ctx, dir); err != nil { // after the refs, so that their objects are in the cache
		return err
	}
	changes, err := s.changes(ctx, dir, updates)
	if err != nil {
		return err
	}
	temp, err := s.temp(".pack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	pack, err := s.packNew(ctx, dir, temp, before, changes)
	if err != nil {
		// The objects of a ref that was deleted meanwhile may be gone.
		if now, err := s.find(ctx, dir); err == nil && now.packGeneration != row.packGeneration {
			return errRepacked
		}
		return err
	}
	p := prepared{dir: dir, mark: mark, row: row, before: before, updates: updates, changes: changes, pack: pack}
	var after repository
	for last := error(nil); ; {
		var in inTx
		if prepare != nil {
			if in, err = prepare(ctx, last); err != nil {
				return err
			}
		}
		if after, last = s.commit(ctx, p, in); last == nil {
			break
		}
		if prepare == nil || errors.Is(last, errRepacked) {
			return last
		}
	}
	s.adopt(dir, temp, pack, row, after, changes)
	return nil
}

// prepared is an update whose objects are stored.
type prepared struct {
	dir, mark string
	row       repository
	before    *snapshot // at row or later
	updates   []git.Update
	changes   []ref
	pack      *packRow // nil if there are no new objects
}

// commit commits an update, and returns the row of the repository after it. in may be nil.
func (s *Storage) commit(ctx context.Context, p prepared, in inTx) (after repository, err error) {
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRepository(ctx, tx, p.row.id)
		if errors.Is(err, db.ErrNoRows) {
			return fmt.Errorf("%w: %s", git.ErrNoRepository, p.dir)
		}
		if err != nil {
			return err
		}
		if now.packGeneration != p.row.packGeneration || s.lostCommits(now, p.before.version) {
			return errRepacked
		}
		if err := s.compare(ctx, tx, now.id, p.updates); err != nil {
			return err
		}
		after = now
		after.generation++
		if err := saveRefs(ctx, tx, now.id, after.generation, p.changes); err != nil {
			return err
		}
		if p.pack != nil {
			if s.late(*p.pack) {
				return errs.Unavailable("The push took too long. Please push again.")
			}
			if err := insertPack(ctx, tx, s.Name, now.id, *p.pack); err != nil {
				return err
			}
			if err := s.announce(ctx, tx, p.dir, *p.pack); err != nil {
				return err
			}
		}
		if p.mark != "" {
			names := make([]string, len(p.changes))
			for i, c := range p.changes {
				names[i] = c.name
			}
			if err := insertMarks(ctx, tx, now.id, p.mark, names, s.Now()); err != nil {
				return err
			}
		}
		if err := saveGeneration(ctx, tx, now.id, after.generation); err != nil || in == nil {
			return err
		}
		branch, exists, err := adoptBranch(ctx, tx, after, p.changes)
		if err != nil {
			return err
		}
		return in(ctx, tx, branch, exists)
	})
	return after, err
}

// late reports whether Sweep, on any node, may soon delete the object of a pack that has no row
// yet. This node may have been frozen since it stored the pack, and the monotonic clock does not
// advance while its machine is suspended.
func (s *Storage) late(p packRow) bool {
	const most = orphanGrace / 2
	now := s.Now()
	return p.object != "" && (now.Sub(p.created) > most || now.Round(0).Sub(p.created.Round(0)) > most)
}

// lostCommits reports whether the database may have lost commits since a version was read, which
// would then not be a state of the repository. now is its locked row.
func (s *Storage) lostCommits(now repository, read version) bool {
	if now.generation < read.generation {
		s.epoch.Add(1)
	}
	return s.epoch.Load() != read.epoch
}

// adoptBranch sets the default branch if it does not exist and an update created branches. It
// returns the default branch and whether it exists.
func adoptBranch(ctx context.Context, tx *db.Tx, now repository, changes []ref) (branch string, exists bool, err error) {
	found, err := findNamed(ctx, tx, now.id, []string{git.Heads + now.head})
	if err != nil || len(found) > 0 {
		return now.head, len(found) > 0, err
	}
	var made []string
	for _, c := range changes {
		if c.target != "" {
			made = append(made, c.name)
		}
	}
	branch = git.ChooseBranch(made)
	if branch == "" {
		return now.head, false, nil
	}
	return branch, true, saveHead(ctx, tx, now.id, branch, now.generation)
}

// changes returns the rows of refs after the updates, sorted by name. It returns
// git.ErrNotFound for an object that does not exist or is not allowed in the ref.
func (s *Storage) changes(ctx context.Context, dir string, updates []git.Update) ([]ref, error) {
	local := s.Git.Local(dir)
	list := make([]ref, 0, len(updates))
	for _, u := range updates {
		c := ref{name: u.Ref}
		if u.New != git.ZeroOID {
			at, err := local.CheckTarget(ctx, u.Ref, u.New)
			if err != nil {
				return nil, err
			}
			c.target = at.ID
			if at.Tag != "" {
				c.peeled = at.Target
			}
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b ref) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

// packNew packs and stores the objects of changed refs that were not reachable before. It
// returns nil if there are none.
func (s *Storage) packNew(ctx context.Context, dir, temp string, before *snapshot, changes []ref) (*packRow, error) {
	var from, not []git.OID
	for _, c := range changes {
		if old, ok := before.find(c.name); c.target != "" && (!ok || old.target != c.target) {
			from = append(from, c.target)
		}
	}
	if len(from) == 0 {
		return nil, nil
	}
	for _, r := range before.refs {
		not = append(not, r.target)
	}
	hash, err := s.Git.Local(dir).PackNew(ctx, temp, from, not)
	if err != nil || hash == "" {
		return nil, err
	}
	p, err := s.store(ctx, temp, hash)
	return &p, err
}

// maxRow is the size up to which a pack is stored in the database. There are many small packs,
// which exist until the next housekeeping.
const maxRow = 64 << 10

// store stores the files of a pack, in the object store or, if it is small, in
// the row that is returned.
func (s *Storage) store(ctx context.Context, dir, hash string) (packRow, error) {
	base := filepath.Join(dir, "pack-"+hash)
	p := packRow{hash: hash, created: s.Now()}
	for _, part := range []struct {
		suffix string
		size   *int64
	}{{".pack", &p.size}, {".idx", &p.idx}, {".bitmap", &p.bitmap}} {
		info, err := os.Stat(base + part.suffix)
		if err != nil && (part.suffix != ".bitmap" || !errors.Is(err, fs.ErrNotExist)) {
			return p, err
		}
		if err == nil {
			*part.size = info.Size()
		}
	}
	var err error
	if p.size <= maxRow && p.idx <= maxRow {
		p.inRow, p.bitmap = true, 0 // not worth it for a small pack
		if p.pack, err = os.ReadFile(base + ".pack"); err == nil {
			p.index, err = os.ReadFile(base + ".idx")
		}
		return p, err
	}
	if err := s.own(ctx); err != nil {
		return p, err
	}
	p.object = s.prefix() + hash[:2] + "/" + hash + "-" + strings.ToLower(rand.Text()[:12])
	for _, part := range p.parts() {
		if err := s.putObject(ctx, p.object+part.suffix, base+part.suffix); err != nil {
			return p, fmt.Errorf("store pack: %w", err)
		}
	}
	return p, nil
}

// Prefix is the prefix of the objects of all storages.
const Prefix = "repositories/"

// prefix is the prefix of all objects of the storage.
func (s *Storage) prefix() string { return Prefix + s.Name + "/" }

func (s *Storage) putObject(ctx context.Context, key, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_, err = s.Store.Put(ctx, key, f, blob.Options{Size: info.Size()})
	return err
}

// compare returns a *git.RefConflict if a ref does not have the expected value, or if its name
// conflicts with another one, because git stores refs as files in directories.
func (s *Storage) compare(ctx context.Context, tx *db.Tx, id int64, updates []git.Update) error {
	now, below, err := s.current(ctx, tx, id, updates)
	if err != nil {
		return err
	}
	after := make(map[string]bool, len(updates)) // whether a ref exists after the updates
	for _, u := range updates {
		after[u.Ref] = u.New != git.ZeroOID
	}
	for _, u := range updates {
		at, exists := now[u.Ref]
		switch {
		case u.Old == git.ZeroOID && exists:
			return &git.RefConflict{Ref: u.Ref, Why: "reference already exists"}
		case u.Old != "" && u.Old != git.ZeroOID && !exists:
			return &git.RefConflict{Ref: u.Ref, Why: "it does not exist but was expected at " + string(u.Old)}
		case u.Old != "" && u.Old != git.ZeroOID && at != u.Old:
			return &git.RefConflict{Ref: u.Ref, Why: "is at " + string(at) + " but expected " + string(u.Old)}
		}
		if !after[u.Ref] || exists {
			continue
		}
		var others []string
		for _, above := range parents(u.Ref) {
			if _, exists := now[above]; exists || after[above] {
				others = append(others, above)
			}
		}
		found, err := below(u.Ref)
		if err != nil {
			return err
		}
		for _, name := range append(others, found...) {
			if stays, changed := after[name]; stays || !changed {
				return &git.RefConflict{Ref: u.Ref, Why: "'" + name + "' exists; cannot create '" + u.Ref + "'"}
			}
		}
	}
	return nil
}

// manyUpdates is the number of updates from which all refs are read at once.
const manyUpdates = 50

// current returns the refs that updates change or conflict with: those with the same name or
// in a parent directory, and a function that finds those below a name.
func (s *Storage) current(ctx context.Context, tx *db.Tx, id int64, updates []git.Update) (map[string]git.OID, func(name string) ([]string, error), error) {
	if len(updates) >= manyUpdates {
		all, err := findRefs(ctx, tx, id, 0)
		if err != nil {
			return nil, nil, err
		}
		slices.SortFunc(all, func(a, b ref) int { return strings.Compare(a.name, b.name) })
		v := (&snapshot{}).with(0, all)
		now := make(map[string]git.OID, len(v.refs))
		for _, r := range v.refs {
			now[r.name] = r.target
		}
		return now, func(name string) ([]string, error) { return v.below(name + "/"), nil }, nil
	}
	var names []string
	for _, u := range updates {
		names = append(append(names, u.Ref), parents(u.Ref)...)
	}
	slices.Sort(names)
	now, err := findNamed(ctx, tx, id, slices.Compact(names))
	return now, func(name string) ([]string, error) { return findBelow(ctx, tx, id, name, len(updates)+1) }, err
}

// parents returns the names that are directories of a ref, without refs/ itself.
func parents(name string) []string {
	var list []string
	for i := len("refs/"); i < len(name); i++ {
		if name[i] == '/' {
			list = append(list, name[:i])
		}
	}
	return list
}

// adopt applies a committed update to the memory and the cache of this node, so that nothing
// must be fetched. If that fails, or another update was committed in between, the next use
// updates the cache.
func (s *Storage) adopt(dir, temp string, pack *packRow, before, after repository, changes []ref) {
	if after.generation != before.generation+1 {
		return
	}
	s.mu.Lock()
	v, ok := s.cached(dir)
	s.mu.Unlock()
	if !ok || v.id != before.id || v.generation != before.generation {
		return
	}
	v = v.with(after.generation, changes)
	s.keep(dir, v)
	if pack == nil {
		return // the refs are written by the next use
	}
	e := s.entry(dir)
	if !e.mu.TryLock() {
		return
	}
	defer e.mu.Unlock()
	_ = s.install(dir, temp, *pack) // otherwise it is fetched by the next use
}

// SetHead implements refstore.Store.
func (r *refs) SetHead(ctx context.Context, branch string) error {
	row, err := r.s.find(ctx, r.dir)
	if err != nil {
		return err
	}
	return r.s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRepository(ctx, tx, row.id)
		if errors.Is(err, db.ErrNoRows) {
			return fmt.Errorf("%w: %s", git.ErrNoRepository, r.dir)
		}
		if err != nil {
			return err
		}
		return saveHead(ctx, tx, row.id, branch, now.generation+1)
	})
}
