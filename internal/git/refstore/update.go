package refstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"svc/internal/durable"
)

// Update implements Store. The mark is written to the reflogs.
func (r *Files) Update(ctx context.Context, mark string, updates []Update) error {
	if len(updates) == 0 {
		return nil
	}
	var in strings.Builder
	for _, u := range updates {
		if err := u.Check(); err != nil {
			return err
		}
		if u.New == ZeroOID {
			fmt.Fprintf(&in, "delete %s\x00%s\x00", u.Ref, u.Old)
			continue
		}
		fmt.Fprintf(&in, "update %s\x00%s\x00%s\x00", u.Ref, u.New, u.Old)
	}
	err := r.updateRefs(ctx, mark, in.String())
	if err != nil {
		if broken, lockErr := r.breakLocks(ctx, updates); broken || lockErr != nil {
			err = errors.Join(lockErr, r.updateRefs(ctx, mark, in.String()))
		}
	}
	if err != nil {
		return err
	}
	return r.syncRefs(updates)
}

// updateRefs runs commands of git update-ref. They must end with a commit command, so that
// incomplete input of a killed server has no effect.
func (r *Files) updateRefs(ctx context.Context, mark, commands string) error {
	args := []string{"update-ref", "--no-deref", "--stdin", "-z"}
	if mark != "" {
		args = append(args, "-m", markPrefix+mark)
	}
	return r.host.Git(ctx, r.dir, "start\x00"+commands+"prepare\x00commit\x00", args...)
}

// syncRefs makes the names of refs durable: git syncs the files, but not the directories in
// which they are renamed.
func (r *Files) syncRefs(updates []Update) error {
	var dirs []string
	for _, u := range updates {
		for dir := u.Ref; dir != "."; {
			dir = filepath.Dir(dir)
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		err := durable.SyncDir(filepath.Join(r.dir, dir))
		if err != nil && !notAFile(err) { // git removes directories that are empty
			return fmt.Errorf("sync refs: %w", err)
		}
	}
	return nil
}

// SetHead implements Store.
func (r *Files) SetHead(ctx context.Context, branch string) error {
	if err := r.Exists(ctx); err != nil {
		return err
	}
	// The lock file is that of git. Git itself would not sync HEAD.
	err := r.writeHead(ctx, branch)
	if errors.Is(err, fs.ErrExist) {
		if broken, _ := r.breakLocks(ctx, nil); broken {
			err = r.writeHead(ctx, branch)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("default branch: HEAD is locked: %w", ErrConflict)
	}
	if err != nil {
		return fmt.Errorf("default branch: %w", err)
	}
	return durable.SyncDir(r.dir)
}

// writeHead sets HEAD to a branch. It returns fs.ErrExist if HEAD is locked.
func (r *Files) writeHead(ctx context.Context, branch string) error {
	held, err := r.Hold(ctx)
	if err != nil {
		return err
	}
	defer Unlock(held)
	head := filepath.Join(r.dir, "HEAD")
	err = durable.WriteNew(head+".lock", 0o640, strings.NewReader("ref: "+Heads+branch+"\n"))
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if err == nil {
		err = os.Rename(head+".lock", head)
	}
	if err != nil {
		_ = os.Remove(head + ".lock")
		return err
	}
	return durable.SyncDir(r.dir)
}
