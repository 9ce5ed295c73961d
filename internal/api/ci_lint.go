package api

import (
	"cmp"

	"svc/internal/ci"
	"svc/internal/ci/config"
)

func (a *API) ciLintRoutes() {
	a.tag("CI Lint")
	handle(a, "GET /projects/{id}/ci/lint", readAPI.orAnonymous(), a.lintFile, summary("Validate the CI/CD configuration of a project"))
	handle(a, "POST /projects/{id}/ci/lint", writeAPI, a.lintContent, status(200), summary("Validate sample CI/CD configuration"))
}

type lintFileParams struct {
	projectParams
	ContentRef  string `param:"content_ref" aliases:"sha" doc:"Commit, branch or tag that contains the configuration file."`
	DryRun      bool   `param:"dry_run" doc:"Simulate the creation of a pipeline."`
	DryRunRef   string `param:"dry_run_ref" aliases:"ref" doc:"Branch or tag for the simulated pipeline."`
	IncludeJobs bool   `param:"include_jobs"`
}

// lintFile: https://docs.gitlab.com/api/lint/#validate-a-projects-cicd-configuration
func (a *API) lintFile(c *call, p lintFileParams) (lintJSON, error) {
	r, err := a.CI.Lint(c, c.actor, p.Project, ci.LintRequest{At: p.ContentRef, DryRun: p.DryRun, Ref: p.DryRunRef})
	return a.presentLint(r, p.IncludeJobs, err)
}

type lintContentParams struct {
	projectParams
	Content     string `param:"content,required,blank" doc:"CI/CD configuration."`
	DryRun      bool   `param:"dry_run" doc:"Simulate the creation of a pipeline."`
	Ref         string `param:"ref" doc:"Branch or tag for the simulated pipeline."`
	IncludeJobs bool   `param:"include_jobs"`
}

// lintContent: https://docs.gitlab.com/api/lint/#validate-sample-cicd-configuration
func (a *API) lintContent(c *call, p lintContentParams) (lintJSON, error) {
	r, err := a.CI.Lint(c, c.actor, p.Project, ci.LintRequest{Content: &p.Content, DryRun: p.DryRun, Ref: p.Ref})
	return a.presentLint(r, p.IncludeJobs, err)
}

type lintJSON struct {
	Valid      bool           `json:"valid"`
	Errors     []string       `json:"errors"`
	Warnings   []string       `json:"warnings"`
	MergedYAML *string        `json:"merged_yaml"`
	Includes   []includeJSON  `json:"includes"`
	Jobs       *[]lintJobJSON `json:"jobs,omitempty"`
	// Places is an addition to the public API: the position of each error.
	Places []lintPlaceJSON `json:"error_locations"`
}

type lintPlaceJSON struct {
	File   *string `json:"file"`
	Line   *int    `json:"line"`
	Column *int    `json:"column"`
	Key    *string `json:"key"`
}

func toLintPlace(e *config.Error) lintPlaceJSON {
	out := lintPlaceJSON{File: textOrNull(e.File), Key: textOrNull(e.Key)}
	if e.Line > 0 {
		out.Line, out.Column = &e.Line, &e.Column
	}
	return out
}

type includeJSON struct {
	Type           string           `json:"type"`
	Location       string           `json:"location"`
	Blob           *string          `json:"blob"`
	Raw            *string          `json:"raw"`
	Extra          includeExtraJSON `json:"extra"`
	ContextProject *string          `json:"context_project"`
	ContextSHA     *string          `json:"context_sha"`
}

type includeExtraJSON struct {
	Project string `json:"project,omitempty"`
	Ref     string `json:"ref,omitempty"`
	JobName string `json:"job_name,omitempty"`
}

type lintJobJSON struct {
	Name         string          `json:"name"`
	Stage        string          `json:"stage"`
	BeforeScript []string        `json:"before_script"`
	Script       []string        `json:"script"`
	AfterScript  []string        `json:"after_script"`
	TagList      []string        `json:"tag_list"`
	Only         *lintPolicyJSON `json:"only"`
	Except       *lintPolicyJSON `json:"except"`
	Environment  *string         `json:"environment"`
	When         string          `json:"when"`
	AllowFailure bool            `json:"allow_failure"`
	Needs        []lintNeedJSON  `json:"needs"`
}

type lintPolicyJSON struct {
	Refs      []string `json:"refs,omitempty"`
	Variables []string `json:"variables,omitempty"`
	Changes   []string `json:"changes,omitempty"`
}

type lintNeedJSON struct {
	Name      string `json:"name"`
	Artifacts bool   `json:"artifacts"`
	Optional  bool   `json:"optional"`
}

func (a *API) presentLint(r *config.LintResult, jobs bool, err error) (lintJSON, error) {
	if err != nil {
		return lintJSON{}, err
	}
	out := lintJSON{
		Valid: r.Valid(), Errors: r.Errors.Messages(), Warnings: r.Warnings.Messages(), MergedYAML: textOrNull(r.MergedYAML),
		Includes: mapped(r.Included, a.toInclude), Places: mapped(r.Errors, toLintPlace),
	}
	if jobs {
		list := mapped(r.Jobs, toLintJob)
		out.Jobs = &list
	}
	return out, nil
}

func (a *API) toInclude(i config.Included) includeJSON {
	out := includeJSON{
		Type: i.Type, Location: i.Location, Extra: includeExtraJSON{i.Project, i.Ref, i.Job},
		ContextProject: textOrNull(i.From.Project), ContextSHA: textOrNull(i.From.Commit),
	}
	if i.At.Project != "" && i.At.Commit != "" {
		in := a.Site.URL + "/" + i.At.Project + "/-/"
		path := cmp.Or(i.Path, i.Location)
		blob, raw := in+"blob/"+i.At.Commit+"/"+path, in+"raw/"+i.At.Commit+"/"+path
		out.Blob, out.Raw = &blob, &raw
	}
	return out
}

func toLintJob(j config.LintJob) lintJobJSON {
	return lintJobJSON{
		Name: j.Name, Stage: j.Stage, BeforeScript: listOf(j.BeforeScript), Script: listOf(j.Script), AfterScript: listOf(j.AfterScript),
		TagList: listOf(j.Tags), Only: toLintPolicy(j.Only), Except: toLintPolicy(j.Except), Environment: textOrNull(j.Environment),
		When: string(j.When), AllowFailure: j.AllowFailure,
		Needs: mapped(j.Needs, func(n config.Need) lintNeedJSON { return lintNeedJSON{n.Job, n.Artifacts, n.Optional} }),
	}
}

func toLintPolicy(p *config.LintPolicy) *lintPolicyJSON {
	if p == nil {
		return nil
	}
	return &lintPolicyJSON{p.Refs, p.Variables, p.Changes}
}

// listOf returns a list that is never null.
func listOf(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
