package api

import (
	"encoding/json"

	"svc/internal/alert"
	"svc/internal/bind"
)

func (a *API) alertIntegrationRoutes() {
	a.tag("Alert integrations")
	const at = "/projects/{id}/alert_management"
	handle(a, "GET "+at+"/http_integrations", readAPI, a.listAlertIntegrations, summary("List alert integrations"))
	handle(a, "POST "+at+"/http_integrations", writeAPI, a.createAlertIntegration, summary("Create an alert integration"))
	handle(a, "GET "+at+"/http_integrations/{integration_id}", readAPI, a.getAlertIntegration, summary("Get an alert integration"))
	handle(a, "PUT "+at+"/http_integrations/{integration_id}", writeAPI, a.updateAlertIntegration, summary("Update an alert integration"))
	handle(a, "DELETE "+at+"/http_integrations/{integration_id}", writeAPI, a.deleteAlertIntegration, summary("Delete an alert integration"))
	handle(a, "POST "+at+"/http_integrations/{integration_id}/reset_token", writeAPI, a.resetAlertToken, summary("Reset the token of an alert integration"))
	handle(a, "POST "+at+"/http_integrations/{integration_id}/test", writeAPI, a.testAlertIntegration, summary("Test an alert integration"), status(200))
	handle(a, "GET "+at+"/settings", readAPI, a.getAlertSettings, summary("Get alert settings"))
	handle(a, "PUT "+at+"/settings", writeAPI, a.updateAlertSettings, summary("Update alert settings"))
}

type alertIntegrationJSON struct {
	ID        int64           `json:"id"`
	Name      string          `json:"name"`
	Type      string          `json:"type"`
	Active    bool            `json:"active"`
	URL       string          `json:"url"`
	Token     string          `json:"token"`
	Example   json.RawMessage `json:"payload_example"`
	Mappings  json.RawMessage `json:"payload_attribute_mappings"`
	CreatedAt stamp           `json:"created_at"`
	UpdatedAt stamp           `json:"updated_at"`
}

func (a *API) toAlertIntegration(i *alert.Integration) alertIntegrationJSON {
	out := alertIntegrationJSON{
		ID: i.ID, Name: i.Name, Type: string(i.Type), Active: i.Active, URL: i.URL, Token: i.Token, Example: json.RawMessage("null"),
		Mappings:  json.RawMessage(alert.WriteMappings(i.Mappings, a.Site.Name)),
		CreatedAt: toStamp(i.CreatedAt), UpdatedAt: toStamp(i.UpdatedAt),
	}
	if i.Example != "" {
		out.Example = json.RawMessage(i.Example)
	}
	return out
}

func (a *API) presentAlertIntegration(i *alert.Integration, err error) (alertIntegrationJSON, error) {
	if err != nil {
		return alertIntegrationJSON{}, err
	}
	return a.toAlertIntegration(i), nil
}

type listAlertIntegrationsParams struct {
	projectParams
	pageParams
}

// listAlertIntegrations: https://docs.gitlab.com/operations/incident_management/integrations/
func (a *API) listAlertIntegrations(c *call, p listAlertIntegrationsParams) (page[alertIntegrationJSON], error) {
	return offsetList(p.pageParams, a.toAlertIntegration)(a.Alerts.Integrations(c, c.actor, p.Project, p.paging()))
}

type alertIntegrationFields struct {
	Active   *bool                     `param:"active" doc:"Whether the integration accepts payloads."`
	Example  bind.Opt[json.RawMessage] `param:"payload_example" tier:"premium" doc:"Example payload: a JSON object, or a string that contains one."`
	Mappings bind.Opt[json.RawMessage] `param:"payload_attribute_mappings" tier:"premium" doc:"Mapping of alert fields to payload attributes: a list of objects with field_name, path (names and indexes) and fallback_paths. Each path must exist in payload_example."`
}

func (p *alertIntegrationFields) fields() alert.IntegrationFields {
	return alert.IntegrationFields{Active: p.Active, Example: rawOrNull(p.Example), Mappings: rawOrNull(p.Mappings)}
}

// rawOrNull returns nil for a parameter that was not sent.
func rawOrNull(o bind.Opt[json.RawMessage]) *json.RawMessage {
	if !o.Set {
		return nil
	}
	if o.Null {
		o.Value = json.RawMessage("null")
	}
	return &o.Value
}

