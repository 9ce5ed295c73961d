package api

import (
	"slices"
	"time"

	"svc/internal/bind"
	"svc/internal/merge"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/user"
)

func (a *API) approvalRoutes() {
	a.tag("Merge request approvals")
	const at = "/projects/{id}"
	handle(a, "GET "+at+"/approvals", readAPI, a.getApprovalConfig, summary("Get approval configuration of a project"))
	handle(a, "POST "+at+"/approvals", writeAPI, a.changeApprovalConfig, summary("Update approval configuration of a project"))
	handle(a, "GET "+at+"/approval_rules", readAPI, a.listProjectRules, summary("List approval rules of a project"))
	handle(a, "POST "+at+"/approval_rules", writeAPI, a.createProjectRule, summary("Create an approval rule of a project"))
	handle(a, "GET "+at+"/approval_rules/{approval_rule_id}", readAPI, a.getProjectRule, summary("Get an approval rule of a project"))
	handle(a, "PUT "+at+"/approval_rules/{approval_rule_id}", writeAPI, a.updateProjectRule, summary("Update an approval rule of a project"))
	handle(a, "DELETE "+at+"/approval_rules/{approval_rule_id}", writeAPI, a.deleteProjectRule, summary("Delete an approval rule of a project"))

	const one = at + "/merge_requests/{merge_request_iid}"
	handle(a, "GET "+one+"/approvals", readAPI, a.getApprovals, summary("Get approvals of a merge request"))
	handle(a, "POST "+one+"/approvals", writeAPI, a.requireApprovals, summary("Update approval configuration of a merge request"))
	handle(a, "GET "+one+"/approval_state", readAPI, a.getApprovalState, summary("Get the approval state of a merge request"))
	handle(a, "GET "+one+"/approval_settings", readAPI, a.getApprovalState, summary("Get the approval settings of a merge request"))
	handle(a, "POST "+one+"/approve", writeAPI, a.approveMergeRequest, notMergeable, summary("Approve a merge request"))
	handle(a, "POST "+one+"/unapprove", writeAPI, a.unapproveMergeRequest, notMergeable, summary("Unapprove a merge request"))
	handle(a, "PUT "+one+"/reset_approvals", writeAPI, a.resetApprovals, notMergeable, summary("Reset approvals of a merge request"))
	handle(a, "GET "+one+"/approval_rules", readAPI, a.listRequestRules, summary("List approval rules of a merge request"))
	handle(a, "POST "+one+"/approval_rules", writeAPI, a.createRequestRule, summary("Create an approval rule of a merge request"))
	handle(a, "GET "+one+"/approval_rules/{approval_rule_id}", readAPI, a.getRequestRule, summary("Get an approval rule of a merge request"))
	handle(a, "PUT "+one+"/approval_rules/{approval_rule_id}", writeAPI, a.updateRequestRule, summary("Update an approval rule of a merge request"))
	handle(a, "DELETE "+one+"/approval_rules/{approval_rule_id}", writeAPI, a.deleteRequestRule, summary("Delete an approval rule of a merge request"))
}

// approvalConfigJSON is the approval settings of a project.
type approvalConfigJSON struct {
	Approvers         []approverJSON `json:"approvers"`       // deprecated: always empty
	ApproverGroups    []approverJSON `json:"approver_groups"` // deprecated: always empty
	ApprovalGroups    []approverJSON `json:"approval_groups"` // deprecated: always empty
	BeforeMerge       int64          `json:"approvals_before_merge"`
	ResetOnPush       bool           `json:"reset_approvals_on_push"`
	SelectiveRemovals bool           `json:"selective_code_owner_removals"`
	DisableOverriding bool           `json:"disable_overriding_approvers_per_merge_request"`
	AuthorApproval    bool           `json:"merge_requests_author_approval"`
	DisableCommitters bool           `json:"merge_requests_disable_committers_approval"`
	Password          bool           `json:"require_password_to_approve"`
	Reauthentication  bool           `json:"require_reauthentication_to_approve"`
}

// approverJSON is an approver in a list of the approvals of a merge request.
type approverJSON struct {
	User       userPublicJSON `json:"user"`
	ApprovedAt stamp          `json:"approved_at"`
}

