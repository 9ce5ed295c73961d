package api

import (
	"svc/internal/bind"
	"svc/internal/ci/deployment"
	"svc/internal/project"
)

func (a *API) protectedEnvironmentRoutes() {
	for _, k := range []struct {
		base, tag, what string
		group           bool
	}{
		{"/projects/{id}", "Protected environments", "", false},
		{"/groups/{id}", "Group-level protected environments", "group-level ", true},
	} {
		a.tag(k.tag)
		all, one := k.base+"/protected_environments", k.base+"/protected_environments/{name}"
		e := protectedEnvironments{a, k.group}
		handle(a, "GET "+all, readAPI, e.list, summary("List "+k.what+"protected environments"))
		handle(a, "GET "+one, readAPI, e.get, summary("Get a single "+k.what+"protected environment"))
		handle(a, "POST "+all, writeAPI, e.protect, summary("Protect a single "+k.what+"environment"))
		handle(a, "PUT "+one, writeAPI, e.update, summary("Update a "+k.what+"protected environment"))
		handle(a, "DELETE "+one, writeAPI, e.unprotect, summary("Unprotect a single "+k.what+"environment"))
	}
}

// protectedEnvironments are the endpoints of projects or of groups.
type protectedEnvironments struct {
	*API
	group bool
}

type protectedPlaceParams struct {
	Place project.Ref `param:"id" doc:"ID or URL-encoded path of the project or group."`
}

func (e protectedEnvironments) at(p protectedPlaceParams) project.Place {
	return project.Place{Ref: p.Place, Group: e.group}
}

type protectedEnvironmentJSON struct {
	Name              string            `json:"name"`
	Deploy            []deployRuleJSON  `json:"deploy_access_levels"`
	RequiredApprovals int64             `json:"required_approval_count"`
	Approve           []approveRuleJSON `json:"approval_rules"`
}

type deployRuleJSON struct {
	ID          int64  `json:"id"`
	Level       *int64 `json:"access_level"`
	Description string `json:"access_level_description"`
	UserID      *int64 `json:"user_id"`
	GroupID     *int64 `json:"group_id"`
	Inheritance int64  `json:"group_inheritance_type"`
}

type approveRuleJSON struct {
	deployRuleJSON
	Required int64 `json:"required_approvals"`
}

func toDeployRule(r *deployment.EnvironmentRule) deployRuleJSON {
	j := deployRuleJSON{ID: r.ID, Description: r.Description(), UserID: r.UserID, GroupID: r.GroupID}
	if r.Level != nil {
		level := int64(*r.Level)
		j.Level = &level
	}
	if r.Inherited {
		j.Inheritance = 1
	}
	return j
}

func toApproveRule(r *deployment.EnvironmentRule) approveRuleJSON {
	return approveRuleJSON{toDeployRule(r), r.Required}
}

func toProtectedEnvironment(e *deployment.ProtectedEnvironment) protectedEnvironmentJSON {
	return protectedEnvironmentJSON{e.Name, mapped(e.Deploy, toDeployRule), e.RequiredApprovals, mapped(e.Approve, toApproveRule)}
}

type listProtectedEnvironmentsParams struct {
	protectedPlaceParams
	pageParams
}

// list: https://docs.gitlab.com/api/protected_environments/#list-protected-environments
func (e protectedEnvironments) list(c *call, p listProtectedEnvironmentsParams) (page[protectedEnvironmentJSON], error) {
	return offsetList(p.pageParams, toProtectedEnvironment)(e.CI.Deployments.Protected(c, c.actor, e.at(p.protectedPlaceParams), p.paging()))
}

type protectedEnvironmentParams struct {
	protectedPlaceParams
	Name string `param:"name" doc:"Name of the environment; of a group, the deployment tier."`
}

// get: https://docs.gitlab.com/api/protected_environments/#get-a-single-protected-environment
func (e protectedEnvironments) get(c *call, p protectedEnvironmentParams) (protectedEnvironmentJSON, error) {
	return presentAs(toProtectedEnvironment)(e.CI.Deployments.ProtectedByName(c, c.actor, e.at(p.protectedPlaceParams), p.Name))
}

type environmentRuleParams struct {
	ID          *int64 `param:"id" doc:"ID of the rule to change. Without it, a rule is added."`
	Level       *int64 `param:"access_level" doc:"Role: 30, 40 or 60."`
	UserID      *int64 `param:"user_id" doc:"User with access to the project or group."`
	GroupID     *int64 `param:"group_id"`
	Inheritance *int64 `param:"group_inheritance_type" enum:"0,1" doc:"0 for direct members of the group, 1 for inherited members too."`
	Required    *int64 `param:"required_approvals" doc:"Number of approvals of an approval rule."`
	Description string `param:"access_level_description" doc:"No effect."`
	Destroy     bool   `param:"_destroy" doc:"Delete the rule."`
}

