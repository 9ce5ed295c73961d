package api

import (
	"svc/internal/plan"
	"svc/internal/project"
)

func (a *API) projectTemplateRoutes() {
	a.tag("Project templates")
	const at = "/projects/{id}/templates/{type}"
	handle(a, "GET "+at, readAPI.orAnonymous(), a.listProjectTemplates, summary("List all templates of a particular type"))
	handle(a, "GET "+at+"/{name}", readAPI.orAnonymous(), a.getProjectTemplate, summary("Get one template of a particular type"))
}

type projectTemplatesParams struct {
	projectParams
	Type string `param:"type" enum:"issues,merge_requests" doc:"Type of the template."`
}

func (p *projectTemplatesParams) kind() plan.Kind {
	if p.Type == "merge_requests" {
		return plan.MergeKind
	}
	return plan.IssueKind
}

// listProjectTemplates: https://docs.gitlab.com/api/project_templates/#get-all-templates-of-a-particular-type
func (a *API) listProjectTemplates(c *call, p projectTemplatesParams) ([]templateKeyJSON, error) {
	list, err := a.Plan.DescriptionTemplates(c, c.actor, p.Project, p.kind())
	if err != nil {
		return nil, err
	}
	return mapped(list, func(name string) templateKeyJSON { return templateKeyJSON{name, name} }), nil
}

type projectTemplateParams struct {
	projectTemplatesParams
	Name   string `param:"name" doc:"Key of the template."`
	Source *int64 `param:"source_template_project_id" doc:"ID of the project that has the template. Default is the project itself."`
}

// getProjectTemplate: https://docs.gitlab.com/api/project_templates/#get-one-template-of-a-particular-type
func (a *API) getProjectTemplate(c *call, p projectTemplateParams) (templateJSON, error) {
	from := p.Project
	if p.Source != nil {
		if _, err := a.Projects.Require(c, c.actor, p.Project, project.NoAccess); err != nil {
			return templateJSON{}, err
		}
		from = project.RefTo(*p.Source)
	}
	text, err := a.Plan.DescriptionTemplate(c, c.actor, from, p.kind(), p.Name)
	return templateJSON{p.Name, text}, err
}
