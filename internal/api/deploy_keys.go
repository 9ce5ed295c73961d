package api

import (
	"time"

	"svc/internal/bind"
	"svc/internal/project"
	"svc/internal/user"
)

func (a *API) deployKeyRoutes() {
	a.tag("Deploy keys")
	handle(a, "GET /deploy_keys", readAPI, a.listAllDeployKeys, summary("List all deploy keys"))
	handle(a, "POST /deploy_keys", writeAPI, a.createDeployKey, summary("Add an instance deploy key"))
	handle(a, "GET /users/{user_id}/project_deploy_keys", readAPI, a.listUserDeployKeys, summary("List project deploy keys for a user"))
	handle(a, "GET /projects/{id}/deploy_keys", readAPI, a.listDeployKeys, summary("List deploy keys for a project"))
	handle(a, "POST /projects/{id}/deploy_keys", writeAPI, a.addDeployKey, summary("Add a deploy key to a project"))
	handle(a, "GET /projects/{id}/deploy_keys/{key_id}", readAPI, a.getDeployKey, summary("Get a deploy key"))
	handle(a, "PUT /projects/{id}/deploy_keys/{key_id}", writeAPI, a.updateDeployKey, summary("Update a deploy key"))
	handle(a, "DELETE /projects/{id}/deploy_keys/{key_id}", writeAPI, a.removeDeployKey, summary("Delete a deploy key"))
	handle(a, "POST /projects/{id}/deploy_keys/{key_id}/enable", writeAPI, a.enableDeployKey, summary("Enable a deploy key"))
}

type allDeployKeysParams struct {
	Public bool `param:"public" doc:"Return only public deploy keys."`
	pageParams
}

// listAllDeployKeys: https://docs.gitlab.com/api/deploy_keys/#list-all-deploy-keys
func (a *API) listAllDeployKeys(c *call, p allDeployKeysParams) (page[instanceDeployKeyJSON], error) {
	return offsetList(p.pageParams, toInstanceDeployKey)(a.Projects.AllDeployKeys(c, c.actor, p.Public, p.paging()))
}

type newDeployKeyParams struct {
	Title     string     `param:"title,required"`
	Key       string     `param:"key,required" doc:"Public key in the authorized_keys format."`
	ExpiresAt *time.Time `param:"expires_at"`
}

func (p *newDeployKeyParams) key(canPush bool) project.NewDeployKey {
	return project.NewDeployKey{Title: p.Title, Key: p.Key, ExpiresAt: p.ExpiresAt, CanPush: canPush}
}

// createDeployKey: https://docs.gitlab.com/api/deploy_keys/#add-deploy-key
func (a *API) createDeployKey(c *call, p newDeployKeyParams) (instanceDeployKeyJSON, error) {
	k, err := a.Projects.CreatePublicDeployKey(c, c.actor, p.key(false))
	if err != nil {
		return instanceDeployKeyJSON{}, err
	}
	return toInstanceDeployKey(*k), nil
}

type userDeployKeysParams struct {
	User user.Ref `param:"user_id" doc:"ID or username."`
	pageParams
}

// listUserDeployKeys: https://docs.gitlab.com/api/deploy_keys/#list-project-deploy-keys-for-user
func (a *API) listUserDeployKeys(c *call, p userDeployKeysParams) (page[deployKeyJSON], error) {
	return offsetList(p.pageParams, toDeployKey)(a.Projects.UserDeployKeys(c, c.actor, p.User, p.paging()))
}

type listDeployKeysParams struct {
	projectParams
	pageParams
}

