package api

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"svc/internal/alert"
	"svc/internal/bind"
)

func (a *API) alertRoutes() {
	a.tag("Alerts")
	const at = "/projects/{id}/alert_management_alerts"
	handle(a, "GET "+at, readAPI, a.listAlerts, summary("List project alerts"))
	handle(a, "GET "+at+"/{alert_iid}", readAPI, a.getAlert, summary("Get an alert"))
	handle(a, "PUT "+at+"/{alert_iid}", writeAPI, a.updateAlert, summary("Update an alert"))
}

type alertJSON struct {
	ID            int64            `json:"id"`
	IID           int64            `json:"iid"`
	ProjectID     int64            `json:"project_id"`
	Title         string           `json:"title"`
	Description   *string          `json:"description"`
	Severity      string           `json:"severity"`
	Status        string           `json:"status"`
	Service       *string          `json:"service"`
	Tool          *string          `json:"monitoring_tool"`
	Hosts         []string         `json:"hosts"`
	Environment   *string          `json:"environment"`
	Fingerprint   string           `json:"fingerprint"`
	StartedAt     stamp            `json:"started_at"`
	EndedAt       *stamp           `json:"ended_at"`
	Events        int64            `json:"event_count"`
	Assignee      *userPublicJSON  `json:"assignee"`
	Assignees     []userPublicJSON `json:"assignees"`
	IntegrationID *int64           `json:"integration_id"`
	IssueIID      *int64           `json:"issue_iid"`
	WebURL        string           `json:"web_url"`
	CreatedAt     stamp            `json:"created_at"`
	UpdatedAt     stamp            `json:"updated_at"`
}

// alertDetailJSON is the representation of a single alert.
type alertDetailJSON struct {
	alertJSON
	Format      string            `json:"format"`
	Query       *string           `json:"metric_query"`
	YLabel      *string           `json:"y_label"`
	Runbook     *string           `json:"runbook"`
	Annotations map[string]string `json:"annotations"`
	Payload     json.RawMessage   `json:"payload"`
}

func (a *API) toAlert(c *call) func(*alert.Alert) alertJSON {
	return func(l *alert.Alert) alertJSON {
		out := alertJSON{
			ID: l.ID, IID: l.IID, ProjectID: l.ProjectID, Title: l.Title, Description: textOrNull(l.Description), Severity: l.Severity.String(), Status: string(l.Status),
			Service: textOrNull(l.Service), Tool: textOrNull(l.Tool), Hosts: l.Hosts, Environment: textOrNull(l.Environment), Fingerprint: l.Fingerprint,
			StartedAt: toStamp(l.StartedAt), EndedAt: toStampOrNull(l.EndedAt), Events: l.Events, Assignees: []userPublicJSON{}, IntegrationID: l.IntegrationID,
			WebURL:    a.Site.URL + "/" + l.ProjectPath + "/-/alert_management/" + strconv.FormatInt(l.IID, 10) + "/details",
			CreatedAt: toStamp(l.CreatedAt), UpdatedAt: toStamp(l.UpdatedAt),
		}
		if l.Assignee != nil {
			u := toUserPublic(c.site, l.Assignee, a.Now())
			out.Assignee, out.Assignees = &u, append(out.Assignees, u)
		}
		if l.IssueIID != 0 {
			out.IssueIID = &l.IssueIID
		}
		return out
	}
}

func (a *API) presentAlert(c *call) func(*alert.Alert, error) (alertDetailJSON, error) {
	return func(l *alert.Alert, err error) (alertDetailJSON, error) {
		if err != nil {
			return alertDetailJSON{}, err
		}
		d := l.Details(a.Site.Name)
		out := alertDetailJSON{
			alertJSON: a.toAlert(c)(l), Format: string(l.Format), Query: textOrNull(d.Query), YLabel: textOrNull(d.YLabel), Runbook: textOrNull(d.Runbook),
			Annotations: map[string]string{}, Payload: json.RawMessage(l.Payload),
		}
		for _, leaf := range d.Annotations {
			out.Annotations[leaf.Name()] = leaf.Value
		}
		return out, nil
	}
}

type listAlertsParams struct {
	projectParams
	IIDs             []int64    `param:"iids,csv"`
	Statuses         []string   `param:"status,csv" enum:"triggered,acknowledged,resolved,ignored" doc:"One or more values."`
	Severities       []string   `param:"severity,csv" enum:"critical,high,medium,low,info,unknown" doc:"One or more values."`
	AssigneeID       string     `param:"assignee_id" doc:"User ID, None or Any."`
	AssigneeUsername string     `param:"assignee_username"`
	Search           string     `param:"search" max:"1024" doc:"Text in the title, description, service or monitoring tool."`
	Tool             string     `param:"monitoring_tool"`
	Environment      string     `param:"environment"`
	StartedAfter     *time.Time `param:"started_after"`
	StartedBefore    *time.Time `param:"started_before"`
	OrderBy          string     `param:"order_by" enum:"started_at,created_at,updated_at,severity,event_count" default:"started_at"`
	Sort             string     `param:"sort" enum:"asc,desc" default:"desc"`
	keysetParams
}

