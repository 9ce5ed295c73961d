package blob

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync/atomic"
	"syscall"
)

// session is the directory of the temporary files of one process, tmp/<random>. The
// process holds a lock in the directory. A directory whose lock is free belonged to
// a process that was killed; the next process that starts removes it. This does not
// depend on the clock.
type session struct {
	dir  string
	lock *os.File
	last *atomic.Int64
}

const (
	temps    = "tmp"
	lockName = "lock"
)

func openSession(root *os.Root) (session, error) {
	if err := root.Mkdir(temps, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return session{}, err
	}
	// One process at a time: a directory must not be removed before its lock is
	// taken.
	gate, err := lockFile(root, path.Join(temps, lockName), 0)
	if err != nil {
		return session{}, err
	}
	defer gate.Close()
	if err := sweep(root); err != nil {
		return session{}, err
	}
	s := session{dir: path.Join(temps, rand.Text()), last: new(atomic.Int64)}
	if err := root.Mkdir(s.dir, 0o700); err != nil {
		return session{}, err
	}
	s.lock, err = lockFile(root, path.Join(s.dir, lockName), 0)
	return s, err
}

// create creates a temporary file. It returns the name also with an error.
func (s session) create(root *os.Root) (*os.File, string, error) {
	name := path.Join(s.dir, fmt.Sprint(s.last.Add(1)))
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return f, name, err
}

func (s session) close(root *os.Root) error {
	return errors.Join(root.RemoveAll(s.dir), s.lock.Close())
}

func sweep(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), temps)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		dir := path.Join(temps, e.Name())
		lock, err := lockFile(root, path.Join(dir, lockName), syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			continue // in use
		}
		if err != nil {
			return err
		}
		err = root.RemoveAll(dir)
		lock.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// lockFile opens a file, creating it if necessary, and locks it exclusively until it
// is closed.
func lockFile(root *os.Root, name string, flags int) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|flags); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return f, nil
}
