package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// place is a directory that a restore fills. It may already contain directories,
// such as mount points of other disks, but no files.
type place struct {
	root string
	keep string          // a file that must exist and is kept
	had  map[string]bool // the directories that existed before
}

// lostFound is a directory that some file systems have in their root.
const lostFound = "lost+found"

func newPlace(root string) *place { return &place{root: root, had: map[string]bool{}} }

// survey records the existing entries. It returns an error if there is a file.
func (p *place) survey() error {
	return filepath.WalkDir(p.root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == p.root:
			return nil
		case err != nil:
			return err
		case e.IsDir() && e.Name() == lostFound:
			return fs.SkipDir
		case e.IsDir():
			p.had[name] = true
		case name != p.keep:
			return fmt.Errorf("%s is not empty: it contains %s", p.root, name)
		}
		return nil
	})
}

// clear deletes everything that did not exist before; the file named last is
// deleted last.
func (p *place) clear(last string) error {
	last = filepath.Join(p.root, last)
	if err := p.clearDir(p.root, last); err != nil {
		return err
	}
	if err := os.Remove(last); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if p.had[p.root] {
		return nil
	}
	if err := os.Remove(p.root); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (p *place) clearDir(dir, except string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	faults := []error{err}
	for _, e := range list {
		name := filepath.Join(dir, e.Name())
		switch {
		case name == p.keep || name == except || e.Name() == lostFound:
		case p.had[name]:
			faults = append(faults, p.clearDir(name, except))
		default:
			faults = append(faults, os.RemoveAll(name))
		}
	}
	return errors.Join(faults...)
}

// room returns an error if a file system has less space than its directories need.
// The directories need not exist.
func room(need map[string]int64) error {
	type disk struct {
		dir  string
		need int64
		free uint64
	}
	disks := map[uint64]disk{}
	for dir, bytes := range need {
		var at syscall.Stat_t
		there := dir
		for errors.Is(syscall.Stat(there, &at), fs.ErrNotExist) && there != filepath.Dir(there) {
			there = filepath.Dir(there)
		}
		var fs syscall.Statfs_t
		if err := syscall.Statfs(there, &fs); err != nil {
			return fmt.Errorf("free space of %s: %w", there, err)
		}
		key := uint64(at.Dev)
		disks[key] = disk{dir, disks[key].need + bytes, fs.Bavail * uint64(fs.Bsize)}
	}
	for _, d := range disks {
		if d.need > 0 && uint64(d.need) > d.free {
			return fmt.Errorf("not enough disk space for %s: %s are needed, %s are free", d.dir, ByteSize(d.need), ByteSize(int64(d.free)))
		}
	}
	return nil
}
