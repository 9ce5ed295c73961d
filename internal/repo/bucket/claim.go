package bucket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// maxProcesses is the number of processes that can have a cache in one directory.
const maxProcesses = 100

// lockFile is the name of the file that a process locks in its directory.
const lockFile = "lock"

// claim returns a directory below base that no other process uses, until the file is closed.
// There are several if a command runs at the same time as the server, or if nodes share a
// directory.
func claim(base string) (dir string, lock *os.File, err error) {
	for i := range maxProcesses {
		dir := filepath.Join(base, strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return "", nil, err
		}
		f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o640)
		if err != nil {
			return "", nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return dir, f, nil
		}
		_ = f.Close() // nothing was written
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return "", nil, err
		}
	}
	return "", nil, fmt.Errorf("%d processes use %s", maxProcesses, base)
}

// emptyOthers removes the content of the directories of processes that have ended, except for own,
// which claim has returned. It does not count as cache, and may be as large as the cache. The locks
// stay, because another process may be opening them.
func emptyOthers(base, own string) error {
	var faults []error
	for i := range maxProcesses {
		dir := filepath.Join(base, strconv.Itoa(i))
		if dir == own {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR, 0)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				faults = append(faults, err)
			}
			continue
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			err = emptyDir(dir)
		} else if errors.Is(err, syscall.EWOULDBLOCK) {
			err = nil
		}
		faults = append(faults, err, f.Close()) // releases the lock
	}
	return errors.Join(faults...)
}

// emptyDir removes all files in a directory except for the lock.
func emptyDir(dir string) error {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if f.Name() != lockFile {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, f.Name())))
		}
	}
	return err
}
