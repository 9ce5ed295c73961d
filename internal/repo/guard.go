package repo

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/git"
	"svc/internal/glob"
	"svc/internal/memo"
	"svc/internal/project"
)

// guard checks the protected refs of a project for one actor.
type guard struct {
	service  *Service
	by       actor.Actor
	project  *project.Project
	branches protections
	tags     protections
}

// guardKey is the context key of the protected refs of a project on a page.
type guardKey int64

// guard reads the protected refs of a project.
func (s *Service) guard(ctx context.Context, by actor.Actor, p *project.Project) (*guard, error) {
	all, err := memo.Get(ctx, guardKey(p.ID), func() ([]*Protected, error) {
		all, err := allProtected(ctx, s.DB, p.ID)
		if err != nil {
			return nil, fmt.Errorf("read protected refs: %w", err)
		}
		return all, s.fillAccess(ctx, s.DB, all)
	})
	if err != nil {
		return nil, err
	}
	g := &guard{service: s, by: by, project: p}
	for _, one := range all {
		if one.Kind == TagRef {
			g.tags = append(g.tags, one)
		} else {
			g.branches = append(g.branches, one)
		}
	}
	return g, nil
}

// protections is a list of rules. If several match, it is enough that one
// allows the action.
type protections []*Protected

// matching returns the rules for the name of a branch or tag.
func (list protections) matching(name string) protections {
	var found protections
	for _, p := range list {
		if glob.Wild(p.Name, name) {
			found = append(found, p)
		}
	}
	return found
}

func (list protections) developersCan(action RefAction) bool {
	for _, p := range list {
		for _, a := range p.Of(action) {
			if a.Level == project.Developer && a.UserID == nil && a.GroupID == nil && a.DeployKeyID == nil {
				return true
			}
		}
	}
	return false
}

func (list protections) allowForcePush() bool {
	for _, p := range list {
		if p.AllowForcePush {
			return true
		}
	}
	return false
}

// may reports whether one of the rules allows the actor an action.
func (g *guard) may(ctx context.Context, list protections, action RefAction) (bool, error) {
	if g.by.ID == actor.SystemID {
		return true, nil
	}
	for _, p := range list {
		for _, a := range p.Of(action) {
			if in, err := g.lets(ctx, a); err != nil || in {
				return in, err
			}
		}
	}
	return false, nil
}

// deletes reports whether the actor, who may push to the repository, may delete
// a branch or tag through the web interface or the API.
func (g *guard) deletes(ctx context.Context, r git.Repo, ref git.Ref) (bool, error) {
	c := &git.RefChange{Ref: ref.Name, Old: ref.ID, New: git.ZeroOID}
	if refuseRef(g.project, c) != "" {
		return false, nil
	}
	why, err := g.refuse(ctx, r, c, overWeb)
	return why == "", err
}

// lets reports whether an entry applies to the actor. A deploy key has its own entries;
// those of its creator do not apply to it, but the creator must still see the project.
func (g *guard) lets(ctx context.Context, a RefAccess) (bool, error) {
	switch {
	case g.by.Deploy != nil:
		if g.by.Deploy.Kind != actor.DeployKey || a.DeployKeyID == nil || *a.DeployKeyID != g.by.Deploy.ID {
			return false, nil
		}
		return g.service.Projects.KeyCreatorReads(ctx, g.by.Deploy.ID, g.project)
	case a.DeployKeyID != nil:
		return false, nil
	case a.UserID != nil:
		return g.by.Is(*a.UserID), nil
	case a.GroupID != nil:
		level, err := g.service.Projects.GroupLevel(ctx, g.by, *a.GroupID)
		if err != nil {
			return false, fmt.Errorf("level in group %d: %w", *a.GroupID, err)
		}
		return level > project.Minimal, nil
	case a.Level == project.NoAccess:
		return false, nil
	case g.by.Admin:
		return true, nil
	}
	return g.project.Access.Level() >= a.Level, nil
}
