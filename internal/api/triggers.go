package api

import (
	"maps"
	"slices"

	"svc/internal/ci"
	"svc/internal/ci/trigger"
	"svc/internal/ci/variable"
	"svc/internal/project"
)

func (a *API) triggerRoutes() {
	a.tag("Pipeline triggers")
	handle(a, "GET /projects/{id}/triggers", readAPI, a.listTriggers, summary("List trigger tokens"))
	handle(a, "GET /projects/{id}/triggers/{trigger_id}", readAPI, a.getTrigger, summary("Get a trigger token"))
	handle(a, "POST /projects/{id}/triggers", writeAPI, a.createTrigger, summary("Create a trigger token"))
	handle(a, "PUT /projects/{id}/triggers/{trigger_id}", writeAPI, a.updateTrigger, summary("Update a trigger token"))
	handle(a, "DELETE /projects/{id}/triggers/{trigger_id}", writeAPI, a.deleteTrigger, summary("Delete a trigger token"))
	handle(a, "POST /projects/{id}/trigger/pipeline", runnerCall, a.triggerPipeline, summary("Trigger a pipeline with a token"))
	handle(a, "POST /projects/{id}/ref/{ref}/trigger/pipeline", runnerCall, a.triggerPipeline, summary("Trigger a pipeline for a ref with a token"))
}

type triggersParams struct {
	projectParams
	pageParams
}

// listTriggers: https://docs.gitlab.com/api/pipeline_triggers/#list-project-trigger-tokens
func (a *API) listTriggers(c *call, p triggersParams) (page[triggerJSON], error) {
	list, err := a.CI.Triggers.List(c, c.actor, p.Project, p.paging())
	if err != nil {
		return page[triggerJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(t *trigger.Trigger) triggerJSON { return a.toTrigger(c, t) }), nil
}

type triggerParams struct {
	projectParams
	Trigger int64 `param:"trigger_id"`
}

// getTrigger: https://docs.gitlab.com/api/pipeline_triggers/#get-trigger-token-details
func (a *API) getTrigger(c *call, p triggerParams) (triggerJSON, error) {
	return a.presentTrigger(c)(a.CI.Triggers.Get(c, c.actor, p.Project, p.Trigger))
}

type createTriggerParams struct {
	projectParams
	Description string `param:"description,required"`
}

// createTrigger: https://docs.gitlab.com/api/pipeline_triggers/#create-a-trigger-token
func (a *API) createTrigger(c *call, p createTriggerParams) (triggerJSON, error) {
	return a.presentTrigger(c)(a.CI.Triggers.Create(c, c.actor, p.Project, p.Description))
}

type updateTriggerParams struct {
	triggerParams
	Description *string `param:"description"`
}

// updateTrigger: https://docs.gitlab.com/api/pipeline_triggers/#update-a-pipeline-trigger-token
func (a *API) updateTrigger(c *call, p updateTriggerParams) (triggerJSON, error) {
	return a.presentTrigger(c)(a.CI.Triggers.Update(c, c.actor, p.Project, p.Trigger, p.Description))
}

// deleteTrigger: https://docs.gitlab.com/api/pipeline_triggers/#remove-a-pipeline-trigger-token
func (a *API) deleteTrigger(c *call, p triggerParams) (none, error) {
	return none{}, a.CI.Triggers.Delete(c, c.actor, p.Project, p.Trigger, c.unmodifiedSince())
}

type triggerPipelineParams struct {
	Project   project.Ref         `param:"id" doc:"Project ID or full path."`
	Token     string              `param:"token,required" secret:"true" doc:"Trigger token or CI/CD job token."`
	Ref       string              `param:"ref,required" doc:"Branch or tag."`
	Variables map[string]string   `param:"variables" doc:"Pipeline variables: a map of keys and values."`
	Inputs    map[string][]string `param:"inputs" doc:"Values for the inputs in spec:inputs. Repeat a name for an array."`
}

// triggerPipeline: https://docs.gitlab.com/api/pipeline_triggers/#trigger-a-pipeline-with-a-token
func (a *API) triggerPipeline(c *call, p triggerPipelineParams) (pipelineDetailJSON, error) {
	n := ci.NewPipeline{Ref: p.Ref, Inputs: toInputs(p.Inputs)}
	n.Payload, _ = c.input.JSON("token")
	for _, key := range slices.Sorted(maps.Keys(p.Variables)) {
		n.Variables = append(n.Variables, variable.Given{Key: key, Value: p.Variables[key]})
	}
	proj, made, err := a.CI.TriggerPipeline(c, p.Project, p.Token, c.actor.IP, n)
	return a.presentPipeline(c, proj, made, err)
}

type triggerJSON struct {
	ID          int64           `json:"id"`
	Token       string          `json:"token"`
	Description string          `json:"description"`
	CreatedAt   stamp           `json:"created_at"`
	UpdatedAt   stamp           `json:"updated_at"`
	DeletedAt   *stamp          `json:"deleted_at"`
	LastUsed    *stamp          `json:"last_used"`
	ExpiresAt   *stamp          `json:"expires_at"`
	Owner       *userPublicJSON `json:"owner"`
}

func (a *API) presentTrigger(c *call) func(*trigger.Trigger, error) (triggerJSON, error) {
	return func(t *trigger.Trigger, err error) (triggerJSON, error) {
		if err != nil {
			return triggerJSON{}, err
		}
		return a.toTrigger(c, t), nil
	}
}

func (a *API) toTrigger(c *call, t *trigger.Trigger) triggerJSON {
	out := triggerJSON{
		ID: t.ID, Token: t.Token, Description: t.Description, CreatedAt: toStamp(t.CreatedAt), UpdatedAt: toStamp(t.UpdatedAt), LastUsed: toStampOrNull(t.LastUsed),
	}
	if t.Owner != nil {
		u := toUserPublic(c.site, t.Owner, a.Now())
		out.Owner = &u
	}
	return out
}
