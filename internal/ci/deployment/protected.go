package deployment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
)

// ProtectedEnvironment defines who may deploy to an environment, and who approves
// deployments to it. In a project its name is that of the environment, in a group it is
// a deployment tier of the environments of all projects of the group.
type ProtectedEnvironment struct {
	ID        int64
	ProjectID *int64
	GroupID   *int64
	Name      string
	// RequiredApprovals is the number of required approvals by users who may deploy, if
	// there are no approval rules.
	RequiredApprovals int64
	Deploy            []*EnvironmentRule
	Approve           []*EnvironmentRule
	CreatedAt         time.Time
	UpdatedAt         time.Time
}

// EnvironmentRule is an entry of the list of users who may deploy, or an approval rule:
// a role, a user or a group.
type EnvironmentRule struct {
	ID        int64
	Level     *project.Level
	UserID    *int64
	GroupID   *int64
	Inherited bool  // inherited members of the group too
	Required  int64 // approvals of an approval rule
	Name      string
}

// Description is the text of the rule in the API.
func (r *EnvironmentRule) Description() string {
	switch {
	case r.Name != "":
		return r.Name
	case r.Level == nil:
		return ""
	case *r.Level == project.Developer:
		return "Developers + Maintainers"
	case *r.Level == project.Maintainer:
		return "Maintainers"
	case *r.Level == adminLevel:
		return "Administrators"
	}
	return r.Level.String()
}

// adminLevel is the access level of administrators in rules.
const adminLevel project.Level = 60

// Tiers are the deployment tiers.
func Tiers() []string { return []string{"production", "staging", "testing", "development", "other"} }

const (
	maxProtected    = 500 // of a project or group
	maxRules        = 100 // of each kind
	maxRequired     = 100
	maxProtectedLen = 255
)

// RuleChange adds a rule, or changes or removes the one with an ID.
type RuleChange struct {
	ID        *int64
	Level     *project.Level
	UserID    *int64
	GroupID   *int64
	Inherited *bool
	Required  *int64
	Remove    bool
}

// ProtectionChange are changes to a protected environment; nil leaves the current value.
type ProtectionChange struct {
	RequiredApprovals *int64
	Deploy            []RuleChange
	Approve           []RuleChange
}

// protector returns the place of protected environments to actors who manage them:
// Maintainers of a project, Maintainers and above of a group. NotFound, Forbidden.
func (s *Service) protector(ctx context.Context, by actor.Actor, at project.Place, change bool) (place, error) {
	if at.Group {
		g, err := s.Projects.RequireGroup(ctx, by, at.Ref, project.Maintainer)
		if err != nil {
			return place{}, err
		}
		return place{groupID: g.ID, entity: audit.Entity{Type: audit.GroupEntity, ID: g.ID, Path: g.FullPath}}, nil
	}
	var p *project.Project
	var err error
	if change {
		p, err = s.Projects.RequireChange(ctx, by, at.Ref, project.SettingsPart, project.Maintainer)
	} else {
		p, err = s.Projects.RequireView(ctx, by, at.Ref, project.SettingsPart)
	}
	if err != nil {
		return place{}, err
	}
	return place{projectID: p.ID, project: p, entity: audit.Entity{Type: audit.ProjectEntity, ID: p.ID, Path: p.FullPath}}, nil
}

// place is a project or a group.
type place struct {
	projectID, groupID int64 // one of them
	project            *project.Project
	entity             audit.Entity
}

// Protected lists the protected environments of a project or group by name.
// NotFound, Forbidden.
func (s *Service) Protected(ctx context.Context, by actor.Actor, at project.Place, p db.Paging) (db.Page[*ProtectedEnvironment], error) {
	in, err := s.protector(ctx, by, at, false)
	if err != nil {
		return db.Page[*ProtectedEnvironment]{}, err
	}
	page, err := listProtected(ctx, s.DB, in, p)
	if err == nil {
		err = fillRules(ctx, s.DB, page.Items)
	}
	if err != nil {
		return page, fmt.Errorf("list protected environments: %w", err)
	}
	return page, nil
}

