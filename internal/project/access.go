package project

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/memo"
)

// Level is an access level, the numeric value of a role.
type Level int64

// The levels in ascending order; each includes the permissions of the one before.
// A member with Minimal access to a group can see the group but nothing in it.
const (
	NoAccess   Level = 0
	Minimal    Level = 5
	Guest      Level = 10
	Planner    Level = 15
	Reporter   Level = 20
	Developer  Level = 30
	Maintainer Level = 40
	Owner      Level = 50
)

// String returns the name of the role.
func (l Level) String() string {
	switch l {
	case Minimal:
		return "Minimal Access"
	case Guest:
		return "Guest"
	case Planner:
		return "Planner"
	case Reporter:
		return "Reporter"
	case Developer:
		return "Developer"
	case Maintainer:
		return "Maintainer"
	case Owner:
		return "Owner"
	}
	return "No access"
}

// Valid reports whether the level can be granted to a member.
func (l Level) Valid() bool {
	return slices.Contains([]Level{Minimal, Guest, Planner, Reporter, Developer, Maintainer, Owner}, l)
}

// Granted reports whether the level gives any access.
func (l Level) Granted() bool { return l != NoAccess }

// Access is the access of a user to a project or group.
type Access struct {
	Direct Level // direct membership in the project
	Group  Level // membership in ancestor groups and in groups that it is shared with
}

// Level returns the effective level.
func (a Access) Level() Level { return max(a.Direct, a.Group) }

// Require returns a project in which the actor has at least a level; NoAccess only
// requires that they can see it. NotFound if they cannot see it; Forbidden if they
// can, but have a lower level. An old path returns Moved.
//
// Requests that only read (memo.With) use the cache of projects, see watchProjects.
// All others read the project from the database.
func (s *Service) Require(ctx context.Context, by actor.Actor, ref Ref, level Level) (*Project, error) {
	if !memo.On(ctx) {
		return s.require(ctx, s.DB, by, ref, level)
	}
	p, moved, err := s.recall(ctx, by, ref, false)
	if err != nil {
		return nil, fmt.Errorf("find project: %w", err)
	}
	return admit(by, p, moved, ref, level)
}

func (s *Service) require(ctx context.Context, q db.Q, by actor.Actor, ref Ref, level Level) (*Project, error) {
	p, moved, err := findByRef(ctx, q, ref)
	if err != nil {
		return nil, fmt.Errorf("find project: %w", err)
	}
	if p.Access, err = s.access(ctx, q, by, p); err != nil {
		return nil, fmt.Errorf("access to project %d: %w", p.ID, err)
	}
	return admit(by, p, moved, ref, level)
}

// admit returns a project if the actor can see it and has the level.
func admit(by actor.Actor, p *Project, moved bool, ref Ref, level Level) (*Project, error) {
	if !visible(by, p.Visibility, p.Access.Level()) {
		return nil, errs.NotFound("Project")
	}
	if moved {
		return nil, &Moved{Thing: "Project", From: ref, ID: p.ID, Path: p.FullPath}
	}
	if err := enough(by, p.Access.Level(), level); err != nil {
		return nil, err
	}
	return p, nil
}

// RequireMedia returns a project whose images, audio and video can be read without
// access to it, by everyone who knows their URLs. NotFound if it requires
// authentication for them.
func (s *Service) RequireMedia(ctx context.Context, ref Ref) (*Project, error) {
	p, err := s.Require(ctx, actor.System(), ref, NoAccess)
	if err == nil && p.Settings.EnforceAuthChecksOnUploads {
		return nil, errs.NotFound("Project")
	}
	return p, err
}

// RequireGroup is Require for groups. Members of a subgroup or project of a
// private group can see the group as well.
func (s *Service) RequireGroup(ctx context.Context, by actor.Actor, ref Ref, level Level) (*Namespace, error) {
	n, _, err := s.requireGroup(ctx, s.DB, by, ref, level)
	return n, err
}