// listDeployKeys: https://docs.gitlab.com/api/deploy_keys/#list-deploy-keys-for-project
func (a *API) listDeployKeys(c *call, p listDeployKeysParams) (page[projectDeployKeyJSON], error) {
	list, err := a.Projects.DeployKeys(c, c.actor, p.Project, p.paging())
	if err != nil {
		return page[projectDeployKeyJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(k project.DeployKey) projectDeployKeyJSON { return toProjectDeployKey(&k) }), nil
}

type addDeployKeyParams struct {
	projectParams
	newDeployKeyParams
	CanPush bool `param:"can_push"`
}

// addDeployKey: https://docs.gitlab.com/api/deploy_keys/#add-deploy-key-for-a-project
func (a *API) addDeployKey(c *call, p addDeployKeyParams) (projectDeployKeyJSON, error) {
	k, err := a.Projects.AddDeployKey(c, c.actor, p.Project, p.key(p.CanPush))
	return presentAs(toProjectDeployKey)(k, err)
}

type deployKeyParams struct {
	projectParams
	KeyID int64 `param:"key_id"`
}

// getDeployKey: https://docs.gitlab.com/api/deploy_keys/#get-a-single-deploy-key
func (a *API) getDeployKey(c *call, p deployKeyParams) (projectDeployKeyJSON, error) {
	k, err := a.Projects.DeployKey(c, c.actor, p.Project, p.KeyID)
	return presentAs(toProjectDeployKey)(k, err)
}

type updateDeployKeyParams struct {
	deployKeyParams
	Title   *string `param:"title"`
	CanPush *bool   `param:"can_push"`
}

func (updateDeployKeyParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AtLeastOne("title", "can_push")}
}

// updateDeployKey: https://docs.gitlab.com/api/deploy_keys/#update-deploy-key
func (a *API) updateDeployKey(c *call, p updateDeployKeyParams) (projectDeployKeyJSON, error) {
	k, err := a.Projects.UpdateDeployKey(c, c.actor, p.Project, p.KeyID, project.DeployKeyChange{Title: p.Title, CanPush: p.CanPush})
	return presentAs(toProjectDeployKey)(k, err)
}

// removeDeployKey: https://docs.gitlab.com/api/deploy_keys/#delete-deploy-key
func (a *API) removeDeployKey(c *call, p deployKeyParams) (none, error) {
	return none{}, a.Projects.RemoveDeployKey(c, c.actor, p.Project, p.KeyID)
}

// enableDeployKey: https://docs.gitlab.com/api/deploy_keys/#enable-a-deploy-key
func (a *API) enableDeployKey(c *call, p deployKeyParams) (projectDeployKeyJSON, error) {
	k, err := a.Projects.EnableDeployKey(c, c.actor, p.Project, p.KeyID)
	return presentAs(toProjectDeployKey)(k, err)
}

type deployKeyJSON struct {
	ID                int64  `json:"id"`
	Title             string `json:"title"`
	CreatedAt         stamp  `json:"created_at"`
	ExpiresAt         *stamp `json:"expires_at"`
	LastUsedAt        *stamp `json:"last_used_at"`
	Key               string `json:"key"`
	UsageType         string `json:"usage_type"`
	Fingerprint       string `json:"fingerprint"`
	FingerprintSHA256 string `json:"fingerprint_sha256"`
}

// projectDeployKeyJSON is a deploy key of a project.
type projectDeployKeyJSON struct {
	deployKeyJSON
	CanPush bool `json:"can_push"`
}

// instanceDeployKeyJSON is a deploy key with the projects it has access to.
type instanceDeployKeyJSON struct {
	deployKeyJSON
	ProjectsWithWriteAccess    []projectNameJSON `json:"projects_with_write_access"`
	ProjectsWithReadonlyAccess []projectNameJSON `json:"projects_with_readonly_access"`
}

func toDeployKey(k project.DeployKey) deployKeyJSON {
	return deployKeyJSON{
		ID: k.ID, Title: k.Title, CreatedAt: toStamp(k.CreatedAt), ExpiresAt: toStampOrNull(k.ExpiresAt), LastUsedAt: toStampOrNull(k.LastUsedAt),
		Key: k.Key, UsageType: string(user.AuthKey), Fingerprint: k.Fingerprint, FingerprintSHA256: k.SHA256,
	}
}

func toProjectDeployKey(k *project.DeployKey) projectDeployKeyJSON {
	return projectDeployKeyJSON{toDeployKey(*k), k.CanPush}
}

func toInstanceDeployKey(k project.DeployKey) instanceDeployKeyJSON {
	out := instanceDeployKeyJSON{toDeployKey(k), []projectNameJSON{}, []projectNameJSON{}}
	for _, o := range k.Projects {
		to := &out.ProjectsWithReadonlyAccess
		if o.CanPush {
			to = &out.ProjectsWithWriteAccess
		}
		*to = append(*to, toProjectName(o.Project))
	}
	return out
}
