package bucket

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// maxProcesses is the number of processes that can have a cache in one directory.
const maxProcesses = 100

// claim returns a directory below base that no other process uses, until the file is closed.
// There are several if a command runs at the same time as the server, or if nodes share a
// directory.
func claim(base string) (dir string, lock *os.File, err error) {
	for i := range maxProcesses {
		dir := filepath.Join(base, strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return "", nil, err
		}
		f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o640)
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
