package durable_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"svc/internal/durable"
)

func TestWrites(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := errors.Join(durable.MakeDirs(dir, 0o750), durable.MakeDirs(dir, 0o750)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "file")
	has := func(what, want string) {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil || string(content) != want {
			t.Errorf("%s: %q, %v, want %q", what, content, err, want)
		}
		if names, _ := os.ReadDir(dir); len(names) != 1 {
			t.Errorf("%s: %d files", what, len(names))
		}
	}
	if err := durable.Create(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	has("created", "first")
	if err := durable.Create(path, []byte("second")); err != nil {
		t.Fatal(err)
	}
	has("created again", "first")
	if err := durable.Replace(path, []byte("third")); err != nil {
		t.Fatal(err)
	}
	has("replaced", "third")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := durable.WriteNew(path, 0o600, strings.NewReader("fourth")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("an existing file: %v", err)
	}
	has("kept", "third")
}

func TestFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := durable.Replace(filepath.Join(dir, "none", "file"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.Replace(filepath.Join(dir, "taken"), []byte("x")); err == nil {
		t.Error("a directory was replaced")
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("%d files are left", len(names))
	}
	if err := durable.WriteNew(filepath.Join(dir, "half"), 0o600, iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a source that fails: %v", err)
	}
}
