package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File is a backup file that is being written. It has another name until it is
// complete.
type File struct {
	*os.File
	name string
}

// partial is the suffix of the name of an incomplete file.
const partial = ".partial"

// Create creates a file that must not exist. A file that an interrupted backup left
// behind is overwritten.
func Create(name string) (*File, error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, fmt.Errorf("%s already exists", name)
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

// own locks the file, and makes it readable only for its owner.
func own(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("another backup is being written to %s", f.Name())
	}
	if err != nil && !unsupported(err) {
		return err
	}
	if err := f.Chmod(0o600); err != nil && !errors.Is(err, fs.ErrPermission) && !unsupported(err) {
		return err // some network file systems do not support modes
	}
	return f.Truncate(0)
}

// Commit syncs the file and gives it its final name.
func (f *File) Commit() error {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	err := os.Link(f.name+partial, f.name) // fails if the file exists
	switch {
	case err == nil:
		err = os.Remove(f.name + partial)
	case errors.Is(err, fs.ErrPermission) || unsupported(err): // no hard links, for example on FAT
		if _, err = os.Lstat(f.name); err == nil {
			return fmt.Errorf("%s already exists", f.name)
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

// Abort removes an incomplete file. After Commit it does nothing.
func (f *File) Abort() {
	if f.Close() == nil { // it is already closed after Commit
		_ = os.Remove(f.name + partial)
	}
}
