package merge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/memo"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// Approval is the approval of a merge request by a user.
type Approval struct {
	RequestID int64
	UserID    int64
	Head      string // of the merge request when it was approved
	At        time.Time
	User      *user.User
}

// Approvals is the state of the approvals of a merge request.
type Approvals struct {
	Rules       []*RuleState
	Overwritten bool       // the rules are those of the merge request, not of the project
	Given       []Approval // oldest first
	Required    int64      // approvals of all rules
	Left        int64
	CanApprove  bool // the actor may approve now
	HasApproved bool // the actor
	CanEdit     bool // the actor may change the rules of the merge request
	Password    bool // approvers must enter their password

	completes bool // all rules are satisfied with the approval of the actor
}

// Approved reports whether all rules are satisfied.
func (a *Approvals) Approved() bool {
	return !slices.ContainsFunc(a.Rules, func(r *RuleState) bool { return !r.Approved })
}

// Waiting returns the rules that are not satisfied.
func (a *Approvals) Waiting() []*RuleState {
	return slices.DeleteFunc(slices.Clone(a.Rules), func(r *RuleState) bool { return r.Approved })
}

// RuleState is an approval rule with its state for a merge request.
type RuleState struct {
	*ApprovalRule
	ApprovedBy []*user.User
	Approved   bool
	Left       int64
	// Invalid means that fewer users are eligible than the rule requires. It is
	// satisfied when all of them have approved, since no one else can.
	Invalid bool

	eligible, approved []int64
}

// eligibility has the data that decides who may approve merge requests: the protected
// branches, the members of groups and the access of users.
type eligibility struct {
	projects  map[int64]*project.Project
	protected map[int64][]*repo.Protected // by project
	members   map[int64][]int64           // direct members by group
	roles     map[roleKey][]int64         // direct members by project and level
	access    map[int64]map[int64]project.Access
	admins    map[int64]bool // approvers who are administrators

	rules     []*ApprovalRule
	approvers map[int64][]int64 // by project
}

type roleKey struct {
	projectID int64
	level     project.Level
}

func (s *Service) newEligibility(projects map[int64]*project.Project) *eligibility {
	return &eligibility{
		projects: projects, protected: map[int64][]*repo.Protected{}, roles: map[roleKey][]int64{}, access: map[int64]map[int64]project.Access{},
		approvers: map[int64][]int64{},
	}
}

// expect adds a rule, and users whose access load reads.
func (b *eligibility) expect(r *ApprovalRule, approvers ...int64) {
	b.rules = append(b.rules, r)
	b.approvers[r.ProjectID] = append(b.approvers[r.ProjectID], approvers...)
}

// load reads the data for the expected rules, in a fixed number of queries per
// project.
func (b *eligibility) load(ctx context.Context, s *Service) (err error) {
	var groupIDs, approvers []int64
	for _, r := range b.rules {
		groupIDs = append(groupIDs, r.groupIDs...)
		for _, level := range r.roles {
			key := roleKey{r.ProjectID, level}
			if _, done := b.roles[key]; done {
				continue
			}
			if b.roles[key], err = s.Projects.RoleMembers(ctx, r.ProjectID, level, maxRuleApprovers); err != nil {
				return err
			}
		}
	}
	for id, ids := range b.approvers {
		slices.Sort(ids)
		b.approvers[id] = slices.Compact(ids)
		approvers = append(approvers, b.approvers[id]...)
	}
	slices.Sort(approvers)
	approvers = slices.Compact(approvers)
	if b.admins, err = findAdmins(ctx, s.DB, approvers); err != nil {
		return fmt.Errorf("administrators: %w", err)
	}
	slices.Sort(groupIDs)
	if b.members, err = s.Projects.DirectMembers(ctx, slices.Compact(groupIDs), approvers, maxRuleApprovers); err != nil {
		return err
	}
	wanted := map[int64][]int64{}
	for id, ids := range b.approvers {
		wanted[id] = append(wanted[id], ids...)
	}
	for _, r := range b.rules {
		wanted[r.ProjectID] = append(wanted[r.ProjectID], b.named(r)...)
	}
	for id, ids := range wanted {
		in := b.projects[id]
		if in == nil {
			continue
		}
		slices.Sort(ids)
		if b.access[id], err = s.Projects.AccessOf(ctx, in, slices.Compact(ids)); err != nil {
			return err
		}
	}
	return nil
}

