package api

import (
	"svc/internal/bind"
	"svc/internal/mirror"
)

func (a *API) remoteMirrorRoutes() {
	a.tag("Project remote mirrors")
	const all, one = "/projects/{id}/remote_mirrors", "/projects/{id}/remote_mirrors/{mirror_id}"
	handle(a, "GET "+all, readAPI, a.listRemoteMirrors, summary("List all remote mirrors of a project"))
	handle(a, "GET "+one, readAPI, a.getRemoteMirror, summary("Get a remote mirror of a project"))
	handle(a, "GET "+one+"/public_key", readAPI, a.getRemoteMirrorKey, summary("Get the public key of a remote mirror"))
	handle(a, "POST "+all, writeAPI, a.createRemoteMirror, summary("Create a push mirror"))
	handle(a, "PUT "+one, writeAPI, a.updateRemoteMirror, summary("Update a remote mirror"))
	handle(a, "POST "+one+"/sync", writeAPI, a.syncRemoteMirror, status(204), summary("Force push mirror update"))
	handle(a, "DELETE "+one, writeAPI, a.deleteRemoteMirror, summary("Delete a remote mirror"))
}

type remoteMirrorJSON struct {
	ID                     int64         `json:"id"`
	Enabled                bool          `json:"enabled"`
	URL                    string        `json:"url"` // with masked credentials
	UpdateStatus           string        `json:"update_status"`
	LastUpdateAt           *stamp        `json:"last_update_at"`
	LastUpdateStartedAt    *stamp        `json:"last_update_started_at"`
	LastSuccessfulUpdateAt *stamp        `json:"last_successful_update_at"`
	LastError              *string       `json:"last_error"`
	OnlyProtectedBranches  bool          `json:"only_protected_branches"`
	KeepDivergentRefs      bool          `json:"keep_divergent_refs"`
	AuthMethod             string        `json:"auth_method"`
	HostKeys               []hostKeyJSON `json:"host_keys"`
	MirrorBranchRegex      *string       `json:"mirror_branch_regex"`
}

type hostKeyJSON struct {
	Fingerprint string `json:"fingerprint_sha256"`
}

func toRemoteMirror(m *mirror.Mirror) remoteMirrorJSON {
	return remoteMirrorJSON{
		ID: m.ID, Enabled: m.Enabled, URL: m.MaskedURL(), UpdateStatus: string(m.Status), LastUpdateAt: toStampOrNull(m.UpdatedAt),
		LastUpdateStartedAt: toStampOrNull(m.StartedAt), LastSuccessfulUpdateAt: toStampOrNull(m.SucceededAt), LastError: textOrNull(m.LastError),
		OnlyProtectedBranches: m.OnlyProtected, KeepDivergentRefs: m.KeepDiverged, AuthMethod: string(m.AuthMethod), HostKeys: toHostKeys(m),
		MirrorBranchRegex: textOrNull(m.BranchRegex),
	}
}

func toHostKeys(m *mirror.Mirror) []hostKeyJSON {
	list := []hostKeyJSON{}
	for _, f := range m.Fingerprints() {
		list = append(list, hostKeyJSON{f})
	}
	return list
}

type listRemoteMirrorsParams struct {
	projectParams
	pageParams
}

// listRemoteMirrors: https://docs.gitlab.com/api/remote_mirrors/#list-a-projects-remote-mirrors
func (a *API) listRemoteMirrors(c *call, p listRemoteMirrorsParams) (page[remoteMirrorJSON], error) {
	return offsetList(p.pageParams, toRemoteMirror)(a.Mirrors.PushMirrors(c, c.actor, p.Project, p.paging()))
}

type remoteMirrorParams struct {
	projectParams
	ID int64 `param:"mirror_id"`
}

// getRemoteMirror: https://docs.gitlab.com/api/remote_mirrors/#get-a-single-projects-remote-mirror
func (a *API) getRemoteMirror(c *call, p remoteMirrorParams) (remoteMirrorJSON, error) {
	return presentAs(toRemoteMirror)(a.Mirrors.PushMirror(c, c.actor, p.Project, p.ID))
}

type publicKeyJSON struct {
	PublicKey string `json:"public_key"`
}

// getRemoteMirrorKey: https://docs.gitlab.com/api/remote_mirrors/#get-a-single-projects-remote-mirror-public-key
func (a *API) getRemoteMirrorKey(c *call, p remoteMirrorParams) (publicKeyJSON, error) {
	key, err := a.Mirrors.PublicKey(c, c.actor, p.Project, p.ID)
	return publicKeyJSON{key}, err
}

// remoteMirrorFields are the attributes of a mirror for create and update.
type remoteMirrorFields struct {
	Enabled       *bool              `param:"enabled" doc:"Whether the mirror is updated."`
	OnlyProtected *bool              `param:"only_protected_branches" doc:"Whether only protected branches are mirrored."`
	KeepDivergent *bool              `param:"keep_divergent_refs" doc:"Whether refs that have diverged are skipped."`
	BranchRegex   bind.Opt[string]   `param:"mirror_branch_regex" doc:"Regular expression (RE2) of the branches to mirror. Not with only_protected_branches."`
	AuthMethod    *string            `param:"auth_method" enum:"ssh_public_key,password" doc:"Authentication method."`
	HostKeys      bind.Opt[[]string] `param:"host_keys" max:"10" doc:"Public host keys of the SSH server, as in a known_hosts file."`
}

func (f remoteMirrorFields) fields() mirror.Fields {
	return mirror.Fields{
		Enabled: f.Enabled, OnlyProtected: f.OnlyProtected, KeepDiverged: f.KeepDivergent, BranchRegex: sent(&f.BranchRegex), AuthMethod: f.AuthMethod,
		HostKeys: sent(&f.HostKeys),
	}
}

type createRemoteMirrorParams struct {
	projectParams
	URL string `param:"url,required" doc:"URL of the repository to push to, which may contain credentials: http, https, ssh or git."`
	remoteMirrorFields
}

// createRemoteMirror: https://docs.gitlab.com/api/remote_mirrors/#create-a-push-mirror
func (a *API) createRemoteMirror(c *call, p createRemoteMirrorParams) (remoteMirrorJSON, error) {
	f := p.fields()
	f.URL = &p.URL
	return presentAs(toRemoteMirror)(a.Mirrors.CreatePushMirror(c, c.actor, p.Project, f))
}

type updateRemoteMirrorParams struct {
	remoteMirrorParams
	remoteMirrorFields
}

// updateRemoteMirror: https://docs.gitlab.com/api/remote_mirrors/#update-a-remote-mirrors-attributes
func (a *API) updateRemoteMirror(c *call, p updateRemoteMirrorParams) (remoteMirrorJSON, error) {
	return presentAs(toRemoteMirror)(a.Mirrors.UpdatePushMirror(c, c.actor, p.Project, p.ID, p.fields()))
}

// syncRemoteMirror: https://docs.gitlab.com/api/remote_mirrors/#force-push-mirror-update
func (a *API) syncRemoteMirror(c *call, p remoteMirrorParams) (none, error) {
	return none{}, a.Mirrors.SyncPushMirror(c, c.actor, p.Project, p.ID)
}

// deleteRemoteMirror: https://docs.gitlab.com/api/remote_mirrors/#delete-a-remote-mirror
func (a *API) deleteRemoteMirror(c *call, p remoteMirrorParams) (none, error) {
	return none{}, a.Mirrors.DeletePushMirror(c, c.actor, p.Project, p.ID)
}
