package api

import (
	"time"

	"svc/internal/errs"
	"svc/internal/repo"
)

func (a *API) changelogRoutes() {
	handle(a, "GET /projects/{id}/repository/changelog", readAPI.orNobody(), a.getChangelog, does("Write the section of a version for a changelog"))
	handle(a, "POST /projects/{id}/repository/changelog", writeAPI, a.commitChangelog, status(200), does("Add the section of a version to a changelog file"))
}

// releaseVersion is a semantic version.
type releaseVersion string

// UnmarshalParam reads a version from a request.
func (v *releaseVersion) UnmarshalParam(text string) error {
	if !repo.ValidVersion(text) {
		return errs.Invalid("not a version")
	}
	*v = releaseVersion(text)
	return nil
}

type changelogParams struct {
	projectParams
	Version    releaseVersion `param:"version,required" doc:"A semantic version."`
	From       string         `param:"from" doc:"Where the range of commits begins, itself left out; the tag of the last release before the version unless given."`
	To         string         `param:"to" doc:"Where it ends; the branch unless given."`
	Date       *time.Time     `param:"date" doc:"Of the release; now unless given."`
	Trailer    string         `param:"trailer,nonblank" default:"Changelog" doc:"What commits must have at the end of their messages; the value is their category."`
	ConfigFile string         `param:"config_file" doc:"The path of the configuration in the repository."`
	ConfigRef  string         `param:"config_file_ref" doc:"Where the configuration is; the default branch unless given."`
}

func (p *changelogParams) options(c *call) repo.ChangelogOptions {
	o := repo.ChangelogOptions{
		Version: string(p.Version), From: p.From, To: p.To, Trailer: p.Trailer, ConfigRef: p.ConfigRef, Site: c.site.URL,
		ConfigFiles: []string{"." + c.site.Name + "/changelog_config.yml", ".gitlab/changelog_config.yml"},
	}
	if p.ConfigFile != "" {
		o.ConfigFiles = []string{p.ConfigFile}
	}
	if p.Date != nil {
		o.Date = *p.Date
	}
	return o
}

type changelogJSON struct {
	Notes string `json:"notes"`
}

// getChangelog: https://docs.gitlab.com/api/repositories/#generate-changelog-data
func (a *API) getChangelog(c *call, p changelogParams) (changelogJSON, error) {
	notes, err := a.Repos.Changelog(c, c.actor, p.Project, p.options(c))
	return changelogJSON{notes}, err
}

type commitChangelogParams struct {
	changelogParams
	Branch  string `param:"branch" doc:"The default branch unless given."`
	File    string `param:"file,nonblank" default:"CHANGELOG.md"`
	Message string `param:"message" doc:"Of the commit; says for which version it is unless given."`
}

// doneJSON is success with nothing to tell.
type doneJSON struct{}

// commitChangelog: https://docs.gitlab.com/api/repositories/#add-changelog-data-to-file
func (a *API) commitChangelog(c *call, p commitChangelogParams) (doneJSON, error) {
	if p.Message == "" {
		p.Message = "Add changelog for version " + string(p.Version)
	}
	return doneJSON{}, a.Repos.CommitChangelog(c, c.actor, p.Project, p.options(c), repo.ChangelogCommit{
		Branch: p.Branch, File: p.File, Message: p.Message,
	})
}