// named returns the users that a rule lists: individually, by group or by role.
func (b *eligibility) named(r *ApprovalRule) []int64 {
	ids := slices.Clone(r.userIDs)
	for _, id := range r.groupIDs {
		ids = append(ids, b.members[id]...)
	}
	for _, level := range r.roles {
		ids = append(ids, b.roles[roleKey{r.ProjectID, level}]...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// eligible returns the users listed in a rule who may approve: Reporters and above;
// for a code owner rule, Developers and above.
func (b *eligibility) eligible(r *ApprovalRule) []int64 {
	least := project.Reporter
	if r.Type == CodeOwner {
		least = project.Developer
	}
	return slices.DeleteFunc(b.named(r), func(id int64) bool { return b.access[r.ProjectID][id].Level() < least })
}

// counts reports whether the approval of a user counts for the rule for any
// approver.
func (b *eligibility) counts(projectID, userID int64) bool {
	return b.admins[userID] || b.access[projectID][userID].Level() >= project.Developer
}

// approvalCase is a merge request with its approval rules and approvals.
type approvalCase struct {
	m           *MergeRequest
	in          *project.Project
	rules       []*ApprovalRule
	overwritten bool
	given       []Approval
	committers  []int64
}

// barred reports whether a user may not approve because they are the author or
// committed to the merge request.
func (c *approvalCase) barred(userID int64) bool {
	set := c.in.MergeSettings().Approvals
	return !set.AuthorApproval && userID == c.m.AuthorID || set.DisableCommitters && slices.Contains(c.committers, userID)
}

// evaluate returns the state of the approvals of a merge request.
func (b *eligibility) evaluate(c *approvalCase) *Approvals {
	a := &Approvals{Overwritten: c.overwritten, Given: c.given, Password: c.in.MergeSettings().Approvals.PasswordToApprove}
	for _, r := range c.rules {
		st := &RuleState{ApprovalRule: r}
		if r.Type != AnyApprover {
			st.eligible = slices.DeleteFunc(b.eligible(r), c.barred)
		}
		for _, given := range c.given {
			ok := slices.Contains(st.eligible, given.UserID)
			if r.Type == AnyApprover {
				ok = b.counts(r.ProjectID, given.UserID) && !c.barred(given.UserID)
			}
			if ok {
				st.approved = append(st.approved, given.UserID)
			}
		}
		n := int64(len(st.approved))
		st.Left = max(0, r.Required-n)
		if r.Type != AnyApprover && r.Required > int64(len(st.eligible)) {
			st.Invalid = true
			st.Left = int64(len(st.eligible)) - n
		}
		st.Approved = st.Left == 0
		a.Rules, a.Required, a.Left = append(a.Rules, st), a.Required+r.Required, a.Left+st.Left
	}
	return a
}

// approvalCases reads the rules and approvals of merge requests.
func (s *Service) approvalCases(ctx context.Context, list []*MergeRequest, projects map[int64]*project.Project, b *eligibility) ([]*approvalCase, error) {
	var ids, projectIDs, committed []int64
	for _, m := range list {
		in := projects[m.ProjectID]
		if in == nil {
			continue
		}
		ids, projectIDs = append(ids, m.ID), append(projectIDs, m.ProjectID)
		if in.MergeSettings().Approvals.DisableCommitters {
			committed = append(committed, m.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	slices.Sort(projectIDs)
	ofProjects, err := findProjectRules(ctx, s.DB, slices.Compact(projectIDs))
	if err != nil {
		return nil, fmt.Errorf("approval rules: %w", err)
	}
	own, err := findRequestRules(ctx, s.DB, ids)
	if err != nil {
		return nil, fmt.Errorf("approval rules: %w", err)
	}
	given, err := findApprovals(ctx, s.DB, ids)
	if err != nil {
		return nil, fmt.Errorf("approvals: %w", err)
	}
	committers, err := findCommitters(ctx, s.DB, committed)
	if err != nil {
		return nil, fmt.Errorf("committers: %w", err)
	}
	var cases []*approvalCase
	for _, m := range list {
		in := projects[m.ProjectID]
		if in == nil {
			continue
		}
		c := &approvalCase{m: m, in: in, committers: committers[m.ID]}
		for _, a := range given {
			if a.RequestID == m.ID {
				c.given = append(c.given, a)
			}
		}
		if err := s.chooseRules(ctx, c, ofProjects, own, b); err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// chooseRules sets the rules that apply to a merge request: its own, or the project
// rules for its target branch, and the code owner rules.
func (s *Service) chooseRules(ctx context.Context, c *approvalCase, ofProjects, own []*ApprovalRule, b *eligibility) error {
	var owners []*ApprovalRule
	for _, r := range own {
		switch {
		case *r.RequestID != c.m.ID:
		case r.Type == CodeOwner:
			owners = append(owners, r)
		case !c.in.MergeSettings().Approvals.DisableOverriding:
			c.rules, c.overwritten = append(c.rules, r), true
		}
	}
	var mine []*ApprovalRule
	if !c.overwritten {
		for _, r := range ofProjects {
			if r.ProjectID == c.m.ProjectID {
				r.adopt(c.in)
				mine = append(mine, r)
			}
		}
		if n := c.in.MergeSettings().Approvals.BeforeMerge; n > 0 && !slices.ContainsFunc(mine, isAny) {
			mine = append(mine, &ApprovalRule{ProjectID: c.m.ProjectID, Type: AnyApprover, Name: anyName, Required: n})
		}
	}
	if len(mine)+len(owners) == 0 {
		return nil
	}
	protected, err := b.branches(ctx, s, c.m.ProjectID)
	if err != nil {
		return err
	}
	for _, r := range mine {
		if r.applies(protected, c.m.TargetBranch) {
			c.rules = append(c.rules, r)
		}
	}
	required := slices.ContainsFunc(protected, func(p *repo.Protected) bool { return p.CodeOwnerApproval && p.Matches(c.m.TargetBranch) })
	for _, r := range owners {
		if !required {
			r.Required = 0
		}
		c.rules = append(c.rules, r)
	}
	return nil
}

// branches returns the protected branches of a project.
func (b *eligibility) branches(ctx context.Context, s *Service, projectID int64) ([]*repo.Protected, error) {
	if list, ok := b.protected[projectID]; ok {
		return list, nil
	}
	list, err := s.Repos.BranchRules(ctx, projectID)
	b.protected[projectID] = list
	return list, err
}

// checkApprovals sets for open merge requests whether they lack approvals.
func (s *Service) checkApprovals(ctx context.Context, list []*MergeRequest, projects map[int64]*project.Project) error {
	b := s.newEligibility(projects)
	cases, err := s.approvalCases(ctx, list, projects, b)
	if err != nil {
		return err
	}
	for _, c := range cases {
		c.m.lacksApproval, c.m.ApprovalsBeforeMerge = false, nil
		if at := slices.IndexFunc(c.rules, isAny); at >= 0 && c.overwritten {
			c.m.ApprovalsBeforeMerge = &c.rules[at].Required
		}
		c.rules = slices.DeleteFunc(c.rules, func(r *ApprovalRule) bool { return r.Required == 0 })
		for _, r := range c.rules {
			b.expect(r, approversOf(c.given)...)
		}
	}
	if len(b.rules) == 0 {
		return nil
	}
	if err := b.load(ctx, s); err != nil {
		return err
	}
	for _, c := range cases {
		c.m.lacksApproval = !b.evaluate(c).Approved()
	}
	return nil
}

func approversOf(given []Approval) []int64 {
	ids := make([]int64, len(given))
	for i, a := range given {
		ids[i] = a.UserID
	}
	return ids
}

// ApprovalState returns the approvals of a merge request, with its rules, to
// signed-in users who can see it. NotFound.
func (s *Service) ApprovalState(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*MergeRequest, *Approvals, error) {
	in, m, err := s.current(ctx, by, ref, iid)
	if err != nil {
		return nil, nil, err
	}
	if err := by.RequireUser(); err != nil {
		return nil, nil, err
	}
	if err := s.complete(ctx, by, in, m); err != nil {
		return nil, nil, err
	}
	a, err := s.ApprovalsOf(ctx, by, in, m)
	return m, a, err
}

// ApprovalsOf returns the approvals of a merge request that Get returned to this
// actor.
func (s *Service) ApprovalsOf(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest) (*Approvals, error) {
	return memo.Get(ctx, approvalsKey{by.ID, m.ID}, func() (*Approvals, error) { return s.readApprovals(ctx, by, in, m) })
}

// approvalsKey is the key of the approvals of a merge request on a page.
type approvalsKey struct{ by, request int64 }

func (s *Service) readApprovals(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest) (*Approvals, error) {
	projects := map[int64]*project.Project{in.ID: in}
	b := s.newEligibility(projects)
	cases, err := s.approvalCases(ctx, []*MergeRequest{m}, projects, b)
	if err != nil {
		return nil, err
	}
	c := cases[0]
	asked := approversOf(c.given)
	if !by.Anonymous() {
		asked = append(asked, by.ID)
	}
	b.approvers[in.ID] = asked
	for _, r := range c.rules {
		b.expect(r)
	}
	if err := b.load(ctx, s); err != nil {
		return nil, err
	}
	a := b.evaluate(c)
	a.HasApproved = slices.ContainsFunc(a.Given, func(g Approval) bool { return by.Is(g.UserID) })
	a.CanApprove = m.State == Opened && changeable(by, in) == nil && !a.HasApproved && b.mayApprove(by, c, a)
	a.CanEdit = m.checkRules(by, in) == nil
	if a.CanApprove {
		c.given = append(slices.Clone(c.given), Approval{UserID: by.ID})
		a.completes = b.evaluate(c).Approved()
	}
	return a, s.fillApprovals(ctx, by, in, a)
}

// mayApprove reports whether a user is an eligible approver: a Developer or above,
// or a user listed in a rule. If the project prevents it, the author and users who
// committed are not eligible.
func (b *eligibility) mayApprove(by actor.Actor, c *approvalCase, a *Approvals) bool {
	if by.ID <= 0 || c.barred(by.ID) {
		return false
	}
	return b.counts(c.in.ID, by.ID) || slices.ContainsFunc(a.Rules, func(r *RuleState) bool { return slices.Contains(r.eligible, by.ID) })
}

// fillApprovals reads the users and groups of the rules.
func (s *Service) fillApprovals(ctx context.Context, by actor.Actor, in *project.Project, a *Approvals) error {
	var ids []int64
	rules := make([]*ApprovalRule, len(a.Rules))
	for i, r := range a.Rules {
		rules[i] = r.ApprovalRule
		ids = slices.Concat(ids, r.approved, r.eligible)
	}
	if err := s.fillRules(ctx, by, in, rules...); err != nil {
		return err
	}
	if err := s.fillSources(ctx, by, in, rules...); err != nil {
		return err
	}
	users, err := s.usersAmong(ctx, append(ids, approversOf(a.Given)...))
	if err != nil {
		return err
	}
	for _, r := range a.Rules {
		r.ApprovedBy = known(users, r.approved)
		r.ApprovalRule.Eligible = known(users, r.eligible)
	}
	for i := range a.Given {
		a.Given[i].User = users[a.Given[i].UserID]
	}
	a.Given = slices.DeleteFunc(a.Given, func(g Approval) bool { return g.User == nil })
	return nil
}

// fillSources sets the project rules that rules of a merge request were copied from.
func (s *Service) fillSources(ctx context.Context, by actor.Actor, in *project.Project, list ...*ApprovalRule) error {
	if !slices.ContainsFunc(list, func(r *ApprovalRule) bool { return r.SourceID != nil }) {
		return nil
	}
	sources, err := s.ownRules(ctx, s.DB, in)
	if err != nil {
		return err
	}
	if err := s.fillRules(ctx, by, in, sources...); err != nil {
		return err
	}
	for _, r := range list {
		if r.SourceID != nil {
			if at := slices.IndexFunc(sources, func(source *ApprovalRule) bool { return source.ID == *r.SourceID }); at >= 0 {
				r.Source = sources[at]
			}
		}
	}
	return nil
}
