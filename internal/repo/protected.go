package repo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/glob"
	"svc/internal/patch"
	"svc/internal/project"
)

// RefKind is the kind of a protected ref: branch or tag.
type RefKind string

// The kinds of protected refs.
const (
	BranchRef RefKind = "branch"
	TagRef    RefKind = "tag"
)

// RefAction is an action on a protected ref: push, merge, create or unprotect.
type RefAction string

// The actions: push, merge and unprotect are for branches, create is for tags.
const (
	PushTo    RefAction = "push"
	MergeInto RefAction = "merge"
	Unprotect RefAction = "unprotect"
	CreateRef RefAction = "create"
)

// AdminLevel is the access level of administrators in access lists.
const AdminLevel project.Level = 60

// Protected is a protection rule for branches or tags, by name or pattern.
type Protected struct {
	ID                int64
	ProjectID         int64 // exactly one is set: 0 for the rule of a group
	GroupID           int64 // all projects of the group and its subgroups inherit the rule
	Kind              RefKind
	Name              string // * matches any text
	AllowForcePush    bool
	CodeOwnerApproval bool
	Access            []RefAccess
	CreatedAt         time.Time
}

// RefAccess is an entry of an access list: all members from a level, or one
// user, group or deploy key.
type RefAccess struct {
	ID          int64
	Action      RefAction
	Level       project.Level
	UserID      *int64
	GroupID     *int64
	DeployKeyID *int64
	Name        string // display name of the user, group or key
}

// Description returns the description of the access level in the API.
func (a RefAccess) Description() string {
	switch {
	case a.Name != "":
		return a.Name
	case a.Level == project.NoAccess:
		return "No one"
	case a.Level == project.Developer:
		return "Developers + Maintainers"
	case a.Level == project.Maintainer:
		return "Maintainers"
	case a.Level == AdminLevel:
		return "Instance admins"
	}
	return a.Level.String()
}

// Of returns the entries for one action.
func (p *Protected) Of(action RefAction) []RefAccess {
	list := []RefAccess{}
	for _, a := range p.Access {
		if a.Action == action {
			list = append(list, a)
		}
	}
	return list
}

// ProtectedRefs lists the protected branches or tags of a project, for Developers
// and above. Rules of its groups follow the rules of the project. search is a part
// of the name.
func (s *Service) ProtectedRefs(ctx context.Context, by actor.Actor, ref project.Ref, kind RefKind, search string, pg db.Paging) (db.Page[*Protected], error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Developer)
	if err != nil {
		return db.Page[*Protected]{}, err
	}
	page, err := listProtected(ctx, s.DB, p, kind, search, pg)
	if err != nil {
		return page, fmt.Errorf("list protected refs: %w", err)
	}
	return page, s.fillAccess(ctx, s.DB, page.Items)
}

// ProtectedRef returns a rule by its exact name, for Developers and above. If the
// project and a group have one, that of the project is returned. NotFound.
func (s *Service) ProtectedRef(ctx context.Context, by actor.Actor, ref project.Ref, kind RefKind, name string) (*Protected, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Developer)
	if err != nil {
		return nil, err
	}
	found, err := s.findProtected(ctx, s.DB, rulesOf(p), kind, name)
	if !errs.Is(err, errs.KindNotFound) {
		return found, err
	}
	inherited, err := findInherited(ctx, s.DB, p.NamespaceID, kind, name)
	if err != nil {
		return nil, fmt.Errorf("find protected ref: %w", db.NotFound(err, ""))
	}
	return inherited, s.fillAccess(ctx, s.DB, []*Protected{inherited})
}

// ruleOwner is the project or group that rules belong to.
type ruleOwner struct {
	projectID, groupID int64 // one of them
	entity             audit.Entity
}

func rulesOf(p *project.Project) ruleOwner { return ruleOwner{projectID: p.ID, entity: p.Entity()} }

// lock prevents concurrent changes of the rules until the transaction ends.
func (o ruleOwner) lock(ctx context.Context, tx *db.Tx) error {
	if o.groupID != 0 {
		return tx.Lock(ctx, "namespaces", o.groupID)
	}
	return tx.Lock(ctx, "projects", o.projectID)
}

