package api

import (
	"svc/internal/bind"
	"svc/internal/ci"
	"svc/internal/ci/runners"
	"svc/internal/errs"
	"svc/internal/project"
)

// Access rules with the scopes for runner management.
var (
	createRunners = access{scopes: []string{"api", "create_runner"}}
	readRunners   = access{scopes: []string{"api", "read_api", "manage_runner"}}
	manageRunners = access{scopes: []string{"api", "manage_runner"}}
)

func (a *API) runnerRoutes() {
	a.tag("Runners")
	handle(a, "POST /user/runners", createRunners, a.createRunner, summary("Create a runner"))
	handle(a, "GET /runners", readRunners, a.listOwnRunners, summary("List available runners"))
	handle(a, "GET /runners/all", readRunners, a.listAllRunners, summary("List all runners"))
	handle(a, "GET /runners/{id}", readRunners, a.getRunner, summary("Get a runner"))
	handle(a, "PUT /runners/{id}", manageRunners, a.updateRunner, summary("Update a runner"))
	handle(a, "DELETE /runners/{id}", manageRunners, a.deleteRunner, summary("Delete a runner"))
	handle(a, "GET /runners/{id}/jobs", readRunners, a.listRunnerJobs, summary("List jobs processed by a runner"))
	handle(a, "GET /runners/{id}/managers", readRunners, a.listManagers, summary("List managers of a runner"))
	handle(a, "POST /runners/{id}/reset_authentication_token", manageRunners, a.resetRunnerToken, summary("Reset the authentication token of a runner"))
	handle(a, "POST /runners/reset_registration_token", writeAPI, a.resetInstanceRegistration, summary("Reset the runner registration token of the instance"))
	handle(a, "GET /projects/{id}/runners", readRunners, a.listProjectRunners, summary("List runners of a project"))
	handle(a, "POST /projects/{id}/runners", manageRunners, a.enableRunner, summary("Assign a runner to a project"))
	handle(a, "DELETE /projects/{id}/runners/{runner_id}", manageRunners, a.disableRunner, summary("Unassign a runner from a project"))
	handle(a, "POST /projects/{id}/runners/reset_registration_token", writeAPI, a.resetProjectRegistration, summary("Reset the runner registration token of a project"))
	handle(a, "GET /groups/{id}/runners", readRunners, a.listGroupRunners, summary("List runners of a group"))
	handle(a, "POST /groups/{id}/runners/reset_registration_token", writeAPI, a.resetGroupRegistration, summary("Reset the runner registration token of a group"))
}

// runnerFieldParams are the attributes of a runner.
type runnerFieldParams struct {
	Description     *string         `param:"description"`
	Paused          *bool           `param:"paused" doc:"Whether the runner ignores new jobs."`
	Active          *bool           `param:"active" doc:"Deprecated: use paused."`
	Locked          *bool           `param:"locked" doc:"Whether the runner is locked to its project."`
	RunUntagged     *bool           `param:"run_untagged" doc:"Whether the runner executes untagged jobs."`
	TagList         *[]string       `param:"tag_list,csv"`
	AccessLevel     *string         `param:"access_level" enum:"not_protected,ref_protected"`
	MaximumTimeout  bind.Opt[int64] `param:"maximum_timeout" doc:"Maximum job timeout in seconds."`
	MaintenanceNote *string         `param:"maintenance_note" doc:"Maintenance note for administrators, at most 1024 characters."`
}

func (p *runnerFieldParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.Exclusive("active", "paused")}
}

func (p *runnerFieldParams) change() runners.Change {
	c := runners.Change{
		Description: p.Description, Paused: p.Paused, Locked: p.Locked, RunUntagged: p.RunUntagged, Tags: p.TagList, MaintenanceNote: p.MaintenanceNote,
	}
	if p.Active != nil {
		paused := !*p.Active
		c.Paused = &paused
	}
	if p.AccessLevel != nil {
		protected := *p.AccessLevel == "ref_protected"
		c.ProtectedOnly = &protected
	}
	if p.MaximumTimeout.Set {
		var limit *int64
		if !p.MaximumTimeout.Null {
			limit = &p.MaximumTimeout.Value
		}
		c.MaximumTimeout = &limit
	}
	return c
}

type createRunnerParams struct {
	Type      runners.Type `param:"runner_type,required" enum:"instance_type,group_type,project_type"`
	GroupID   *int64       `param:"group_id" doc:"ID of the group. Required for group runners."`
	ProjectID *int64       `param:"project_id" doc:"ID of the project. Required for project runners."`
	runnerFieldParams
}