func environmentRules(list []environmentRuleParams) []deployment.RuleChange {
	var changes []deployment.RuleChange
	for _, r := range list {
		c := deployment.RuleChange{ID: r.ID, UserID: r.UserID, GroupID: r.GroupID, Required: r.Required, Remove: r.Destroy}
		if r.Level != nil {
			level := project.Level(*r.Level)
			c.Level = &level
		}
		if r.Inheritance != nil {
			inherited := *r.Inheritance == 1
			c.Inherited = &inherited
		}
		changes = append(changes, c)
	}
	return changes
}

type protectEnvironmentParams struct {
	protectedPlaceParams
	Name              string                  `param:"name,required" doc:"Name of the environment; of a group, the deployment tier."`
	Deploy            []environmentRuleParams `param:"deploy_access_levels,required" doc:"Who may deploy."`
	RequiredApprovals *int64                  `param:"required_approval_count" doc:"Number of approvals, if there are no approval rules."`
	Approve           []environmentRuleParams `param:"approval_rules" doc:"Who approves deployments."`
}

func (p *protectEnvironmentParams) check() error {
	for _, r := range append(p.Deploy, p.Approve...) {
		if r.ID != nil || r.Destroy {
			return bind.Invalid("a new protected environment has no rules to change")
		}
	}
	return nil
}

// protect: https://docs.gitlab.com/api/protected_environments/#protect-a-single-environment
func (e protectedEnvironments) protect(c *call, p protectEnvironmentParams) (protectedEnvironmentJSON, error) {
	return presentAs(toProtectedEnvironment)(e.CI.Deployments.Protect(c, c.actor, e.at(p.protectedPlaceParams), p.Name, deployment.ProtectionChange{
		RequiredApprovals: p.RequiredApprovals, Deploy: environmentRules(p.Deploy), Approve: environmentRules(p.Approve),
	}))
}

type updateProtectedEnvironmentParams struct {
	protectedEnvironmentParams
	Deploy            []environmentRuleParams `param:"deploy_access_levels" doc:"Entries to add, change or delete."`
	RequiredApprovals *int64                  `param:"required_approval_count" doc:"Number of approvals, if there are no approval rules."`
	Approve           []environmentRuleParams `param:"approval_rules" doc:"Rules to add, change or delete."`
}

// update: https://docs.gitlab.com/api/protected_environments/#update-a-protected-environment
func (e protectedEnvironments) update(c *call, p updateProtectedEnvironmentParams) (protectedEnvironmentJSON, error) {
	return presentAs(toProtectedEnvironment)(e.CI.Deployments.UpdateProtected(c, c.actor, e.at(p.protectedPlaceParams), p.Name, deployment.ProtectionChange{
		RequiredApprovals: p.RequiredApprovals, Deploy: environmentRules(p.Deploy), Approve: environmentRules(p.Approve),
	}))
}

// unprotect: https://docs.gitlab.com/api/protected_environments/#unprotect-a-single-environment
func (e protectedEnvironments) unprotect(c *call, p protectedEnvironmentParams) (none, error) {
	return none{}, e.CI.Deployments.Unprotect(c, c.actor, e.at(p.protectedPlaceParams), p.Name)
}

type deploymentApprovalJSON struct {
	User      *userPublicJSON `json:"user"`
	Status    string          `json:"status"`
	CreatedAt stamp           `json:"created_at"`
	Comment   string          `json:"comment"`
}

func (a *API) toDeploymentApproval(c *call, x *deployment.Approval) deploymentApprovalJSON {
	j := deploymentApprovalJSON{Status: "rejected", CreatedAt: toStamp(x.CreatedAt), Comment: x.Comment}
	if x.Approved {
		j.Status = "approved"
	}
	if x.User != nil {
		j.User = toUserOrNull(c.site, x.User, a.Now())
	}
	return j
}

type decideDeploymentParams struct {
	deploymentParams
	Status        string `param:"status,required" enum:"approved,rejected"`
	Comment       string `param:"comment" doc:"Comment to go with the approval."`
	RepresentedAs string `param:"represented_as" doc:"Name of the user, group or role of the rule, if the user matches several."`
}

// decideDeployment: https://docs.gitlab.com/api/deployments/#approve-or-reject-a-blocked-deployment
func (a *API) decideDeployment(c *call, p decideDeploymentParams) (deploymentApprovalJSON, error) {
	x, err := a.CI.DecideDeployment(c, c.actor, p.Project, p.Deployment, deployment.Decision{
		Approve: p.Status == "approved", Comment: p.Comment, RepresentedAs: p.RepresentedAs,
	})
	if err != nil {
		return deploymentApprovalJSON{}, err
	}
	return a.toDeploymentApproval(c, x), nil
}