func presentApprovalConfig(s merge.ApprovalConfig, err error) (approvalConfigJSON, error) {
	return approvalConfigJSON{
		Approvers: []approverJSON{}, ApproverGroups: []approverJSON{}, ApprovalGroups: []approverJSON{}, BeforeMerge: s.BeforeMerge,
		ResetOnPush: s.ResetOnPush, SelectiveRemovals: s.SelectiveRemovals, DisableOverriding: s.DisableOverriding, AuthorApproval: s.AuthorApproval,
		DisableCommitters: s.DisableCommitters, Password: s.PasswordToApprove, Reauthentication: s.PasswordToApprove,
	}, err
}

// getApprovalConfig: https://docs.gitlab.com/api/merge_request_approvals/#get-configuration
func (a *API) getApprovalConfig(c *call, p projectParams) (approvalConfigJSON, error) {
	return presentApprovalConfig(a.Merges.ApprovalConfig(c, c.actor, p.Project))
}

type approvalConfigParams struct {
	projectParams
	BeforeMerge       *int64 `param:"approvals_before_merge" doc:"Deprecated: use approval rules."`
	ResetOnPush       *bool  `param:"reset_approvals_on_push"`
	SelectiveRemovals *bool  `param:"selective_code_owner_removals" doc:"Reset the approvals of code owners whose files changed; needs reset_approvals_on_push disabled."`
	DisableOverriding *bool  `param:"disable_overriding_approvers_per_merge_request"`
	AuthorApproval    *bool  `param:"merge_requests_author_approval" doc:"true allows authors to approve."`
	DisableCommitters *bool  `param:"merge_requests_disable_committers_approval"`
	Password          *bool  `param:"require_password_to_approve" aliases:"require_reauthentication_to_approve"`
}

// changeApprovalConfig: https://docs.gitlab.com/api/merge_request_approvals/#change-configuration
func (a *API) changeApprovalConfig(c *call, p approvalConfigParams) (approvalConfigJSON, error) {
	return presentApprovalConfig(a.Merges.ConfigureApprovals(c, c.actor, p.Project, func(s *project.ApprovalSettings) {
		patch.Set(&s.BeforeMerge, p.BeforeMerge)
		patch.Set(&s.ResetOnPush, p.ResetOnPush)
		patch.Set(&s.SelectiveRemovals, p.SelectiveRemovals)
		patch.Set(&s.DisableOverriding, p.DisableOverriding)
		patch.Set(&s.AuthorApproval, p.AuthorApproval)
		patch.Set(&s.DisableCommitters, p.DisableCommitters)
		patch.Set(&s.PasswordToApprove, p.Password)
	}))
}

// ruleJSON has the fields that all representations of an approval rule share.
type ruleJSON struct {
	ID                int64            `json:"id"`
	Name              string           `json:"name"`
	RuleType          string           `json:"rule_type"`
	ReportType        *string          `json:"report_type"` // always null
	EligibleApprovers []userPublicJSON `json:"eligible_approvers"`
	ApprovalsRequired int64            `json:"approvals_required"`
	Users             []userPublicJSON `json:"users"`
	Groups            []groupJSON      `json:"groups"`
	HiddenGroups      bool             `json:"contains_hidden_groups"`
}

func toRule(c *call, r *merge.ApprovalRule, now time.Time) ruleJSON {
	return ruleJSON{
		ID: r.ID, Name: r.Name, RuleType: string(r.Type), EligibleApprovers: toUsers(c.site, r.Eligible, now), ApprovalsRequired: r.Required,
		Users: toUsers(c.site, r.Users, now), Groups: mapped(r.Groups, func(g *project.Namespace) groupJSON { return toGroup(c.site, g) }),
		HiddenGroups: r.HiddenGroups,
	}
}

// projectRuleJSON is an approval rule of a project.
type projectRuleJSON struct {
	ruleJSON
	ProtectedBranches []protectedBranchJSON `json:"protected_branches"`
	AllProtected      bool                  `json:"applies_to_all_protected_branches"`
}

func toProjectRule(c *call, r *merge.ApprovalRule, now time.Time) projectRuleJSON {
	return projectRuleJSON{toRule(c, r, now), mapped(r.Branches, toProtectedBranch), r.AllProtected}
}

