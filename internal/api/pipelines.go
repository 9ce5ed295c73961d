package api

import (
	"strconv"
	"time"

	"svc/internal/ci"
	"svc/internal/ci/config"
	"svc/internal/ci/flow"
	"svc/internal/ci/variable"
	"svc/internal/project"
)

func (a *API) pipelineRoutes() {
	a.tag("Pipelines")
	handle(a, "GET /projects/{id}/pipelines", readAPI.orAnonymous(), a.listPipelines, summary("List project pipelines"))
	handle(a, "GET /projects/{id}/pipelines/latest", readAPI.orAnonymous(), a.getLatestPipeline, summary("Get the latest pipeline"))
	handle(a, "GET /projects/{id}/pipelines/{pipeline_id}", readAPI.orAnonymous(), a.getPipeline, summary("Get a pipeline"))
	handle(a, "GET /projects/{id}/pipelines/{pipeline_id}/variables", readAPI, a.listPipelineVariables, summary("List variables of a pipeline"))
	handle(a, "POST /projects/{id}/pipeline", writeAPI, a.createPipeline, summary("Create a pipeline"))
	handle(a, "POST /projects/{id}/pipelines/{pipeline_id}/retry", writeAPI, a.retryPipeline, summary("Retry jobs in a pipeline"))
	handle(a, "POST /projects/{id}/pipelines/{pipeline_id}/cancel", writeAPI, a.cancelPipeline, status(200), summary("Cancel all jobs of a pipeline"))
	handle(a, "PUT /projects/{id}/pipelines/{pipeline_id}/metadata", writeAPI, a.renamePipeline, summary("Update pipeline metadata"))
	handle(a, "DELETE /projects/{id}/pipelines/{pipeline_id}", writeAPI, a.deletePipeline, summary("Delete a pipeline"))
}

type pipelineParams struct {
	projectParams
	Pipeline int64 `param:"pipeline_id"`
}

type listPipelinesParams struct {
	projectParams
	Scope         string     `param:"scope" enum:"running,pending,finished,branches,tags"`
	Status        string     `param:"status" enum:"created,waiting_for_resource,preparing,pending,running,success,failed,canceling,canceled,skipped,manual,scheduled"`
	Source        string     `param:"source" enum:"unknown,push,web,trigger,schedule,api,external,pipeline,chat,webide,merge_request_event,external_pull_request_event,parent_pipeline,ondemand_dast_scan,ondemand_dast_validation,security_orchestration_policy,container_registry_push,duo_workflow,pipeline_execution_policy_schedule"`
	Ref           string     `param:"ref"`
	SHA           string     `param:"sha"`
	Name          string     `param:"name"`
	Username      string     `param:"username" doc:"Username of the user who triggered the pipelines."`
	YAMLErrors    *bool      `param:"yaml_errors"`
	CreatedAfter  *time.Time `param:"created_after"`
	CreatedBefore *time.Time `param:"created_before"`
	UpdatedAfter  *time.Time `param:"updated_after"`
	UpdatedBefore *time.Time `param:"updated_before"`
	OrderBy       string     `param:"order_by" enum:"id,status,ref,updated_at,user_id" default:"id"`
	Sort          string     `param:"sort" enum:"asc,desc" default:"desc"`
	pageParams
}

