package merge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// RuleType is the type of an approval rule.
type RuleType string

// The types of approval rules.
const (
	AnyApprover RuleType = "any_approver" // all users who may approve
	Regular     RuleType = "regular"      // users and groups
	CodeOwner   RuleType = "code_owner"   // generated from CODEOWNERS; read-only
)

// ApprovalRule requires a number of approvals. It belongs to a project or to a merge
// request; the rules of a merge request replace the project rules.
type ApprovalRule struct {
	ID           int64
	ProjectID    int64
	RequestID    *int64 // nil for a rule of the project
	SourceID     *int64 // the rule of the project that it was copied from
	Type         RuleType
	Name         string
	Section      string // of CODEOWNERS
	Required     int64
	AllProtected bool // for all protected branches
	CreatedAt    time.Time

	userIDs, groupIDs, branchIDs []int64
	roles                        []project.Level

	// The following fields are set by fillRules.
	Users        []*user.User
	Groups       []*project.Namespace // only groups that the actor can see
	HiddenGroups bool                 // the rule has groups that the actor cannot see
	Branches     []*repo.Protected
	Eligible     []*user.User // who may approve; empty for any approver
	Source       *ApprovalRule
}

// Overridden reports whether a rule of a merge request differs from the project rule
// that it was copied from.
func (r *ApprovalRule) Overridden() bool {
	s := r.Source
	return s != nil && (s.Name != r.Name || s.Required != r.Required || !slices.Equal(s.userIDs, r.userIDs) || !slices.Equal(s.groupIDs, r.groupIDs))
}

// applies reports whether a project rule applies to a target branch.
func (r *ApprovalRule) applies(protected []*repo.Protected, branch string) bool {
	if !r.AllProtected && len(r.branchIDs) == 0 {
		return true
	}
	return slices.ContainsFunc(protected, func(p *repo.Protected) bool {
		return (r.AllProtected || slices.Contains(r.branchIDs, p.ID)) && p.Matches(branch)
	})
}

// RuleFields are changes to an approval rule; nil keeps the default or the current
// value.
type RuleFields struct {
	Name               *string
	Type               RuleType // of a new rule
	Required           *int64
	UserIDs            *[]int64
	Usernames          []string
	GroupIDs           *[]int64
	RemoveHiddenGroups bool
	BranchIDs          *[]int64
	AllProtected       *bool
	SourceID           int64 // of a new rule of a merge request: copy this rule of the project
}

// The limits of approval rules.
const (
	maxRules         = 100 // of a project or merge request
	maxRuleUsers     = 200
	maxRuleGroups    = 50
	maxRuleName      = 1024
	maxRuleApprovers = 2000 // members of groups that are read for a rule
)

// viewRules returns a project to signed-in users who can read its merge
// requests.
func (s *Service) viewRules(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	in, err := s.Projects.RequireView(ctx, by, ref, project.MergePart)
	if err != nil {
		return nil, err
	}
	return in, by.RequireUser()
}

// manageRules returns a project to users who may change its approval settings and
// rules: Maintainers and above.
func (s *Service) manageRules(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	return s.Projects.RequireChange(ctx, by, ref, project.MergePart, project.Maintainer)
}

// ProjectRules lists the approval rules of a project for users who can read its
// merge requests. NotFound.
func (s *Service) ProjectRules(ctx context.Context, by actor.Actor, ref project.Ref, p db.Paging) (db.Page[*ApprovalRule], error) {
	in, err := s.viewRules(ctx, by, ref)
	if err != nil {
		return db.Page[*ApprovalRule]{}, err
	}
	list, err := s.projectRules(ctx, in)
	if err != nil {
		return db.Page[*ApprovalRule]{}, err
	}
	page := db.SlicePage(list, p)
	return page, s.fillRules(ctx, by, in, page.Items...)
}

// projectRules returns the rules of a project. The number of approvals of the rule
// for any approver is a project setting: if only the setting exists, the rule is
// created.
func (s *Service) projectRules(ctx context.Context, in *project.Project) ([]*ApprovalRule, error) {
	list, err := s.ownRules(ctx, s.DB, in)
	if err != nil || in.MergeSettings().Approvals.BeforeMerge == 0 || slices.ContainsFunc(list, isAny) {
		return list, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", in.ID); err != nil {
			return err
		}
		if list, err = s.ownRules(ctx, tx, in); err != nil || slices.ContainsFunc(list, isAny) {
			return err
		}
		r := &ApprovalRule{ProjectID: in.ID, Type: AnyApprover, Name: freeName(list, anyName), Required: in.MergeSettings().Approvals.BeforeMerge, CreatedAt: s.Now()}
		list = append(list, r)
		return insertRule(ctx, tx, r)
	})
	if err != nil {
		return nil, fmt.Errorf("approval rules of project %d: %w", in.ID, err)
	}
	return list, nil
}

