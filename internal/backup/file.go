package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File is the file of a backup while it is written. It has another name until
// it is whole.
type File struct {
	*os.File
	name string
}

// partial is the end of the name of a file that is not whole.
const partial = ".partial"

// Create begins a file. There must be none of the name; what a backup has left
// that was killed is written over.
func Create(name string) (*File, error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, fmt.Errorf("%s is there already", name)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(name+partial, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := own(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{f, name}, nil
}

// own makes sure that no one else writes the file or may read it.
func own(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("another backup is written to %s", f.Name())
	}
	if err != nil && !unsupported(err) {
		return err
	}
	if err := f.Chmod(0o600); err != nil && !errors.Is(err, fs.ErrPermission) && !unsupported(err) {
		return err // some file systems of other machines know no modes
	}
	return f.Truncate(0)
}

// Commit gives the file its name, when it is on disk.
func (f *File) Commit() error {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	err := os.Link(f.name+partial, f.name) // never over another
	switch {
	case err == nil:
		err = os.Remove(f.name + partial)
	case errors.Is(err, fs.ErrPermission) || unsupported(err): // there are no links, as on a USB stick
		if _, err = os.Lstat(f.name); err == nil {
			return fmt.Errorf("%s is there already", f.name)
		}
		err = os.Rename(f.name+partial, f.name)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(f.name))
	if err != nil {
		return err
	}
	err = dir.Sync()
	if unsupported(err) || errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}

func unsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK)
}

// Abort removes a file that is not whole.
func (f *File) Abort() {
	if f.Close() == nil { // else it has its name already
		_ = os.Remove(f.name + partial)
	}
}
