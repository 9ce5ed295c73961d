package api

import "svc/internal/user"

func (a *API) userAttributeRoutes() {
	a.tag("Custom attributes")
	handle(a, "GET /users/{id}/custom_attributes", readAPI, a.listAttributes, summary("List custom attributes"))
	handle(a, "GET /users/{id}/custom_attributes/{key}", readAPI, a.getAttribute, summary("Get a custom attribute"))
	handle(a, "PUT /users/{id}/custom_attributes/{key}", writeAPI, a.setAttribute, summary("Set a custom attribute"))
	handle(a, "DELETE /users/{id}/custom_attributes/{key}", writeAPI, a.deleteAttribute, summary("Delete a custom attribute"))
}

// listAttributes: https://docs.gitlab.com/api/custom_attributes/#list-custom-attributes
func (a *API) listAttributes(c *call, p userParams) ([]attributeJSON, error) {
	list, err := a.Users.Attributes(c, c.actor, p.ID)
	if err != nil {
		return nil, err
	}
	return toAttributes(list), nil
}

type attributeParams struct {
	userParams
	Key string `param:"key"`
}

// getAttribute: https://docs.gitlab.com/api/custom_attributes/#single-custom-attribute
func (a *API) getAttribute(c *call, p attributeParams) (attributeJSON, error) {
	t, err := a.Users.Attribute(c, c.actor, p.ID, p.Key)
	return attributeJSON(t), err
}

type setAttributeParams struct {
	attributeParams
	Value string `param:"value,required"`
}

// setAttribute: https://docs.gitlab.com/api/custom_attributes/#set-custom-attribute
func (a *API) setAttribute(c *call, p setAttributeParams) (attributeJSON, error) {
	t, err := a.Users.SetAttribute(c, c.actor, p.ID, user.Attribute{Key: p.Key, Value: p.Value})
	return attributeJSON(t), err
}

// deleteAttribute: https://docs.gitlab.com/api/custom_attributes/#delete-custom-attribute
func (a *API) deleteAttribute(c *call, p attributeParams) (none, error) {
	return none{}, a.Users.DeleteAttribute(c, c.actor, p.ID, p.Key)
}
