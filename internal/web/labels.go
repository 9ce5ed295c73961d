package web

import (
	"strconv"

	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
)

func (w *Web) labelPages() {
	w.placePage("GET labels", anyone, w.labels)
	w.placePage("GET labels/new", signedIn, w.newLabel)
	w.placePage("POST labels", signedIn, w.createLabel)
	w.placePage("GET labels/{id}/edit", signedIn, w.editLabel)
	w.placePage("POST labels/{id}", signedIn, w.updateLabel)
	w.placePage("POST labels/{id}/delete", signedIn, w.deleteLabel)
	w.placePage("POST labels/{id}/subscribe", signedIn, w.subscribeLabel)
	w.projectPage("POST labels/{id}/promote", signedIn, ofProject(w.promoteLabel))
}

type labelsPage struct {
	planHead
	Rows   []labelRow
	Search string
	Pager  pager
}

// labelRow is a label in the list.
type labelRow struct {
	*plan.Label
	Own      bool // not inherited, and the visitor may change it
	Above    bool // inherited from a group
	Promotes bool
}

func (labelsPage) view() string    { return "shared/labels" }
func (p labelsPage) title() string { return "Labels · " + p.Name() }

func (w *Web) labels(v *visit, in project.Place) error {
	h, err := w.planHead(v, in, "labels")
	if err != nil {
		return err
	}
	p := labelsPage{planHead: h, Search: v.param("search")}
	page, err := w.Plan.Labels(v, v.actor, h.Place, plan.LabelFilter{Search: p.Search, Ancestors: true, Counts: true}, v.paging())
	if err != nil {
		return err
	}
	for _, l := range page.Items {
		own := h.owns(l.ProjectID, l.GroupID)
		p.Rows = append(p.Rows, labelRow{l, own && h.Plans, !own, own && h.Plans && h.grouped()})
	}
	p.Pager = v.pager(page.More)
	return v.show(p)
}

// owns reports whether an object belongs to this project or group itself.
func (h planHead) owns(projectID, groupID *int64) bool {
	if h.G != nil {
		return groupID != nil && *groupID == h.G.Group.ID
	}
	return projectID != nil && *projectID == h.P.Project.ID
}

// grouped reports whether this is a project of a group.
func (h planHead) grouped() bool {
	return h.P != nil && h.P.Project.Namespace.Kind == project.GroupNamespace
}

// labelForm is the form of a new or an existing label.
type labelForm struct {
	planHead
	ID   int64 // 0 for a new one
	Form form
}

func (labelForm) view() string { return "shared/label" }
func (p labelForm) title() string {
	if p.ID == 0 {
		return "New label · " + p.Name()
	}
	return "Edit label · " + p.Name()
}

func (w *Web) newLabel(v *visit, in project.Place) error {
	return w.showLabel(v, in, 0, filled("color", "#6d66f5"))
}

func (w *Web) showLabel(v *visit, in project.Place, id int64, f form) error {
	h, err := w.planHead(v, in, "labels")
	if err != nil {
		return err
	}
	if !h.Plans {
		return errs.Forbidden("")
	}
	f.only("title", "color", "description", "priority")
	return v.showForm(labelForm{h, id, f}, f)
}

func (w *Web) editLabel(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	l, err := w.Plan.Label(v, v.actor, in, strconv.FormatInt(id, 10))
	if err != nil {
		return err
	}
	f := filled("title", l.Name, "color", l.Color, "description", l.Description)
	if l.Priority != nil {
		f.Values.Set("priority", strconv.FormatInt(*l.Priority, 10))
	}
	return w.showLabel(v, in, id, f)
}

// labelFields reads the form of a label.
func (v *visit) labelFields(f *form, in project.Place) plan.LabelFields {
	name, color, text := v.text("title"), v.text("color"), v.text("description")
	fields := plan.LabelFields{Name: &name, Color: &color, Description: &text, SetPriority: !in.Group}
	if v.text("priority") != "" {
		n := v.whole(f, "priority")
		fields.Priority = &n
	}
	return fields
}

// saveLabel creates or changes a label, and shows the form again if it is
// refused.
func (w *Web) saveLabel(v *visit, in project.Place, id int64, done string, save func(plan.LabelFields) error) error {
	f := v.sent()
	fields := v.labelFields(&f, in)
	if !f.bad() {
		err := save(fields)
		if err == nil {
			return v.done(done, pathTo(placePath(in))+"/-/labels")
		}
		if err := f.refused(err); err != nil {
			return err
		}
	}
	return w.showLabel(v, in, id, f)
}

func (w *Web) createLabel(v *visit, in project.Place) error {
	return w.saveLabel(v, in, 0, "The label was created.", func(f plan.LabelFields) error {
		_, err := w.Plan.CreateLabel(v, v.actor, in, f)
		return err
	})
}

func (w *Web) updateLabel(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return w.saveLabel(v, in, id, "The label was updated.", func(f plan.LabelFields) error {
		_, err := w.Plan.UpdateLabel(v, v.actor, in, strconv.FormatInt(id, 10), f)
		return err
	})
}

// onLabel runs an action on the label that the URL names.
func (w *Web) onLabel(v *visit, in project.Place, done string, do func(ref string) error) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(do(strconv.FormatInt(id, 10)), done, pathTo(placePath(in))+"/-/labels")
}

func (w *Web) deleteLabel(v *visit, in project.Place) error {
	return w.onLabel(v, in, "The label was deleted.", func(ref string) error { return w.Plan.DeleteLabel(v, v.actor, in, ref, nil) })
}

func (w *Web) subscribeLabel(v *visit, in project.Place) error {
	want := v.ticked("want")
	done := map[bool]string{true: "You will be notified of issues with this label.", false: "You will no longer be notified of this label."}[want]
	return w.onLabel(v, in, done, func(ref string) error {
		_, _, err := w.Plan.SubscribeLabel(v, v.actor, in, ref, want)
		return err
	})
}

func (w *Web) promoteLabel(v *visit, in project.Place) error {
	return w.onLabel(v, in, "The label was promoted to a group label.", func(ref string) error {
		_, err := w.Plan.PromoteLabel(v, v.actor, in.Ref, ref)
		return err
	})
}