func (a *API) presentProjectRule(c *call, r *merge.ApprovalRule, err error) (projectRuleJSON, error) {
	if err != nil {
		return projectRuleJSON{}, err
	}
	return toProjectRule(c, r, a.Now()), nil
}

type projectRulesParams struct {
	projectParams
	pageParams
}

// listProjectRules: https://docs.gitlab.com/api/merge_request_approvals/#get-all-approval-rules-for-project
func (a *API) listProjectRules(c *call, p projectRulesParams) (page[projectRuleJSON], error) {
	list, err := a.Merges.ProjectRules(c, c.actor, p.Project, p.paging())
	if err != nil {
		return page[projectRuleJSON]{}, err
	}
	now := a.Now()
	return offsetPage(p.pageParams, list, func(r *merge.ApprovalRule) projectRuleJSON { return toProjectRule(c, r, now) }), nil
}

type projectRuleParams struct {
	projectParams
	Rule int64 `param:"approval_rule_id"`
}

// getProjectRule: https://docs.gitlab.com/api/merge_request_approvals/#get-single-approval-rule-for-project
func (a *API) getProjectRule(c *call, p projectRuleParams) (projectRuleJSON, error) {
	r, err := a.Merges.ProjectRule(c, c.actor, p.Project, p.Rule)
	return a.presentProjectRule(c, r, err)
}

// approverParams are the approvers of a rule.
type approverParams struct {
	UserIDs   bind.Opt[[]int64] `param:"user_ids,csv"`
	Usernames []string          `param:"usernames,csv" max:"200"`
	GroupIDs  bind.Opt[[]int64] `param:"group_ids,csv"`
}

func (p *approverParams) fields(name *string, required *int64) merge.RuleFields {
	f := merge.RuleFields{Name: name, Required: required, Usernames: p.Usernames}
	if p.UserIDs.Set {
		f.UserIDs = &p.UserIDs.Value
	}
	if p.GroupIDs.Set {
		f.GroupIDs = &p.GroupIDs.Value
	}
	return f
}

// kind returns the type of a new rule: the given one, or any_approver if neither a
// type nor users nor groups are given.
func (p *approverParams) kind(given string) merge.RuleType {
	if given == "" && len(p.UserIDs.Value)+len(p.Usernames)+len(p.GroupIDs.Value) == 0 {
		return merge.AnyApprover
	}
	return merge.RuleType(given)
}

// ruleBranchParams limit a rule to protected branches.
type ruleBranchParams struct {
	BranchIDs    bind.Opt[[]int64] `param:"protected_branch_ids,csv"`
	AllProtected *bool             `param:"applies_to_all_protected_branches" doc:"If true, protected_branch_ids is ignored."`
}

func (p *ruleBranchParams) apply(f *merge.RuleFields) {
	f.AllProtected = p.AllProtected
	if p.BranchIDs.Set {
		f.BranchIDs = &p.BranchIDs.Value
	}
}

type createProjectRuleParams struct {
	projectParams
	Name              string `param:"name,required"`
	ApprovalsRequired int64  `param:"approvals_required,required"`
	RuleType          string `param:"rule_type" enum:"any_approver,regular,report_approver" doc:"report_approver is not supported."`
	ReportType        string `param:"report_type" doc:"Not supported."`
	approverParams
	ruleBranchParams
}

func (p *createProjectRuleParams) check() error {
	if p.ReportType != "" {
		return bind.Invalid("report_type is not supported")
	}
	if p.RuleType == "report_approver" {
		return bind.Invalid("rule_type report_approver is not supported")
	}
	return nil
}

// createProjectRule: https://docs.gitlab.com/api/merge_request_approvals/#create-project-approval-rule
func (a *API) createProjectRule(c *call, p createProjectRuleParams) (projectRuleJSON, error) {
	f := p.fields(&p.Name, &p.ApprovalsRequired)
	f.Type = p.kind(p.RuleType)
	p.apply(&f)
	r, err := a.Merges.CreateProjectRule(c, c.actor, p.Project, f)
	return a.presentProjectRule(c, r, err)
}

