package api_test

import "svc/internal/project"

const (
	integrationAt = "/projects/{id}/alert_management/http_integrations"
	alertAt       = "/projects/{id}/alert_management_alerts"
)

// alertRows are the rows of alerts and of where they come from.
var alertRows = map[string]ciRow{
	"GET " + integrationAt:                                    doneBy(project.Maintainer, "/alert_management/http_integrations", "", 200),
	"POST " + integrationAt:                                   doneBy(project.Maintainer, "/alert_management/http_integrations", `{"name":"x"}`, 201),
	"GET " + integrationAt + "/{integration_id}":              doneBy(project.Maintainer, "/alert_management/http_integrations/999999", "", 404),
	"PUT " + integrationAt + "/{integration_id}":              doneBy(project.Maintainer, "/alert_management/http_integrations/999999", `{"name":"x"}`, 404),
	"DELETE " + integrationAt + "/{integration_id}":           doneBy(project.Maintainer, "/alert_management/http_integrations/999999", "", 404),
	"POST " + integrationAt + "/{integration_id}/reset_token": doneBy(project.Maintainer, "/alert_management/http_integrations/999999/reset_token", "", 404),
	"POST " + integrationAt + "/{integration_id}/test":        doneBy(project.Developer, "/alert_management/http_integrations/999999/test", "", 404),
	"GET /projects/{id}/alert_management/settings":            doneBy(project.Maintainer, "/alert_management/settings", "", 200),
	"PUT /projects/{id}/alert_management/settings":            doneBy(project.Maintainer, "/alert_management/settings", `{"send_email":false}`, 200),
	"GET " + alertAt:                  doneBy(project.Developer, "/alert_management_alerts", "", 200),
	"GET " + alertAt + "/{alert_iid}": doneBy(project.Developer, "/alert_management_alerts/99", "", 404),
	"PUT " + alertAt + "/{alert_iid}": doneBy(project.Developer, "/alert_management_alerts/99", `{"status":"resolved"}`, 404),
}

var (
	alertRoles      = rowRoles(alertRows, map[string]role{})
	alertPlaceRoles = rowPlaceRoles(alertRows)
)