// listPipelines: https://docs.gitlab.com/api/pipelines/#list-project-pipelines
func (a *API) listPipelines(c *call, p listPipelinesParams) (page[pipelineJSON], error) {
	proj, list, err := a.CI.Pipelines(c, c.actor, p.Project, ci.PipelineFilter{
		Scope: p.Scope, Status: flow.Status(p.Status), Source: ci.Source(p.Source), Ref: p.Ref, SHA: p.SHA, Name: p.Name, Username: p.Username,
		YAMLErrors: p.YAMLErrors, CreatedAfter: p.CreatedAfter, CreatedBefore: p.CreatedBefore, UpdatedAfter: p.UpdatedAfter,
		UpdatedBefore: p.UpdatedBefore, OrderBy: p.OrderBy, Asc: p.Sort == "asc",
	}, p.paging())
	if err != nil {
		return page[pipelineJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(one *ci.Pipeline) pipelineJSON { return a.toPipeline(proj.FullPath, one) }), nil
}

type latestPipelineParams struct {
	projectParams
	Ref string `param:"ref" doc:"Branch or tag. Default is the default branch."`
}

// getLatestPipeline: https://docs.gitlab.com/api/pipelines/#get-the-latest-pipeline
func (a *API) getLatestPipeline(c *call, p latestPipelineParams) (pipelineDetailJSON, error) {
	proj, found, err := a.CI.LatestPipeline(c, c.actor, p.Project, p.Ref)
	return a.presentPipeline(c, proj, found, err)
}

// getPipeline: https://docs.gitlab.com/api/pipelines/#get-a-single-pipeline
func (a *API) getPipeline(c *call, p pipelineParams) (pipelineDetailJSON, error) {
	proj, found, err := a.CI.Pipeline(c, c.actor, p.Project, p.Pipeline)
	return a.presentPipeline(c, proj, found, err)
}

type pipelineVariableJSON struct {
	Key   string `json:"key"`
	Type  string `json:"variable_type"`
	Value string `json:"value"`
	Raw   bool   `json:"raw"`
}

func toPipelineVariable(v variable.Given) pipelineVariableJSON {
	out := pipelineVariableJSON{v.Key, string(v.Type), v.Value, v.Raw}
	if out.Type == "" {
		out.Type = string(variable.EnvVar)
	}
	return out
}

// listPipelineVariables: https://docs.gitlab.com/api/pipelines/#get-variables-for-a-pipeline
func (a *API) listPipelineVariables(c *call, p pipelineParams) ([]pipelineVariableJSON, error) {
	list, err := a.CI.PipelineVariables(c, c.actor, p.Project, p.Pipeline)
	if err != nil {
		return nil, err
	}
	return mapped(list, toPipelineVariable), nil
}

type createPipelineParams struct {
	projectParams
	Ref       string                `param:"ref,required" doc:"Branch or tag."`
	Variables []givenVariableParams `param:"variables"`
	Inputs    map[string][]string   `param:"inputs" doc:"Values for the inputs in spec:inputs. Repeat a name for an array."`
}

func toInputs(given map[string][]string) map[string]any {
	if given == nil {
		return nil
	}
	inputs := map[string]any{}
	for key, value := range given {
		inputs[key] = config.Texts(value)
	}
	return inputs
}

// createPipeline: https://docs.gitlab.com/api/pipelines/#create-a-new-pipeline
func (a *API) createPipeline(c *call, p createPipelineParams) (pipelineDetailJSON, error) {
	proj, made, err := a.CI.CreatePipeline(c, c.actor, p.Project, ci.NewPipeline{Ref: p.Ref, Variables: toGiven(p.Variables), Inputs: toInputs(p.Inputs)})
	return a.presentPipeline(c, proj, made, err)
}

// retryPipeline: https://docs.gitlab.com/api/pipelines/#retry-jobs-in-a-pipeline
func (a *API) retryPipeline(c *call, p pipelineParams) (pipelineDetailJSON, error) {
	proj, found, err := a.CI.RetryPipeline(c, c.actor, p.Project, p.Pipeline)
	return a.presentPipeline(c, proj, found, err)
}

// cancelPipeline: https://docs.gitlab.com/api/pipelines/#cancel-all-jobs-for-a-pipeline
func (a *API) cancelPipeline(c *call, p pipelineParams) (pipelineDetailJSON, error) {
	proj, found, err := a.CI.CancelPipeline(c, c.actor, p.Project, p.Pipeline)
	return a.presentPipeline(c, proj, found, err)
}

type renamePipelineParams struct {
	pipelineParams
	Name string `param:"name,required"`
}

// renamePipeline: https://docs.gitlab.com/api/pipelines/#update-pipeline-metadata
func (a *API) renamePipeline(c *call, p renamePipelineParams) (pipelineDetailJSON, error) {
	proj, found, err := a.CI.RenamePipeline(c, c.actor, p.Project, p.Pipeline, p.Name)
	return a.presentPipeline(c, proj, found, err)
}

// deletePipeline: https://docs.gitlab.com/api/pipelines/#delete-a-pipeline
func (a *API) deletePipeline(c *call, p pipelineParams) (none, error) {
	return none{}, a.CI.DeletePipeline(c, c.actor, p.Project, p.Pipeline, c.unmodifiedSince())
}

// pipelineJSON is a pipeline in lists.
type pipelineJSON struct {
	ID        int64   `json:"id"`
	IID       int64   `json:"iid"`
	ProjectID int64   `json:"project_id"`
	SHA       string  `json:"sha"`
	Ref       string  `json:"ref"`
	Status    string  `json:"status"`
	Source    string  `json:"source"`
	CreatedAt stamp   `json:"created_at"`
	UpdatedAt stamp   `json:"updated_at"`
	WebURL    string  `json:"web_url"`
	Name      *string `json:"name"`
}

// pipelineDetailJSON is the representation of a single pipeline.
type pipelineDetailJSON struct {
	pipelineJSON
	BeforeSHA      string             `json:"before_sha"`
	Tag            bool               `json:"tag"`
	YAMLErrors     *string            `json:"yaml_errors"`
	User           *userPublicJSON    `json:"user"`
	StartedAt      *stamp             `json:"started_at"`
	FinishedAt     *stamp             `json:"finished_at"`
	CommittedAt    *stamp             `json:"committed_at"`
	Duration       *int64             `json:"duration"`
	QueuedDuration *int64             `json:"queued_duration"`
	Coverage       *string            `json:"coverage"`
	Archived       bool               `json:"archived"`
	DetailedStatus pipelineStatusJSON `json:"detailed_status"`
}

type pipelineStatusJSON struct {
	Icon         string  `json:"icon"`
	Text         string  `json:"text"`
	Label        string  `json:"label"`
	Group        string  `json:"group"`
	Tooltip      string  `json:"tooltip"`
	HasDetails   bool    `json:"has_details"`
	DetailsPath  string  `json:"details_path"`
	Illustration *string `json:"illustration"`
	Favicon      string  `json:"favicon"`
}

func (a *API) pipelineURL(path string, id int64) string {
	return a.Site.URL + "/" + path + "/-/pipelines/" + strconv.FormatInt(id, 10)
}

func (a *API) toPipeline(path string, p *ci.Pipeline) pipelineJSON {
	return pipelineJSON{
		p.ID, p.IID, p.ProjectID, p.SHA, p.Ref, string(p.Status), string(p.Source), toStamp(p.CreatedAt), toStamp(p.UpdatedAt),
		a.pipelineURL(path, p.ID), textOrNull(p.Name),
	}
}

func (a *API) presentPipeline(c *call, proj *project.Project, p *ci.Pipeline, err error) (pipelineDetailJSON, error) {
	if err != nil {
		return pipelineDetailJSON{}, err
	}
	out := pipelineDetailJSON{
		pipelineJSON: a.toPipeline(proj.FullPath, p), BeforeSHA: p.BeforeSHA, Tag: p.Tag, YAMLErrors: textOrNull(p.YAMLErrors),
		StartedAt: toStampOrNull(p.StartedAt), FinishedAt: toStampOrNull(p.FinishedAt), Duration: wholeSeconds(p.Duration()),
		QueuedDuration: wholeSeconds(p.QueuedDuration()), Archived: p.Archived,
		DetailedStatus: toPipelineStatus(proj.FullPath, p),
	}
	if p.Coverage != nil {
		text := strconv.FormatFloat(*p.Coverage, 'f', 2, 64)
		out.Coverage = &text
	}
	if p.User != nil {
		u := toUserPublic(c.site, p.User, a.Now())
		out.User = &u
	}
	return out, nil
}

func wholeSeconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	seconds := int64(d.Seconds())
	return &seconds
}

