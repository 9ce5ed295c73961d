package git

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"svc/internal/git/refstore"
)

// Update moves one ref.
type Update = refstore.Update

// RefConflict says which ref could not be moved, and why in git's words. It is
// an ErrConflict.
type RefConflict = refstore.RefConflict

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
	return r.refs.Update(ctx, mark, updates)
}

// lockRefs runs a git process that locks refs, for refstore.
func (e *Engine) lockRefs(ctx context.Context, dir, input string, args ...string) error {
	_, err := e.Repo(dir).output(ctx, command{work: writing, args: args, in: strings.NewReader(input)})
	return updateError(err)
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

// SetDefaultBranch makes HEAD name a branch, which need not exist. It returns
// ErrBadRef, and ErrConflict when someone else does the same just now.
func (r Repo) SetDefaultBranch(ctx context.Context, branch string) error {
	if err := CheckRef(Heads + branch); err != nil {
		return fmt.Errorf("default branch: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.refs.SetHead(ctx, branch)
}

// AdoptBranch sets the default branch after a push into a repository whose
// default branch does not exist: to main or master if it was pushed, else to
// the first branch in pushed, which holds full names of refs. It gives the
// branch that is the default then, and whether that is a new one.
func (r Repo) AdoptBranch(ctx context.Context, pushed []string) (branch string, changed bool, err error) {
	branch, err = r.DefaultBranch(ctx)
	if err != nil {
		return "", false, err
	}
	if _, err := r.follow(ctx, Heads+branch); !errors.Is(err, ErrNotFound) {
		return branch, false, err
	}
	var choice string
	for _, name := range pushed {
		short, ok := strings.CutPrefix(name, Heads)
		if !ok {
			continue
		}
		if _, err := r.follow(ctx, name); err != nil {
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
