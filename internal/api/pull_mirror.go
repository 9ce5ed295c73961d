package api

import (
	"svc/internal/bind"
	"svc/internal/mirror"
	"svc/internal/project"
)

func (a *API) pullMirrorRoutes() {
	a.tag("Project pull mirroring")
	const at = "/projects/{id}/mirror/pull"
	handle(a, "GET "+at, readAPI, a.getPullMirror, tier(Premium), summary("Get pull mirror details of a project"))
	handle(a, "PUT "+at, writeAPI, a.updatePullMirror, tier(Premium), summary("Update pull mirroring of a project"))
	handle(a, "POST "+at, writeAPI, a.startPullMirror, tier(Premium), summary("Start the pull mirroring process of a project"))
}

type pullMirrorJSON struct {
	ID                     int64   `json:"id"`
	UpdateStatus           string  `json:"update_status"`
	URL                    string  `json:"url"` // with masked credentials
	LastError              *string `json:"last_error"`
	LastUpdateAt           *stamp  `json:"last_update_at"`
	LastUpdateStartedAt    *stamp  `json:"last_update_started_at"`
	LastSuccessfulUpdateAt *stamp  `json:"last_successful_update_at"`
	Enabled                bool    `json:"enabled"`
	TriggerBuilds          bool    `json:"mirror_trigger_builds"`
	OnlyProtected          bool    `json:"only_mirror_protected_branches"`
	Overwrites             bool    `json:"mirror_overwrites_diverged_branches"`
	BranchRegex            *string `json:"mirror_branch_regex"`
}

func toPullMirror(m *mirror.Mirror) pullMirrorJSON {
	return pullMirrorJSON{
		ID: m.ID, UpdateStatus: string(m.Status), URL: m.MaskedURL(), LastError: textOrNull(m.LastError), LastUpdateAt: toStampOrNull(m.UpdatedAt),
		LastUpdateStartedAt: toStampOrNull(m.StartedAt), LastSuccessfulUpdateAt: toStampOrNull(m.SucceededAt), Enabled: m.Enabled,
		TriggerBuilds: m.TriggerPipelines, OnlyProtected: m.OnlyProtected, Overwrites: !m.KeepDiverged, BranchRegex: textOrNull(m.BranchRegex),
	}
}

// getPullMirror: https://docs.gitlab.com/api/project_pull_mirroring/#get-a-projects-pull-mirror-details
func (a *API) getPullMirror(c *call, p projectParams) (pullMirrorJSON, error) {
	return presentAs(toPullMirror)(a.Mirrors.PullMirror(c, c.actor, p.Project))
}

// pullMirrorFields are the settings of a pull mirror, for the endpoints of pull
// mirrors and of projects.
type pullMirrorFields struct {
	TriggerBuilds *bool            `param:"mirror_trigger_builds" doc:"Whether pulled commits create pipelines."`
	OnlyProtected *bool            `param:"only_mirror_protected_branches" doc:"Whether only protected branches are mirrored."`
	Overwrites    *bool            `param:"mirror_overwrites_diverged_branches" doc:"Whether branches that have diverged are overwritten."`
	BranchRegex   bind.Opt[string] `param:"mirror_branch_regex" doc:"Regular expression (RE2) of the branches to mirror. Not with only_mirror_protected_branches."`
}

func (f *pullMirrorFields) mirrorFields() mirror.Fields {
	fields := mirror.Fields{TriggerPipelines: f.TriggerBuilds, OnlyProtected: f.OnlyProtected, BranchRegex: sent(&f.BranchRegex)}
	if f.Overwrites != nil {
		keep := !*f.Overwrites
		fields.KeepDiverged = &keep
	}
	return fields
}

type updatePullMirrorParams struct {
	projectParams
	Enabled  *bool   `param:"enabled" doc:"Whether the project is mirrored."`
	URL      *string `param:"url" doc:"URL of the repository to pull from: http, https, ssh or git. It may contain credentials."`
	User     *string `param:"auth_user" doc:"Username."`
	Password *string `param:"auth_password" doc:"Password or token."`
	// Additions to the public API.
	AuthMethod *string            `param:"auth_method" enum:"ssh_public_key,password" doc:"Authentication method."`
	HostKeys   bind.Opt[[]string] `param:"host_keys" max:"10" doc:"Public host keys of the SSH server, as in a known_hosts file."`
	pullMirrorFields
}

// updatePullMirror: https://docs.gitlab.com/api/project_pull_mirroring/#configure-pull-mirroring-for-a-project
func (a *API) updatePullMirror(c *call, p updatePullMirrorParams) (pullMirrorJSON, error) {
	f := p.mirrorFields()
	f.Enabled, f.URL, f.User, f.Password, f.AuthMethod, f.HostKeys = p.Enabled, p.URL, p.User, p.Password, p.AuthMethod, sent(&p.HostKeys)
	return presentAs(toPullMirror)(a.Mirrors.SavePullMirror(c, c.actor, p.Project, f))
}

// startPullMirror: https://docs.gitlab.com/api/project_pull_mirroring/#start-the-pull-mirroring-process-for-a-project
func (a *API) startPullMirror(c *call, p projectParams) (accepted, error) {
	return accepted{}, a.Mirrors.StartPull(c, c.actor, p.Project)
}

// projectMirrorParams are the parameters of the project endpoints that configure a
// pull mirror.
type projectMirrorParams struct {
	Mirror *bool `param:"mirror" tier:"premium" doc:"Whether the project is a pull mirror of import_url."`
	pullMirrorFields
}

// given reports whether one of the parameters was sent.
func (p *projectMirrorParams) given() bool {
	return p.Mirror != nil || p.TriggerBuilds != nil || p.OnlyProtected != nil || p.Overwrites != nil || p.BranchRegex.Set
}

// saveMirror applies the pull mirror parameters of a project update.
func (a *API) saveMirror(c *call, p *updateProjectParams) error {
	if !p.given() && p.ImportURL == nil && p.MirrorUserID == nil {
		return nil
	}
	f := p.mirrorFields()
	f.Enabled, f.UserID = p.Mirror, p.MirrorUserID
	if p.ImportURL != nil && *p.ImportURL != "" {
		f.URL = p.ImportURL
	}
	return a.Mirrors.SetProjectMirror(c, c.actor, p.Project, f)
}

// addMirror adds the settings of the pull mirror to the representation of a project.
func (p *projectJSON) addMirror(m *mirror.Mirror, settings bool) {
	if m == nil {
		return
	}
	p.Mirror = true
	if p.ImportStatus != string(project.ImportScheduled) && p.ImportStatus != string(project.ImportStarted) && m.Status != mirror.StatusNone {
		p.ImportStatus = string(m.Status) // the status of the latest update, after the import of the project
	}
	if settings {
		p.ImportError = textOrNull(m.LastError)
		url := m.MaskedURL()
		p.ImportURL, p.MirrorUserID, p.MirrorTriggerBuilds = &url, m.UserID, m.TriggerPipelines
		p.OnlyMirrorProtectedBranches, p.MirrorOverwrites, p.MirrorBranchRegex = m.OnlyProtected, !m.KeepDiverged, textOrNull(m.BranchRegex)
	}
}