// anyName is the name of the rule for any approver.
const anyName = "All Members"

func isAny(r *ApprovalRule) bool { return r.Type == AnyApprover }

// freeName returns the name, with a number appended if a rule in list has it.
func freeName(list []*ApprovalRule, name string) string {
	free := name
	for n := 2; slices.ContainsFunc(list, func(r *ApprovalRule) bool { return r.Name == free }); n++ {
		free = fmt.Sprintf("%s (%d)", name, n)
	}
	return free
}

// ownRules reads the rules of a project.
func (s *Service) ownRules(ctx context.Context, q db.Q, in *project.Project) ([]*ApprovalRule, error) {
	list, err := findProjectRules(ctx, q, []int64{in.ID})
	if err != nil {
		return nil, fmt.Errorf("approval rules of project %d: %w", in.ID, err)
	}
	for _, r := range list {
		r.adopt(in)
	}
	return list, nil
}

// adopt sets the fields of a project rule that are stored in the project settings.
func (r *ApprovalRule) adopt(in *project.Project) {
	if r.Type == AnyApprover && r.RequestID == nil {
		r.Required = in.MergeSettings().Approvals.BeforeMerge
	}
}

// ProjectRule returns an approval rule of a project to users who can read its
// merge requests. NotFound.
func (s *Service) ProjectRule(ctx context.Context, by actor.Actor, ref project.Ref, id int64) (*ApprovalRule, error) {
	in, err := s.viewRules(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	return s.projectRule(ctx, by, in, id)
}

func (s *Service) projectRule(ctx context.Context, by actor.Actor, in *project.Project, id int64) (*ApprovalRule, error) {
	list, err := s.ownRules(ctx, s.DB, in)
	if err != nil {
		return nil, err
	}
	r, err := ruleAmong(list, id)
	if err != nil {
		return nil, err
	}
	return r, s.fillRules(ctx, by, in, r)
}

func ruleAmong(list []*ApprovalRule, id int64) (*ApprovalRule, error) {
	at := slices.IndexFunc(list, func(r *ApprovalRule) bool { return r.ID == id })
	if at < 0 {
		return nil, errs.NotFound("")
	}
	return list[at], nil
}

// CreateProjectRule creates an approval rule of a project, for Maintainers and
// above. NotFound; Forbidden; Invalid.
func (s *Service) CreateProjectRule(ctx context.Context, by actor.Actor, ref project.Ref, f RuleFields) (*ApprovalRule, error) {
	in, err := s.manageRules(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	r := &ApprovalRule{ProjectID: in.ID, Type: Regular, CreatedAt: s.Now()}
	if f.Type != "" {
		r.Type = f.Type
	}
	if err := s.applyRule(ctx, by, in, r, f); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", in.ID); err != nil {
			return err
		}
		list, err := findProjectRules(ctx, tx, []int64{in.ID})
		if err != nil {
			return err
		}
		if err := room(list, r); err != nil {
			return err
		}
		if err := insertRule(ctx, tx, r); err != nil {
			return err
		}
		return s.recordRule(ctx, tx, by, in, r, "approval_rule_created", audit.Details{Add: "approval rule"})
	})
	if err != nil {
		return nil, fmt.Errorf("create approval rule: %w", err)
	}
	return s.savedRule(ctx, by, in, r)
}

// savedRule saves the number of approvals of the rule for any approver in the
// project settings, and returns the rule.
func (s *Service) savedRule(ctx context.Context, by actor.Actor, in *project.Project, r *ApprovalRule) (*ApprovalRule, error) {
	if r.Type == AnyApprover && r.Required != in.MergeSettings().Approvals.BeforeMerge {
		_, err := s.ConfigureApprovals(ctx, by, project.RefTo(in.ID), func(a *project.ApprovalSettings) { a.BeforeMerge = r.Required })
		if err != nil {
			return nil, err
		}
	}
	return s.ProjectRule(ctx, by, project.RefTo(in.ID), r.ID)
}

// room validates that a rule can be saved alongside the others in list. Invalid.
func room(list []*ApprovalRule, r *ApprovalRule) error {
	if r.ID == 0 && len(list) >= maxRules {
		return errs.Invalid("There are too many approval rules (maximum is %d)", maxRules)
	}
	for _, other := range list {
		switch {
		case other.ID == r.ID || other.Type == CodeOwner:
		case other.Type == AnyApprover && r.Type == AnyApprover:
			return errs.InvalidField("rule_type", "any-approver for the project already exists")
		case other.Name == r.Name:
			return errs.InvalidField("name", "has already been taken")
		}
	}
	return nil
}

