package app

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// minInodes is the minimum number of free inodes of a file system. File systems
// that allocate them dynamically report none.
const minInodes = 1000

// spaceLeft returns an error if a file system that the server writes to is nearly
// full. The node is then not ready, so that load balancers send writes to other
// nodes before they fail.
func (a *App) spaceLeft() error {
	least := a.Config.MinFreeDisk
	if least.Of(100) == 0 {
		return nil
	}
	type place struct{ name, dir string }
	places := []place{{"data directory", a.Config.DataDir}, {"temporary files", a.tempDir()}}
	for _, name := range slices.Sorted(maps.Keys(a.Config.Storages)) {
		places = append(places, place{"storage " + name, a.Config.Storages[name]})
	}
	for _, p := range places {
		var disk syscall.Statfs_t
		if err := syscall.Statfs(existing(p.dir), &disk); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		size, free := int64(disk.Blocks)*int64(disk.Bsize), int64(disk.Bavail)*int64(disk.Bsize)
		if want := least.Of(size); free < want {
			return fmt.Errorf("%s: %d MiB free, less than %d MiB", p.name, free>>20, want>>20)
		}
		if disk.Files > 0 && disk.Ffree < minInodes {
			return fmt.Errorf("%s: room for %d files, less than %d", p.name, disk.Ffree, minInodes)
		}
	}
	return nil
}

// existing returns the nearest existing ancestor of a directory.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); !os.IsNotExist(err) || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
