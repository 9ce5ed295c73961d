package api

import "svc/internal/ci/variable"

func (a *API) instanceVariableRoutes() {
	a.tag("Instance variables")
	handle(a, "GET /admin/ci/variables", readAPI, a.listInstanceVariables, onlySelfManaged, summary("List instance variables"))
	handle(a, "GET /admin/ci/variables/{key}", readAPI, a.getInstanceVariable, onlySelfManaged, summary("Get an instance variable"))
	handle(a, "POST /admin/ci/variables", writeAPI, a.createInstanceVariable, onlySelfManaged, summary("Create an instance variable"))
	handle(a, "PUT /admin/ci/variables/{key}", writeAPI, a.updateInstanceVariable, onlySelfManaged, summary("Update an instance variable"))
	handle(a, "DELETE /admin/ci/variables/{key}", writeAPI, a.deleteInstanceVariable, onlySelfManaged, summary("Delete an instance variable"))
}

// listInstanceVariables: https://docs.gitlab.com/api/instance_level_ci_variables/#list-all-instance-variables
func (a *API) listInstanceVariables(c *call, p pageParams) (page[variableJSON], error) {
	list, err := a.CI.Variables.ListInstance(c, c.actor, p.paging())
	if err != nil {
		return page[variableJSON]{}, err
	}
	return offsetPage(p, list, func(v variable.Variable) variableJSON { return toVariable(&v) }), nil
}

type variableParams struct {
	Key string `param:"key"`
}

// getInstanceVariable: https://docs.gitlab.com/api/instance_level_ci_variables/#show-instance-variable-details
func (a *API) getInstanceVariable(c *call, p variableParams) (variableJSON, error) {
	return presentAs(toVariable)(a.CI.Variables.GetInstance(c, c.actor, p.Key))
}

type variableFieldParams struct {
	Value       string         `param:"value,required,blank" secret:"true" doc:"Value of the variable, at most 10,000 characters."`
	Description *string        `param:"description"`
	Type        *variable.Type `param:"variable_type" enum:"env_var,file"`
	Protected   *bool          `param:"protected"`
	Masked      *bool          `param:"masked"`
	Raw         *bool          `param:"raw" doc:"Whether the value is treated as a raw string and not expanded."`
}

func (p *variableFieldParams) change() variable.Change {
	return variable.Change{Value: &p.Value, Description: p.Description, Type: p.Type, Protected: p.Protected, Masked: p.Masked, Raw: p.Raw}
}

type createVariableParams struct {
	Key string `param:"key,required" doc:"Key of the variable: at most 255 letters, digits and underscores."`
	variableFieldParams
}

// createInstanceVariable: https://docs.gitlab.com/api/instance_level_ci_variables/#create-instance-variable
func (a *API) createInstanceVariable(c *call, p createVariableParams) (variableJSON, error) {
	return presentAs(toVariable)(a.CI.Variables.CreateInstance(c, c.actor, p.Key, p.change()))
}

type updateVariableParams struct {
	variableParams
	variableFieldParams
}

// updateInstanceVariable: https://docs.gitlab.com/api/instance_level_ci_variables/#update-instance-variable
func (a *API) updateInstanceVariable(c *call, p updateVariableParams) (variableJSON, error) {
	return presentAs(toVariable)(a.CI.Variables.UpdateInstance(c, c.actor, p.Key, p.change()))
}

// deleteInstanceVariable: https://docs.gitlab.com/api/instance_level_ci_variables/#remove-instance-variable
func (a *API) deleteInstanceVariable(c *call, p variableParams) (none, error) {
	return none{}, a.CI.Variables.DeleteInstance(c, c.actor, p.Key, c.unmodifiedSince())
}

type variableJSON struct {
	Key         string  `json:"key"`
	Description *string `json:"description"`
	Type        string  `json:"variable_type"`
	Value       string  `json:"value"`
	Protected   bool    `json:"protected"`
	Masked      bool    `json:"masked"`
	Raw         bool    `json:"raw"`
}

func toVariable(v *variable.Variable) variableJSON {
	return variableJSON{v.Key, v.Description, string(v.Type), v.Value, v.Protected, v.Masked, v.Raw}
}
