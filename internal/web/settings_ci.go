package web

import (
	"strconv"
	"strings"

	"svc/internal/ci/jobtoken"
	"svc/internal/errs"
	"svc/internal/project"
)

func (w *Web) ciSettingsPages() {
	w.projectPage("GET settings/ci_cd", signedIn, ofProject(w.ciSettings))
	w.projectPage("POST settings/ci_cd", signedIn, ofProject(w.saveCISettings))
	w.projectPage("POST settings/ci_cd/catalog", signedIn, ofProject(w.listInCatalog))
	w.projectPage("POST settings/ci_cd/limit", signedIn, ofProject(w.limitJobTokens))
	w.projectPage("POST settings/ci_cd/allow", signedIn, ofProject(w.allowJobTokens))
	w.projectPage("POST settings/ci_cd/disallow", signedIn, ofProject(w.disallowJobTokens))
}

type ciSettingsPage struct {
	setup
	Form       form
	Limited    bool // only job tokens of listed projects have access
	Projects   []*project.Project
	Groups     []*project.Namespace
	Strategies []option
	Roles      []option
	InCatalog  bool // the project is in the CI/CD Catalog
}

func (ciSettingsPage) view() string    { return "project/settings_ci" }
func (p ciSettingsPage) title() string { return "CI/CD · " + p.Name() }

func (w *Web) ciSettings(v *visit, in project.Place) error { return w.showCISettings(v, in, form{}) }

func (w *Web) showCISettings(v *visit, in project.Place, f form) error {
	s, err := w.setup(v, in, "ci_cd")
	if err != nil {
		return err
	}
	if f.Values == nil || f.Values.Get("build_timeout") == "" {
		f.Values = ciForm(s.P.Project.Settings, f.Get("target")).Values
	}
	f.only("build_timeout", "ci_config_path", "ci_default_git_depth", "build_git_strategy", "ci_pipeline_variables_minimum_override_role", "target")
	p := ciSettingsPage{setup: s, Form: f,
		Strategies: []option{{"fetch", "git fetch"}, {"clone", "git clone"}},
	}
	names := map[string]string{"developer": "Developers and above", "maintainer": "Maintainers and above", "owner": "Owners", "no_one_allowed": "No one allowed"}
	for _, role := range s.may.OverrideRoles() {
		p.Roles = append(p.Roles, option{role, names[role]})
	}
	if p.InCatalog, err = w.Catalog.Listed(v, s.P.Project.ID); err != nil {
		return err
	}
	scope, err := w.CI.JobTokens.Scope(v, v.actor, in.Ref)
	if err != nil {
		return err
	}
	p.Limited = scope.Inbound
	projects, err := w.CI.JobTokens.AllowedProjects(v, v.actor, in.Ref, allOf())
	if err != nil {
		return err
	}
	groups, err := w.CI.JobTokens.AllowedGroups(v, v.actor, in.Ref, allOf())
	if err != nil {
		return err
	}
	p.Projects, p.Groups = projects.Items, groups.Items
	return v.showForm(p, f)
}

// ciForm returns a form with the current settings.
func ciForm(c project.Settings, target string) form {
	return filled("build_timeout", strconv.FormatInt(c.BuildTimeout/60, 10), "ci_config_path", c.CIConfigPath,
		"ci_default_git_depth", strconv.FormatInt(c.CIDefaultGitDepth, 10), "build_git_strategy", c.BuildGitStrategy,
		"ci_pipeline_variables_minimum_override_role", c.CIPipelineVariablesMinimumOverrideRole,
		"auto_cancel", on(c.AutoCancelPendingPipelines == "enabled"), "keep_latest_artifact", on(c.KeepLatestArtifact), "public_jobs", on(c.PublicJobs),
		"shared_runners_enabled", on(c.SharedRunnersEnabled), "group_runners_enabled", on(c.GroupRunnersEnabled),
		"ci_forward_deployment_enabled", on(c.CIForwardDeploymentEnabled), "ci_separated_caches", on(c.CISeparatedCaches), "target", target)
}

