package api

import (
	"svc/internal/db"
	"svc/internal/filetemplate"
)

func (a *API) fileTemplateRoutes() {
	for _, k := range []struct {
		kind      filetemplate.Kind
		tag, name string
	}{
		{filetemplate.Gitignores, "Gitignore templates", "gitignore"}, {filetemplate.Dockerfiles, "Dockerfile templates", "Dockerfile"},
	} {
		a.tag(k.tag)
		t := fileTemplates{k.kind}
		at := "/templates/" + string(k.kind)
		handle(a, "GET "+at, readAPI.orAnonymous(), t.list, summary("List all "+k.name+" templates"))
		handle(a, "GET "+at+"/{key}", readAPI.orAnonymous(), t.get, summary("Get a single "+k.name+" template"))
	}
	a.tag("License templates")
	handle(a, "GET /templates/licenses", readAPI.orAnonymous(), a.listLicenses, summary("List all license templates"))
	handle(a, "GET /templates/licenses/{key}", readAPI.orAnonymous(), a.getLicense, summary("Get a single license template"))
}

// fileTemplates are the endpoints of one kind of templates.
type fileTemplates struct{ kind filetemplate.Kind }

// list: https://docs.gitlab.com/api/templates/gitignores/#get-all-gitignore-templates
func (t fileTemplates) list(_ *call, p pageParams) (page[templateKeyJSON], error) {
	return offsetPage(p, db.SlicePage(filetemplate.Keys(t.kind), p.paging()), func(key string) templateKeyJSON { return templateKeyJSON{key, key} }), nil
}

// get: https://docs.gitlab.com/api/templates/gitignores/#get-a-single-gitignore-template
func (t fileTemplates) get(_ *call, p templateParams) (templateJSON, error) {
	one, err := filetemplate.Get(t.kind, p.Key)
	return templateJSON{one.Name, one.Content}, err
}

type licenseTemplateJSON struct {
	Key         string   `json:"key"`
	Name        string   `json:"name"`
	Nickname    *string  `json:"nickname"`
	Featured    bool     `json:"featured"`
	Popular     bool     `json:"popular"`
	URL         string   `json:"html_url"`
	Source      string   `json:"source_url"`
	Description string   `json:"description"`
	Conditions  []string `json:"conditions"`
	Permissions []string `json:"permissions"`
	Limitations []string `json:"limitations"`
	Content     string   `json:"content"`
}

func toLicense(l filetemplate.License) licenseTemplateJSON {
	return licenseTemplateJSON{
		Key: l.Key, Name: l.Name, Nickname: textOrNull(l.Nickname), Featured: l.Popular, Popular: l.Popular, URL: l.URL, Source: l.Source,
		Description: l.Description, Conditions: append([]string{}, l.Conditions...), Permissions: l.Permissions, Limitations: l.Limitations, Content: l.Content,
	}
}

type licensesParams struct {
	pageParams
	Popular bool `param:"popular" doc:"Only popular licenses."`
}

// listLicenses: https://docs.gitlab.com/api/templates/licenses/#list-license-templates
func (a *API) listLicenses(_ *call, p licensesParams) (page[licenseTemplateJSON], error) {
	all, err := filetemplate.AllLicenses()
	if err != nil {
		return page[licenseTemplateJSON]{}, err
	}
	var list []filetemplate.License
	for _, l := range all {
		if l.Popular || !p.Popular {
			list = append(list, l)
		}
	}
	return offsetPage(p.pageParams, db.SlicePage(list, p.paging()), toLicense), nil
}

type licenseParams struct {
	templateParams
	Project  string `param:"project" max:"255" doc:"Name of the project in the text."`
	Fullname string `param:"fullname" max:"255" doc:"Copyright holder in the text. Default: the name of the caller."`
}

// getLicense: https://docs.gitlab.com/api/templates/licenses/#single-license-template
func (a *API) getLicense(c *call, p licenseParams) (licenseTemplateJSON, error) {
	l, err := filetemplate.FindLicense(p.Key)
	if err != nil {
		return licenseTemplateJSON{}, err
	}
	holder := p.Fullname
	if holder == "" {
		holder = c.actor.Name
	}
	l.Content = filetemplate.Fill(l.Content, a.Now().Year(), holder, p.Project)
	return toLicense(l), nil
}
