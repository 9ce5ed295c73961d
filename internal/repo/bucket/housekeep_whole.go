package bucket

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/git"
)

// Combining all packs writes packs of the reachable objects, and moves the others to leftover
// packs. A leftover pack is dropped when it is older than unreachableGrace, so a commit is
// kept for this time after housekeeping has found it unreachable, however old it is.
//
// Refs may change meanwhile, because all objects of the replaced packs are kept. Dropping a
// leftover pack is safe because the objects that refs need are in ordinary packs:
//
//   - An update stores all objects that are not reachable from the refs that it has read, also
//     those that are in leftover packs.
//   - An update that has read the refs before packs were replaced begins again. So if all objects
//     of the refs at that moment are in ordinary packs, those of all later refs are. Refs that
//     changed until then are packed once more, before anything is dropped.

const (
	// unreachableGrace is the minimum time for which unreachable objects are kept, because a
	// pipeline may still need a commit after a forced push.
	unreachableGrace = 14 * 24 * time.Hour
	// leftoverPeriod is the period whose leftover packs are combined.
	leftoverPeriod = 2 * 24 * time.Hour
)

// combination is the result of packing all objects of a repository.
type combination struct {
	refs    *snapshot // whose objects are in the ordinary packs
	made    []packRow
	old     []packRow // all of their objects are in the new packs
	expired []packRow // leftover packs to drop
}