func (s *Service) findProtected(ctx context.Context, q db.Q, of ruleOwner, kind RefKind, name string) (*Protected, error) {
	found, err := findProtected(ctx, q, of, kind, name)
	if err != nil {
		return nil, fmt.Errorf("find protected ref: %w", db.NotFound(err, ""))
	}
	return found, s.fillAccess(ctx, q, []*Protected{found})
}

func (s *Service) fillAccess(ctx context.Context, q db.Q, list []*Protected) error {
	if len(list) == 0 {
		return nil
	}
	byID := make(map[int64]*Protected, len(list))
	ids := make([]int64, len(list))
	for i, one := range list {
		byID[one.ID], ids[i] = one, one.ID
	}
	if err := readAccess(ctx, q, ids, func(of int64, a RefAccess) { byID[of].Access = append(byID[of].Access, a) }); err != nil {
		return fmt.Errorf("read access to protected refs: %w", err)
	}
	return nil
}

// BranchRules returns the protection rules for the branches of a project, with
// those that it inherits, for other features. The caller checks the permissions.
func (s *Service) BranchRules(ctx context.Context, projectID int64) ([]*Protected, error) {
	all, err := allProtected(ctx, s.DB, projectID)
	if err != nil {
		return nil, fmt.Errorf("protected branches of project %d: %w", projectID, err)
	}
	all = slices.DeleteFunc(all, func(p *Protected) bool { return p.Kind != BranchRef })
	return all, s.fillAccess(ctx, s.DB, all)
}

// BranchProtected reports whether a rule protects a branch of a project, for other
// features. The caller checks the permissions.
func BranchProtected(ctx context.Context, q db.Q, projectID int64, name string) (bool, error) {
	all, err := allProtected(ctx, q, projectID)
	return slices.ContainsFunc(all, func(p *Protected) bool { return p.Kind == BranchRef && p.Matches(name) }), err
}

// Matches reports whether the rule is for a branch or tag with this name.
func (p *Protected) Matches(name string) bool { return glob.Wild(p.Name, name) }

// NewProtected has the fields of a new rule. Actions without entries are for
// Maintainers.
type NewProtected struct {
	Name              string
	AllowForcePush    bool
	CodeOwnerApproval bool
	Access            []RefAccess
}

// Protect protects branches or tags by name or pattern, for Maintainers and
// above. Conflict if there is a rule with that name; Unprocessable if the name
// is not valid, or an entry has no access to the project.
func (s *Service) Protect(ctx context.Context, by actor.Actor, ref project.Ref, kind RefKind, n NewProtected) (*Protected, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return nil, err
	}
	if err := checkPattern(kind, n.Name); err != nil {
		return nil, err
	}
	n.Access = withDefaults(kind, n.Access)
	if err := s.checkAccess(ctx, p, n.Access); err != nil {
		return nil, err
	}
	return s.protect(ctx, by, rulesOf(p), kind, n)
}

// maxRules is the maximum number of protected branches, and of protected tags, of a project
// or group, because all are read for each push.
const maxRules = 1000

// protect adds a rule that was checked.
func (s *Service) protect(ctx context.Context, by actor.Actor, of ruleOwner, kind RefKind, n NewProtected) (*Protected, error) {
	made := &Protected{
		ProjectID: of.projectID, GroupID: of.groupID, Kind: kind, Name: n.Name, AllowForcePush: n.AllowForcePush, CodeOwnerApproval: n.CodeOwnerApproval,
		Access: n.Access, CreatedAt: s.Now(),
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := of.lock(ctx, tx); err != nil {
			return err
		}
		count, err := countProtected(ctx, tx, of, kind)
		if err != nil {
			return err
		}
		if count >= maxRules {
			return errs.Unprocessable("There are at most %d rules: unprotect a %s first", maxRules, kind)
		}
		if err := insertProtected(ctx, tx, made); err != nil {
			return err
		}
		return s.recordProtected(ctx, tx, by, of, made, "protected_"+string(kind)+"_created", audit.Details{Add: "protected_" + string(kind)})
	})
	if db.IsUnique(err, "protected_refs_project_id_kind_name") || db.IsUnique(err, "protected_refs_namespace_id_kind_name") {
		return nil, errs.Conflict("Protected %s '%s' already exists", kind, n.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("protect %s: %w", kind, err)
	}
	return s.findProtected(ctx, s.DB, of, kind, n.Name)
}

