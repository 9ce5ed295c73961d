package project

import (
	"context"

	"svc/internal/actor"
	"svc/internal/errs"
)

// RequireView returns a project of which the actor may read a part: they can see
// the project, the feature is enabled, and their role allows it. NotFound if they
// cannot see the project; for other errors see View. An old path returns Moved.
func (s *Service) RequireView(ctx context.Context, by actor.Actor, ref Ref, part Part) (*Project, error) {
	p, err := s.Require(ctx, by, ref, NoAccess)
	if err != nil {
		return nil, err
	}
	return admitted(p, p.View(by, part))
}

// RequireChange returns a project of which the actor may change a part: they can
// see the project, have at least the level, the feature is enabled, and the
// project is not archived. NotFound if they cannot see the project; Forbidden in
// the other cases. An old path returns Moved.
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

// View returns an error if the actor may not read a part of a project that they
// can see. The existence of code, builds, environments, packages, alerts and
// settings is not secret: Forbidden, or Unauthorized for anonymous users. Other
// parts are NotFound.
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
		return p.developerPart(by, p.Settings.Monitor)
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

// developerPart returns an error if the feature is disabled or the actor has less
// than Developer.
func (p *Project) developerPart(by actor.Actor, part Feature) error {
	if err := enough(by, p.Access.Level(), Developer); err != nil {
		return err
	}
	if part == Disabled {
		return errs.NotFound("")
	}
	return nil
}

// Change returns an error if the actor may not change a part of a project that
// they can see. The rules are those of RequireChange.
func (p *Project) Change(by actor.Actor, part Part, level Level) error {
	if err := p.View(by, part); err != nil {
		return err
	}
	if by.Auditor && !by.Admin {
		// Auditors can read everything, but only change what other users can.
		by.Auditor = false
		if !visible(by, p.Visibility, p.Access.Level()) || p.View(by, part) != nil {
			return errs.Forbidden("")
		}
	}
	if err := enough(by, p.Access.Level(), level); err != nil {
		return err
	}
	return p.changeable()
}

// MayChange reports whether Change returns no error.
func (p *Project) MayChange(by actor.Actor, part Part, level Level) bool {
	return p.Change(by, part, level) == nil
}

// buildsReadable returns an error if the actor may not read pipelines and jobs.
// That requires Reporter unless pipelines are public. The project may be one that
// they cannot see: ReadPackages returns private projects with a public registry.
func (p *Project) buildsReadable(by actor.Actor) error {
	if !visible(by, p.Visibility, p.Access.Level()) {
		return hidden(by)
	}
	level := p.levelOf(by)
	open := p.Settings.PublicJobs && (p.Builds != MembersOnly || level >= Guest)
	if p.Builds != Disabled && (level >= Reporter || open) {
		return nil
	}
	return hidden(by)
}

// levelOf returns the level of an actor for reading. Administrators and auditors
// can read everything.
func (p *Project) levelOf(by actor.Actor) Level {
	if by.Admin || by.Auditor {
		return Owner
	}
	return p.Access.Level()
}

// hidden returns the error for an actor who can see the project but not the part.
func hidden(by actor.Actor) error {
	if by.Anonymous() {
		return errs.Unauthorized("")
	}
	return errs.Forbidden("")
}
