package api

import (
	"time"

	"svc/internal/errs"
	"svc/internal/repo"
	"svc/internal/semver"
)

func (a *API) changelogRoutes() {
	a.tag("Changelog")
	handle(a, "GET /projects/{id}/repository/changelog", readAPI.orAnonymous(), a.getChangelog, summary("Generate changelog data"))
	handle(a, "POST /projects/{id}/repository/changelog", writeAPI, a.commitChangelog, status(200), summary("Add changelog data to a changelog file"))
}

// releaseVersion is a semantic version.
type releaseVersion string

// UnmarshalParam parses a version.
func (v *releaseVersion) UnmarshalParam(text string) error {
	if !semver.Valid(text) {
		return errs.Invalid("not a version")
	}
	*v = releaseVersion(text)
	return nil
}

type changelogParams struct {
	projectParams
	Version    releaseVersion `param:"version,required" doc:"Semantic version of the release."`
	From       string         `param:"from" doc:"Start of the commit range, exclusive. Default is the tag of the previous release."`
	To         string         `param:"to" doc:"End of the commit range, inclusive. Default is the branch."`
	Date       *time.Time     `param:"date" doc:"Date and time of the release. Default is the current time."`
	Trailer    string         `param:"trailer,nonblank" default:"Changelog" doc:"Git trailer that selects commits; its value is the category."`
	ConfigFile string         `param:"config_file" doc:"Path of the changelog configuration file in the repository."`
	ConfigRef  string         `param:"config_file_ref" doc:"Git reference of the configuration file. Default is the default branch."`
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
	Branch  string `param:"branch" doc:"Branch to commit to. Default is the default branch."`
	File    string `param:"file,nonblank" default:"CHANGELOG.md"`
	Message string `param:"message" doc:"Commit message. Default names the version."`
}

// doneJSON is an empty success response.
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