func (p *listAlertsParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.Exclusive("assignee_id", "assignee_username")}
}

func (p *listAlertsParams) filter() (alert.Filter, error) {
	f := alert.Filter{
		IIDs: p.IIDs, AssigneeUsername: p.AssigneeUsername, Search: p.Search, Tool: p.Tool, Environment: p.Environment,
		StartedAfter: p.StartedAfter, StartedBefore: p.StartedBefore,
	}
	for _, word := range p.Statuses {
		f.Statuses = append(f.Statuses, alert.Status(word))
	}
	for _, word := range p.Severities {
		severity, _ := alert.ParseSeverity(word) // the enum has validated it
		f.Severities = append(f.Severities, severity)
	}
	switch {
	case p.AssigneeID == "":
	case strings.EqualFold(p.AssigneeID, "none"), p.AssigneeID == "0":
		f.Unassigned = true
	case strings.EqualFold(p.AssigneeID, "any"):
		f.Assigned = true
	default:
		id, err := strconv.ParseInt(p.AssigneeID, 10, 64)
		if err != nil {
			return f, bind.Invalid("assignee_id is invalid")
		}
		f.AssigneeID = id
	}
	return f, nil
}

func (p *listAlertsParams) keyset() keyset {
	k := keyset{object: "AlertManagement::Alert", allowed: true, columns: []string{p.OrderBy, "id"}}
	if p.OrderBy == "created_at" {
		k.columns = k.columns[1:]
	}
	return k
}

// listAlerts: https://docs.gitlab.com/operations/incident_management/alerts/
func (a *API) listAlerts(c *call, p listAlertsParams) (page[alertJSON], error) {
	f, err := p.filter()
	if err != nil {
		return page[alertJSON]{}, err
	}
	paging, err := p.paging(p.keyset())
	if err != nil {
		return page[alertJSON]{}, err
	}
	list, err := a.Alerts.Alerts(c, c.actor, p.Project, f, alert.Order{By: p.OrderBy, Desc: p.Sort == "desc"}, paging)
	if err != nil {
		return page[alertJSON]{}, err
	}
	return keysetPage(p.keysetParams, p.keyset(), list, a.toAlert(c)), nil
}

type alertParams struct {
	projectParams
	Alert int64 `param:"alert_iid"`
}

// getAlert: https://docs.gitlab.com/operations/incident_management/alerts/
func (a *API) getAlert(c *call, p alertParams) (alertDetailJSON, error) {
	return a.presentAlert(c)(a.Alerts.Alert(c, c.actor, p.Project, p.Alert))
}

type updateAlertParams struct {
	alertParams
	Status      *string          `param:"status" enum:"triggered,acknowledged,resolved,ignored"`
	AssigneeID  bind.Opt[int64]  `param:"assignee_id" doc:"ID of the assignee; 0 or null to unassign."`
	AssigneeIDs *[]int64         `param:"assignee_ids,csv" max:"1" doc:"ID of the assignee, as a list."`
	Assignee    bind.Opt[string] `param:"assignee" doc:"Username or ID of the assignee; empty or null to unassign."`
}

func (p *updateAlertParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AtLeastOne("status", "assignee_id", "assignee_ids", "assignee"), bind.Exclusive("assignee_id", "assignee_ids", "assignee")}
}

// updateAlert: https://docs.gitlab.com/operations/incident_management/alerts/#change-an-alerts-status
func (a *API) updateAlert(c *call, p updateAlertParams) (alertDetailJSON, error) {
	change := alert.Change{Status: (*alert.Status)(p.Status)}
	var assignee *int64
	switch {
	case p.Assignee.Set:
		change.Named = &p.Assignee.Value
	case p.AssigneeID.Set:
		if p.AssigneeID.Value != 0 {
			assignee = &p.AssigneeID.Value
		}
		change.Assignee = &assignee
	case p.AssigneeIDs != nil:
		if list := *p.AssigneeIDs; len(list) > 0 && list[0] != 0 {
			assignee = &list[0]
		}
		change.Assignee = &assignee
	}
	return a.presentAlert(c)(a.Alerts.Update(c, c.actor, p.Project, p.Alert, change))
}