type updateProjectRuleParams struct {
	projectRuleParams
	Name              *string `param:"name"`
	ApprovalsRequired *int64  `param:"approvals_required"`
	RemoveHidden      bool    `param:"remove_hidden_groups" doc:"Remove groups that the user cannot see."`
	approverParams
	ruleBranchParams
}

// updateProjectRule: https://docs.gitlab.com/api/merge_request_approvals/#update-project-approval-rule
func (a *API) updateProjectRule(c *call, p updateProjectRuleParams) (projectRuleJSON, error) {
	f := p.fields(p.Name, p.ApprovalsRequired)
	f.RemoveHiddenGroups = p.RemoveHidden
	p.apply(&f)
	r, err := a.Merges.UpdateProjectRule(c, c.actor, p.Project, p.Rule, f)
	return a.presentProjectRule(c, r, err)
}

// deleteProjectRule: https://docs.gitlab.com/api/merge_request_approvals/#delete-project-approval-rule
func (a *API) deleteProjectRule(c *call, p projectRuleParams) (none, error) {
	return none{}, a.Merges.DeleteProjectRule(c, c.actor, p.Project, p.Rule)
}

// requestRuleJSON is an approval rule of a merge request.
type requestRuleJSON struct {
	ruleJSON
	Section    *string          `json:"section,omitempty"` // of CODEOWNERS
	SourceRule *projectRuleJSON `json:"source_rule"`
	Overridden bool             `json:"overridden"`
}

func toRequestRule(c *call, r *merge.ApprovalRule, now time.Time) requestRuleJSON {
	out := requestRuleJSON{ruleJSON: toRule(c, r, now), Overridden: r.Overridden()}
	if r.Type == merge.CodeOwner {
		section := r.Section
		if section == "" {
			section = "codeowners"
		}
		out.Section = &section
	}
	if r.Source != nil {
		source := toProjectRule(c, r.Source, now)
		out.SourceRule = &source
	}
	return out
}

func (a *API) presentRequestRule(c *call, r *merge.ApprovalRule, err error) (requestRuleJSON, error) {
	if err != nil {
		return requestRuleJSON{}, err
	}
	return toRequestRule(c, r, a.Now()), nil
}

// listRequestRules: https://docs.gitlab.com/api/merge_request_approvals/#get-merge-request-approval-rules
func (a *API) listRequestRules(c *call, p mergePageParams) (page[requestRuleJSON], error) {
	list, err := a.Merges.RequestRules(c, c.actor, p.Project, p.Request, p.paging())
	if err != nil {
		return page[requestRuleJSON]{}, err
	}
	now := a.Now()
	return offsetPage(p.pageParams, list, func(r *merge.ApprovalRule) requestRuleJSON { return toRequestRule(c, r, now) }), nil
}

type requestRuleParams struct {
	mergeParams
	Rule int64 `param:"approval_rule_id"`
}

// getRequestRule: https://docs.gitlab.com/api/merge_request_approvals/#get-single-merge-request-approval-rule
func (a *API) getRequestRule(c *call, p requestRuleParams) (requestRuleJSON, error) {
	r, err := a.Merges.RequestRule(c, c.actor, p.Project, p.Request, p.Rule)
	return a.presentRequestRule(c, r, err)
}

type createRequestRuleParams struct {
	mergeParams
	Name              string `param:"name" doc:"Required without approval_project_rule_id."`
	ApprovalsRequired int64  `param:"approvals_required,required"`
	SourceRule        int64  `param:"approval_project_rule_id" doc:"Rule of the project whose name, users and groups are copied."`
	approverParams
}

func (p *createRequestRuleParams) check() error {
	if p.Name == "" && p.SourceRule == 0 {
		return bind.Invalid("name is missing")
	}
	return nil
}

// createRequestRule: https://docs.gitlab.com/api/merge_request_approvals/#create-merge-request-rule
func (a *API) createRequestRule(c *call, p createRequestRuleParams) (requestRuleJSON, error) {
	f := p.fields(&p.Name, &p.ApprovalsRequired)
	f.Type, f.SourceID = p.kind(""), p.SourceRule
	r, err := a.Merges.CreateRequestRule(c, c.actor, p.Project, p.Request, f)
	return a.presentRequestRule(c, r, err)
}

