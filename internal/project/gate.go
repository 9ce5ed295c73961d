package project

import (
	"context"

	"svc/internal/actor"
	"svc/internal/errs"
)

// RequireView returns a project to an actor who may read a part of it: they see
// the project, the part is switched on, and it is open to their role. NotFound
// when they do not see the project; View says how a part is refused. An old path
// is answered with Moved.
func (s *Service) RequireView(ctx context.Context, by actor.Actor, ref Ref, part Part) (*Project, error) {
	p, err := s.Require(ctx, by, ref, NoAccess)
	if err != nil {
		return nil, err
	}
	return admitted(p, p.View(by, part))
}

// RequireChange returns a project to an actor who may change a part of it: they
// see the project, have at least the level there, the part is switched on, and
// the project is not archived. NotFound when they do not see the project,
// Forbidden in the other cases. An old path is answered with Moved.
func (s *Service) RequireChange(ctx context.Context, by actor.Actor, ref Ref, part Part, level Level) (*Project, error) {
	p, err := s.Require(ctx, by, ref, NoAccess)
	if err != nil {
		return nil, err
	}
	return admitted(p, p.Change(by, part, level))
}

func admitted(p *Project, refusal error) (*Project, error) {
	if refusal != nil {
		return nil, refusal
	}
	return p, nil
}

// View refuses an actor with access to the project who may not read a part of it.
// That code, builds, environments, packages, alerts and settings exist is no secret:
// Forbidden, Unauthorized without signing in. Other parts are then as if they
// were not there: NotFound.
func (p *Project) View(by actor.Actor, part Part) error {
	switch part {
	case WholePart:
		return nil
	case CodePart:
		return p.readable(by)
	case BuildsPart:
		return p.buildsReadable(by)
	case EnvironmentPart:
		if p.Settings.Environments == Disabled || p.Settings.Environments == MembersOnly && p.levelOf(by) < Guest {
			return hidden(by)
		}
		return p.buildsReadable(by)
	case PackagePart:
		return p.packagesReadable(by)
	case AlertPart:
		return enough(by, p.Access.Level(), Developer)
	case InfrastructurePart:
		return p.developerPart(by, p.Settings.Infrastructure)
	case FeatureFlagPart:
		return p.developerPart(by, p.Settings.FeatureFlags)
	case SettingsPart:
		return enough(by, p.Access.Level(), Maintainer)
	case PagesPart:
		if err := enough(by, p.Access.Level(), Maintainer); err != nil {
			return err
		}
	}
	if !p.MayRead(by, part) {
		return errs.NotFound("")
	}
	return nil
}

// developerPart refuses those below Developers, and everyone if the part is
// switched off.
func (p *Project) developerPart(by actor.Actor, part Feature) error {
	if err := enough(by, p.Access.Level(), Developer); err != nil {
		return err
	}
	if part == Disabled {
		return errs.NotFound("")
	}
	return nil
}

// Change refuses an actor with access to the project who may not change a part
// of it: the rule is that of RequireChange.
func (p *Project) Change(by actor.Actor, part Part, level Level) error {
	if err := p.View(by, part); err != nil {
		return err
	}
	if err := enough(by, p.Access.Level(), level); err != nil {
		return err
	}
	return p.changeable()
}

// MayChange is Change as a question.
func (p *Project) MayChange(by actor.Actor, part Part, level Level) bool {
	return p.Change(by, part, level) == nil
}

// buildsReadable refuses those who may not see pipelines and jobs: Reporters
// and above may, others where pipelines are public.
func (p *Project) buildsReadable(by actor.Actor) error {
	level := p.levelOf(by)
	open := p.Settings.PublicJobs && (p.Builds != MembersOnly || level >= Guest)
	if p.Builds != Disabled && (level >= Reporter || open) {
		return nil
	}
	return hidden(by)
}

// levelOf is the level of an actor for reading: administrators and auditors
// read everything.
func (p *Project) levelOf(by actor.Actor) Level {
	if by.Admin || by.Auditor {
		return Owner
	}
	return p.Access.Level()
}

// hidden is the answer to an actor who sees the project and not the part.
func hidden(by actor.Actor) error {
	if by.Anonymous() {
		return errs.Unauthorized("")
	}
	return errs.Forbidden("")
}
