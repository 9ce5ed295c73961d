package project

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/errs"
)

// ReadPackages returns a project to an actor who may read its packages: those who
// may view the package registry, deploy tokens with the scope
// read_package_registry, and everyone where the registry is public. NotFound when
// they do not see the project or the registry is disabled, Forbidden when they see
// it and may not read. Moved for an old path.
func (s *Service) ReadPackages(ctx context.Context, by actor.Actor, ref Ref) (*Project, error) {
	p, opened, err := s.packagesByDeploy(ctx, by, ref, ReadPackageRegistry)
	if err != nil || opened {
		return p, err
	}
	p, err = s.RequireView(ctx, by, ref, PackagePart)
	if !errs.Is(err, errs.KindNotFound) {
		return p, err
	}
	public, moved, lost := findByRef(ctx, s.DB, ref)
	if lost == nil && !moved && public.Settings.PackageRegistry == Everyone {
		return public, nil
	}
	return nil, err
}

// WritePackages returns a project to an actor who may publish packages in it:
// Developers and above, and deploy tokens with the scope write_package_registry.
// NotFound when they do not see the project or the registry is disabled, Forbidden
// in the other cases and if the project is archived.
func (s *Service) WritePackages(ctx context.Context, by actor.Actor, ref Ref) (*Project, error) {
	p, opened, err := s.packagesByDeploy(ctx, by, ref, WritePackageRegistry)
	if err != nil {
		return nil, err
	}
	if opened {
		return p, p.changeable()
	}
	return s.RequireChange(ctx, by, ref, PackagePart, Developer)
}

// packagesByDeploy finds what a deploy token opens. A token of the project that
// lacks the scope is Forbidden; one of another project opens nothing, and its
// holder is anonymous.
func (s *Service) packagesByDeploy(ctx context.Context, by actor.Actor, ref Ref, scope string) (*Project, bool, error) {
	if by.Deploy == nil || by.Deploy.Kind != actor.DeployToken {
		return nil, false, nil
	}
	p, moved, err := findByRef(ctx, s.DB, ref)
	if errs.Is(err, errs.KindNotFound) {
		return nil, false, nil // Require says so in its own words
	}
	if err != nil {
		return nil, false, fmt.Errorf("find project: %w", err)
	}
	scopes, err := s.tokenScopes(ctx, s.DB, by.Deploy.ID, p)
	if err != nil {
		return nil, false, fmt.Errorf("deploy token %d: %w", by.Deploy.ID, err)
	}
	switch {
	case len(scopes) == 0:
		return nil, false, nil
	case moved:
		return nil, false, &Moved{Thing: "Project", From: ref, ID: p.ID, Path: p.FullPath}
	case p.Settings.PackageRegistry == Disabled:
		return nil, false, errs.NotFound("")
	case slices.Contains(scopes, scope):
		return p, true, nil
	case p.Visibility == Public && scope == ReadPackageRegistry:
		return nil, false, nil // as everyone
	}
	return nil, false, errs.Forbidden("This deploy token does not have the scope %s.", scope)
}

// packagesReadable refuses those who may not read packages. Reporters and above
// may, others where the project is not private and the registry is for everyone.
func (p *Project) packagesReadable(by actor.Actor) error {
	switch p.Settings.PackageRegistry {
	case Disabled:
		return errs.NotFound("")
	case Everyone:
		return nil
	case Enabled:
		if p.Visibility != Private {
			return nil
		}
	}
	if by.Auditor {
		return nil
	}
	return enough(by, p.Access.Level(), Reporter)
}
