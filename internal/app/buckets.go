package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"svc/internal/blob"
	"svc/internal/config"
	"svc/internal/repo/bucket"
)

// buckets are the storages in object stores.
type buckets struct {
	storages []*bucket.Storage
	stores   []blob.Store // object stores that only one storage uses
}

// openBuckets opens the storages in object stores and sets their directories in the
// configuration. own is the object store of the instance.
func openBuckets(ctx context.Context, cfg *config.Config, own blob.Store, d bucket.Deps) (*buckets, error) {
	b := &buckets{}
	cfg.Storages = maps.Clone(cfg.Storages)
	for _, name := range slices.Sorted(maps.Keys(cfg.Buckets)) {
		d.Name, d.Dir, d.Store, d.CacheSize = name, cfg.Storages[name], own, cfg.GitCacheSize
		if address := cfg.Buckets[name]; address != config.OwnBucket {
			store, err := blob.Open(ctx, string(address), "")
			if err != nil {
				return nil, errors.Join(fmt.Errorf("storage %s: %w", name, err), b.close())
			}
			b.stores = append(b.stores, store)
			d.Store = store
		}
		s, err := bucket.New(d)
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
		b.storages = append(b.storages, s)
		cfg.Storages[name] = s.Dir
	}
	return b, nil
}

func (b *buckets) close() error {
	var faults []error
	for _, s := range b.storages {
		faults = append(faults, s.Close())
	}
	for _, s := range b.stores {
		faults = append(faults, s.Close())
	}
	return errors.Join(faults...)
}

// codeStore returns the object store of the code search index, or nil if all nodes
// share its directory.
func codeStore(cfg config.Config, own blob.Store) blob.Store {
	if _, ok := cfg.Buckets["default"]; ok {
		return own
	}
	return nil
}

// codeDir returns the directory of the code search index. It is in the default
// storage, which all nodes share, or in the data directory if that storage is in an
// object store.
func codeDir(cfg config.Config) string {
	if _, ok := cfg.Buckets["default"]; ok {
		return filepath.Join(cfg.DataDir, codeIndex)
	}
	return filepath.Join(cfg.Storages["default"], codeIndex)
}
