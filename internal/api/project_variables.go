package api

import (
	"svc/internal/ci/variable"
)

// placeVariableRoutes adds the routes of project and group variables.
func (a *API) placeVariableRoutes() {
	for _, in := range []struct {
		path, kind, tag string
		group           bool
	}{{"/projects/{id}", "project", "Project variables", false}, {"/groups/{id}", "group", "Group variables", true}} {
		a.tag(in.tag)
		m := parentEndpoints{a, in.group}
		several := response(409, "Several variables have this key. Use filter[environment_scope].", messageJSON{})
		handle(a, "GET "+in.path+"/variables", readAPI, m.listVariables, summary("List "+in.kind+" variables"))
		handle(a, "GET "+in.path+"/variables/{key}", readAPI, m.getVariable, several, summary("Get a "+in.kind+" variable"))
		handle(a, "POST "+in.path+"/variables", writeAPI, m.createVariable, summary("Create a "+in.kind+" variable"))
		handle(a, "PUT "+in.path+"/variables/{key}", writeAPI, m.updateVariable, several, summary("Update a "+in.kind+" variable"))
		handle(a, "DELETE "+in.path+"/variables/{key}", writeAPI, m.deleteVariable, several, summary("Delete a "+in.kind+" variable"))
	}
}

type placeVariablesParams struct {
	placeParams
	pageParams
}

// listVariables: https://docs.gitlab.com/api/project_level_variables/#list-project-variables
func (m parentEndpoints) listVariables(c *call, p placeVariablesParams) (page[placeVariableJSON], error) {
	list, err := m.api.CI.Variables.List(c, c.actor, m.at(p.Ref), p.paging())
	if err != nil {
		return page[placeVariableJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(v variable.Variable) placeVariableJSON { return toPlaceVariable(&v) }), nil
}

type placeVariableParams struct {
	placeParams
	Key    string            `param:"key"`
	Filter map[string]string `param:"filter" doc:"Use filter[environment_scope] to select one of several variables with the same key."`
}

// scope returns the environment scope that selects a variable.
func (p *placeVariableParams) scope() *string {
	if scope, ok := p.Filter["environment_scope"]; ok {
		return &scope
	}
	return nil
}

// getVariable: https://docs.gitlab.com/api/project_level_variables/#get-a-single-variable
func (m parentEndpoints) getVariable(c *call, p placeVariableParams) (placeVariableJSON, error) {
	return presentAs(toPlaceVariable)(m.api.CI.Variables.Get(c, c.actor, m.at(p.Ref), p.Key, p.scope()))
}

type placeVariableFieldParams struct {
	Description *string        `param:"description"`
	Type        *variable.Type `param:"variable_type" enum:"env_var,file"`
	Protected   *bool          `param:"protected" doc:"Whether the variable is protected: only passed to jobs of protected branches and tags."`
	Masked      *bool          `param:"masked" doc:"Whether the value is masked in job logs."`
	Raw         *bool          `param:"raw" doc:"Whether the value is treated as a raw string and not expanded."`
	Scope       *string        `param:"environment_scope" doc:"Environment scope of the variable; * is a wildcard."`
}

func (p *placeVariableFieldParams) change() variable.Change {
	return variable.Change{Description: p.Description, Type: p.Type, Protected: p.Protected, Masked: p.Masked, Raw: p.Raw, Scope: p.Scope}
}

type createPlaceVariableParams struct {
	placeParams
	Key    string `param:"key,required" doc:"Key of the variable: at most 255 letters, digits and underscores."`
	Value  string `param:"value,required,blank" secret:"true" doc:"Value of the variable, at most 10,000 characters."`
	Hidden bool   `param:"masked_and_hidden" doc:"Whether the value is masked in job logs and hidden in the API and the settings."`
	placeVariableFieldParams
}

// createVariable: https://docs.gitlab.com/api/project_level_variables/#create-a-variable
func (m parentEndpoints) createVariable(c *call, p createPlaceVariableParams) (placeVariableJSON, error) {
	change := p.change()
	change.Value, change.Hidden = &p.Value, &p.Hidden
	return presentAs(toPlaceVariable)(m.api.CI.Variables.Create(c, c.actor, m.at(p.Ref), p.Key, change))
}

type updatePlaceVariableParams struct {
	placeVariableParams
	Value *string `param:"value" secret:"true" doc:"Value of the variable, at most 10,000 characters."`
	placeVariableFieldParams
}

// updateVariable: https://docs.gitlab.com/api/project_level_variables/#update-a-variable
func (m parentEndpoints) updateVariable(c *call, p updatePlaceVariableParams) (placeVariableJSON, error) {
	change := p.change()
	change.Value = p.Value
	return presentAs(toPlaceVariable)(m.api.CI.Variables.Update(c, c.actor, m.at(p.Ref), p.Key, p.scope(), change))
}

// deleteVariable: https://docs.gitlab.com/api/project_level_variables/#delete-a-variable
func (m parentEndpoints) deleteVariable(c *call, p placeVariableParams) (none, error) {
	return none{}, m.api.CI.Variables.Delete(c, c.actor, m.at(p.Ref), p.Key, p.scope(), c.unmodifiedSince())
}

type placeVariableJSON struct {
	Type        string  `json:"variable_type"`
	Key         string  `json:"key"`
	Value       *string `json:"value"` // null if it is hidden
	Hidden      bool    `json:"hidden"`
	Protected   bool    `json:"protected"`
	Masked      bool    `json:"masked"`
	Raw         bool    `json:"raw"`
	Scope       string  `json:"environment_scope"`
	Description *string `json:"description"`
}

func toPlaceVariable(v *variable.Variable) placeVariableJSON {
	out := placeVariableJSON{
		Type: string(v.Type), Key: v.Key, Hidden: v.Hidden, Protected: v.Protected, Masked: v.Masked, Raw: v.Raw, Scope: v.Scope, Description: v.Description,
	}
	if !v.Hidden {
		out.Value = &v.Value
	}
	return out
}