type updateRequestRuleParams struct {
	requestRuleParams
	Name              *string `param:"name"`
	ApprovalsRequired *int64  `param:"approvals_required"`
	RemoveHidden      bool    `param:"remove_hidden_groups" doc:"Remove groups that the user cannot see."`
	approverParams
}

// updateRequestRule: https://docs.gitlab.com/api/merge_request_approvals/#update-merge-request-rule
func (a *API) updateRequestRule(c *call, p updateRequestRuleParams) (requestRuleJSON, error) {
	f := p.fields(p.Name, p.ApprovalsRequired)
	f.RemoveHiddenGroups = p.RemoveHidden
	r, err := a.Merges.UpdateRequestRule(c, c.actor, p.Project, p.Request, p.Rule, f)
	return a.presentRequestRule(c, r, err)
}

// deleteRequestRule: https://docs.gitlab.com/api/merge_request_approvals/#delete-merge-request-rule
func (a *API) deleteRequestRule(c *call, p requestRuleParams) (none, error) {
	return none{}, a.Merges.DeleteRequestRule(c, c.actor, p.Project, p.Request, p.Rule)
}

// approvalsJSON is the approvals of a merge request.
type approvalsJSON struct {
	ID                 int64            `json:"id"`
	IID                int64            `json:"iid"`
	ProjectID          int64            `json:"project_id"`
	Title              string           `json:"title"`
	Description        string           `json:"description"`
	State              string           `json:"state"`
	CreatedAt          stamp            `json:"created_at"`
	UpdatedAt          stamp            `json:"updated_at"`
	MergeStatus        string           `json:"merge_status"`
	Approved           bool             `json:"approved"`
	ApprovalsRequired  int64            `json:"approvals_required"`
	ApprovalsLeft      int64            `json:"approvals_left"`
	BeforeMerge        int64            `json:"approvals_before_merge"` // deprecated: approvals_required
	Password           bool             `json:"require_password_to_approve"`
	ApprovedBy         []approverJSON   `json:"approved_by"`
	SuggestedApprovers []userPublicJSON `json:"suggested_approvers"`
	Approvers          []approverJSON   `json:"approvers"`       // deprecated: always empty
	ApproverGroups     []approverJSON   `json:"approver_groups"` // deprecated: always empty
	UserHasApproved    bool             `json:"user_has_approved"`
	UserCanApprove     bool             `json:"user_can_approve"`
	ApprovalRulesLeft  []ruleLeftJSON   `json:"approval_rules_left"`
	HasApprovalRules   bool             `json:"has_approval_rules"`
	ApproversAvailable bool             `json:"merge_request_approvers_available"`
	MultipleRules      bool             `json:"multiple_approval_rules_available"`
	InvalidRules       []ruleLeftJSON   `json:"invalid_approvers_rules"`
}

// ruleLeftJSON names an approval rule.
type ruleLeftJSON struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	RuleType string `json:"rule_type"`
}

func toRuleLeft(r *merge.RuleState) ruleLeftJSON {
	return ruleLeftJSON{r.ID, r.Name, string(r.Type)}
}

func (a *API) presentApprovals(c *call, m *merge.MergeRequest, s *merge.Approvals, err error) (approvalsJSON, error) {
	if err != nil {
		return approvalsJSON{}, err
	}
	now := a.Now()
	invalid := slices.DeleteFunc(slices.Clone(s.Rules), func(r *merge.RuleState) bool { return !r.Invalid })
	return approvalsJSON{
		ID: m.ID, IID: m.IID, ProjectID: m.ProjectID, Title: m.Title, Description: m.Description, State: string(m.State),
		CreatedAt: toStamp(m.CreatedAt), UpdatedAt: toStamp(m.UpdatedAt), MergeStatus: m.Status.Git, Approved: s.Approved(),
		ApprovalsRequired: s.Required, ApprovalsLeft: s.Left, BeforeMerge: s.Required, Password: s.Password,
		ApprovedBy: mapped(s.Given, func(g merge.Approval) approverJSON {
			return approverJSON{toUserPublic(c.site, g.User, now), toStamp(g.At)}
		}),
		SuggestedApprovers: toUsers(c.site, suggested(s), now), Approvers: []approverJSON{}, ApproverGroups: []approverJSON{},
		UserHasApproved: s.HasApproved, UserCanApprove: s.CanApprove, ApprovalRulesLeft: mapped(s.Waiting(), toRuleLeft),
		HasApprovalRules: len(s.Rules) > 0, ApproversAvailable: true, MultipleRules: true, InvalidRules: mapped(invalid, toRuleLeft),
	}, nil
}