func (p *createRunnerParams) check() error {
	switch {
	case p.Type == runners.GroupType && p.GroupID == nil:
		return bind.Invalid("group_id is missing")
	case p.Type == runners.ProjectType && p.ProjectID == nil:
		return bind.Invalid("project_id is missing")
	}
	return nil
}

// runnerTokenJSON is a runner token, which is shown once.
type runnerTokenJSON struct {
	ID             int64  `json:"id"`
	Token          string `json:"token"`
	TokenExpiresAt *stamp `json:"token_expires_at"`
}

func presentRunnerToken(r *runners.Runner, err error) (runnerTokenJSON, error) {
	if err != nil {
		return runnerTokenJSON{}, err
	}
	return runnerTokenJSON{r.ID, r.Secret, toStampOrNull(r.TokenExpiresAt)}, nil
}

// createRunner: https://docs.gitlab.com/api/users/#create-a-runner-linked-to-a-user
func (a *API) createRunner(c *call, p createRunnerParams) (runnerTokenJSON, error) {
	n := runners.NewRunner{Type: p.Type, Change: p.change()}
	if p.GroupID != nil {
		n.Group = project.RefTo(*p.GroupID)
	}
	if p.ProjectID != nil {
		n.Project = project.RefTo(*p.ProjectID)
	}
	return presentRunnerToken(a.CI.Runners.Create(c, c.actor, n))
}

type listRunnersParams struct {
	Type          runners.Type `param:"type" enum:"instance_type,group_type,project_type"`
	Status        string       `param:"status" enum:"online,offline,stale,never_contacted,active,paused"`
	Scope         string       `param:"scope" enum:"active,paused,online,offline,stale,never_contacted,specific,shared,instance_type,group_type,project_type" doc:"Deprecated: use type or status."`
	Paused        *bool        `param:"paused"`
	TagList       []string     `param:"tag_list,csv"`
	VersionPrefix string       `param:"version_prefix"`
	pageParams
}

func (p *listRunnersParams) filter() runners.Filter {
	f := runners.Filter{Type: p.Type, Status: p.Status, Paused: p.Paused, Tags: p.TagList, VersionPrefix: p.VersionPrefix}
	switch p.Scope {
	case "":
	case "shared":
		f.Type = runners.InstanceType
	case "specific":
		f.Type = runners.ProjectType
	case string(runners.InstanceType), string(runners.GroupType), string(runners.ProjectType):
		f.Type = runners.Type(p.Scope)
	default:
		f.Status = p.Scope
	}
	return f
}

// listOwnRunners: https://docs.gitlab.com/api/runners/#list-available-runners
func (a *API) listOwnRunners(c *call, p listRunnersParams) (page[runnerJSON], error) {
	return offsetList(p.pageParams, a.toRunner)(a.CI.Runners.ListOwned(c, c.actor, p.filter(), p.paging()))
}

// listAllRunners: https://docs.gitlab.com/api/runners/#list-all-runners
func (a *API) listAllRunners(c *call, p listRunnersParams) (page[runnerJSON], error) {
	return offsetList(p.pageParams, a.toRunner)(a.CI.Runners.ListAll(c, c.actor, p.filter(), p.paging()))
}

type runnerParams struct {
	ID int64 `param:"id"`
}

// getRunner: https://docs.gitlab.com/api/runners/#get-runners-details
func (a *API) getRunner(c *call, p runnerParams) (runnerDetailJSON, error) {
	return a.presentRunner(c)(a.CI.Runners.Get(c, c.actor, p.ID))
}

func (a *API) presentRunner(c *call) func(*runners.Runner, error) (runnerDetailJSON, error) {
	return func(r *runners.Runner, err error) (runnerDetailJSON, error) {
		if err != nil {
			return runnerDetailJSON{}, err
		}
		return a.toRunnerDetail(c, r), nil
	}
}

type updateRunnerParams struct {
	runnerParams
	runnerFieldParams
}

// updateRunner: https://docs.gitlab.com/api/runners/#update-runners-details
func (a *API) updateRunner(c *call, p updateRunnerParams) (runnerDetailJSON, error) {
	return a.presentRunner(c)(a.CI.Runners.Update(c, c.actor, p.ID, p.change()))
}

// deleteRunner: https://docs.gitlab.com/api/runners/#delete-a-runner-by-id
func (a *API) deleteRunner(c *call, p runnerParams) (none, error) {
	return none{}, a.CI.Runners.Delete(c, c.actor, p.ID, c.unmodifiedSince())
}

type runnerJobsParams struct {
	runnerParams
	Status   string `param:"status" enum:"running,success,failed,canceled"`
	SystemID string `param:"system_id"`
	OrderBy  string `param:"order_by" enum:"id"`
	Sort     string `param:"sort" enum:"asc,desc" default:"desc"`
	pageParams
}

