package api

import (
	"svc/internal/ci"
	"svc/internal/ci/schedule"
	"svc/internal/ci/variable"
	"svc/internal/project"
)

func (a *API) pipelineScheduleRoutes() {
	a.tag("Pipeline schedules")
	const all, one = "/projects/{id}/pipeline_schedules", "/projects/{id}/pipeline_schedules/{pipeline_schedule_id}"
	handle(a, "GET "+all, readAPI.orAnonymous(), a.listSchedules, summary("List pipeline schedules"))
	handle(a, "GET "+one, readAPI.orAnonymous(), a.getSchedule, summary("Get a pipeline schedule"))
	handle(a, "GET "+one+"/pipelines", readAPI.orAnonymous(), a.listSchedulePipelines, summary("List pipelines triggered by a pipeline schedule"))
	handle(a, "POST "+all, writeAPI, a.createSchedule, summary("Create a pipeline schedule"))
	handle(a, "PUT "+one, writeAPI, a.updateSchedule, summary("Update a pipeline schedule"))
	handle(a, "POST "+one+"/take_ownership", writeAPI, a.takeSchedule, summary("Take ownership of a pipeline schedule"))
	handle(a, "DELETE "+one, writeAPI, a.deleteSchedule, summary("Delete a pipeline schedule"))
	handle(a, "POST "+one+"/play", writeAPI, a.playSchedule, summary("Run a scheduled pipeline immediately"))
	handle(a, "POST "+one+"/variables", writeAPI, a.createScheduleVariable, summary("Create a pipeline schedule variable"))
	handle(a, "PUT "+one+"/variables/{key}", writeAPI, a.updateScheduleVariable, summary("Update a pipeline schedule variable"))
	handle(a, "DELETE "+one+"/variables/{key}", writeAPI, a.deleteScheduleVariable, status(202), summary("Delete a pipeline schedule variable"))
}

type schedulesParams struct {
	projectParams
	Scope string `param:"scope" enum:"active,inactive"`
	pageParams
}

