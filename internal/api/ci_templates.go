package api

import "svc/internal/ci"

func (a *API) ciTemplateRoutes() {
	a.tag("CI templates")
	handle(a, "GET /templates/gitlab_ci_ymls", readAPI.orAnonymous(), a.listCITemplates, summary("List GitLab CI YAML templates"))
	handle(a, "GET /templates/gitlab_ci_ymls/{key}", readAPI.orAnonymous(), a.getCITemplate, summary("Get a GitLab CI YAML template"))
}

type templateKeyJSON struct {
	Key  string `json:"key"`
	Name string `json:"name"`
}

// listCITemplates: https://docs.gitlab.com/api/templates/gitlab_ci_ymls/#list-all-gitlab-ciyml-templates
func (a *API) listCITemplates(c *call, p pageParams) (page[templateKeyJSON], error) {
	list, err := a.CI.Templates(c, p.paging())
	if err != nil {
		return page[templateKeyJSON]{}, err
	}
	return offsetPage(p, list, func(t ci.Template) templateKeyJSON { return templateKeyJSON{t.Key, t.Key} }), nil
}

type templateParams struct {
	Key string `param:"key"`
}

type templateJSON struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// getCITemplate: https://docs.gitlab.com/api/templates/gitlab_ci_ymls/#retrieve-a-single-gitlab-ciyml-template
func (a *API) getCITemplate(c *call, p templateParams) (templateJSON, error) {
	t, err := a.CI.Template(c, p.Key)
	return templateJSON{t.Key, t.Content}, err
}
