package api

import "svc/internal/user"

func (a *API) gpgKeyRoutes() {
	a.tag("User keys")
	handle(a, "GET /user/gpg_keys", readUser, a.listOwnGPGKeys, summary("List GPG keys of the current user"))
	handle(a, "GET /user/gpg_keys/{key_id}", readUser, a.getOwnGPGKey, summary("Get a GPG key of the current user"))
	handle(a, "POST /user/gpg_keys", writeAPI, a.addOwnGPGKey, summary("Add a GPG key for the current user"))
	handle(a, "DELETE /user/gpg_keys/{key_id}", writeAPI, a.deleteOwnGPGKey, summary("Delete a GPG key of the current user"))
	handle(a, "GET /users/{id}/gpg_keys", readUser.orAnonymous(), a.listGPGKeys, summary("List GPG keys of a user"))
	handle(a, "GET /users/{id}/gpg_keys/{key_id}", readUser.orAnonymous(), a.getGPGKey, summary("Get a GPG key of a user"))
	handle(a, "POST /users/{id}/gpg_keys", writeAPI, a.addGPGKey, summary("Add a GPG key for a user"))
	handle(a, "DELETE /users/{id}/gpg_keys/{key_id}", writeAPI, a.deleteGPGKey, summary("Delete a GPG key of a user"))
}

// listOwnGPGKeys: https://docs.gitlab.com/api/user_keys/#list-all-gpg-keys
func (a *API) listOwnGPGKeys(c *call, p pageParams) (page[gpgKeyJSON], error) {
	return offsetList(p, toGPGKey)(a.Users.OwnGPGKeys(c, c.actor, p.paging()))
}

// getOwnGPGKey: https://docs.gitlab.com/api/user_keys/#get-a-gpg-key
func (a *API) getOwnGPGKey(c *call, p ownKeyParams) (gpgKeyJSON, error) {
	return presentGPGKey(a.Users.OwnGPGKey(c, c.actor, p.KeyID))
}

type newGPGKeyParams struct {
	Key string `param:"key,required" doc:"Armored public key."`
}

// addOwnGPGKey: https://docs.gitlab.com/api/user_keys/#add-a-gpg-key
func (a *API) addOwnGPGKey(c *call, p newGPGKeyParams) (gpgKeyJSON, error) {
	return presentGPGKey(a.Users.AddOwnGPGKey(c, c.actor, p.Key))
}

// deleteOwnGPGKey: https://docs.gitlab.com/api/user_keys/#delete-a-gpg-key
func (a *API) deleteOwnGPGKey(c *call, p ownKeyParams) (none, error) {
	return none{}, a.Users.DeleteOwnGPGKey(c, c.actor, p.KeyID)
}

// listGPGKeys: https://docs.gitlab.com/api/user_keys/#list-all-gpg-keys-for-a-user
func (a *API) listGPGKeys(c *call, p listKeysParams) (page[gpgKeyJSON], error) {
	return offsetList(p.pageParams, toGPGKey)(a.Users.GPGKeysOf(c, c.actor, p.User, p.paging()))
}

// getGPGKey: https://docs.gitlab.com/api/user_keys/#get-a-gpg-key-for-a-user
func (a *API) getGPGKey(c *call, p getKeyParams) (gpgKeyJSON, error) {
	return presentGPGKey(a.Users.GPGKeyOf(c, c.actor, p.User, p.KeyID))
}

type addGPGKeyParams struct {
	userParams
	newGPGKeyParams
}

// addGPGKey: https://docs.gitlab.com/api/user_keys/#add-a-gpg-key-for-a-user
func (a *API) addGPGKey(c *call, p addGPGKeyParams) (gpgKeyJSON, error) {
	return presentGPGKey(a.Users.AddGPGKey(c, c.actor, p.ID, p.Key))
}

// deleteGPGKey: https://docs.gitlab.com/api/user_keys/#delete-a-gpg-key-for-a-user
func (a *API) deleteGPGKey(c *call, p deleteKeyParams) (none, error) {
	return none{}, a.Users.DeleteGPGKey(c, c.actor, p.ID, p.KeyID)
}

type gpgKeyJSON struct {
	ID        int64  `json:"id"`
	Key       string `json:"key"`
	CreatedAt stamp  `json:"created_at"`
}

func toGPGKey(k user.GPGKey) gpgKeyJSON {
	return gpgKeyJSON{ID: k.ID, Key: k.Key, CreatedAt: toStamp(k.CreatedAt)}
}

func presentGPGKey(k *user.GPGKey, err error) (gpgKeyJSON, error) {
	if err != nil {
		return gpgKeyJSON{}, err
	}
	return toGPGKey(*k), nil
}