// listSchedules: https://docs.gitlab.com/api/pipeline_schedules/#get-all-pipeline-schedules
func (a *API) listSchedules(c *call, p schedulesParams) (page[scheduleJSON], error) {
	var active *bool
	if p.Scope != "" {
		is := p.Scope == "active"
		active = &is
	}
	list, err := a.CI.Schedules.List(c, c.actor, p.Project, active, p.paging())
	if err != nil {
		return page[scheduleJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(s *schedule.Schedule) scheduleJSON { return a.toSchedule(c, s) }), nil
}

type scheduleParams struct {
	projectParams
	Schedule int64 `param:"pipeline_schedule_id"`
}

// getSchedule: https://docs.gitlab.com/api/pipeline_schedules/#get-a-single-pipeline-schedule
func (a *API) getSchedule(c *call, p scheduleParams) (scheduleDetailJSON, error) {
	return a.presentSchedule(c)(a.CI.Schedules.Get(c, c.actor, p.Project, p.Schedule))
}

type schedulePipelinesParams struct {
	scheduleParams
	pageParams
}

// listSchedulePipelines: https://docs.gitlab.com/api/pipeline_schedules/#get-all-pipelines-triggered-by-a-pipeline-schedule
func (a *API) listSchedulePipelines(c *call, p schedulePipelinesParams) (page[pipelineJSON], error) {
	proj, list, err := a.CI.SchedulePipelines(c, c.actor, p.Project, p.Schedule, p.paging())
	if err != nil {
		return page[pipelineJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(one *ci.Pipeline) pipelineJSON { return a.toPipeline(proj.FullPath, one) }), nil
}

type createScheduleParams struct {
	projectParams
	Description string  `param:"description,required"`
	Ref         string  `param:"ref,required" doc:"Branch or tag."`
	Cron        string  `param:"cron,required" doc:"Cron schedule, for example 0 1 * * *."`
	Timezone    *string `param:"cron_timezone" doc:"Time zone, for example Europe/Berlin. Default is UTC."`
	Active      *bool   `param:"active"`
}

// createSchedule: https://docs.gitlab.com/api/pipeline_schedules/#create-a-new-pipeline-schedule
func (a *API) createSchedule(c *call, p createScheduleParams) (scheduleDetailJSON, error) {
	return a.presentSchedule(c)(a.CI.Schedules.Create(c, c.actor, p.Project, schedule.Change{
		Description: &p.Description, Ref: &p.Ref, Cron: &p.Cron, Timezone: p.Timezone, Active: p.Active,
	}))
}

type updateScheduleParams struct {
	scheduleParams
	Description *string `param:"description"`
	Ref         *string `param:"ref" doc:"Branch or tag."`
	Cron        *string `param:"cron" doc:"Cron schedule, for example 0 1 * * *."`
	Timezone    *string `param:"cron_timezone" doc:"Time zone, for example Europe/Berlin."`
	Active      *bool   `param:"active"`
}

// updateSchedule: https://docs.gitlab.com/api/pipeline_schedules/#edit-a-pipeline-schedule
func (a *API) updateSchedule(c *call, p updateScheduleParams) (scheduleDetailJSON, error) {
	return a.presentSchedule(c)(a.CI.Schedules.Update(c, c.actor, p.Project, p.Schedule, schedule.Change{
		Description: p.Description, Ref: p.Ref, Cron: p.Cron, Timezone: p.Timezone, Active: p.Active,
	}))
}

// takeSchedule: https://docs.gitlab.com/api/pipeline_schedules/#take-ownership-of-a-pipeline-schedule
func (a *API) takeSchedule(c *call, p scheduleParams) (scheduleDetailJSON, error) {
	return a.presentSchedule(c)(a.CI.Schedules.TakeOwnership(c, c.actor, p.Project, p.Schedule))
}

// deleteSchedule: https://docs.gitlab.com/api/pipeline_schedules/#delete-a-pipeline-schedule
func (a *API) deleteSchedule(c *call, p scheduleParams) (none, error) {
	return none{}, a.CI.Schedules.Delete(c, c.actor, p.Project, p.Schedule, c.unmodifiedSince())
}

// playSchedule: https://docs.gitlab.com/api/pipeline_schedules/#run-a-scheduled-pipeline-immediately
func (a *API) playSchedule(c *call, p scheduleParams) (schedulePlayedJSON, error) {
	return schedulePlayedJSON{"201 Created"}, a.CI.Schedules.Play(c, c.actor, p.Project, p.Schedule)
}

// schedulePlayedJSON is the response after a pipeline was created.
type schedulePlayedJSON struct {
	Message string `json:"message"`
}

type createScheduleVariableParams struct {
	scheduleParams
	Key   string        `param:"key,required"`
	Value string        `param:"value,required,blank" secret:"true"`
	Type  variable.Type `param:"variable_type" enum:"env_var,file" default:"env_var"`
	Raw   bool          `param:"raw"`
}

// createScheduleVariable: https://docs.gitlab.com/api/pipeline_schedules/#create-a-new-pipeline-schedule-variable
func (a *API) createScheduleVariable(c *call, p createScheduleVariableParams) (pipelineVariableJSON, error) {
	v := variable.Given{Key: p.Key, Value: p.Value, Type: p.Type, Raw: p.Raw}
	return presentScheduleVariable(a.CI.Schedules.SetVariable(c, c.actor, p.Project, p.Schedule, v, false))
}

type scheduleVariableParams struct {
	scheduleParams
	Key string `param:"key"`
}

type updateScheduleVariableParams struct {
	scheduleVariableParams
	Value string        `param:"value,required,blank" secret:"true"`
	Type  variable.Type `param:"variable_type" enum:"env_var,file"`
	Raw   bool          `param:"raw"`
}

// updateScheduleVariable: https://docs.gitlab.com/api/pipeline_schedules/#edit-a-pipeline-schedule-variable
func (a *API) updateScheduleVariable(c *call, p updateScheduleVariableParams) (pipelineVariableJSON, error) {
	v := variable.Given{Key: p.Key, Value: p.Value, Type: p.Type, Raw: p.Raw}
	return presentScheduleVariable(a.CI.Schedules.SetVariable(c, c.actor, p.Project, p.Schedule, v, true))
}

// deleteScheduleVariable: https://docs.gitlab.com/api/pipeline_schedules/#delete-a-pipeline-schedule-variable
func (a *API) deleteScheduleVariable(c *call, p scheduleVariableParams) (pipelineVariableJSON, error) {
	return presentScheduleVariable(a.CI.Schedules.DeleteVariable(c, c.actor, p.Project, p.Schedule, p.Key))
}

func presentScheduleVariable(v *variable.Given, err error) (pipelineVariableJSON, error) {
	if err != nil {
		return pipelineVariableJSON{}, err
	}
	return toPipelineVariable(*v), nil
}

type scheduleJSON struct {
	ID          int64           `json:"id"`
	Description string          `json:"description"`
	Ref         string          `json:"ref"`
	Cron        string          `json:"cron"`
	Timezone    string          `json:"cron_timezone"`
	NextRunAt   *stamp          `json:"next_run_at"`
	Active      bool            `json:"active"`
	CreatedAt   stamp           `json:"created_at"`
	UpdatedAt   stamp           `json:"updated_at"`
	Owner       *userPublicJSON `json:"owner"`
}

type scheduleDetailJSON struct {
	scheduleJSON
	LastPipeline *schedulePipelineJSON `json:"last_pipeline"`
	Inputs       []struct{}            `json:"inputs"` // always empty
	// Only for the owner of the schedule and for Maintainers.
	Variables *[]pipelineVariableJSON `json:"variables,omitempty"`
}

type schedulePipelineJSON struct {
	ID     int64  `json:"id"`
	SHA    string `json:"sha"`
	Ref    string `json:"ref"`
	Status string `json:"status"`
	WebURL string `json:"web_url"`
}

func (a *API) toSchedule(c *call, s *schedule.Schedule) scheduleJSON {
	out := scheduleJSON{
		ID: s.ID, Description: s.Description, Ref: s.Ref, Cron: s.Cron, Timezone: s.Timezone, NextRunAt: toStampOrNull(s.NextRunAt), Active: s.Active,
		CreatedAt: toStamp(s.CreatedAt), UpdatedAt: toStamp(s.UpdatedAt),
	}
	if s.Owner != nil {
		u := toUserPublic(c.site, s.Owner, a.Now())
		out.Owner = &u
	}
	return out
}

func (a *API) presentSchedule(c *call) func(*schedule.Schedule, error) (scheduleDetailJSON, error) {
	return func(s *schedule.Schedule, err error) (scheduleDetailJSON, error) {
		if err != nil {
			return scheduleDetailJSON{}, err
		}
		out := scheduleDetailJSON{scheduleJSON: a.toSchedule(c, s), Inputs: []struct{}{}}
		if p := s.LastPipeline; p != nil {
			in, err := a.Projects.Summary(c, c.actor, project.RefTo(s.ProjectID))
			if err != nil {
				return scheduleDetailJSON{}, err
			}
			out.LastPipeline = &schedulePipelineJSON{p.ID, p.SHA, p.Ref, string(p.Status), a.pipelineURL(in.FullPath, p.ID)}
		}
		if s.Variables != nil {
			list := mapped(s.Variables, toPipelineVariable)
			out.Variables = &list
		}
		return out, nil
	}
}
