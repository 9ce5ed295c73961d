package repo

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// NewFork has the fields of a fork; the original's values are the defaults.
type NewFork struct {
	Name        string
	Path        string
	Description *string
	Namespace   project.Ref         // default: the namespace of the user
	Visibility  *project.Visibility // default: the visibility of the code of the original
	// OnlyBranch is the default branch, if the other branches and all tags are
	// not copied.
	OnlyBranch string
}

// Fork creates a project and copies the repository of another to it, in a
// background job. The actor needs access to the code of the original, which
// must allow forks, and permission to create projects; Forbidden or NotFound
// otherwise. Conflict if the project cannot be created.
func (s *Service) Fork(ctx context.Context, by actor.Actor, ref project.Ref, n NewFork) (*project.Project, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	from, err := s.Projects.ReadCode(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if !CanFork(by, from) {
		return nil, errs.Forbidden("")
	}
	if n.OnlyBranch != "" && n.OnlyBranch != from.DefaultBranch {
		return nil, errs.InvalidField("branches", "is not the default branch")
	}
	var place *int64
	if n.Namespace != "" {
		into, err := s.Projects.Namespace(ctx, by, n.Namespace)
		if err != nil {
			return nil, err
		}
		place = &into.ID
	}
	if err := s.Projects.RequireForkPlace(ctx, by, from, place); err != nil {
		return nil, err
	}
	fork := project.NewProject{
		Name: n.Name, Path: n.Path, NamespaceID: place, Visibility: n.Visibility, ForkOf: &from.ID,
		Fields: project.Fields{Description: n.Description},
		Begin: func(ctx context.Context, tx *db.Tx, made *project.Project) error {
			return s.Queue.Add(ctx, tx, forkWork{made.ID, from.ID, n.OnlyBranch != ""})
		},
	}
	if fork.Name == "" {
		fork.Name = from.Name
	}
	if fork.Path == "" {
		fork.Path = from.Path
	}
	if fork.Visibility == nil {
		widest := from.CodeVisibility()
		fork.Visibility = &widest
	}
	if fork.Description == nil {
		fork.Description = &from.Description
	}
	made, err := s.Projects.Create(ctx, by, fork)
	if refusal, ok := errors.AsType[*errs.Error](err); ok && len(refusal.Fields) > 0 {
		// API clients expect a conflict here.
		conflict := *refusal
		conflict.Kind = errs.KindConflict
		err = &conflict
	}
	if err != nil {
		return nil, fmt.Errorf("fork project %d: %w", from.ID, err)
	}
	return made, nil
}

// Forked is called when the repository of a fork was copied, before the fork can be
// used. It may be called more than once.
type Forked func(ctx context.Context, from, to *project.Project) error

// OnForked registers a Forked. It is called at start-up.
func (s *Service) OnForked(f Forked) { s.forked = append(s.forked, f) }

// CanFork reports whether a user may fork a project that they can see: they must be able to
// read its code, and the project must allow forks.
func CanFork(by actor.Actor, p *project.Project) bool {
	if by.RequireUser() != nil || !p.MayRead(by, project.CodePart) {
		return false
	}
	switch p.Settings.Forking {
	case project.Disabled:
		return false
	case project.MembersOnly:
		return by.Admin || p.Access.Level() >= project.Guest
	}
	return true
}

// forkWork is the background job that copies a repository.
type forkWork struct {
	ProjectID         int64 `json:"project_id"`
	FromID            int64 `json:"from_id"`
	DefaultBranchOnly bool  `json:"default_branch_only"`
}

// Kind implements queue.Work.
func (forkWork) Kind() string { return "repo_fork" }

func (s *Service) copyFork(ctx context.Context, w forkWork) error {
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(w.ProjectID), project.NoAccess)
	if err != nil {
		return err // deleted in the meantime
	}
	if p.Import != project.ImportScheduled {
		return nil
	}
	from, err := s.Projects.Require(ctx, actor.System(), project.RefTo(w.FromID), project.NoAccess)
	if errs.Is(err, errs.KindNotFound) {
		return s.Projects.Imported(ctx, p.ID, "", "The original was deleted before it was copied.")
	}
	if err != nil {
		return err
	}
	branch, err := s.copyRepository(ctx, from, p, w.DefaultBranchOnly)
	if err != nil {
		return fmt.Errorf("copy repository of project %d to %d: %w", from.ID, p.ID, err)
	}
	for _, f := range s.forked {
		if err := f(ctx, from, p); err != nil {
			return err
		}
	}
	if branch != "" { // protected from the start, as after a first push
		err := s.DB.Tx(ctx, func(tx *db.Tx) error { return s.protectDefault(ctx, tx, p.ID, branch) })
		if err != nil {
			return err
		}
	}
	if err := s.Projects.Imported(ctx, p.ID, branch, ""); err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error { return s.addTidying(ctx, tx, p.ID) })
}

// copyRepository copies a repository and returns the default branch of the
// copy; empty if there was nothing to copy.
func (s *Service) copyRepository(ctx context.Context, from, to *project.Project, onlyDefault bool) (string, error) {
	source, err := s.open(from.Storage, from.ID)
	if err != nil {
		return "", err
	}
	target, err := s.open(to.Storage, to.ID)
	if err != nil {
		return "", err
	}
	only := ""
	if onlyDefault {
		only = git.Heads + from.DefaultBranch
	}
	_, err = s.Git.Fork(ctx, source, target.Path(), only)
	switch {
	case errors.Is(err, git.ErrNoRepository):
		return "", nil // nothing was pushed to it
	case err != nil && !errors.Is(err, git.ErrExists): // ErrExists: a previous attempt copied it
		return "", err
	}
	return from.DefaultBranch, nil
}
