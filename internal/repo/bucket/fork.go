package bucket

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"svc/internal/db"
	"svc/internal/git"
)

// Fork implements git.Backend. A fork shares the largest pack of the original, which housekeeping
// has written for that, if all of its objects are reachable from branches and tags: others must
// not become visible to everyone who may fork. The rest is packed for the fork. A fork with
// only one ref has the same packs.
func (s *Storage) Fork(ctx context.Context, from, to, only string) error {
	var err error
	for range 5 {
		if err = s.fork(ctx, from, to, only); !errors.Is(err, errRepacked) {
			return err
		}
	}
	return err
}

func (s *Storage) fork(ctx context.Context, from, to, only string) error {
	row, err := s.find(ctx, from)
	if err != nil {
		return err
	}
	if _, err := s.find(ctx, to); err == nil {
		return git.ErrExists
	} else if !errors.Is(err, git.ErrNoRepository) {
		return err
	}
	v, err := s.snapshot(ctx, from, row)
	if err != nil {
		return err
	}
	public := v.public()
	refs := public.refs
	if only != "" {
		refs = slices.DeleteFunc(slices.Clone(refs), func(r ref) bool { return r.name != only })
	}
	packs, err := s.ordinaryPacks(ctx, row)
	if err != nil {
		return err
	}
	if err := s.refreshAll(ctx, from); err != nil { // last, so that the cache has these packs
		return err
	}
	temp, err := s.temp(".pack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	shared, rest, err := s.packFork(ctx, from, temp, public, packs)
	if err != nil {
		// The largest pack may have been replaced, and removed from the cache.
		if now, failed := s.ordinaryPacks(ctx, row); failed == nil && len(packs) > 0 && (len(now) == 0 || now[0].id != packs[0].id) {
			return errRepacked
		}
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		id, err := insertRepository(ctx, tx, s.Name, s.path(to), row.head, s.Now())
		if db.IsUnique(err, "bucket_repositories_storage_path") {
			return git.ErrExists
		}
		if err != nil {
			return err
		}
		if shared != nil {
			err := copyPack(ctx, tx, *shared, id)
			if errors.Is(err, db.ErrNoRows) {
				return errRepacked
			}
			if err != nil {
				return err
			}
		}
		if rest != nil {
			if err := insertPack(ctx, tx, s.Name, id, *rest); err != nil {
				return err
			}
		}
		return saveRefs(ctx, tx, id, 1, refs)
	})
	if err != nil {
		return fmt.Errorf("create repository: %w", err)
	}
	return nil
}

// ordinaryPacks returns the packs of a repository without leftover packs, the largest first.
func (s *Storage) ordinaryPacks(ctx context.Context, row repository) ([]packRow, error) {
	packs, err := findPacks(ctx, s.DB, row.id)
	if err != nil {
		return nil, fmt.Errorf("read packs: %w", err)
	}
	packs, _ = withoutLeftovers(packs)
	return packs, nil
}

// public returns the branches and tags.
func (v *snapshot) public() *snapshot {
	p := &snapshot{}
	for _, r := range v.refs {
		if strings.HasPrefix(r.name, git.Heads) || strings.HasPrefix(r.name, git.Tags) {
			p.refs = append(p.refs, r)
		}
	}
	return p
}

// packFork returns the pack that a fork shares, or nil, and the pack of its other objects, or
// nil if there are none.
func (s *Storage) packFork(ctx context.Context, dir, temp string, public *snapshot, packs []packRow) (shared, rest *packRow, err error) {
	if len(public.refs) == 0 {
		return nil, nil, nil
	}
	local := s.Git.Local(dir)
	hash := ""
	if len(packs) > 0 && packs[0].size >= largePack {
		if hash, err = local.PackRest(ctx, temp, public.targets(), hashes(packs[:1])); err != nil {
			return nil, nil, err
		}
		wanted, err := s.onlyWanted(ctx, dir, temp, public, packs[0].hash, hash)
		if err != nil {
			return nil, nil, err
		}
		if wanted {
			shared = &packs[0]
		}
	}
	if shared == nil {
		if hash, err = local.PackRest(ctx, temp, public.targets(), nil); err != nil {
			return nil, nil, err
		}
	}
	if hash == "" {
		return shared, nil, nil
	}
	p, err := s.store(ctx, temp, hash)
	return shared, &p, err
}

// onlyWanted reports whether all objects of a pack are reachable from refs. rest is the hash of
// a pack of the reachable objects that are not in it, empty if there are none.
func (s *Storage) onlyWanted(ctx context.Context, dir, temp string, refs *snapshot, hash, rest string) (bool, error) {
	reachable, err := s.Git.Local(dir).CountReachable(ctx, refs.targets())
	if err != nil {
		return false, err
	}
	inPack, err := countObjects(packBase(dir, hash) + ".pack")
	if err != nil {
		return false, err
	}
	others := int64(0)
	if rest != "" {
		if others, err = countObjects(filepath.Join(temp, "pack-"+rest+".pack")); err != nil {
			return false, err
		}
	}
	return reachable == inPack+others, nil
}

// countObjects returns the number of objects in a pack, which is in its header.
func countObjects(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var header [12]byte
	if _, err := io.ReadFull(f, header[:]); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint32(header[8:])), nil
}