// listInCatalog adds a project to the CI/CD Catalog, or removes it.
func (w *Web) listInCatalog(v *visit, in project.Place) error {
	on, done := v.ticked("on"), "The project was removed from the CI/CD Catalog."
	if on {
		done = "The project was added to the CI/CD Catalog. Its next release is published there."
	}
	return v.redirectWithFlash(w.Catalog.List(v, v.actor, in.Ref, on), done, pathTo(string(in.Ref))+"/-/settings/ci_cd")
}

func (w *Web) saveCISettings(v *visit, in project.Place) error {
	f := v.sent()
	timeout, depth := v.whole(&f, "build_timeout"), v.whole(&f, "ci_default_git_depth")
	if f.bad() {
		return w.showCISettings(v, in, f)
	}
	_, err := w.Projects.Update(v, v.actor, in.Ref, project.Change{Fields: project.Fields{Settings: func(c *project.Settings) {
		c.BuildTimeout, c.CIDefaultGitDepth, c.CIConfigPath = timeout*60, depth, v.text("ci_config_path")
		c.BuildGitStrategy, c.CIPipelineVariablesMinimumOverrideRole = v.text("build_git_strategy"), v.text("ci_pipeline_variables_minimum_override_role")
		c.AutoCancelPendingPipelines = map[bool]string{true: "enabled", false: "disabled"}[v.ticked("auto_cancel")]
		c.KeepLatestArtifact, c.PublicJobs = v.ticked("keep_latest_artifact"), v.ticked("public_jobs")
		c.SharedRunnersEnabled, c.GroupRunnersEnabled = v.ticked("shared_runners_enabled"), v.ticked("group_runners_enabled")
		c.CIForwardDeploymentEnabled, c.CISeparatedCaches = v.ticked("ci_forward_deployment_enabled"), v.ticked("ci_separated_caches")
	}}})
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showCISettings(v, in, f)
	}
	return v.done("The settings were saved.", settingsOf(in, "ci_cd"))
}

func (w *Web) limitJobTokens(v *visit, in project.Place) error {
	limit := v.ticked("limit")
	done := map[bool]string{true: "Only job tokens of projects on the allowlist have access.", false: "Job tokens of all projects have access."}[limit]
	return v.redirectWithFlash(w.CI.JobTokens.Limit(v, v.actor, in.Ref, limit), done, settingsOf(in, "ci_cd"))
}

// allowJobTokens allows the job tokens of the project or group that was
// entered.
func (w *Web) allowJobTokens(v *visit, in project.Place) error {
	f, path := v.sent(), project.Ref(strings.Trim(v.text("target"), "/"))
	var a jobtoken.Allowed
	p, err := w.Projects.Require(v, v.actor, path, project.NoAccess)
	if err == nil {
		a.ProjectID = p.ID
	} else if errs.Is(err, errs.KindNotFound) {
		var g *project.Namespace
		if g, err = w.Projects.RequireGroup(v, v.actor, path, project.NoAccess); err == nil {
			a.GroupID = g.ID
		}
	}
	if err == nil {
		_, err = w.CI.JobTokens.Allow(v, v.actor, in.Ref, a)
	}
	if errs.Is(err, errs.KindNotFound) {
		f.wrong("target", "is not a project or group that you can access")
		return w.showCISettings(v, in, f)
	}
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showCISettings(v, in, f)
	}
	return v.done("Added to the allowlist.", settingsOf(in, "ci_cd"))
}

func (w *Web) disallowJobTokens(v *visit, in project.Place) error {
	var a jobtoken.Allowed
	a.ProjectID, _ = strconv.ParseInt(v.text("project"), 10, 64)
	a.GroupID, _ = strconv.ParseInt(v.text("group"), 10, 64)
	return v.redirectWithFlash(w.CI.JobTokens.Disallow(v, v.actor, in.Ref, a), "Removed from the allowlist.", settingsOf(in, "ci_cd"))
}
