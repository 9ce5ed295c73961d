// Package durable writes files that survive a crash of the machine: when a
// function returns without an error, the content and the name of the file are on
// disk.
package durable

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// SyncDir syncs the names in a directory to disk.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// WriteNew writes a file that must not exist yet. The caller syncs its name with
// SyncDir, once for all files of a directory. A file that could not be written
// completely is left behind.
func WriteNew(path string, mode fs.FileMode, in io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Replace writes or atomically replaces a file: after a crash, it has either the old
// content or the complete new content. Only the user of the process may read it.
func Replace(path string, content []byte) error {
	return place(path, content, os.Rename)
}

// Create is Replace, except that an existing file is not changed, for example one
// that another process has created first.
func Create(path string, content []byte) error {
	return place(path, content, func(temp, path string) error {
		err := os.Link(temp, path)
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		return errors.Join(err, os.Remove(temp))
	})
}

// place writes a temporary file and calls name to give it its final name.
func place(path string, content []byte, name func(temp, path string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".new-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(content))
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = name(f.Name(), path)
	}
	if err != nil {
		if gone := os.Remove(f.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return err
	}
	return SyncDir(dir)
}

// MakeDirs is os.MkdirAll that also syncs the names to disk.
func MakeDirs(dir string, mode fs.FileMode) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := MakeDirs(parent, mode); err != nil {
		return err
	}
	if err := os.Mkdir(dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(parent)
}