// applyRule sets and validates the fields of a rule.
func (s *Service) applyRule(ctx context.Context, by actor.Actor, in *project.Project, r *ApprovalRule, f RuleFields) error {
	patch.Set(&r.Name, f.Name)
	patch.Set(&r.Required, f.Required)
	patch.Set(&r.AllProtected, f.AllProtected)
	r.Name = strings.TrimSpace(r.Name)
	wrong := errs.Fields{}
	if r.Name == "" {
		wrong.Set("name", "can't be blank")
	}
	if len(r.Name) > maxRuleName {
		wrong.Set("name", "is too long (maximum is %d characters)", maxRuleName)
	}
	if r.Required < 0 || r.Required > project.MaxApprovals {
		wrong.Set("approvals_required", "must be between 0 and %d", project.MaxApprovals)
	}
	if r.Type != Regular && r.Type != AnyApprover {
		wrong.Set("rule_type", "is not included in the list")
	}
	if r.Type == AnyApprover && (f.UserIDs != nil && len(*f.UserIDs) > 0 || len(f.Usernames) > 0 || f.GroupIDs != nil && len(*f.GroupIDs) > 0) {
		wrong.Set("rule_type", "any_approver cannot have users or groups")
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	if err := s.applyRuleUsers(ctx, in, r, f); err != nil {
		return err
	}
	if err := s.applyRuleGroups(ctx, by, r, f); err != nil {
		return err
	}
	return s.applyRuleBranches(ctx, in, r, f)
}

func (s *Service) applyRuleUsers(ctx context.Context, in *project.Project, r *ApprovalRule, f RuleFields) error {
	if f.UserIDs == nil && f.Usernames == nil {
		return nil
	}
	var want []int64
	if f.UserIDs != nil {
		want = slices.Clone(*f.UserIDs)
	}
	if len(want)+len(f.Usernames) > maxRuleUsers {
		return errs.InvalidField("user_ids", "are too many (maximum is %d)", maxRuleUsers)
	}
	if len(f.Usernames) > 0 {
		named, _, err := s.Projects.NamedOwners(ctx, f.Usernames)
		if err != nil {
			return err
		}
		for _, name := range f.Usernames {
			id, ok := named[strings.ToLower(name)]
			if !ok {
				return errs.InvalidField("usernames", "%s is not a member of the project", name)
			}
			want = append(want, id)
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	access, err := s.Projects.AccessOf(ctx, in, want)
	if err != nil {
		return err
	}
	for _, id := range want {
		if access[id].Level() == project.NoAccess && !slices.Contains(r.userIDs, id) {
			return errs.InvalidField("user_ids", "%d is not a member of the project", id)
		}
	}
	r.userIDs = want
	return nil
}

// applyRuleGroups sets the groups of a rule. Groups that the actor cannot see are
// kept, unless they are removed explicitly.
func (s *Service) applyRuleGroups(ctx context.Context, by actor.Actor, r *ApprovalRule, f RuleFields) error {
	if f.GroupIDs == nil && !f.RemoveHiddenGroups {
		return nil
	}
	want := r.groupIDs
	if f.GroupIDs != nil {
		want = slices.Clone(*f.GroupIDs)
	}
	if len(want) > maxRuleGroups {
		return errs.InvalidField("group_ids", "are too many (maximum is %d)", maxRuleGroups)
	}
	seen, err := s.Projects.GroupsAmong(ctx, by, slices.Concat(want, r.groupIDs))
	if err != nil {
		return err
	}
	kept := []int64{}
	for _, id := range want {
		if seen[id] == nil && !slices.Contains(r.groupIDs, id) {
			return errs.InvalidField("group_ids", "%d is not a group that you can access", id)
		}
		if seen[id] != nil {
			kept = append(kept, id)
		}
	}
	for _, id := range r.groupIDs {
		if seen[id] == nil && !f.RemoveHiddenGroups {
			kept = append(kept, id)
		}
	}
	slices.Sort(kept)
	r.groupIDs = slices.Compact(kept)
	return nil
}

func (s *Service) applyRuleBranches(ctx context.Context, in *project.Project, r *ApprovalRule, f RuleFields) error {
	if r.AllProtected {
		r.branchIDs = nil
		return nil
	}
	if f.BranchIDs == nil {
		return nil
	}
	protected, err := s.Repos.BranchRules(ctx, in.ID)
	if err != nil {
		return err
	}
	want := slices.Clone(*f.BranchIDs)
	slices.Sort(want)
	want = slices.Compact(want)
	for _, id := range want {
		if !slices.ContainsFunc(protected, func(p *repo.Protected) bool { return p.ID == id }) {
			return errs.InvalidField("protected_branch_ids", "%d is not a protected branch of the project", id)
		}
	}
	r.branchIDs = want
	return nil
}

// UpdateProjectRule changes an approval rule of a project, for Maintainers and
// above. NotFound; Forbidden; Invalid.
func (s *Service) UpdateProjectRule(ctx context.Context, by actor.Actor, ref project.Ref, id int64, f RuleFields) (*ApprovalRule, error) {
	in, err := s.manageRules(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	r, err := s.projectRule(ctx, by, in, id)
	if err != nil {
		return nil, err
	}
	was := *r
	if err := s.applyRule(ctx, by, in, r, f); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", in.ID); err != nil {
			return err
		}
		list, err := findProjectRules(ctx, tx, []int64{in.ID})
		if err != nil {
			return err
		}
		if _, err := ruleAmong(list, id); err != nil {
			return err
		}
		if err := room(list, r); err != nil {
			return err
		}
		if err := saveRule(ctx, tx, r); err != nil {
			return err
		}
		d := audit.Details{Change: "approval rule", From: was.summary(), To: r.summary()}
		return s.recordRule(ctx, tx, by, in, r, "approval_rule_updated", d)
	})
	if err != nil {
		return nil, fmt.Errorf("update approval rule %d: %w", id, err)
	}
	return s.savedRule(ctx, by, in, r)
}

// summary describes a rule for audit events.
func (r *ApprovalRule) summary() string {
	return fmt.Sprintf("%s: %d approvals, users %v, groups %v", r.Name, r.Required, r.userIDs, r.groupIDs)
}

// DeleteProjectRule deletes an approval rule of a project, for Maintainers and
// above. NotFound; Forbidden.
func (s *Service) DeleteProjectRule(ctx context.Context, by actor.Actor, ref project.Ref, id int64) error {
	in, err := s.manageRules(ctx, by, ref)
	if err != nil {
		return err
	}
	r, err := s.projectRule(ctx, by, in, id)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := deleteRule(ctx, tx, id); err != nil {
			return db.NotFound(err, "")
		}
		return s.recordRule(ctx, tx, by, in, r, "approval_rule_deleted", audit.Details{Remove: "approval rule"})
	})
	if err != nil {
		return fmt.Errorf("delete approval rule %d: %w", id, err)
	}
	if r.Type == AnyApprover && r.Required > 0 {
		_, err = s.ConfigureApprovals(ctx, by, project.RefTo(in.ID), func(a *project.ApprovalSettings) { a.BeforeMerge = 0 })
	}
	return err
}