// toPipelineStatus returns the status as shown on pages.
func toPipelineStatus(path string, p *ci.Pipeline) pipelineStatusJSON {
	group := map[flow.Status]string{flow.Waiting: "waiting-for-resource"}[p.Status]
	if group == "" {
		group = string(p.Status)
	}
	text := map[flow.Status]string{
		flow.Created: "Created", flow.Waiting: "Waiting", flow.Scheduled: "Scheduled", flow.Manual: "Blocked", flow.Pending: "Pending",
		flow.Running: "Running", flow.Success: "Passed", flow.Failed: "Failed", flow.Canceled: "Canceled", flow.Skipped: "Skipped",
	}[p.Status]
	label := map[flow.Status]string{flow.Success: "passed", flow.Manual: "waiting for manual action", flow.Waiting: "waiting for resource"}[p.Status]
	if label == "" {
		label = string(p.Status)
	}
	icon := "status_" + string(p.Status)
	if p.Warnings {
		icon, text, label, group = "status_warning", "Warning", "passed with warnings", "success-with-warnings"
	}
	return pipelineStatusJSON{
		Icon: icon, Text: text, Label: label, Group: group, Tooltip: label, HasDetails: true,
		DetailsPath: "/" + path + "/-/pipelines/" + strconv.FormatInt(p.ID, 10), Favicon: "",
	}
}