// ProtectedByName returns a protected environment of a project or group.
// NotFound, Forbidden.
func (s *Service) ProtectedByName(ctx context.Context, by actor.Actor, at project.Place, name string) (*ProtectedEnvironment, error) {
	in, err := s.protector(ctx, by, at, false)
	if err != nil {
		return nil, err
	}
	return s.findProtected(ctx, s.DB, in, name)
}

func (s *Service) findProtected(ctx context.Context, q db.Q, in place, name string) (*ProtectedEnvironment, error) {
	e, err := findProtected(ctx, q, in, name)
	if err != nil {
		return nil, db.NotFound(err, "")
	}
	return e, fillRules(ctx, q, []*ProtectedEnvironment{e})
}

// Protect protects an environment of a project, or a tier of a group. Maintainers
// and above. NotFound, Forbidden, Unprocessable; Conflict if it is protected.
func (s *Service) Protect(ctx context.Context, by actor.Actor, at project.Place, name string, c ProtectionChange) (*ProtectedEnvironment, error) {
	in, err := s.protector(ctx, by, at, true)
	if err != nil {
		return nil, err
	}
	if name == "" || len(name) > maxProtectedLen {
		return nil, errs.Unprocessable("Name is invalid")
	}
	if at.Group && !slices.Contains(Tiers(), name) {
		return nil, errs.Unprocessable("Name must be one of environment tiers: production, staging, testing, development, other.")
	}
	e := &ProtectedEnvironment{Name: name, CreatedAt: s.Now(), UpdatedAt: s.Now()}
	if at.Group {
		e.GroupID = &in.groupID
	} else {
		e.ProjectID = &in.projectID
	}
	if err := s.applyProtection(ctx, by, in, e, c); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		n, err := countProtected(ctx, tx, in)
		if err != nil {
			return err
		}
		if n >= maxProtected {
			return errs.Unprocessable("There are at most %d protected environments: delete one first", maxProtected)
		}
		if err := insertProtected(ctx, tx, e); err != nil {
			if db.IsUnique(err, "protected_environments_project_id_name") || db.IsUnique(err, "protected_environments_namespace_id_name") {
				return errs.Conflict("Protected environment '%s' already exists", name)
			}
			return err
		}
		if err := saveRules(ctx, tx, e, nil); err != nil {
			return err
		}
		return s.recordProtection(ctx, tx, by, in, e, "environment_protected", audit.Details{Add: "protected_environment"})
	})
	if err != nil {
		return nil, fmt.Errorf("protect environment: %w", err)
	}
	return s.findProtected(ctx, s.DB, in, name)
}

// UpdateProtected changes a protected environment. Maintainers and above.
// NotFound, Forbidden, Unprocessable.
func (s *Service) UpdateProtected(ctx context.Context, by actor.Actor, at project.Place, name string, c ProtectionChange) (*ProtectedEnvironment, error) {
	in, err := s.protector(ctx, by, at, true)
	if err != nil {
		return nil, err
	}
	e, err := s.findProtected(ctx, s.DB, in, name)
	if err != nil {
		return nil, err
	}
	was := slices.Concat(e.Deploy, e.Approve)
	if err := s.applyProtection(ctx, by, in, e, c); err != nil {
		return nil, err
	}
	e.UpdatedAt = s.Now()
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := updateProtected(ctx, tx, e); err != nil {
			return db.NotFound(err, "")
		}
		if err := saveRules(ctx, tx, e, was); err != nil {
			return err
		}
		return s.recordProtection(ctx, tx, by, in, e, "environment_protection_updated", audit.Details{Change: "protected_environment"})
	})
	if err != nil {
		return nil, fmt.Errorf("update protected environment: %w", err)
	}
	return s.findProtected(ctx, s.DB, in, name)
}