// listRunnerJobs: https://docs.gitlab.com/api/runners/#list-all-jobs-processed-by-a-runner
func (a *API) listRunnerJobs(c *call, p runnerJobsParams) (page[jobJSON], error) {
	f := ci.RunnerJobFilter{Status: p.Status, SystemID: p.SystemID, Desc: p.Sort == "desc"}
	return offsetList(p.pageParams, a.jobForm(c))(a.CI.RunnerJobs(c, c.actor, p.ID, f, p.paging()))
}

// listManagers: https://docs.gitlab.com/api/runners/#list-runners-managers
func (a *API) listManagers(c *call, p runnerParams) ([]managerJSON, error) {
	list, err := a.CI.Runners.Managers(c, c.actor, p.ID)
	if err != nil {
		return nil, err
	}
	return mapped(list, a.toManager), nil
}

// resetTokenJSON is a new token.
type resetTokenJSON struct {
	Token          string `json:"token"`
	TokenExpiresAt *stamp `json:"token_expires_at"`
}

// resetRunnerToken: https://docs.gitlab.com/api/runners/#reset-runners-authentication-token-by-using-the-runner-id
func (a *API) resetRunnerToken(c *call, p runnerParams) (resetTokenJSON, error) {
	r, err := a.CI.Runners.ResetToken(c, c.actor, p.ID)
	if err != nil {
		return resetTokenJSON{}, err
	}
	return resetTokenJSON{r.Secret, toStampOrNull(r.TokenExpiresAt)}, nil
}

// runnersToken returns the registration token of a project or group, or nil if the
// user cannot see it.
func (a *API) runnersToken(c *call, in runners.Owner) (*string, error) {
	token, err := a.CI.Runners.RegistrationToken(c, c.actor, in)
	if errs.Is(err, errs.KindForbidden) {
		return nil, nil
	}
	return textOrNull(token), err
}

func (a *API) resetRegistration(c *call, in runners.Owner) (resetTokenJSON, error) {
	token, err := a.CI.Runners.ResetRegistrationToken(c, c.actor, in)
	return resetTokenJSON{Token: token}, err
}

// resetInstanceRegistration: https://docs.gitlab.com/api/runners/#reset-instances-runner-registration-token
func (a *API) resetInstanceRegistration(c *call, _ struct{}) (resetTokenJSON, error) {
	return a.resetRegistration(c, runners.Owner{})
}

// resetProjectRegistration: https://docs.gitlab.com/api/runners/#reset-projects-runner-registration-token
func (a *API) resetProjectRegistration(c *call, p projectParams) (resetTokenJSON, error) {
	return a.resetRegistration(c, runners.Owner{Project: p.Project})
}

// resetGroupRegistration: https://docs.gitlab.com/api/runners/#reset-groups-runner-registration-token
func (a *API) resetGroupRegistration(c *call, p inGroupParams) (resetTokenJSON, error) {
	return a.resetRegistration(c, runners.Owner{Group: p.Group})
}

type projectRunnersParams struct {
	projectParams
	listRunnersParams
}

// listProjectRunners: https://docs.gitlab.com/api/runners/#list-projects-runners
func (a *API) listProjectRunners(c *call, p projectRunnersParams) (page[runnerJSON], error) {
	return offsetList(p.pageParams, a.toRunner)(a.CI.Runners.ListOfProject(c, c.actor, p.Project, p.filter(), p.paging()))
}

type groupRunnersParams struct {
	inGroupParams
	listRunnersParams
}

// listGroupRunners: https://docs.gitlab.com/api/runners/#list-groups-runners
func (a *API) listGroupRunners(c *call, p groupRunnersParams) (page[runnerJSON], error) {
	return offsetList(p.pageParams, a.toRunner)(a.CI.Runners.ListOfGroup(c, c.actor, p.Group, p.filter(), p.paging()))
}

type enableRunnerParams struct {
	projectParams
	RunnerID int64 `param:"runner_id,required"`
}

// enableRunner: https://docs.gitlab.com/api/runners/#assign-a-runner-to-project
func (a *API) enableRunner(c *call, p enableRunnerParams) (runnerJSON, error) {
	r, err := a.CI.Runners.Enable(c, c.actor, p.Project, p.RunnerID)
	if err != nil {
		return runnerJSON{}, err
	}
	return a.toRunner(r), nil
}

type disableRunnerParams struct {
	projectParams
	RunnerID int64 `param:"runner_id"`
}

// disableRunner: https://docs.gitlab.com/api/runners/#unassign-a-runner-from-project
func (a *API) disableRunner(c *call, p disableRunnerParams) (none, error) {
	return none{}, a.CI.Runners.Disable(c, c.actor, p.Project, p.RunnerID)
}