func (s *Service) requireGroup(ctx context.Context, q db.Q, by actor.Actor, ref Ref, level Level) (*Namespace, Level, error) {
	n, moved, err := findGroupByRef(ctx, q, ref)
	if err != nil {
		return nil, 0, fmt.Errorf("find group: %w", err)
	}
	have, err := s.groupLevel(ctx, q, by, n.ID)
	if err != nil {
		return nil, 0, fmt.Errorf("access to group %d: %w", n.ID, err)
	}
	if !visible(by, n.Visibility, have) {
		inside, err := s.insideOf(ctx, q, by, n.ID)
		if err != nil {
			return nil, 0, fmt.Errorf("access to group %d: %w", n.ID, err)
		}
		if !inside {
			return nil, 0, errs.NotFound("Group")
		}
	}
	if moved {
		return nil, 0, &Moved{Thing: "Group", From: ref, ID: n.ID, Path: n.FullPath}
	}
	return n, have, enough(by, have, level)
}

// visible reports whether the actor can see an object with a visibility, given
// their level.
func visible(by actor.Actor, v Visibility, have Level) bool {
	switch {
	case v == Public, by.Admin, by.Auditor, have > NoAccess:
		return true
	case v == Internal:
		return !by.Anonymous() && !by.External
	}
	return false
}

// enough returns Forbidden or Unauthorized if the actor, who can see the object,
// has less than the level.
func enough(by actor.Actor, have, want Level) error {
	switch {
	case by.Admin || have >= want:
		return nil
	case by.Anonymous():
		return errs.Unauthorized("")
	}
	return errs.Forbidden("")
}

// access returns the access of the actor to a project.
func (s *Service) access(ctx context.Context, q db.Q, by actor.Actor, p *Project) (Access, error) {
	all, err := s.accesses(ctx, q, by, []*Project{p})
	return all[p.ID], err
}

// accesses returns the access of the actor to several projects.
func (s *Service) accesses(ctx context.Context, q db.Q, by actor.Actor, list []*Project) (map[int64]Access, error) {
	found := make(map[int64]Access, len(list))
	if by.Anonymous() || by.ID == actor.SystemID || len(list) == 0 { // not a member of anything
		return found, nil
	}
	var ids, places []int64
	for _, p := range list {
		ids = append(ids, p.ID)
		if !slices.Contains(places, p.NamespaceID) {
			places = append(places, p.NamespaceID)
		}
	}
	groups, err := namespaceLevels(ctx, q, by.ID, s.today(), places)
	if err != nil {
		return nil, err
	}
	own, err := projectLevels(ctx, q, by.ID, s.today(), ids)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		a := own[p.ID]
		if inherited := groups[p.NamespaceID]; inherited > Minimal {
			a.Group = max(a.Group, inherited)
		}
		found[p.ID] = a
	}
	return found, nil
}

// HasLevelInOne reports whether the actor has at least a level in one of some
// projects that are not deleted.
func (s *Service) HasLevelInOne(ctx context.Context, by actor.Actor, ids []int64, least Level) (bool, error) {
	list, err := findPlaces(ctx, s.DB, ids)
	if err != nil {
		return false, err
	}
	all, err := s.accesses(ctx, s.DB, by, list)
	for _, a := range all {
		if a.Level() >= least {
			return true, err
		}
	}
	return false, err
}

// GroupLevel returns the effective level of the actor in a group, even if they
// cannot see it.
func (s *Service) GroupLevel(ctx context.Context, by actor.Actor, groupID int64) (Level, error) {
	return s.groupLevel(ctx, s.DB, by, groupID)
}

func (s *Service) groupLevel(ctx context.Context, q db.Q, by actor.Actor, groupID int64) (Level, error) {
	if by.Anonymous() {
		return NoAccess, nil
	}
	all, err := namespaceLevels(ctx, q, by.ID, s.today(), []int64{groupID})
	return all[groupID], err
}
