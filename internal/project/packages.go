package project

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/errs"
)

// ReadPackages returns a project whose packages the actor may read: users with
// access to the package registry, deploy tokens with the scope
// read_package_registry, and everyone if the registry is public. NotFound if they
// cannot see the project or the registry is disabled; Forbidden. An old path
// returns Moved.
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

// WritePackages returns a project in which the actor may publish packages.
// Requires Developer, or a deploy token with the scope write_package_registry.
// NotFound if they cannot see the project or the registry is disabled; Forbidden,
// also if the project is archived.
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

// packagesByDeploy checks the access of a deploy token. Forbidden if a token of
// the project lacks the scope. A token of another project is treated as anonymous.
func (s *Service) packagesByDeploy(ctx context.Context, by actor.Actor, ref Ref, scope string) (*Project, bool, error) {
	if by.Deploy == nil || by.Deploy.Kind != actor.DeployToken {
		return nil, false, nil
	}
	p, moved, err := findByRef(ctx, s.DB, ref)
	if errs.Is(err, errs.KindNotFound) {
		return nil, false, nil // Require returns the error
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
		return nil, false, nil // treated as anonymous
	}
	return nil, false, errs.Forbidden("This deploy token does not have the scope %s.", scope)
}

// packagesReadable returns an error if the actor may not read packages. Reporters
// may, and others if the project is not private and the registry is not limited to
// members.
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
