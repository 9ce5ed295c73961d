package project

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/errs"
)

// ReadCode returns a project to an actor who may read its repository: in a
// private project, or where the repository is for members, Reporters and above,
// elsewhere everyone who sees the project. NotFound when they do not see it,
// Forbidden when they see it and may not read. Moved for an old path.
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

// WriteCode returns a project to an actor who may push to its repository:
// Developers and above. Who may write to which branch is asked apart. The
// errors are those of ReadCode, and Forbidden for a project that is archived or
// whose repository is read-only.
func (s *Service) WriteCode(ctx context.Context, by actor.Actor, ref Ref) (*Project, error) {
	p, opened, err := s.codeByDeploy(ctx, by, ref)
	if err != nil {
		return nil, err
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

// pushable refuses an actor with access to the project who may not write to its
// repository.
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

// ErrMoving is behind every refusal to write to a repository that goes to another
// storage. Work in the background that meets it is to come again.
var ErrMoving = errors.New("it is being moved")

// BeingMoved is the message for all callers meanwhile.
const BeingMoved = "The repository is temporarily read-only: it is being moved to another storage. Please try again later."

// Writable refuses who would write to the repository of a project that is
// archived, or while it is moved to another storage: Forbidden.
func (p *Project) Writable() error {
	if p.ReadOnly && !p.Archived {
		return errs.Forbidden(BeingMoved).Because(ErrMoving)
	}
	return p.changeable()
}

// opening is what a deploy token or key opens.
type opening struct{ read, write bool }

// codeByDeploy finds what a deploy token or key opens; without one it opens
// nothing, and the actor stands for themselves.
func (s *Service) codeByDeploy(ctx context.Context, by actor.Actor, ref Ref) (*Project, opening, error) {
	if by.Deploy == nil {
		return nil, opening{}, nil
	}
	p, moved, err := findByRef(ctx, s.DB, ref)
	if errs.Is(err, errs.KindNotFound) {
		return nil, opening{}, nil // Require says so in its own words
	}
	if err != nil {
		return nil, opening{}, fmt.Errorf("find project: %w", err)
	}
	var o opening
	if o.read, o.write, err = s.deployOpens(ctx, s.DB, *by.Deploy, p); err != nil {
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
