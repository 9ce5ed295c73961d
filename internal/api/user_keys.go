package api

import (
	"strconv"
	"time"

	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

func (a *API) userKeyRoutes() {
	a.tag("User keys")
	handle(a, "GET /user/keys", readUser, a.listOwnKeys, summary("List SSH keys of the current user"))
	handle(a, "GET /user/keys/{key_id}", readUser, a.getOwnKey, summary("Get an SSH key of the current user"))
	handle(a, "POST /user/keys", writeAPI, a.addOwnKey, summary("Add an SSH key for the current user"))
	handle(a, "DELETE /user/keys/{key_id}", writeAPI, a.deleteOwnKey, summary("Delete an SSH key of the current user"))
	handle(a, "GET /users/{id}/keys", readUser.orAnonymous(), a.listKeys, summary("List SSH keys of a user"))
	handle(a, "GET /users/{id}/keys/{key_id}", readUser.orAnonymous(), a.getKey, summary("Get an SSH key of a user"))
	handle(a, "POST /users/{id}/keys", writeAPI, a.addKey, summary("Add an SSH key for a user"))
	handle(a, "DELETE /users/{id}/keys/{key_id}", writeAPI, a.deleteKey, summary("Delete an SSH key of a user"))
	a.tag("Keys")
	handle(a, "GET /keys", readAPI, a.findKey, summary("Get a user by fingerprint of SSH key"))
	handle(a, "GET /keys/{id}", readAPI, a.getKeyWithUser, summary("Get an SSH key with its user by ID"))
}

// listOwnKeys: https://docs.gitlab.com/api/user_keys/#list-all-ssh-keys
func (a *API) listOwnKeys(c *call, p pageParams) (page[keyJSON], error) {
	return offsetList(p, toKey)(a.Users.OwnKeys(c, c.actor, p.paging()))
}

type ownKeyParams struct {
	KeyID int64 `param:"key_id"`
}

// getOwnKey: https://docs.gitlab.com/api/user_keys/#get-an-ssh-key
func (a *API) getOwnKey(c *call, p ownKeyParams) (keyJSON, error) {
	return presentKey(a.Users.OwnKey(c, c.actor, p.KeyID))
}

type newKeyParams struct {
	Title     string        `param:"title,required"`
	Key       string        `param:"key,required" doc:"Public key in the authorized_keys format."`
	ExpiresAt *time.Time    `param:"expires_at"`
	UsageType user.KeyUsage `param:"usage_type" enum:"auth,signing,auth_and_signing" default:"auth_and_signing"`
}

func (p *newKeyParams) key() user.NewKey {
	return user.NewKey{Title: p.Title, Key: p.Key, Usage: p.UsageType, ExpiresAt: p.ExpiresAt}
}

// addOwnKey: https://docs.gitlab.com/api/user_keys/#add-an-ssh-key
func (a *API) addOwnKey(c *call, p newKeyParams) (keyJSON, error) {
	return presentKey(a.Users.AddOwnKey(c, c.actor, p.key()))
}

// deleteOwnKey: https://docs.gitlab.com/api/user_keys/#delete-an-ssh-key
func (a *API) deleteOwnKey(c *call, p ownKeyParams) (none, error) {
	return none{}, a.Users.DeleteOwnKey(c, c.actor, p.KeyID)
}

type userRefParams struct {
	User user.Ref `param:"id" doc:"ID or username."`
}

type listKeysParams struct {
	userRefParams
	pageParams
}

// listKeys: https://docs.gitlab.com/api/user_keys/#list-all-ssh-keys-for-a-user
func (a *API) listKeys(c *call, p listKeysParams) (page[keyJSON], error) {
	return offsetList(p.pageParams, toKey)(a.Users.KeysOf(c, c.actor, p.User, p.paging()))
}

type getKeyParams struct {
	userRefParams
	ownKeyParams
}

// getKey: https://docs.gitlab.com/api/user_keys/#get-an-ssh-key-for-a-user
func (a *API) getKey(c *call, p getKeyParams) (keyJSON, error) {
	return presentKey(a.Users.KeyOf(c, c.actor, p.User, p.KeyID))
}

type addKeyParams struct {
	userParams
	newKeyParams
}

// addKey: https://docs.gitlab.com/api/user_keys/#add-an-ssh-key-for-a-user
func (a *API) addKey(c *call, p addKeyParams) (keyJSON, error) {
	return presentKey(a.Users.AddKey(c, c.actor, p.ID, p.key()))
}

type deleteKeyParams struct {
	userParams
	ownKeyParams
}

// deleteKey: https://docs.gitlab.com/api/user_keys/#delete-an-ssh-key-for-a-user
func (a *API) deleteKey(c *call, p deleteKeyParams) (none, error) {
	return none{}, a.Users.DeleteKey(c, c.actor, p.ID, p.KeyID)
}

type findKeyParams struct {
	Fingerprint string `param:"fingerprint,required" doc:"Fingerprint: MD5, or SHA256 with its prefix."`
}

// findKey: https://docs.gitlab.com/api/keys/#get-user-by-ssh-key-fingerprint
func (a *API) findKey(c *call, p findKeyParams) (keyWithUserJSON, error) {
	k, u, err := a.Users.KeyByFingerprint(c, c.actor, p.Fingerprint)
	if errs.Is(err, errs.KindNotFound) {
		return a.findDeployKey(c, p.Fingerprint)
	}
	if err != nil {
		return keyWithUserJSON{}, err
	}
	owner := toUserAdmin(c, u, a.Now())
	return keyWithUserJSON{keyJSON: toKey(*k), User: &owner}, nil
}

// findDeployKey returns a deploy key with the user who created it and the projects
// in which it is enabled.
func (a *API) findDeployKey(c *call, fingerprint string) (keyWithUserJSON, error) {
	k, projects, err := a.Projects.DeployKeyByFingerprint(c, c.actor, fingerprint)
	if err != nil {
		return keyWithUserJSON{}, err
	}
	out := keyWithUserJSON{keyJSON: keyJSON{ID: k.ID, Title: k.Title, Key: k.Key, CreatedAt: toStamp(k.CreatedAt), ExpiresAt: toStampOrNull(k.ExpiresAt), UsageType: "auth_and_signing"}}
	list := mapped(projects, func(p project.DeployKeyProject) deployKeyProjectJSON {
		return deployKeyProjectJSON{k.ID, p.ProjectID, p.CanPush, toStamp(p.CreatedAt), toStamp(p.CreatedAt)}
	})
	out.DeployKeyProjects = &list
	if k.CreatedBy == nil {
		return out, nil
	}
	u, err := a.Users.Find(c, c.actor, user.Ref(strconv.FormatInt(*k.CreatedBy, 10)))
	if err == nil {
		creator := toUserAdmin(c, u, a.Now())
		out.User = &creator
	}
	return out, errs.IgnoreNotFound(err)
}

// deployKeyProjectJSON is a project in which a deploy key is enabled.
type deployKeyProjectJSON struct {
	DeployKeyID int64 `json:"deploy_key_id"`
	ProjectID   int64 `json:"project_id"`
	CanPush     bool  `json:"can_push"`
	CreatedAt   stamp `json:"created_at"`
	UpdatedAt   stamp `json:"updated_at"`
}

type keyParams struct {
	ID int64 `param:"id"`
}

// getKeyWithUser: https://docs.gitlab.com/api/keys/#get-ssh-key-with-user-by-id
func (a *API) getKeyWithUser(c *call, p keyParams) (keyWithUserJSON, error) {
	k, u, err := a.Users.KeyWithUser(c, c.actor, p.ID)
	if err != nil {
		return keyWithUserJSON{}, err
	}
	owner := toUserAdmin(c, u, a.Now())
	return keyWithUserJSON{keyJSON: toKey(*k), User: &owner}, nil
}

type keyJSON struct {
	ID         int64  `json:"id"`
	Title      string `json:"title"`
	Key        string `json:"key"`
	CreatedAt  stamp  `json:"created_at"`
	ExpiresAt  *stamp `json:"expires_at"`
	LastUsedAt *stamp `json:"last_used_at"`
	UsageType  string `json:"usage_type"`
}

type keyWithUserJSON struct {
	keyJSON
	User *userAdminJSON `json:"user"`
	// Only for deploy keys.
	DeployKeyProjects *[]deployKeyProjectJSON `json:"deploy_keys_projects,omitempty"`
}

func toKey(k user.Key) keyJSON {
	return keyJSON{
		ID: k.ID, Title: k.Title, Key: k.Key, CreatedAt: toStamp(k.CreatedAt), ExpiresAt: toStampOrNull(k.ExpiresAt),
		LastUsedAt: toStampOrNull(k.LastUsedAt), UsageType: string(k.Usage),
	}
}

func presentKey(k *user.Key, err error) (keyJSON, error) {
	if err != nil {
		return keyJSON{}, err
	}
	return toKey(*k), nil
}
