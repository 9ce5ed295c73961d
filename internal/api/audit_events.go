package api

import (
	"strings"
	"time"

	"svc/internal/audit"
	"svc/internal/bind"
)

func (a *API) auditEventRoutes() {
	a.tag("Audit events")
	handle(a, "GET /audit_events", readAPI, a.listAuditEvents, tier(Premium), onlySelfManaged, summary("List instance audit events"))
	handle(a, "GET /audit_events/{id}", readAPI, a.getAuditEvent, tier(Premium), onlySelfManaged, summary("Get an instance audit event"))
	for _, in := range []struct {
		path, kind string
		group      bool
	}{{"/projects/{id}", "project", false}, {"/groups/{id}", "group", true}} {
		m := parentEndpoints{a, in.group}
		handle(a, "GET "+in.path+"/audit_events", readAPI, m.listAuditEvents, tier(Premium), summary("List "+in.kind+" audit events"))
		handle(a, "GET "+in.path+"/audit_events/{audit_event_id}", readAPI, m.getAuditEvent, tier(Premium), summary("Get a "+in.kind+" audit event"))
	}
}

type placeAuditEventsParams struct {
	placeParams
	CreatedAfter  *time.Time `param:"created_after"`
	CreatedBefore *time.Time `param:"created_before"`
	OrderBy       string     `param:"order_by" default:"id" doc:"Must be id for keyset pagination."`
	Sort          string     `param:"sort" enum:"asc,desc" default:"desc" doc:"Must be desc for keyset pagination."`
	keysetParams
}

// listAuditEvents: https://docs.gitlab.com/api/audit_events/#retrieve-all-group-audit-events
func (m parentEndpoints) listAuditEvents(c *call, p placeAuditEventsParams) (page[auditEventJSON], error) {
	k := keyset{object: "AuditEvent", columns: []string{"id"}, allowed: p.OrderBy == "id" && p.Sort == "desc"}
	paging, err := p.paging(k)
	if err != nil {
		return page[auditEventJSON]{}, err
	}
	f := audit.Filter{CreatedAfter: p.CreatedAfter, CreatedBefore: p.CreatedBefore}
	list, err := m.api.Projects.AuditEvents(c, c.actor, m.at(p.Ref), f, paging)
	if err != nil {
		return page[auditEventJSON]{}, err
	}
	return keysetPage(p.keysetParams, k, list, m.api.toAuditEvent), nil
}

type placeAuditEventParams struct {
	placeParams
	Event int64 `param:"audit_event_id"`
}

// getAuditEvent: https://docs.gitlab.com/api/audit_events/#retrieve-a-specific-group-audit-event
func (m parentEndpoints) getAuditEvent(c *call, p placeAuditEventParams) (auditEventJSON, error) {
	e, err := m.api.Projects.AuditEvent(c, c.actor, m.at(p.Ref), p.Event)
	if err != nil {
		return auditEventJSON{}, err
	}
	return m.api.toAuditEvent(e), nil
}

type listAuditEventsParams struct {
	CreatedAfter  *time.Time `param:"created_after"`
	CreatedBefore *time.Time `param:"created_before"`
	EntityType    string     `param:"entity_type" doc:"User, Group, Project or the instance scope."`
	EntityID      int64      `param:"entity_id" doc:"ID of the entity. Requires entity_type."`
	OrderBy       string     `param:"order_by" default:"id" doc:"Must be id for keyset pagination."`
	Sort          string     `param:"sort" enum:"asc,desc" default:"desc" doc:"Must be desc for keyset pagination."`
	keysetParams
}

// listAuditEvents: https://docs.gitlab.com/api/audit_events/#retrieve-all-instance-audit-events
func (a *API) listAuditEvents(c *call, p listAuditEventsParams) (page[auditEventJSON], error) {
	f := audit.Filter{CreatedAfter: p.CreatedAfter, CreatedBefore: p.CreatedBefore, EntityID: p.EntityID}
	var err error
	if f.EntityType, err = a.entityType(p.EntityType, p.EntityID); err != nil {
		return page[auditEventJSON]{}, err
	}
	k := keyset{object: "AuditEvent", columns: []string{"id"}, allowed: p.OrderBy == "id" && p.Sort == "desc"}
	paging, err := p.paging(k)
	if err != nil {
		return page[auditEventJSON]{}, err
	}
	list, err := a.Audit.List(c, c.actor, f, paging)
	if err != nil {
		return page[auditEventJSON]{}, err
	}
	return keysetPage(p.keysetParams, k, list, a.toAuditEvent), nil
}

