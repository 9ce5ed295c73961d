package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"svc/internal/durable"
)

// Update moves one ref.
type Update struct {
	Ref string // in full
	Old OID    // what it must hold now: ZeroOID for nothing, empty for no matter what
	New OID    // ZeroOID deletes it
}

// RefConflict says which ref could not be moved, and why in git's words. It is
// an ErrConflict.
type RefConflict struct {
	Ref string
	Why string
}

// Error returns the text for the log.
func (c *RefConflict) Error() string { return fmt.Sprintf("ref %s: %s", c.Ref, c.Why) }

// Unwrap returns ErrConflict.
func (c *RefConflict) Unwrap() error { return ErrConflict }

// git's words for a ref that is not as expected, or in the way of another.
var lockFailure = regexp.MustCompile(`(?m)cannot lock ref '([^']*)': (.*)$`)

// UpdateRefs moves all refs, or none; they survive a crash when it returns. It
// returns ErrBadRef, a *RefConflict when one is not at Old, is locked or is in
// the way of another ref's name, and ErrNotFound for a New that is not there or
// cannot stand in a branch.
func (r Repo) UpdateRefs(ctx context.Context, updates []Update) error {
	return r.UpdateRefsAs(ctx, "", updates)
}

// UpdateRefsAs is UpdateRefs with a mark, by which Happened finds the updates
// in the logs of the refs. It is a word that is used once.
func (r Repo) UpdateRefsAs(ctx context.Context, mark string, updates []Update) error {
	if len(updates) == 0 {
		return nil
	}
	var in strings.Builder
	for _, u := range updates {
		if err := CheckRef(u.Ref); err != nil {
			return fmt.Errorf("update %.100q: %w", u.Ref, err)
		}
		for _, id := range []OID{u.Old, u.New} {
			if _, ok := ParseOID(string(id)); !ok && (id != "" || id == u.New) {
				return fmt.Errorf("update %s to %.50q: %w", u.Ref, id, ErrBadRevision)
			}
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
		return updateError(err)
	}
	return r.syncRefs(updates)
}

// updateRefs has git do the commands. They end with their own word: without it
// a part of them, as git gets from a server that is killed, is nothing.
func (r Repo) updateRefs(ctx context.Context, mark, commands string) error {
	args := []string{"update-ref", "--no-deref", "--stdin", "-z"}
	if mark != "" {
		args = append(args, "-m", markPrefix+mark)
	}
	c := command{work: writing, args: args,
		in: strings.NewReader("start\x00" + commands + "prepare\x00commit\x00")}
	_, err := r.output(ctx, c)
	return err
}

func updateError(err error) error {
	var failure *Error
	if !errors.As(err, &failure) || failure.Kind == ErrNoRepository {
		return err
	}
	if strings.Contains(failure.Stderr, "nonexistent object") || strings.Contains(failure.Stderr, "non-commit object") {
		return &Error{Kind: ErrNotFound, Name: failure.Name, Exit: failure.Exit, Stderr: failure.Stderr}
	}
	if m := lockFailure.FindStringSubmatch(failure.Stderr); m != nil {
		if strings.Contains(m[2], ".lock'") { // the words name files of this machine
			return &RefConflict{Ref: m[1], Why: "it is being moved by someone else"}
		}
		return &RefConflict{Ref: m[1], Why: m[2]}
	}
	return err
}

// syncRefs makes the names of refs survive a crash: git syncs the files, but
// not the directories they are renamed in.
func (r Repo) syncRefs(updates []Update) error {
	var dirs []string
	for _, u := range updates {
		for dir := u.Ref; dir != "."; {
			dir = filepath.Dir(dir)
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		err := durable.SyncDir(filepath.Join(r.path, dir))
		if err != nil && !notAFile(err) { // git removes directories that are empty
			return fmt.Errorf("sync refs: %w", err)
		}
	}
	return nil
}

// SetDefaultBranch makes HEAD name a branch, which need not exist. It returns
// ErrBadRef, and ErrConflict when someone else does the same just now.
func (r Repo) SetDefaultBranch(ctx context.Context, branch string) error {
	if err := CheckRef(Heads + branch); err != nil {
		return fmt.Errorf("default branch: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := r.DefaultBranch(); errors.Is(err, ErrNoRepository) {
		return err
	}
	// The lock is the one that git takes. Git itself would not sync the file.
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
	return durable.SyncDir(r.path)
}

// writeHead makes HEAD name a branch. fs.ErrExist if it is locked.
func (r Repo) writeHead(ctx context.Context, branch string) error {
	held, err := r.holdRefs(ctx)
	if err != nil {
		return err
	}
	defer unlock(held)
	head := filepath.Join(r.path, "HEAD")
	err = durable.WriteNew(head+".lock", 0o640, strings.NewReader("ref: "+Heads+branch+"\n"))
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if err == nil {
		err = os.Rename(head+".lock", head)
	}
	if err != nil {
		_ = os.Remove(head + ".lock")
	}
	return err
}

// AdoptBranch sets the default branch after a push into a repository whose
// default branch does not exist: to main or master if it was pushed, else to
// the first branch in pushed, which holds full names of refs. It gives the
// branch that is the default then, and whether that is a new one.
func (r Repo) AdoptBranch(ctx context.Context, pushed []string) (branch string, changed bool, err error) {
	branch, err = r.DefaultBranch()
	if err != nil {
		return "", false, err
	}
	if _, err := r.follow(Heads + branch); !errors.Is(err, ErrNotFound) {
		return branch, false, err
	}
	var choice string
	for _, name := range pushed {
		short, ok := strings.CutPrefix(name, Heads)
		if !ok {
			continue
		}
		if _, err := r.follow(name); err != nil {
			continue // it was deleted by the same push
		}
		if choice == "" || short == "main" || short == "master" && choice != "main" {
			choice = short
		}
	}
	if choice == "" {
		return branch, false, nil
	}
	return choice, true, r.SetDefaultBranch(ctx, choice)
}
