package bucket

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/blob"
	"svc/internal/errs"
)

// Report is the result of Check.
type Report struct {
	Packs  int   // packs in the object store
	Bytes  int64 // total size of their objects
	Unused int   // objects that no repository needs; Sweep deletes them after a while
}

// Check compares the store with the packs of all repositories, whose objects must exist with
// the right size. It calls problem for each object that is missing or different. The store may
// be in use.
func (s *Storage) Check(ctx context.Context, problem func(text string)) (Report, error) {
	var r Report
	whole, err := s.listed(ctx, &r)
	if err != nil {
		return r, fmt.Errorf("list the objects of storage %s: %w", s.Name, err)
	}
	for after := int64(0); ; {
		list, err := findStored(ctx, s.DB, s.Name, after, refBatch)
		if err != nil {
			return r, fmt.Errorf("check storage %s: %w", s.Name, err)
		}
		for _, p := range list {
			after = p.id
			r.Packs++
			r.Bytes += p.total()
			if p.path == "" {
				problem(fmt.Sprintf("pack %s belongs to no repository", p.object))
			}
			if whole[p.object] == len(p.parts()) {
				continue
			}
			if err := s.checkParts(ctx, p, problem); err != nil {
				return r, fmt.Errorf("check storage %s: %w", s.Name, err)
			}
		}
		if len(list) < refBatch {
			return r, nil
		}
	}
}

// listed lists the store, and returns the number of complete files by object of a pack, which
// forks may share. It counts the files that belong to no pack.
func (s *Storage) listed(ctx context.Context, r *Report) (map[string]int, error) {
	whole := map[string]int{}
	all := func(blob.Info) bool { return true }
	err := s.eachBatch(ctx, all, func(batch []blob.Info, names []string) error {
		packs, err := findPacksOf(ctx, s.DB, s.Name, names)
		if err != nil {
			return err
		}
		for _, o := range batch {
			p, ok := packs[objectOf(o.Key)]
			switch {
			case !ok:
				r.Unused++
			case slices.Contains(p.parts(), part{o.Key[len(p.object):], o.Size}):
				whole[p.object]++
			}
		}
		return nil
	})
	return whole, err
}

// checkParts checks each object of a pack individually, because it may have been stored after
// the list was read.
func (s *Storage) checkParts(ctx context.Context, p storedPack, problem func(text string)) error {
	for _, part := range p.parts() {
		switch o, err := s.Store.Stat(ctx, p.object+part.suffix); {
		case errs.Is(err, errs.KindNotFound):
			problem(fmt.Sprintf("%s: %s is missing", p.path, p.object+part.suffix))
		case err != nil:
			return err
		case o.Size != part.size:
			problem(fmt.Sprintf("%s: %s has %d bytes instead of %d", p.path, p.object+part.suffix, o.Size, part.size))
		}
	}
	return nil
}