// withDefaults adds Maintainers for each action without entries.
func withDefaults(kind RefKind, list []RefAccess) []RefAccess {
	actions := []RefAction{PushTo, MergeInto, Unprotect}
	if kind == TagRef {
		actions = []RefAction{CreateRef}
	}
	var all []RefAccess
	for _, action := range actions {
		n := len(all)
		for _, a := range list {
			if a.Action == action {
				all = append(all, a)
			}
		}
		if len(all) == n {
			all = append(all, RefAccess{Action: action, Level: project.Maintainer})
		}
	}
	return all
}

// checkPattern checks that a pattern can match a ref name: with every * replaced by x, it must
// be a valid name.
func checkPattern(kind RefKind, name string) error {
	place := git.Heads
	if kind == TagRef {
		place = git.Tags
	}
	if err := git.CheckRef(place + strings.ReplaceAll(name, "*", "x")); err != nil {
		return errs.Unprocessable("Name is invalid").Because(err)
	}
	return nil
}

// checkAccess checks that the users, groups and deploy keys of entries have
// access to the project.
func (s *Service) checkAccess(ctx context.Context, p *project.Project, list []RefAccess) error {
	for _, a := range list {
		var known bool
		var err error
		switch {
		case a.UserID != nil:
			if known, err = s.isMember(ctx, *a.UserID, p); err == nil && !known {
				return errs.Unprocessable("User is not a member of the project")
			}
		case a.GroupID != nil:
			if known, err = groupHasAccess(ctx, s.DB, *a.GroupID, p); err == nil && !known {
				return errs.Unprocessable("Group does not have access to the project")
			}
		case a.DeployKeyID != nil:
			if known, err = keyIsEnabled(ctx, s.DB, *a.DeployKeyID, p.ID); err == nil && !known {
				return errs.Unprocessable("Deploy key is not enabled for this project with write access")
			}
		case a.ID == 0 && !slices.Contains([]project.Level{project.NoAccess, project.Developer, project.Maintainer, AdminLevel}, a.Level):
			return errs.Unprocessable("Access level is not included in the list")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isMember reports whether a user is at least a Developer of the project.
func (s *Service) isMember(ctx context.Context, userID int64, p *project.Project) (bool, error) {
	_, err := s.Projects.Require(ctx, actor.Actor{ID: userID, External: true}, project.RefTo(p.ID), project.Developer)
	if k := errs.KindOf(err); k == errs.KindNotFound || k == errs.KindForbidden {
		return false, nil
	}
	return err == nil, err
}

// ProtectedChange has the changes of a rule; nil keeps the value.
type ProtectedChange struct {
	AllowForcePush    *bool
	CodeOwnerApproval *bool
	Access            []AccessChange
}

// AccessChange adds an entry, or changes or removes the one with the ID.
type AccessChange struct {
	RefAccess
	Remove bool
}

// ChangeProtected changes a rule, for Maintainers and above. NotFound if there
// is no such rule or entry; Unprocessable as for Protect.
func (s *Service) ChangeProtected(ctx context.Context, by actor.Actor, ref project.Ref, kind RefKind, name string, c ProtectedChange) (*Protected, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return nil, err
	}
	for _, a := range c.Access {
		if a.Remove {
			continue
		}
		if err := s.checkAccess(ctx, p, []RefAccess{a.RefAccess}); err != nil {
			return nil, err
		}
	}
	return s.changeProtected(ctx, by, rulesOf(p), kind, name, c)
}

// changeProtected makes changes that were checked.
func (s *Service) changeProtected(ctx context.Context, by actor.Actor, of ruleOwner, kind RefKind, name string, c ProtectedChange) (*Protected, error) {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := of.lock(ctx, tx); err != nil {
			return err
		}
		was, err := s.findProtected(ctx, tx, of, kind, name)
		if err != nil {
			return err
		}
		patch.Set(&was.AllowForcePush, c.AllowForcePush)
		patch.Set(&was.CodeOwnerApproval, c.CodeOwnerApproval)
		if err := saveProtected(ctx, tx, was); err != nil {
			return err
		}
		for _, a := range c.Access {
			if err := changeAccess(ctx, tx, was.ID, a); err != nil {
				return err
			}
		}
		return s.recordProtected(ctx, tx, by, of, was, "protected_"+string(kind)+"_updated", audit.Details{Change: "protected_" + string(kind)})
	})
	if err != nil {
		return nil, fmt.Errorf("change protected %s: %w", kind, err)
	}
	return s.findProtected(ctx, s.DB, of, kind, name)
}

