package web

import (
	"strconv"
	"time"

	"svc/internal/audit"
	"svc/internal/errs"
	"svc/internal/project"
)

func (w *Web) adminAuditPages() {
	w.page("GET /admin/audit_logs", admins, w.auditLog)
}

type auditPage struct {
	Form   form
	Types  []option
	Events []audit.Event
	Pager  pager
}

func (auditPage) view() string  { return "admin/audit" }
func (auditPage) title() string { return "Audit events · Admin area" }

func (w *Web) auditLog(v *visit) error {
	p := auditPage{Form: form{Values: v.r.URL.Query()}, Types: []option{
		{"", "All types"}, {string(audit.UserEntity), "Users"}, {string(audit.GroupEntity), "Groups"}, {string(audit.ProjectEntity), "Projects"},
		{string(audit.InstanceEntity), "Instance"},
	}}
	f, ok, err := w.auditFilter(v, &p.Form)
	if err != nil {
		return err
	}
	if ok {
		page, err := w.Audit.List(v, v.actor, f, v.paging())
		if err != nil {
			return err
		}
		p.Events, p.Pager = page.Items, v.pager(page.More)
	}
	return v.showForm(p, p.Form)
}

// auditFilter reads the filter of the form. ok is false if it names a user or
// an object that does not exist.
func (w *Web) auditFilter(v *visit, form *form) (f audit.Filter, ok bool, err error) {
	if name := v.param("author"); name != "" {
		u, err := w.findUser(v, name)
		if errs.Is(err, errs.KindNotFound) {
			form.wrong("author", "is not an existing username")
			return f, false, nil
		}
		if err != nil {
			return f, false, err
		}
		f.AuthorID = u.ID
	}
	f.EntityType = audit.EntityType(v.param("entity_type"))
	if name := v.param("entity"); name != "" {
		if f.EntityID, err = w.entityID(v, f.EntityType, name); errs.Is(err, errs.KindNotFound) {
			form.wrong("entity", "was not found; select an entity type as well")
			return f, false, nil
		}
		if err != nil {
			return f, false, err
		}
	}
	for name, to := range map[string]**time.Time{"created_after": &f.CreatedAfter, "created_before": &f.CreatedBefore} {
		text := v.param(name)
		if text == "" {
			continue
		}
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			form.wrong(name, "is not a date")
			return f, false, nil
		}
		if name == "created_before" { // the whole day
			at = at.AddDate(0, 0, 1)
		}
		*to = &at
	}
	return f, true, nil
}

// entityID returns the ID of an object by its name or ID. A deleted object is
// found by its ID.
func (w *Web) entityID(v *visit, kind audit.EntityType, name string) (int64, error) {
	if id, err := strconv.ParseInt(name, 10, 64); err == nil {
		if kind == "" {
			return 0, errs.NotFound("")
		}
		return id, nil
	}
	switch kind {
	case audit.UserEntity:
		u, err := w.findUser(v, name)
		if err != nil {
			return 0, err
		}
		return u.ID, nil
	case audit.GroupEntity:
		n, err := w.Projects.Group(v, v.actor, project.Ref(name))
		if err != nil {
			return 0, err
		}
		return n.ID, nil
	case audit.ProjectEntity:
		p, err := w.Projects.Require(v, v.actor, project.Ref(name), project.NoAccess)
		if err != nil {
			return 0, err
		}
		return p.ID, nil
	}
	return 0, errs.NotFound("")
}
