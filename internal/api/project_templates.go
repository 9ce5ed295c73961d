package api

import (
	"svc/internal/ci"
	"svc/internal/db"
	"svc/internal/filetemplate"
	"svc/internal/plan"
	"svc/internal/project"
)

func (a *API) projectTemplateRoutes() {
	a.tag("Project templates")
	const at = "/projects/{id}/templates/{type}"
	handle(a, "GET "+at, readAPI.orAnonymous(), a.listProjectTemplates, summary("List all templates of a particular type"))
	handle(a, "GET "+at+"/{name}", readAPI.orAnonymous(), a.getProjectTemplate, returns(templateJSON{}, licenseTemplateJSON{}), summary("Get one template of a particular type"))
}

type projectTemplatesParams struct {
	projectParams
	Type string `param:"type" enum:"issues,merge_requests,gitignores,dockerfiles,licenses,gitlab_ci_ymls" doc:"Type of the template."`
}

func (p *projectTemplatesParams) kind() plan.Kind {
	if p.Type == "merge_requests" {
		return plan.MergeKind
	}
	return plan.IssueKind
}

// listProjectTemplates: https://docs.gitlab.com/api/project_templates/#get-all-templates-of-a-particular-type
func (a *API) listProjectTemplates(c *call, p projectTemplatesParams) ([]templateKeyJSON, error) {
	if list, ok, err := a.builtinTemplates(c, p); ok || err != nil {
		return list, err
	}
	list, err := a.Plan.DescriptionTemplates(c, c.actor, p.Project, p.kind())
	if err != nil {
		return nil, err
	}
	return mapped(list, func(name string) templateKeyJSON { return templateKeyJSON{name, name} }), nil
}

type projectTemplateParams struct {
	projectTemplatesParams
	Name        string `param:"name" doc:"Key of the template."`
	ProjectName string `param:"project" max:"255" doc:"Name of the project in the text of a license."`
	Fullname    string `param:"fullname" max:"255" doc:"Copyright holder in the text of a license."`
	Source      *int64 `param:"source_template_project_id" doc:"ID of the project that has the template. Default is the project itself."`
}

// getProjectTemplate: https://docs.gitlab.com/api/project_templates/#get-one-template-of-a-particular-type
func (a *API) getProjectTemplate(c *call, p projectTemplateParams) (any, error) {
	if _, ok, err := a.builtinTemplates(c, p.projectTemplatesParams); ok || err != nil {
		if err != nil {
			return nil, err
		}
		return a.builtinTemplate(c, p)
	}
	from := p.Project
	if p.Source != nil {
		if _, err := a.Projects.Require(c, c.actor, p.Project, project.NoAccess); err != nil {
			return nil, err
		}
		from = project.RefTo(*p.Source)
	}
	text, err := a.Plan.DescriptionTemplate(c, c.actor, from, p.kind(), p.Name)
	return templateJSON{p.Name, text}, err
}

// builtinTemplates returns the templates of a type that are the same for all
// projects. It returns false for a type whose templates belong to the project.
func (a *API) builtinTemplates(c *call, p projectTemplatesParams) ([]templateKeyJSON, bool, error) {
	if p.Type == "issues" || p.Type == "merge_requests" {
		return nil, false, nil
	}
	if _, err := a.Projects.Require(c, c.actor, p.Project, project.NoAccess); err != nil {
		return nil, false, err
	}
	switch p.Type {
	case "gitlab_ci_ymls":
		list, err := a.CI.Templates(c, db.Paging{Limit: 1000})
		return mapped(list.Items, func(t ci.Template) templateKeyJSON { return templateKeyJSON{t.Key, t.Key} }), true, err
	case "licenses":
		return mapped(filetemplate.LicenseNames(), func(t filetemplate.Template) templateKeyJSON { return templateKeyJSON{t.Key, t.Name} }), true, nil
	}
	return mapped(filetemplate.Keys(filetemplate.Kind(p.Type)), func(key string) templateKeyJSON { return templateKeyJSON{key, key} }), true, nil
}

func (a *API) builtinTemplate(c *call, p projectTemplateParams) (any, error) {
	switch p.Type {
	case "gitlab_ci_ymls":
		t, err := a.CI.Template(c, p.Name)
		return templateJSON{t.Key, t.Content}, err
	case "licenses":
		return a.getLicense(c, licenseParams{templateParams{p.Name}, p.ProjectName, p.Fullname})
	}
	t, err := filetemplate.Get(filetemplate.Kind(p.Type), p.Name)
	return templateJSON{t.Name, t.Content}, err
}