func changeAccess(ctx context.Context, tx *db.Tx, ruleID int64, a AccessChange) error {
	var err error
	switch {
	case a.ID == 0:
		return insertAccess(ctx, tx, ruleID, a.RefAccess)
	case a.Remove:
		err = deleteAccess(ctx, tx, ruleID, a.RefAccess)
	default:
		err = updateAccess(ctx, tx, ruleID, a.RefAccess)
	}
	return db.NotFound(err, "")
}

// Unprotect deletes a rule, for Maintainers and above. If the rule of a branch
// has entries for unprotecting, only they may. NotFound, Forbidden.
func (s *Service) Unprotect(ctx context.Context, by actor.Actor, ref project.Ref, kind RefKind, name string) error {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return err
	}
	found, err := s.findProtected(ctx, s.DB, rulesOf(p), kind, name)
	if err != nil {
		return err
	}
	if kind == BranchRef && len(found.Of(Unprotect)) > 0 {
		g := guard{service: s, by: by, project: p}
		may, err := g.may(ctx, protections{found}, Unprotect)
		if err != nil {
			return err
		}
		if !may {
			return errs.Forbidden("")
		}
	}
	return s.unprotect(ctx, by, rulesOf(p), found)
}

func (s *Service) unprotect(ctx context.Context, by actor.Actor, of ruleOwner, r *Protected) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := deleteProtected(ctx, tx, r.ID); err != nil {
			return err
		}
		return s.recordProtected(ctx, tx, by, of, r, "protected_"+string(r.Kind)+"_removed", audit.Details{Remove: "protected_" + string(r.Kind)})
	})
	if err != nil {
		return fmt.Errorf("unprotect %s: %w", r.Kind, db.NotFound(err, ""))
	}
	return nil
}

func (s *Service) recordProtected(ctx context.Context, tx *db.Tx, by actor.Actor, of ruleOwner, r *Protected, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: of.entity, Target: audit.Target{Type: "Protected" + strings.ToUpper(string(r.Kind[:1])) + string(r.Kind[1:]), ID: r.ID, Details: r.Name}, Details: d,
	})
}

// Pushed protects the default branch of a project after its first push, unless
// there already is a rule.
func (s *Service) Pushed(ctx context.Context, tx *db.Tx, push Push) error {
	if push.Project.DefaultBranch != "" {
		return nil
	}
	branch, err := findDefaultBranch(ctx, tx, push.Project.ID)
	if err != nil || branch == "" {
		return err
	}
	return s.protectDefault(ctx, tx, push.Project.ID, branch)
}

// protectionAccess returns the access list of a branch protection.
func protectionAccess(b project.BranchProtection) []RefAccess {
	var list []RefAccess
	for _, l := range b.Push {
		list = append(list, RefAccess{Action: PushTo, Level: l})
	}
	for _, l := range b.Merge {
		list = append(list, RefAccess{Action: MergeInto, Level: l})
	}
	return list
}

// protectDefault adds the default branch protection of the group of the project, or of the
// instance.
func (s *Service) protectDefault(ctx context.Context, tx *db.Tx, projectID int64, branch string) error {
	_, err := findProtected(ctx, tx, ruleOwner{projectID: projectID}, BranchRef, branch)
	if !errors.Is(err, db.ErrNoRows) {
		return err
	}
	b, err := s.Projects.BranchProtection(ctx, tx, projectID)
	if err != nil || b.None() {
		return err
	}
	made := &Protected{
		ProjectID: projectID, Kind: BranchRef, Name: branch, AllowForcePush: b.ForcePush, CodeOwnerApproval: b.CodeOwnerApproval,
		Access: withDefaults(BranchRef, protectionAccess(b)), CreatedAt: s.Now(),
	}
	if err := insertProtected(ctx, tx, made); err != nil {
		return fmt.Errorf("protect default branch of project %d: %w", projectID, err)
	}
	return nil
}
