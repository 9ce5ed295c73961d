package git

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"svc/internal/git/refstore"
)

// Update is the update of one ref.
type Update = refstore.Update

// RefConflict is the reason why a ref could not be updated, in git's words. It
// wraps ErrConflict.
type RefConflict = refstore.RefConflict

// lockFailure matches git's message for a ref that has an unexpected value or
// conflicts with another name.
var lockFailure = regexp.MustCompile(`(?m)cannot lock ref '([^']*)': (.*)$`)

// UpdateRefs updates all refs or none. The update is durable when it returns. It
// returns ErrBadRef, a *RefConflict if a ref is not at Old, is locked or conflicts
// with the name of another ref, and ErrNotFound if New does not exist or is not
// allowed in a branch.
func (r Repo) UpdateRefs(ctx context.Context, updates []Update) error {
	return r.UpdateRefsAs(ctx, "", updates)
}

// UpdateRefsAs is UpdateRefs with a unique mark, which Happened finds in the
// reflogs.
func (r Repo) UpdateRefsAs(ctx context.Context, mark string, updates []Update) error {
	return r.refs.Update(ctx, mark, updates)
}

// lockRefs runs a git process that locks refs, for refstore.
func (e *Engine) lockRefs(ctx context.Context, dir, input string, args ...string) error {
	_, err := e.Local(dir).output(ctx, command{work: writing, args: args, in: strings.NewReader(input)})
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
		if strings.Contains(m[2], ".lock'") { // the message contains paths of the server
			return &RefConflict{Ref: m[1], Why: "it is being moved by someone else"}
		}
		return &RefConflict{Ref: m[1], Why: m[2]}
	}
	return err
}

// SetDefaultBranch sets HEAD to a branch, which need not exist. It returns
// ErrBadRef, and ErrConflict if HEAD is being changed concurrently.
func (r Repo) SetDefaultBranch(ctx context.Context, branch string) error {
	if err := CheckRef(Heads + branch); err != nil {
		return fmt.Errorf("default branch: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.refs.SetHead(ctx, branch)
}

// AdoptBranch sets the default branch after a push if the current default branch
// does not exist: to the choice of ChooseBranch among pushed, a list of full ref names.
// It returns the default branch and whether it changed.
func (r Repo) AdoptBranch(ctx context.Context, pushed []string) (branch string, changed bool, err error) {
	branch, err = r.DefaultBranch(ctx)
	if err != nil {
		return "", false, err
	}
	if _, err := r.follow(ctx, Heads+branch); !errors.Is(err, ErrNotFound) {
		return branch, false, err
	}
	var made []string
	for _, name := range pushed {
		if _, err := r.follow(ctx, name); err == nil { // otherwise deleted by the same push
			made = append(made, name)
		}
	}
	choice := ChooseBranch(made)
	if choice == "" {
		return branch, false, nil
	}
	return choice, true, r.SetDefaultBranch(ctx, choice)
}

// ChooseBranch returns the branch that becomes the default branch of a repository without one
// when some refs, by full names, are created: main or master, otherwise the first branch. It
// returns an empty string if there are no branches.
func ChooseBranch(created []string) string {
	choice := ""
	for _, name := range created {
		short, ok := strings.CutPrefix(name, Heads)
		if !ok {
			continue
		}
		if choice == "" || short == "main" || short == "master" && choice != "main" {
			choice = short
		}
	}
	return choice
}
