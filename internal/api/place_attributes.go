package api

import "svc/internal/project"

func (a *API) placeAttributeRoutes() {
	a.tag("Custom attributes")
	for _, k := range []struct {
		base  string
		group bool
	}{{"/projects/{id}", false}, {"/groups/{id}", true}} {
		t := placeAttributes{a, k.group}
		all, one := k.base+"/custom_attributes", k.base+"/custom_attributes/{key}"
		handle(a, "GET "+all, readAPI, t.list, summary("List custom attributes"))
		handle(a, "GET "+one, readAPI, t.get, summary("Get a custom attribute"))
		handle(a, "PUT "+one, writeAPI, t.set, summary("Set a custom attribute"))
		handle(a, "DELETE "+one, writeAPI, t.remove, summary("Delete a custom attribute"))
	}
}

// placeAttributes are the endpoints of projects or of groups.
type placeAttributes struct {
	*API
	group bool
}

type placeAttributesParams struct {
	Place project.Ref `param:"id" doc:"ID or URL-encoded path of the project or group."`
}

type placeAttributeParams struct {
	placeAttributesParams
	Key string `param:"key" doc:"Key of the attribute."`
}

func (t placeAttributes) at(p placeAttributesParams) project.Place {
	return project.Place{Ref: p.Place, Group: t.group}
}

// list: https://docs.gitlab.com/api/custom_attributes/#list-custom-attributes
func (t placeAttributes) list(c *call, p placeAttributesParams) ([]attributeJSON, error) {
	list, err := t.Projects.Attributes(c, c.actor, t.at(p))
	if err != nil {
		return nil, err
	}
	return toAttributes(list), nil
}

// get: https://docs.gitlab.com/api/custom_attributes/#single-custom-attribute
func (t placeAttributes) get(c *call, p placeAttributeParams) (attributeJSON, error) {
	one, err := t.Projects.Attribute(c, c.actor, t.at(p.placeAttributesParams), p.Key)
	return attributeJSON(one), err
}

type setPlaceAttributeParams struct {
	placeAttributeParams
	Value string `param:"value,required"`
}

// set: https://docs.gitlab.com/api/custom_attributes/#set-custom-attribute
func (t placeAttributes) set(c *call, p setPlaceAttributeParams) (attributeJSON, error) {
	one, err := t.Projects.SetAttribute(c, c.actor, t.at(p.placeAttributesParams), project.Attribute{Key: p.Key, Value: p.Value})
	return attributeJSON(one), err
}

// remove: https://docs.gitlab.com/api/custom_attributes/#delete-custom-attribute
func (t placeAttributes) remove(c *call, p placeAttributeParams) (none, error) {
	return none{}, t.Projects.DeleteAttribute(c, c.actor, t.at(p.placeAttributesParams), p.Key)
}

// attributeFilterParams select and show custom attributes, for administrators.
type attributeFilterParams struct {
	Attributes     map[string]string `param:"custom_attributes" doc:"Only those with these custom attributes (administrators only)."`
	WithAttributes bool              `param:"with_custom_attributes" doc:"Include custom attributes (administrators only)."`
}

// attributesOf returns the custom attributes of projects or groups by ID, if an
// administrator requested them.
func (p attributeFilterParams) attributesOf(a *API, c *call, group bool, ids []int64) (map[int64]*attributesJSON, error) {
	if !p.WithAttributes || !c.actor.Admin {
		return nil, nil
	}
	found, err := a.Projects.AttributesOf(c, c.actor, group, ids)
	shown := make(map[int64]*attributesJSON, len(ids))
	for _, id := range ids {
		shown[id] = &attributesJSON{toAttributes(found[id])}
	}
	return shown, err
}