// Unprotect removes the protection of an environment. Maintainers and above.
// NotFound, Forbidden.
func (s *Service) Unprotect(ctx context.Context, by actor.Actor, at project.Place, name string) error {
	in, err := s.protector(ctx, by, at, true)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		e, err := findProtected(ctx, tx, in, name)
		if err != nil {
			return db.NotFound(err, "")
		}
		if err := deleteProtected(ctx, tx, e.ID); err != nil {
			return err
		}
		return s.recordProtection(ctx, tx, by, in, e, "environment_unprotected", audit.Details{Remove: "protected_environment"})
	})
	if err != nil {
		return fmt.Errorf("unprotect environment: %w", err)
	}
	return nil
}

func (s *Service) recordProtection(ctx context.Context, tx *db.Tx, by actor.Actor, in place, e *ProtectedEnvironment, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: in.entity, Target: audit.Target{Type: "ProtectedEnvironment", ID: e.ID, Details: e.Name}, Details: d,
	})
}

// applyProtection changes a protected environment and checks it.
func (s *Service) applyProtection(ctx context.Context, by actor.Actor, in place, e *ProtectedEnvironment, c ProtectionChange) error {
	patch.Set(&e.RequiredApprovals, c.RequiredApprovals)
	if e.RequiredApprovals < 0 || e.RequiredApprovals > maxRequired {
		return errs.Unprocessable("Required approval count must be between 0 and %d", maxRequired)
	}
	var err error
	if e.Deploy, err = s.applyRules(ctx, by, in, e.Deploy, c.Deploy, false); err != nil {
		return err
	}
	if len(e.Deploy) == 0 {
		return errs.Unprocessable("Deploy access levels can't be blank")
	}
	e.Approve, err = s.applyRules(ctx, by, in, e.Approve, c.Approve, true)
	return err
}

func (s *Service) applyRules(ctx context.Context, by actor.Actor, in place, have []*EnvironmentRule, changes []RuleChange, approve bool) ([]*EnvironmentRule, error) {
	list := slices.Clone(have)
	for _, c := range changes {
		var r *EnvironmentRule
		var ok bool
		if list, r, ok = patch.Element(list, c.ID, c.Remove, func(r *EnvironmentRule) int64 { return r.ID }); !ok {
			return nil, errs.NotFound("")
		}
		if r == nil {
			continue
		}
		if approve && r.ID == 0 {
			r.Required = 1
		}
		if err := s.applyRule(ctx, by, in, r, c, approve); err != nil {
			return nil, err
		}
	}
	if len(list) > maxRules {
		return nil, errs.Unprocessable("A protected environment has at most %d rules", maxRules)
	}
	return list, nil
}

func (s *Service) applyRule(ctx context.Context, by actor.Actor, in place, r *EnvironmentRule, c RuleChange, approve bool) error {
	given := 0
	for _, set := range []bool{c.Level != nil, c.UserID != nil, c.GroupID != nil} {
		if set {
			given++
		}
	}
	if given > 1 || given == 0 && r.ID == 0 {
		return errs.Unprocessable("A rule has one of access level, user and group")
	}
	if given == 1 {
		r.Level, r.UserID, r.GroupID, r.Name = c.Level, c.UserID, c.GroupID, ""
	}
	patch.Set(&r.Inherited, c.Inherited)
	if c.Required != nil && approve {
		r.Required = *c.Required
	}
	if approve && (r.Required < 1 || r.Required > maxRequired) {
		return errs.Unprocessable("Required approvals must be between 1 and %d", maxRequired)
	}
	switch {
	case c.Level != nil && !slices.Contains([]project.Level{project.Developer, project.Maintainer, adminLevel}, *c.Level):
		return errs.Unprocessable("Access level is not included in the list")
	case c.UserID != nil:
		member, err := s.isMember(ctx, in, *c.UserID)
		if err != nil {
			return err
		}
		if !member {
			return errs.Unprocessable("User is not a member of the project or group")
		}
	case c.GroupID != nil:
		// The rule shows the name of the group, so the actor must be able to see it.
		_, err := s.Projects.RequireGroup(ctx, by, project.RefTo(*c.GroupID), project.NoAccess)
		if errs.Is(err, errs.KindNotFound) {
			return errs.Unprocessable("Group does not exist")
		}
		return err
	}
	return nil
}

