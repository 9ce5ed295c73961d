package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"svc/internal/durable"
)

// Init creates an empty bare repository at path whose HEAD refers to branch, which
// need not exist. The directory is created atomically and is durable when Init
// returns. It returns ErrExists if path exists, and ErrBadRef for an invalid
// branch name.
func (e *Engine) Init(ctx context.Context, path, branch string) (Repo, error) {
	if err := CheckRef(Heads + branch); err != nil {
		return e.Repo(path), fmt.Errorf("init %s: %w", path, err)
	}
	r, err := e.create(ctx, path, branch, func(string) error { return nil })
	if err != nil {
		return r, fmt.Errorf("init %s: %w", path, err)
	}
	return r, nil
}

// create creates a repository in a temporary directory, calls fill, and renames it
// to path.
func (e *Engine) create(ctx context.Context, path, branch string, fill func(draft string) error) (Repo, error) {
	r := e.Repo(path)
	if err := ctx.Err(); err != nil {
		return r, err
	}
	parent := filepath.Dir(r.path)
	if err := durable.MakeDirs(parent, 0o750); err != nil {
		return r, err
	}
	draft, err := os.MkdirTemp(parent, ".init-*")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(draft) // a no-op after the rename
	if err := writeLayout(draft, branch); err != nil {
		return r, err
	}
	if err := fill(draft); err != nil {
		return r, err
	}
	if err := durable.SyncDir(draft); err != nil {
		return r, err
	}
	if r.backend != nil {
		return r, r.backend.Create(ctx, r.path, draft)
	}
	if err := os.Rename(draft, r.path); err != nil {
		if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.ENOTDIR) {
			return r, ErrExists
		}
		return r, err
	}
	return r, durable.SyncDir(parent)
}

// writeLayout writes the files of an empty repository; see
// gitrepository-layout(5). Unlike git init, it needs no process, template or
// hooks.
func writeLayout(dir, branch string) error {
	if err := os.Chmod(dir, 0o750); err != nil {
		return err
	}
	dirs := []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "objects", "refs"}
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o750); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{
		"HEAD":   "ref: refs/heads/" + branch + "\n",
		"config": config(),
	} {
		if err := durable.WriteNew(filepath.Join(dir, name), 0o640, strings.NewReader(content)); err != nil {
			return err
		}
	}
	for _, d := range append(dirs, ".") {
		if err := durable.SyncDir(filepath.Join(dir, d)); err != nil {
			return err
		}
	}
	return nil
}
