package project

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/errs"
)

// ReadCode returns a project whose repository the actor may read. That requires
// Reporter if the project is private or the repository is limited to members;
// otherwise everyone who can see the project may. NotFound if they cannot see the
// project; Forbidden if they can, but may not read the repository. An old path
// returns Moved.
func (s *Service) ReadCode(ctx context.Context, by actor.Actor, ref Ref) (*Project, error) {
	p, opened, err := s.codeByDeploy(ctx, by, ref)
	if err != nil || opened.read {
		return p, err
	}
	p, moved, err := s.recall(ctx, by, ref, false)
	if err != nil {
		return nil, fmt.Errorf("find project: %w", err)
	}
	if p, err = admit(by, p, moved, ref, NoAccess); err != nil {
		return nil, err
	}
	return p, p.readable(by)
}

// WriteCode returns a project to whose repository the actor may push. Requires
// Developer. Branch protection is checked separately. The errors are those of
// ReadCode, and Forbidden if the project is archived or the repository is
// read-only.
func (s *Service) WriteCode(ctx context.Context, by actor.Actor, ref Ref) (*Project, error) {
	p, opened, err := s.codeByDeploy(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if opened.inactive {
		return nil, errs.Forbidden("The account that created this deploy key is not active. A maintainer can remove the key and add it again.")
	}
	if opened.read && !opened.write {
		return nil, errs.Forbidden("This deploy %s does not have write access to this project.", by.Deploy.Kind)
	}
	if opened.write {
		return p, p.Writable()
	}
	if p, err = s.Require(ctx, by, ref, NoAccess); err != nil {
		return nil, err
	}
	return p, p.pushable(by)
}

// pushable returns an error if the actor may not write to the repository.
func (p *Project) pushable(by actor.Actor) error {
	if err := p.readable(by); err != nil {
		return err
	}
	if err := enough(by, p.Access.Level(), Developer); err != nil {
		return err
	}
	return p.Writable()
}

func (p *Project) readable(by actor.Actor) error {
	if p.Repository == Disabled {
		return errs.Forbidden("The repository of this project is disabled.")
	}
	open := p.Visibility != Private && p.Repository != MembersOnly
	if open || by.Auditor {
		return nil
	}
	return enough(by, p.Access.Level(), Reporter)
}

// ErrMoving is wrapped by errors about writing to a repository that is being moved
// to another storage. Background jobs should be retried.
var ErrMoving = errors.New("it is being moved")

// BeingMoved is the message for users while a repository is being moved.
const BeingMoved = "The repository is temporarily read-only: it is being moved to another storage. Please try again later."

// Writable returns Forbidden if the project is archived or its repository is being
// moved to another storage.
func (p *Project) Writable() error {
	if p.ReadOnly && !p.Archived {
		return errs.Forbidden(BeingMoved).Because(ErrMoving)
	}
	return p.changeable()
}

// opening is the access that a deploy token or key grants.
type opening struct {
	read, write bool
	inactive    bool // the key could write, but the account of its creator is not active
}

// codeByDeploy returns the access that a deploy token or key grants to a project.
// For other actors it returns no access.
func (s *Service) codeByDeploy(ctx context.Context, by actor.Actor, ref Ref) (*Project, opening, error) {
	if by.Deploy == nil {
		return nil, opening{}, nil
	}
	p, moved, err := findByRef(ctx, s.DB, ref)
	if errs.Is(err, errs.KindNotFound) {
		return nil, opening{}, nil // Require returns the error
	}
	if err != nil {
		return nil, opening{}, fmt.Errorf("find project: %w", err)
	}
	var o opening
	if o, err = s.deployOpens(ctx, s.DB, *by.Deploy, p); err != nil {
		return nil, opening{}, fmt.Errorf("deploy %s %d: %w", by.Deploy.Kind, by.Deploy.ID, err)
	}
	if !o.read {
		return nil, opening{}, nil
	}
	if moved {
		return nil, opening{}, &Moved{Thing: "Project", From: ref, ID: p.ID, Path: p.FullPath}
	}
	if p.Repository == Disabled {
		return nil, opening{}, p.readable(by)
	}
	return p, o, nil
}
