package web

import (
	"encoding/json"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/upload"
)

func (w *Web) editorPages() {
	w.placePage("POST preview_markdown", signedIn, w.showPreview)
	w.page("POST /-/preview_markdown", signedIn, w.previewPersonal)
	w.projectPage("POST uploads", sender, w.sendUpload)
	w.projectPage("GET templates/{type}/{name}", signedIn, w.descriptionTemplate)
}

// showPreview sends the script a rendered text, and describes what its quick
// actions will do to the issue or merge request of the page.
func (w *Web) showPreview(v *visit, in project.Place) error {
	var on *plan.CommandTarget
	if !in.Group && v.param("on") != "" {
		var err error
		if on, err = w.commandTarget(v, in.Ref, v.param("on"), v.param("iid")); err != nil {
			return err
		}
	}
	html, err := w.previewOn(v, in, on, v.r.PostForm.Get("text"))
	if err != nil {
		return err
	}
	v.sendPreview(html)
	return nil
}

// previewPersonal sends the script the rendered description of a personal snippet.
func (w *Web) previewPersonal(v *visit) error {
	html, err := w.renderDescription(v, nil, v.r.PostForm.Get("text"))
	if err != nil {
		return err
	}
	v.sendPreview(html)
	return nil
}

func (v *visit) sendPreview(html template.HTML) {
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.Header().Set("Cache-Control", "no-store")
	_, _ = v.w.Write([]byte(html))
}

// descriptionTemplate sends the script a description template.
func (w *Web) descriptionTemplate(v *visit, ref project.Ref) error {
	kind := map[string]plan.Kind{"issue": plan.IssueKind, "merge_request": plan.MergeKind}[chi.URLParam(v.r, "type")]
	if kind == "" {
		return errs.NotFound("")
	}
	text, err := w.Plan.DescriptionTemplate(v, v.actor, ref, kind, chi.URLParam(v.r, "name"))
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	v.w.Header().Set("Cache-Control", "no-store")
	_, _ = v.w.Write([]byte(text))
	return nil
}

// fillTemplates adds the choice of description templates to the form of a new
// issue or merge request, and sets the description to the template that the
// address names or the default.
func (w *Web) fillTemplates(v *visit, p *planForm, in *project.Project, kind plan.Kind) (err error) {
	p.TemplateType = map[plan.Kind]string{plan.IssueKind: "issue", plan.MergeKind: "merge_request"}[kind]
	p.Templates, err = w.Plan.DescriptionTemplates(v, v.actor, project.RefTo(in.ID), kind)
	if err != nil && !errs.IsRefusal(err) {
		return err
	}
	if v.r.Method != http.MethodGet || p.Form.Get("description") != "" {
		return nil
	}
	text := ""
	if name := v.param("issuable_template"); slices.Contains(p.Templates, name) {
		text, err = w.Plan.DescriptionTemplate(v, v.actor, project.RefTo(in.ID), kind, name)
	} else {
		text, err = w.Plan.DefaultDescription(v, v.actor, in, kind)
	}
	p.Form.Values.Set("description", text)
	return err
}

// preview renders a text for its author.
func (w *Web) preview(v *visit, in project.Place, source string) (template.HTML, error) {
	list, err := w.renderAll(v, in, plan.Text{Source: source})
	if err != nil {
		return "", err
	}
	return list[0], nil
}

// previewOn renders a text for an issue or merge request, and describes below
// it what its quick actions will do. on is nil for a text whose quick actions
// do not run.
func (w *Web) previewOn(v *visit, in project.Place, on *plan.CommandTarget, source string) (template.HTML, error) {
	if on == nil || len(source) > plan.MaxText { // preview refuses a text that is too long
		return w.preview(v, in, source)
	}
	e, err := w.Plan.Explain(v, v.actor, in.Ref, on, source)
	if err != nil {
		return "", err
	}
	html, err := w.preview(v, in, e.Text)
	if err != nil || len(e.Effects)+len(e.Refused) == 0 {
		return html, err
	}
	b := strings.Builder{}
	b.WriteString(string(html) + `<div class="effects" role="note"><b>Quick actions</b><ul>`)
	for _, text := range e.Effects {
		b.WriteString("<li>" + template.HTMLEscapeString(text) + "</li>")
	}
	for _, text := range e.Refused {
		b.WriteString(`<li class="refused">` + template.HTMLEscapeString(text) + "</li>")
	}
	b.WriteString("</ul></div>")
	return template.HTML(b.String()), nil
}

// renderAll renders texts of a project or group. References are resolved only
// in a project.
func (w *Web) renderAll(v *visit, in project.Place, texts ...plan.Text) ([]template.HTML, error) {
	ref := &in.Ref
	if in.Group {
		if _, err := w.Projects.RequireGroup(v, v.actor, in.Ref, project.NoAccess); err != nil {
			return nil, err
		}
		ref = nil
	}
	list, err := w.Plan.RenderAll(v, v.actor, ref, texts...)
	if err != nil {
		return nil, err
	}
	safe := make([]template.HTML, len(list)) // markup has cleaned them
	for i, html := range list {
		safe[i] = template.HTML(html)
	}
	return safe, nil
}

// sendUpload stores a file that was dropped into a text, and returns the
// script what to write there.
func (w *Web) sendUpload(v *visit, ref project.Ref) error {
	name := path.Base(strings.ReplaceAll(v.param("name"), `\`, "/"))
	if name == "." || name == "/" || len(name) > 200 {
		return errs.Invalid("The file has no name.")
	}
	size := v.r.ContentLength
	if size < 0 {
		return errs.Invalid("The request has no Content-Length.")
	}
	u, err := w.Uploads.Add(v, v.actor, ref, name, size, http.MaxBytesReader(v.w, v.r.Body, upload.MaxSize))
	if err != nil {
		return err
	}
	link := "[" + strings.NewReplacer("[", "", "]", "", "\\", "").Replace(u.Name) + "](" +
		strings.NewReplacer("(", "%28", ")", "%29").Replace(u.Path()) + ")"
	if imageKind(u.Name) != "" {
		link = "!" + link
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Cache-Control", "no-store")
	return json.NewEncoder(v.w).Encode(map[string]string{"markdown": link})
}

// editor is a field for a text in Markdown, for the templates.
type editor struct {
	field
	Base    string // where the page's previews and uploads are
	Uploads bool
}

func newEditor(base string, uploads bool, f field) editor { return editor{f, base, uploads} }