// entityType parses the filter entity_type. The type of the instance contains the
// name of the service; the names of svc and of the public API are accepted too.
func (a *API) entityType(name string, id int64) (audit.EntityType, error) {
	switch name {
	case "":
		if id != 0 {
			return "", bind.Invalid("entity_type is missing")
		}
		return "", nil
	case string(audit.UserEntity), string(audit.GroupEntity), string(audit.ProjectEntity):
		return audit.EntityType(name), nil
	case a.instanceScope(), "Svc::Audit::InstanceScope", "Gitlab::Audit::InstanceScope":
		return audit.InstanceEntity, nil
	}
	return "", bind.Invalid("entity_type does not have a valid value")
}

// instanceScope is the entity type of events of the instance.
func (a *API) instanceScope() string {
	name := a.Site.Name
	return strings.ToUpper(name[:1]) + name[1:] + "::Audit::InstanceScope"
}

type auditEventParams struct {
	ID int64 `param:"id"`
}

// getAuditEvent: https://docs.gitlab.com/api/audit_events/#retrieve-a-single-instance-audit-event
func (a *API) getAuditEvent(c *call, p auditEventParams) (auditEventJSON, error) {
	e, err := a.Audit.Get(c, c.actor, p.ID)
	if err != nil {
		return auditEventJSON{}, err
	}
	return a.toAuditEvent(e), nil
}

type auditEventJSON struct {
	ID         int64            `json:"id"`
	AuthorID   int64            `json:"author_id"`
	EntityID   int64            `json:"entity_id"`
	EntityType string           `json:"entity_type"`
	Details    auditDetailsJSON `json:"details"`
	CreatedAt  stamp            `json:"created_at"`
	EventType  string           `json:"event_type"`
	EventName  string           `json:"event_name"`

	// Events of the instance also have these fields at the top level.
	*auditScopeJSON
}

type auditScopeJSON struct {
	IPAddress     string `json:"ip_address"`
	AuthorName    string `json:"author_name"`
	EntityPath    string `json:"entity_path"`
	TargetDetails string `json:"target_details"`
	TargetType    string `json:"target_type"`
	TargetID      int64  `json:"target_id"`
}

type auditDetailsJSON struct {
	EventName      string `json:"event_name"`
	CustomMessage  string `json:"custom_message,omitempty"`
	Add            string `json:"add,omitempty"`
	Remove         string `json:"remove,omitempty"`
	Change         string `json:"change,omitempty"`
	From           string `json:"from,omitempty"`
	To             string `json:"to,omitempty"`
	ImpersonatedBy string `json:"impersonated_by,omitempty"`
	AuthorName     string `json:"author_name"`
	AuthorEmail    string `json:"author_email"`
	AuthorClass    string `json:"author_class"`
	TargetID       int64  `json:"target_id"`
	TargetType     string `json:"target_type"`
	TargetDetails  string `json:"target_details"`
	IPAddress      string `json:"ip_address"`
	EntityPath     string `json:"entity_path"`
}

func (a *API) toAuditEvent(e audit.Event) auditEventJSON {
	out := auditEventJSON{
		ID: e.ID, AuthorID: e.By.ID, EntityID: e.Entity.ID, EntityType: string(e.Entity.Type), CreatedAt: toStamp(e.CreatedAt), EventType: e.Type, EventName: e.Type,
		Details: auditDetailsJSON{
			EventName:     e.Type,
			CustomMessage: e.Details.Message, Add: e.Details.Add, Remove: e.Details.Remove, Change: e.Details.Change,
			From: e.Details.From, To: e.Details.To, ImpersonatedBy: e.Details.Impersonator,
			AuthorName: e.By.Name, AuthorEmail: e.By.Email, AuthorClass: e.By.Class,
			TargetID: e.Target.ID, TargetType: e.Target.Type, TargetDetails: e.Target.Details, IPAddress: e.IP, EntityPath: e.Entity.Path,
		},
	}
	if e.Entity.Type == audit.InstanceEntity {
		out.EntityType = a.instanceScope()
		out.auditScopeJSON = &auditScopeJSON{e.IP, e.By.Name, e.Entity.Path, e.Target.Details, e.Target.Type, e.Target.ID}
	}
	return out
}
