package api

import (
	"svc/internal/alert"
	"svc/internal/bind"
)

func (a *API) alertMetricImageRoutes() {
	a.tag("Alerts")
	const at = "/projects/{id}/alert_management_alerts/{alert_iid}/metric_images"
	handle(a, "GET "+at, readAPI, a.listMetricImages, summary("List metric images of an alert"))
	handle(a, "POST "+at, writeAPI, a.createMetricImage, files(alert.MaxImageSize), summary("Upload a metric image of an alert"))
	handle(a, "PUT "+at+"/{image_id}", writeAPI, a.updateMetricImage, summary("Update a metric image of an alert"))
	handle(a, "DELETE "+at+"/{image_id}", writeAPI, a.deleteMetricImage, summary("Delete a metric image of an alert"))
}

type metricImageJSON struct {
	ID        int64   `json:"id"`
	CreatedAt stamp   `json:"created_at"`
	Filename  string  `json:"filename"`
	FilePath  string  `json:"file_path"`
	URL       *string `json:"url"`
	URLText   *string `json:"url_text"`
}

func toMetricImage(m *alert.MetricImage) metricImageJSON {
	return metricImageJSON{m.ID, toStamp(m.CreatedAt), m.Name, m.Path(), textOrNull(m.URL), textOrNull(m.URLText)}
}

type listMetricImagesParams struct {
	alertParams
	pageParams
}

// listMetricImages: https://docs.gitlab.com/api/alert_management_alerts/#list-all-metric-images
func (a *API) listMetricImages(c *call, p listMetricImagesParams) (page[metricImageJSON], error) {
	return offsetList(p.pageParams, toMetricImage)(a.Alerts.MetricImages(c, c.actor, p.Project, p.Alert, p.paging()))
}

// metricImageFields are the parameters to describe an image.
type metricImageFields struct {
	URL     *string `param:"url" doc:"URL of more information about the metric."`
	URLText *string `param:"url_text" doc:"Description of the image or the URL."`
}

type createMetricImageParams struct {
	alertParams
	File *bind.Upload `param:"file,required" doc:"Image: bmp, gif, ico, jpeg, png or webp, at most 1 MiB."`
	metricImageFields
}

// createMetricImage: https://docs.gitlab.com/api/alert_management_alerts/#upload-metric-image
func (a *API) createMetricImage(c *call, p createMetricImageParams) (metricImageJSON, error) {
	return presentAs(toMetricImage)(a.Alerts.AddMetricImage(c, c.actor, p.Project, p.Alert, p.File.Name, p.File.Open(), alert.MetricImageFields(p.metricImageFields)))
}

type metricImageParams struct {
	alertParams
	Image int64 `param:"image_id"`
}

type updateMetricImageParams struct {
	metricImageParams
	metricImageFields
}

// updateMetricImage: https://docs.gitlab.com/api/alert_management_alerts/#update-metric-image
func (a *API) updateMetricImage(c *call, p updateMetricImageParams) (metricImageJSON, error) {
	return presentAs(toMetricImage)(a.Alerts.UpdateMetricImage(c, c.actor, p.Project, p.Alert, p.Image, alert.MetricImageFields(p.metricImageFields)))
}

// deleteMetricImage: https://docs.gitlab.com/api/alert_management_alerts/#delete-metric-image
func (a *API) deleteMetricImage(c *call, p metricImageParams) (none, error) {
	return none{}, a.Alerts.DeleteMetricImage(c, c.actor, p.Project, p.Alert, p.Image)
}
