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

// Init makes an empty bare repository in path whose HEAD is the branch, which
// need not exist. The directory appears whole or not at all, and is on disk
// when Init returns. It returns ErrExists when there is something in path
// already and ErrBadRef for a branch that cannot be.
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

// create makes a repository beside its place, has it filled, and gives it its
// name.
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
	defer os.RemoveAll(draft) // nothing is there once it has its name
	if err := lay(draft, branch); err != nil {
		return r, err
	}
	if err := fill(draft); err != nil {
		return r, err
	}
	if err := durable.SyncDir(draft); err != nil {
		return r, err
	}
	if err := os.Rename(draft, r.path); err != nil {
		if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.ENOTDIR) {
			return r, ErrExists
		}
		return r, err
	}
	return r, durable.SyncDir(parent)
}

// lay writes the files of an empty repository, as gitrepository-layout(5)
// wants them. To do it here takes no process, no template and no hooks.
func lay(dir, branch string) error {
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
