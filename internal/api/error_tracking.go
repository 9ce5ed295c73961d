package api

import (
	"svc/internal/errortrack"
	"svc/internal/openapi"
)

func (a *API) errorTrackingRoutes() {
	a.tag("Error tracking")
	const settings, keys = "/projects/{id}/error_tracking/settings", "/projects/{id}/error_tracking/client_keys"
	handle(a, "GET "+settings, readAPI, a.getErrorSetup, summary("Get error tracking settings"))
	handle(a, "PUT "+settings, writeAPI, a.putErrorSetup, summary("Create error tracking settings"))
	handle(a, "PATCH "+settings, writeAPI, a.patchErrorSetup, summary("Enable or disable error tracking"))
	handle(a, "GET "+keys, readAPI, a.listClientKeys, summary("List project client keys"))
	handle(a, "POST "+keys, writeAPI, a.createClientKey, summary("Create a client key"))
	handle(a, "DELETE "+keys+"/{key_id}", writeAPI, a.deleteClientKey, summary("Delete a client key"))
}

// errorSetupJSON is the error tracking settings. One member is named after the
// external service.
type errorSetupJSON struct {
	backend string
	setup   errortrack.Setup
}

// MarshalJSON encodes the members in the order of the docs.
func (j errorSetupJSON) MarshalJSON() ([]byte, error) {
	s := j.setup
	return openapi.Object{
		openapi.Field("active", s.Active), openapi.Field("project_name", textOrNull(s.External.ProjectName)),
		openapi.Field(j.backend+"_external_url", textOrNull(s.External.URL)), openapi.Field("api_url", textOrNull(s.External.APIURL)),
		openapi.Field("integrated", s.Integrated),
	}.MarshalJSON()
}

// DescribeSchema describes the members, one of which is named after the backend.
func (errorSetupJSON) DescribeSchema(s *openapi.Schemas) *openapi.Schema {
	flag, text := &openapi.Schema{Type: openapi.Types{"boolean"}}, &openapi.Schema{Type: openapi.Types{"string", "null"}}
	external := s.Server.Backend + "_external_url"
	return &openapi.Schema{
		Type: openapi.Types{"object"}, AdditionalProperties: false, Required: []string{"active", "project_name", external, "api_url", "integrated"},
		Properties: openapi.Object{
			openapi.Field("active", flag), openapi.Field("project_name", text), openapi.Field(external, text), openapi.Field("api_url", text),
			openapi.Field("integrated", flag),
		},
	}
}

func presentErrorSetup(c *call, s *errortrack.Setup, err error) (errorSetupJSON, error) {
	if err != nil {
		return errorSetupJSON{}, err
	}
	return errorSetupJSON{c.site.Backend, *s}, nil
}

// getErrorSetup: https://docs.gitlab.com/api/error_tracking/#get-error-tracking-settings
func (a *API) getErrorSetup(c *call, p projectParams) (errorSetupJSON, error) {
	s, err := a.Errors.Setup(c, c.actor, p.Project)
	return presentErrorSetup(c, s, err)
}

type putErrorSetupParams struct {
	projectParams
	Active     bool `param:"active,required" doc:"Whether error tracking is enabled."`
	Integrated bool `param:"integrated,required" doc:"Use the integrated backend instead of an external service."`
}

// putErrorSetup: https://docs.gitlab.com/api/error_tracking/#create-error-tracking-settings
func (a *API) putErrorSetup(c *call, p putErrorSetupParams) (errorSetupJSON, error) {
	s, err := a.Errors.Configure(c, c.actor, p.Project, errortrack.SetupChange{Active: &p.Active, Integrated: &p.Integrated})
	return presentErrorSetup(c, s, err)
}

type patchErrorSetupParams struct {
	projectParams
	Active     bool  `param:"active,required" doc:"Whether error tracking is enabled."`
	Integrated *bool `param:"integrated" doc:"Use the integrated backend instead of an external service."`
}

// patchErrorSetup: https://docs.gitlab.com/api/error_tracking/#enable-or-disable-the-error-tracking-project-settings
func (a *API) patchErrorSetup(c *call, p patchErrorSetupParams) (errorSetupJSON, error) {
	s, err := a.Errors.Reconfigure(c, c.actor, p.Project, errortrack.SetupChange{Active: &p.Active, Integrated: p.Integrated})
	return presentErrorSetup(c, s, err)
}

// clientKeyJSON is a client key. The member with the DSN is named after the
// external service.
type clientKeyJSON struct {
	backend string
	key     errortrack.Key
	dsn     string
}

// MarshalJSON encodes the members in the order of the docs.
func (j clientKeyJSON) MarshalJSON() ([]byte, error) {
	return openapi.Object{
		openapi.Field("id", j.key.ID), openapi.Field("active", j.key.Active), openapi.Field("public_key", j.key.Public), openapi.Field(j.backend+"_dsn", j.dsn),
	}.MarshalJSON()
}

// DescribeSchema describes the members, one of which is named after the backend.
func (clientKeyJSON) DescribeSchema(s *openapi.Schemas) *openapi.Schema {
	text, dsn := &openapi.Schema{Type: openapi.Types{"string"}}, s.Server.Backend+"_dsn"
	return &openapi.Schema{
		Type: openapi.Types{"object"}, AdditionalProperties: false, Required: []string{"id", "active", "public_key", dsn},
		Properties: openapi.Object{
			openapi.Field("id", &openapi.Schema{Type: openapi.Types{"integer"}, Format: "int64"}),
			openapi.Field("active", &openapi.Schema{Type: openapi.Types{"boolean"}}),
			openapi.Field("public_key", text), openapi.Field(dsn, text),
		},
	}
}

func (a *API) toClientKey(k *errortrack.Key) clientKeyJSON {
	return clientKeyJSON{a.Site.Backend, *k, a.Errors.DSN(k)}
}

type listClientKeysParams struct {
	projectParams
	pageParams
}

// listClientKeys: https://docs.gitlab.com/api/error_tracking/#list-project-client-keys
func (a *API) listClientKeys(c *call, p listClientKeysParams) (page[clientKeyJSON], error) {
	return offsetList(p.pageParams, a.toClientKey)(a.Errors.ClientKeys(c, c.actor, p.Project, p.paging()))
}

// createClientKey: https://docs.gitlab.com/api/error_tracking/#create-a-client-key
func (a *API) createClientKey(c *call, p projectParams) (clientKeyJSON, error) {
	k, err := a.Errors.CreateKey(c, c.actor, p.Project)
	if err != nil {
		return clientKeyJSON{}, err
	}
	return a.toClientKey(k), nil
}

type clientKeyParams struct {
	projectParams
	Key int64 `param:"key_id"`
}

// deleteClientKey: https://docs.gitlab.com/api/error_tracking/#delete-a-client-key
func (a *API) deleteClientKey(c *call, p clientKeyParams) (none, error) {
	return none{}, a.Errors.DeleteKey(c, c.actor, p.Project, p.Key)
}
