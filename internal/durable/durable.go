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

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// WriteNew writes a file that must not exist yet. The caller makes its name
// durable by SyncDir, once for all files of a directory. A file that could not
// be written whole is left behind.
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

// Replace writes a file, or replaces it in one step: after a crash the old
// content is there, or the new, whole. Only the user of the process may read it.
func Replace(path string, content []byte) error {
	return place(path, content, os.Rename)
}

// Create is Replace for a file that stays as it is when it exists, for example
// because another process was first.
func Create(path string, content []byte) error {
	return place(path, content, func(temp, path string) error {
		err := os.Link(temp, path)
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		return errors.Join(err, os.Remove(temp))
	})
}

// place writes a temporary file and has it given its name.
func place(path string, content []byte, name func(temp, path string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".new-*") // of mode 0600
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

// MakeDirs is os.MkdirAll with durable names.
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