type createAlertIntegrationParams struct {
	projectParams
	Name string `param:"name,required"`
	Type string `param:"type" enum:"http,prometheus" default:"http" doc:"Type of the integration."`
	alertIntegrationFields
}

// createAlertIntegration: https://docs.gitlab.com/operations/incident_management/integrations/
func (a *API) createAlertIntegration(c *call, p createAlertIntegrationParams) (alertIntegrationJSON, error) {
	f := p.fields()
	kind := alert.Type(p.Type)
	f.Name, f.Type = &p.Name, &kind
	return a.presentAlertIntegration(a.Alerts.CreateIntegration(c, c.actor, p.Project, f))
}

type alertIntegrationParams struct {
	projectParams
	Integration int64 `param:"integration_id"`
}

// getAlertIntegration: https://docs.gitlab.com/operations/incident_management/integrations/
func (a *API) getAlertIntegration(c *call, p alertIntegrationParams) (alertIntegrationJSON, error) {
	return a.presentAlertIntegration(a.Alerts.Integration(c, c.actor, p.Project, p.Integration))
}

type updateAlertIntegrationParams struct {
	alertIntegrationParams
	Name *string `param:"name,nonblank"`
	Type *string `param:"type" enum:"http,prometheus" doc:"Current type of the integration; it cannot be changed."`
	alertIntegrationFields
}

// updateAlertIntegration: https://docs.gitlab.com/operations/incident_management/integrations/
func (a *API) updateAlertIntegration(c *call, p updateAlertIntegrationParams) (alertIntegrationJSON, error) {
	f := p.fields()
	f.Name, f.Type = p.Name, (*alert.Type)(p.Type)
	return a.presentAlertIntegration(a.Alerts.UpdateIntegration(c, c.actor, p.Project, p.Integration, f))
}

// deleteAlertIntegration: https://docs.gitlab.com/operations/incident_management/integrations/
func (a *API) deleteAlertIntegration(c *call, p alertIntegrationParams) (none, error) {
	return none{}, a.Alerts.DeleteIntegration(c, c.actor, p.Project, p.Integration, c.unmodifiedSince())
}

// resetAlertToken: https://docs.gitlab.com/operations/incident_management/integrations/#reset-the-authorization-key
func (a *API) resetAlertToken(c *call, p alertIntegrationParams) (alertIntegrationJSON, error) {
	return a.presentAlertIntegration(a.Alerts.ResetToken(c, c.actor, p.Project, p.Integration))
}

type testAlertParams struct {
	alertIntegrationParams
	Payload bind.Opt[json.RawMessage] `param:"payload" doc:"Payload to send: a JSON object, or a string that contains one. Default is payload_example, or a minimal sample."`
}

// testAlertIntegration: https://docs.gitlab.com/operations/incident_management/integrations/#triggering-test-alerts
func (a *API) testAlertIntegration(c *call, p testAlertParams) ([]takenAlertJSON, error) {
	list, err := a.Alerts.Test(c, c.actor, p.Project, p.Integration, p.Payload.Value)
	if err != nil {
		return nil, err
	}
	return mapped(list, toTakenAlert), nil
}

type alertSettingsJSON struct {
	CreateIssue bool `json:"create_issue"`
	AutoClose   bool `json:"auto_close_incident"`
	SendEmail   bool `json:"send_email"`
}

// getAlertSettings: https://docs.gitlab.com/operations/incident_management/incidents/
func (a *API) getAlertSettings(c *call, p projectParams) (alertSettingsJSON, error) {
	t, err := a.Alerts.Settings(c, c.actor, p.Project)
	return alertSettingsJSON(t), err
}

type updateAlertSettingsParams struct {
	projectParams
	CreateIssue *bool `param:"create_issue" doc:"Create an incident for each new alert."`
	AutoClose   *bool `param:"auto_close_incident" doc:"Close the incident when the alert is resolved by a recovery payload."`
	SendEmail   *bool `param:"send_email" doc:"Send an email about new alerts to Maintainers and Owners."`
}

// updateAlertSettings: https://docs.gitlab.com/operations/incident_management/incidents/
func (a *API) updateAlertSettings(c *call, p updateAlertSettingsParams) (alertSettingsJSON, error) {
	t, err := a.Alerts.UpdateSettings(c, c.actor, p.Project, alert.SettingFields{CreateIssue: p.CreateIssue, AutoClose: p.AutoClose, SendEmail: p.SendEmail})
	return alertSettingsJSON(t), err
}