// suggested returns eligible approvers of the rules that are not satisfied.
func suggested(s *merge.Approvals) []*user.User {
	const most = 20
	var list []*user.User
	for _, r := range s.Waiting() {
		for _, u := range r.Eligible {
			given := slices.ContainsFunc(s.Given, func(g merge.Approval) bool { return g.UserID == u.ID })
			if !given && len(list) < most && !slices.ContainsFunc(list, func(o *user.User) bool { return o.ID == u.ID }) {
				list = append(list, u)
			}
		}
	}
	return list
}

// getApprovals: https://docs.gitlab.com/api/merge_request_approvals/#single-merge-request-approval
func (a *API) getApprovals(c *call, p mergeParams) (approvalsJSON, error) {
	m, s, err := a.Merges.ApprovalState(c, c.actor, p.Project, p.Request)
	return a.presentApprovals(c, m, s, err)
}

type requireApprovalsParams struct {
	mergeParams
	ApprovalsRequired int64 `param:"approvals_required,required"`
}

// requireApprovals: https://docs.gitlab.com/api/merge_request_approvals/#change-approval-configuration
func (a *API) requireApprovals(c *call, p requireApprovalsParams) (approvalsJSON, error) {
	m, s, err := a.Merges.RequireApprovals(c, c.actor, p.Project, p.Request, p.ApprovalsRequired)
	return a.presentApprovals(c, m, s, err)
}

// approvalStateJSON is the approval rules of a merge request with their approvals.
type approvalStateJSON struct {
	Overwritten bool            `json:"approval_rules_overwritten"`
	Rules       []ruleStateJSON `json:"rules"`
}

type ruleStateJSON struct {
	requestRuleJSON
	CodeOwner  bool             `json:"code_owner"`
	ApprovedBy []userPublicJSON `json:"approved_by"`
	Approved   bool             `json:"approved"`
}

// getApprovalState: https://docs.gitlab.com/api/merge_request_approvals/#get-the-approval-state-of-merge-requests
func (a *API) getApprovalState(c *call, p mergeParams) (approvalStateJSON, error) {
	_, s, err := a.Merges.ApprovalState(c, c.actor, p.Project, p.Request)
	if err != nil {
		return approvalStateJSON{}, err
	}
	now := a.Now()
	return approvalStateJSON{s.Overwritten, mapped(s.Rules, func(r *merge.RuleState) ruleStateJSON {
		return ruleStateJSON{toRequestRule(c, r.ApprovalRule, now), r.Type == merge.CodeOwner, toUsers(c.site, r.ApprovedBy, now), r.Approved}
	})}, nil
}

type approveMergeParams struct {
	mergeParams
	SHA      string `param:"sha" doc:"Required HEAD of the merge request; the approval fails if it differs."`
	Password string `param:"approval_password" doc:"Password of the user, if the project requires it."`
}

// approveMergeRequest: https://docs.gitlab.com/api/merge_request_approvals/#approve-merge-request
func (a *API) approveMergeRequest(c *call, p approveMergeParams) (approvalsJSON, error) {
	m, s, err := a.Merges.Approve(c, c.actor, p.Project, p.Request, merge.ApproveOptions{SHA: p.SHA, Password: p.Password})
	return a.presentApprovals(c, m, s, err)
}

// unapproveMergeRequest: https://docs.gitlab.com/api/merge_request_approvals/#unapprove-merge-request
func (a *API) unapproveMergeRequest(c *call, p mergeParams) (approvalsJSON, error) {
	m, s, err := a.Merges.Unapprove(c, c.actor, p.Project, p.Request)
	return a.presentApprovals(c, m, s, err)
}

// resetApprovals: https://docs.gitlab.com/api/merge_request_approvals/#reset-approvals-of-a-merge-request
func (a *API) resetApprovals(c *call, p mergeParams) (accepted, error) {
	return accepted{}, a.Merges.ResetApprovals(c, c.actor, p.Project, p.Request)
}