// isMember reports whether a user has a role in the place.
func (s *Service) isMember(ctx context.Context, in place, userID int64) (bool, error) {
	if in.project == nil {
		level, err := s.Projects.GroupLevel(ctx, actor.Actor{ID: userID, External: true}, in.groupID)
		return level > project.Minimal, err
	}
	found, err := s.Projects.AccessOf(ctx, in.project, []int64{userID})
	a, ok := found[userID]
	return ok && a.Level() > project.Minimal, err
}

// Protections returns the protected environments that apply to an environment: that of
// its project, and those of the groups above for its tier.
func (s *Service) Protections(ctx context.Context, p *project.Project, name, tier string) ([]*ProtectedEnvironment, error) {
	list, err := findProtections(ctx, s.DB, p, name, tier)
	if err == nil {
		err = fillRules(ctx, s.DB, list)
	}
	if err != nil {
		return nil, fmt.Errorf("protections of environment: %w", err)
	}
	return list, nil
}

// MayDeploy reports whether all of these protections let an actor deploy to an
// environment.
func (s *Service) MayDeploy(ctx context.Context, by actor.Actor, p *project.Project, list []*ProtectedEnvironment) (bool, error) {
	for _, e := range list {
		ok, err := s.anyRule(ctx, by, p, e.Deploy)
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func (s *Service) anyRule(ctx context.Context, by actor.Actor, p *project.Project, rules []*EnvironmentRule) (bool, error) {
	for _, r := range rules {
		if ok, err := s.matches(ctx, by, p, r); err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

// matches reports whether a rule applies to an actor. Members of a group need at least
// the Reporter role there.
func (s *Service) matches(ctx context.Context, by actor.Actor, p *project.Project, r *EnvironmentRule) (bool, error) {
	switch {
	case by.Anonymous():
		return false, nil
	case by.Admin && r.Level != nil:
		return true, nil
	case r.UserID != nil:
		return by.Is(*r.UserID), nil
	case r.GroupID != nil:
		level, err := s.Projects.GroupLevel(ctx, actor.Actor{ID: by.ID, External: true}, *r.GroupID)
		if err != nil || level < project.Reporter || r.Inherited {
			return err == nil && level >= project.Reporter, err
		}
		direct, err := s.Projects.DirectMembers(ctx, []int64{*r.GroupID}, []int64{by.ID}, 0)
		return slices.Contains(direct[*r.GroupID], by.ID), err
	case r.Level == nil || *r.Level == adminLevel:
		return false, nil
	}
	found, err := s.Projects.AccessOf(ctx, p, []int64{by.ID})
	a, ok := found[by.ID]
	return ok && a.Level() >= *r.Level, err
}

// RequireDeploy returns Forbidden unless an actor may deploy to an environment of a
// project. Everyone who may run the job may deploy to an environment without protection.
func (s *Service) RequireDeploy(ctx context.Context, by actor.Actor, p *project.Project, name, tier string) error {
	list, err := s.Protections(ctx, p, name, tier)
	if err != nil {
		return err
	}
	ok, err := s.MayDeploy(ctx, by, p, list)
	if err != nil {
		return err
	}
	if !ok {
		return errs.Forbidden("You are not allowed to deploy to the protected environment %s", name)
	}
	return nil
}

// RequireDeployTo is RequireDeploy for an environment by its ID. NotFound.
func (s *Service) RequireDeployTo(ctx context.Context, by actor.Actor, p *project.Project, id int64) error {
	e, err := FindEnvironment(ctx, s.DB, p.ID, id)
	if err != nil {
		return err
	}
	return s.RequireDeploy(ctx, by, p, e.Name, e.Tier)
}
