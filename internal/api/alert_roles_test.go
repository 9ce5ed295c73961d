package api_test

import "svc/internal/project"

const (
	integrationAt = "/projects/{id}/alert_management/http_integrations"
	alertAt       = "/projects/{id}/alert_management_alerts"
)

// alertRows are the rows of alerts and alert integrations.
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
	"GET " + alertAt:                                              doneBy(project.Developer, "/alert_management_alerts", "", 200),
	"GET " + alertAt + "/{alert_iid}":                             doneBy(project.Developer, "/alert_management_alerts/99", "", 404),
	"GET " + alertAt + "/{alert_iid}/metric_images":               doneBy(project.Developer, "/alert_management_alerts/99/metric_images", "", 404),
	"POST " + alertAt + "/{alert_iid}/metric_images":              {path: "/alert_management_alerts/99/metric_images", bad: true, ok: 400},
	"PUT " + alertAt + "/{alert_iid}/metric_images/{image_id}":    doneBy(project.Developer, "/alert_management_alerts/99/metric_images/1", `{"url":""}`, 404),
	"DELETE " + alertAt + "/{alert_iid}/metric_images/{image_id}": doneBy(project.Developer, "/alert_management_alerts/99/metric_images/1", "", 404),
	"PUT " + alertAt + "/{alert_iid}":                             doneBy(project.Developer, "/alert_management_alerts/99", `{"status":"resolved"}`, 404),
}

var (
	alertRoles      = rowRoles(alertRows, map[string]role{})
	alertPlaceRoles = rowPlaceRoles(alertRows)
)