// combineWhole replaces all ordinary packs.
func (s *Storage) combineWhole(ctx context.Context, dir string, row repository, packs []packRow) error {
	e := s.entry(dir)
	e.writing.Add(1)
	defer e.writing.Add(-1)
	temp, err := s.temp(".pack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	c, err := s.packWhole(ctx, dir, temp, row, packs)
	if err != nil {
		return err
	}
	if c.changesNothing() {
		return nil
	}
	moved, at, err := s.replaceAll(ctx, dir, row, c)
	if err != nil {
		return err
	}
	if err := s.installAll(ctx, dir, temp, c.made); err != nil || at == 0 {
		return err
	}
	return s.packMoved(ctx, dir, temp, row, c, moved, at)
}

// changesNothing reports whether the new packs are the old ones.
func (c combination) changesNothing() bool {
	return len(c.expired) == 0 && len(c.old) == len(c.made) && !slices.ContainsFunc(c.made, func(p packRow) bool {
		return !slices.ContainsFunc(c.old, func(o packRow) bool { return o.hash == p.hash && o.bitmap == p.bitmap && o.leftover == p.leftover })
	})
}

// packWhole writes up to three packs: of the objects of the default branch and tags, which
// rarely become unreachable, so that forks can share it; of the other reachable objects; and of
// the unreachable objects of ordinary packs.
func (s *Storage) packWhole(ctx context.Context, dir, temp string, row repository, packs []packRow) (combination, error) {
	var c combination
	v, err := s.snapshot(ctx, dir, row)
	if err != nil {
		return c, err
	}
	if v.id != row.id || v.epoch != row.epoch {
		return c, git.ErrBusy
	}
	if _, err := s.Refresh(ctx, dir); err != nil { // the refs may be newer than the row
		return c, err
	}
	c.refs = v
	lasting, others, hash, err := s.packRefs(ctx, dir, temp, row.head, v)
	if err != nil {
		return c, err
	}
	if now, err := s.find(ctx, dir); err != nil {
		return c, err
	} else if now.packGeneration != row.packGeneration {
		return c, git.ErrBusy // before it is uploaded
	}
	now := s.Now()
	add := func(hash string, leftover bool) error {
		if hash == "" {
			return nil
		}
		p, err := s.store(ctx, temp, hash)
		if err != nil {
			return err
		}
		p.created, p.madeFrom, p.leftover = now, v.generation, leftover
		c.made = append(c.made, p)
		return s.install(dir, temp, p) // git looks for it there
	}
	if err := add(hash, false); err != nil {
		return c, err
	}
	if len(others.refs) > 0 {
		if hash, err = s.Git.Local(dir).PackNew(ctx, temp, others.targets(), lasting.targets()); err == nil {
			err = add(hash, false)
		}
		if err != nil {
			return c, err
		}
	}
	hash, err = s.packUnreachable(ctx, dir, temp, packs, now, &c)
	if err == nil {
		err = add(hash, true)
	}
	if err != nil {
		return c, s.whyUnpacked(ctx, row, packs, err)
	}
	// A pack that exists already gets a new row, with a new time.
	same := func(p packRow) bool {
		return slices.Contains(hashes(c.made), p.hash) && !slices.Contains(ids(c.old), p.id)
	}
	for _, p := range packs {
		if same(p) {
			c.old = append(c.old, p)
		}
	}
	c.expired = slices.DeleteFunc(c.expired, func(p packRow) bool { return slices.Contains(ids(c.old), p.id) })
	return c, nil
}

// packUnreachable sorts packs into those to replace, and leftover packs that have expired. It
// writes a pack of the objects that the new packs do not have, together with those of recent
// leftover packs, so that there are few.
func (s *Storage) packUnreachable(ctx context.Context, dir, temp string, packs []packRow, now time.Time, c *combination) (hash string, err error) {
	ordinary, leftovers := withoutLeftovers(packs)
	var recent []packRow
	for _, p := range leftovers {
		switch {
		case now.Sub(p.created) >= unreachableGrace:
			c.expired = append(c.expired, p)
		case p.created.Truncate(leftoverPeriod).Equal(now.Truncate(leftoverPeriod)):
			recent = append(recent, p)
		}
	}
	c.old = ordinary
	made := hashes(c.made)
	from := slices.DeleteFunc(hashes(ordinary), func(h string) bool { return slices.Contains(made, h) })
	if len(from) == 0 {
		return "", nil
	}
	local := s.Git.Local(dir)
	hash, err = local.PackPacks(ctx, temp, from, made)
	if err != nil || hash == "" || len(recent) == 0 {
		return hash, err
	}
	c.old = append(slices.Clip(c.old), recent...)
	return local.PackPacks(ctx, temp, append(from, hashes(recent)...), made)
}

// packRefs writes a pack with a bitmap of the objects of the default branch and tags, and
// returns its hash, these refs, and the others. The pack is of all refs if it would be too small
// for a bitmap to be worth it.
func (s *Storage) packRefs(ctx context.Context, dir, temp, branch string, v *snapshot) (lasting, others *snapshot, hash string, err error) {
	lasting, others = v.split(branch)
	hash, err = s.packLasting(ctx, dir, temp, branch, lasting)
	if err != nil || hash == "" || len(others.refs) == 0 {
		return lasting, others, hash, err
	}
	info, err := os.Stat(filepath.Join(temp, "pack-"+hash+".pack"))
	if err != nil || info.Size() >= largePack {
		return lasting, others, hash, err
	}
	hash, err = s.packLasting(ctx, dir, temp, branch, v)
	return v, &snapshot{}, hash, err
}

// split returns the default branch and the tags of a repository, and its other refs. Without a
// default branch and tags, it returns all refs and none.
func (v *snapshot) split(branch string) (lasting, others *snapshot) {
	lasting, others = &snapshot{}, &snapshot{}
	for _, r := range v.refs {
		if r.name == git.Heads+branch || strings.HasPrefix(r.name, git.Tags) {
			lasting.refs = append(lasting.refs, r)
		} else {
			others.refs = append(others.refs, r)
		}
	}
	if len(lasting.refs) == 0 {
		return others, lasting
	}
	return lasting, others
}

// targets returns the IDs of the refs.
func (v *snapshot) targets() []git.OID {
	list := make([]git.OID, len(v.refs))
	for i, r := range v.refs {
		list[i] = r.target
	}
	return list
}

// packLasting writes a pack with a bitmap of the objects that are reachable from some refs of
// a repository, and returns its hash. Git writes bitmaps only for all refs, so it works in a
// repository that has only these and borrows the objects.
func (s *Storage) packLasting(ctx context.Context, dir, temp, branch string, lasting *snapshot) (string, error) {
	view, err := s.temp(".view-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(view)
	if err := git.Layout(view, branch); err != nil {
		return "", err
	}
	if err := replace(filepath.Join(view, "objects", "info", "alternates"), filepath.Join(dir, "objects")+"\n"); err != nil {
		return "", err
	}
	if err := s.writeRefs(view, branch, lasting); err != nil {
		return "", err
	}
	local := s.Git.Local(view)
	defer local.Forget()
	hash, err := local.PackAll(ctx, temp, lasting.targets())
	if err == nil && hash == "" && len(lasting.refs) > 0 {
		err = fmt.Errorf("git packed none of %d refs: %w", len(lasting.refs), git.ErrCorrupt)
	}
	return hash, err
}

// replaceAll replaces packs by new ones. Expired packs are dropped as well if no ref has changed
// since they were packed. Otherwise it returns the refs that have changed, and the generation
// whose refs they are; then packMoved follows, unless all packs are ordinary.
func (s *Storage) replaceAll(ctx context.Context, dir string, row repository, c combination) (moved []ref, at int64, err error) {
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := s.lockForPacks(ctx, tx, row, c.refs.version)
		if err != nil {
			return err
		}
		// Some of them may have been combined with new ones. Then their objects are twice there
		// until the next time.
		if _, err := removePacks(ctx, tx, c.old, s.Now()); err != nil {
			return err
		}
		moved, at = nil, 0
		switch {
		case now.generation == c.refs.generation:
			_, err = removePacks(ctx, tx, c.expired, s.Now())
		case len(c.expired) > 0 || slices.ContainsFunc(c.made, func(p packRow) bool { return p.leftover }):
			at = now.generation + 1
			moved, err = findRefs(ctx, tx, row.id, c.refs.generation)
		}
		if err != nil {
			return err
		}
		for _, p := range c.made {
			if err := insertPack(ctx, tx, s.Name, row.id, p); err != nil {
				return err
			}
		}
		if err := s.announce(ctx, tx, dir, c.made...); err != nil {
			return err
		}
		return savePackGeneration(ctx, tx, row.id, now.generation+1)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("replace packs: %w", err)
	}
	return moved, at, nil
}

// packMoved packs the objects of the refs that had changed until replaceAll, because some may be
// only in leftover packs, and drops the expired ones.
func (s *Storage) packMoved(ctx context.Context, dir, temp string, row repository, c combination, moved []ref, at int64) error {
	changed := &snapshot{refs: slices.DeleteFunc(moved, func(r ref) bool { return r.target == "" })}
	var made []packRow
	if len(changed.refs) > 0 {
		hash, err := s.Git.Local(dir).PackNew(ctx, temp, changed.targets(), c.refs.targets())
		if err != nil {
			if now, err := s.find(ctx, dir); err == nil && now.packGeneration != at {
				return nil // the next time
			}
			return fmt.Errorf("pack changed refs: %w", err)
		}
		if hash != "" {
			p, err := s.store(ctx, temp, hash)
			if err != nil {
				return err
			}
			made = append(made, p)
		}
	}
	read := version{row.epoch, row.id, at}
	row.packGeneration = at
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := s.lockForPacks(ctx, tx, row, read)
		if err != nil {
			return err
		}
		if _, err := removePacks(ctx, tx, c.expired, s.Now()); err != nil {
			return err
		}
		for _, p := range made {
			if err := insertPack(ctx, tx, s.Name, row.id, p); err != nil {
				return err
			}
		}
		return savePackGeneration(ctx, tx, row.id, now.generation+1)
	})
	if errors.Is(err, git.ErrBusy) {
		return nil // the next time
	}
	if err != nil {
		return fmt.Errorf("drop packs: %w", err)
	}
	return s.installAll(ctx, dir, temp, made)
}
