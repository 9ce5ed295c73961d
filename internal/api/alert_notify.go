package api

import (
	"net/http"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/alert"
	"svc/internal/bind"
	"svc/internal/httpreq"
	"svc/internal/project"
)

// Paths of the alert endpoints, after the path of a project.
const (
	notifyPath        = "/alerts/notify.json"
	notifyMetricsPath = "/prometheus/alerts/notify.json"
	notifyOnePath     = "/alerts/notify/"
)

// AlertPath reports whether a path outside the API is an alert endpoint.
func AlertPath(path string) bool {
	_, ok := alertEndpoint(path)
	return ok
}

// alertEndpoint parses the path of an alert endpoint. It is unambiguous: no project
// can be named prometheus or alerts.
func alertEndpoint(path string) (k alert.IntakeRequest, ok bool) {
	in := path
	if in, k.Metrics = strings.CutSuffix(path, notifyMetricsPath); !k.Metrics {
		if in, ok = strings.CutSuffix(path, notifyPath); !ok {
			at := strings.LastIndex(path, notifyOnePath)
			if at < 0 {
				return k, false
			}
			_, file, _ := strings.Cut(path[at+len(notifyOnePath):], "/")
			if k.Endpoint, ok = strings.CutSuffix(file, ".json"); !ok || k.Endpoint == "" || strings.Contains(k.Endpoint, "/") {
				return k, false
			}
			in = path[:at]
		}
	}
	in = strings.TrimPrefix(in, "/")
	k.Project = project.Ref(in)
	return k, strings.Contains(in, "/") && !strings.HasPrefix(in, "api/") && !strings.Contains(in+"/", "/-/")
}

type takenAlertJSON struct {
	IID   int64  `json:"iid"`
	Title string `json:"title"`
}

func toTakenAlert(a *alert.Alert) takenAlertJSON { return takenAlertJSON{a.IID, a.Title} }

// takeAlerts: https://docs.gitlab.com/operations/incident_management/integrations/
func (a *API) takeAlerts(w http.ResponseWriter, r *http.Request) {
	c := &call{Context: r.Context(), r: r, w: w, site: &a.Site, actor: actor.Actor{IP: httpreq.IP(r)}}
	if to, ok := w.(routed); ok {
		to.SetRoute(notifyPath)
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		a.writeJSON(w, r, http.StatusMethodNotAllowed, errorJSON{"405 Not Allowed"})
		return
	}
	taken, err := a.takePayload(c)
	if err != nil {
		a.refuse(c, a.countRefusal(c, err))
		return
	}
	a.writeJSON(w, r, http.StatusOK, taken)
}

func (a *API) takePayload(c *call) ([]takenAlertJSON, error) {
	// The token is checked before the body is read.
	k, _ := alertEndpoint(c.r.URL.Path)
	k.Token = alertToken(c.r)
	integration, err := a.Alerts.Admit(c, k)
	if err != nil {
		return nil, err
	}
	settings, err := a.Settings.Current(c)
	if err != nil {
		return nil, err
	}
	// The rate limit is checked before the body is read, so that rejecting a
	// request costs little.
	if err := a.takeToken(c, "alert_integration:"+strconv.FormatInt(integration.IntegrationID(), 10), perMinute("alerts", settings.AlertPayloadsPerMinute)); err != nil {
		return nil, err
	}
	media, _, _ := strings.Cut(c.r.Header.Get("Content-Type"), ";")
	if media = strings.ToLower(strings.TrimSpace(media)); media != "application/json" && !strings.HasSuffix(media, "+json") {
		return nil, &bind.InputError{Fault: bind.FaultMediaType, Text: "the body must be sent as application/json"}
	}
	body, err := bind.ReadWhole(c.r, c.w, alert.MaxPayload)
	if err != nil {
		return nil, err
	}
	list, err := a.Alerts.Take(c, integration, []byte(body))
	if err != nil {
		return nil, err
	}
	return mapped(list, toTakenAlert), nil
}

// alertToken returns the token of an integration: a bearer token, or the password
// of basic authentication, as sent for credentials in a URL. It is empty if none was
// sent.
func alertToken(r *http.Request) string {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	_, password, _ := r.BasicAuth()
	return password
}