func (s *Service) recordRule(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, r *ApprovalRule, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: in.Entity(), Target: audit.Target{Type: "ApprovalRule", ID: r.ID, Details: r.Name}, Details: d,
	})
}

// fillRules reads the users, groups, branches and eligible approvers of rules.
func (s *Service) fillRules(ctx context.Context, by actor.Actor, in *project.Project, list ...*ApprovalRule) error {
	if len(list) == 0 {
		return nil
	}
	b := s.newEligibility(map[int64]*project.Project{in.ID: in})
	for _, r := range list {
		b.expect(r)
	}
	if err := b.load(ctx, s); err != nil {
		return err
	}
	protected, err := b.branches(ctx, s, in.ID)
	if err != nil {
		return err
	}
	var ids, groupIDs []int64
	eligible := map[*ApprovalRule][]int64{}
	for _, r := range list {
		if r.Type != AnyApprover {
			eligible[r] = b.eligible(r)
		}
		ids, groupIDs = slices.Concat(ids, r.userIDs, eligible[r]), append(groupIDs, r.groupIDs...)
	}
	users, err := s.usersAmong(ctx, ids)
	if err != nil {
		return err
	}
	groups, err := s.Projects.GroupsAmong(ctx, by, groupIDs)
	if err != nil {
		return err
	}
	for _, r := range list {
		r.Users, r.Eligible, r.Groups = known(users, r.userIDs), known(users, eligible[r]), []*project.Namespace{}
		for _, id := range r.groupIDs {
			if groups[id] == nil {
				r.HiddenGroups = true
			} else {
				r.Groups = append(r.Groups, groups[id])
			}
		}
		r.Branches = []*repo.Protected{}
		for _, p := range protected {
			if r.AllProtected || slices.Contains(r.branchIDs, p.ID) {
				r.Branches = append(r.Branches, p)
			}
		}
	}
	return nil
}

// usersAmong reads users by ID.
func (s *Service) usersAmong(ctx context.Context, ids []int64) (map[int64]*user.User, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	found := map[int64]*user.User{}
	for part := range slices.Chunk(slices.Compact(ids), 300) {
		users, err := s.Users.FindAll(ctx, part)
		if err != nil {
			return nil, fmt.Errorf("find users: %w", err)
		}
		for id, u := range users {
			found[id] = u
		}
	}
	return found, nil
}

// known returns the users with the given IDs that exist, in the order of ids.
func known(users map[int64]*user.User, ids []int64) []*user.User {
	list := []*user.User{}
	for _, id := range ids {
		if u := users[id]; u != nil {
			list = append(list, u)
		}
	}
	return list
}
