package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/snippet"
)

// snippetForm is the form of a snippet.
type snippetForm struct {
	head                     // without a project for one of a user
	Snippet *snippet.Snippet // nil for a new one
	Form    form
	Rows    []snippetRow
	Kept    []string      // files that cannot be edited in a form; they are kept
	Look    template.HTML // preview of the description
	Version string        // state of the snippet that is edited: see snippetVersion
	To      string        // URL of the form
	Back    string
}

// snippetRow is a file in the form.
type snippetRow struct{ Was, Path, Content string }

func (snippetForm) view() string { return "shared/snippet_form" }

func (p snippetForm) title() string {
	if p.Snippet == nil {
		return "New snippet"
	}
	return "Edit " + p.Snippet.Title
}

// Base returns the URL of previews, completion and uploads of the description.
func (p snippetForm) Base() string { return strings.TrimSuffix(snippetBase(p.Project), "snippets") }

// MoreFiles reports whether there is room for another file.
func (p snippetForm) MoreFiles() bool { return len(p.Rows)+len(p.Kept) < snippet.MaxFiles }

func (w *Web) snippetForm(v *visit, in *project.Ref) (snippetForm, error) {
	h, err := w.snippetHead(v, in)
	if err != nil {
		return snippetForm{}, err
	}
	if in != nil && !h.Snippets {
		return snippetForm{}, errs.NotFound("")
	}
	p := snippetForm{head: h, To: snippetBase(h.Project), Back: snippetBase(h.Project)}
	if in == nil {
		p.Back = "/dashboard/snippets"
	}
	if !snippet.MayCreate(v.actor, h.Project) {
		return p, errs.Forbidden("You are not allowed to create snippets here.")
	}
	return p, nil
}

func (w *Web) newSnippetForm(v *visit, in *project.Ref) error {
	p, err := w.snippetForm(v, in)
	if err != nil {
		return err
	}
	p.Form, p.Rows = filled("visibility", "private"), []snippetRow{{}}
	return v.show(p)
}

// sentRows returns the submitted files of a form.
func (v *visit) sentRows() []snippetRow {
	was, paths, contents := v.r.PostForm["was"], v.r.PostForm["path"], v.r.PostForm["content"]
	at := func(list []string, i int) string {
		if i < len(list) {
			return list[i]
		}
		return ""
	}
	var rows []snippetRow
	for i := range min(len(paths), 2*snippet.MaxFiles) {
		rows = append(rows, snippetRow{at(was, i), paths[i], at(contents, i)})
	}
	return rows
}

// fieldsOf returns the fields of the form; before are the existing files.
func (v *visit) snippetFields(rows []snippetRow, before map[string]string) snippet.Fields {
	title, text, visibility := v.text("title"), v.prose("description"), project.Visibility(v.text("visibility"))
	f := snippet.Fields{Title: &title, Description: &text, Visibility: &visibility, UserAgent: v.r.UserAgent()}
	for _, r := range rows {
		content, known := before[r.Was]
		now := lines(r.Content, content)
		switch {
		case r.Was == "" && r.Path == "" && r.Content == "":
		case r.Was == "" || !known:
			f.Files = append(f.Files, snippet.FileChange{Kind: git.Create, Path: r.Path, Content: now, HasContent: true})
		case r.Path == "":
			f.Files = append(f.Files, snippet.FileChange{Kind: git.Delete, Path: r.Was})
		case r.Path != r.Was:
			f.Files = append(f.Files, snippet.FileChange{Kind: git.Move, From: r.Was, Path: r.Path, Content: now, HasContent: true})
		case now != content:
			f.Files = append(f.Files, snippet.FileChange{Kind: git.Modify, Path: r.Path, Content: now, HasContent: true})
		}
	}
	return f
}

func (w *Web) newSnippet(v *visit, in *project.Ref) error {
	p, err := w.snippetForm(v, in)
	if err != nil {
		return err
	}
	p.Rows = v.sentRows()
	if v.ticked("preview") {
		return w.previewSnippet(v, p)
	}
	s, err := w.Snippets.Create(v, v.actor, in, v.snippetFields(p.Rows, nil))
	if err == nil {
		return v.done("The snippet was created.", snippetAddress(s))
	}
	return p.refused(v, err)
}

// refused shows the form again with the submitted values.
func (p snippetForm) refused(v *visit, err error) error {
	p.Form = v.sent()
	if len(p.Rows) == 0 {
		p.Rows = []snippetRow{{}}
	}
	if err := p.Form.refused(err); err != nil {
		return err
	}
	p.Form.only("title", "description")
	return v.again(p)
}

// previewSnippet shows the form again with the rendered description.
func (w *Web) previewSnippet(v *visit, p snippetForm) error {
	if p.Form = v.sent(); len(p.Rows) == 0 {
		p.Rows = []snippetRow{{}}
	}
	var err error
	if p.Look, err = w.renderDescription(v, p.Project, p.Form.Get("description")); err != nil {
		return err
	}
	return v.show(p)
}

// renderDescription renders the description of a snippet. in is nil for a personal
// snippet.
func (w *Web) renderDescription(v *visit, in *project.Project, source string) (template.HTML, error) {
	var ref *project.Ref
	if in != nil {
		r := project.RefTo(in.ID)
		ref = &r
	}
	text, err := w.Plan.Render(v, v.actor, ref, source)
	return template.HTML(text), err // Render has cleaned it
}

// snippetEdit is the form of an existing snippet, with the texts of its files.
func (w *Web) snippetEdit(v *visit, in *project.Ref) (snippetForm, map[string]string, error) {
	var p snippetForm
	s, err := w.findSnippet(v, in)
	if err != nil {
		return p, nil, err
	}
	if err := notChangeable(s, v); err != nil {
		return p, nil, err
	}
	p.Snippet, p.To, p.Back = s, snippetAddress(s), snippetAddress(s)
	if p.head, err = w.snippetHead(v, in); err != nil {
		return p, nil, err
	}
	files, err := w.Snippets.Files(v, s)
	if err != nil {
		return p, nil, err
	}
	texts := map[string]string{}
	for _, f := range files {
		b, err := f.Read(v, maxSnippetFile)
		if err != nil {
			return p, nil, err
		}
		text, ok := editableText(b)
		if !ok || f.Size > maxSnippetFile {
			p.Kept = append(p.Kept, f.Path)
			continue
		}
		texts[f.Path] = text
		p.Rows = append(p.Rows, snippetRow{f.Path, f.Path, text})
	}
	return p, texts, nil
}

func (w *Web) editSnippetForm(v *visit, in *project.Ref) error {
	p, before, err := w.snippetEdit(v, in)
	if err != nil {
		return err
	}
	p.Form = filled("title", p.Snippet.Title, "description", p.Snippet.Description, "visibility", string(p.Snippet.Visibility))
	p.Version = snippetVersion(p.Snippet, before)
	return v.show(p)
}

// snippetVersion identifies the editable fields and texts of a snippet.
func snippetVersion(s *snippet.Snippet, texts map[string]string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(h, "%q %q ", name, texts[name])
	}
	fmt.Fprintf(h, "%q %q %q", s.Title, s.Description, s.Visibility)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (w *Web) editSnippet(v *visit, in *project.Ref) error {
	p, before, err := w.snippetEdit(v, in)
	if err != nil {
		return err
	}
	p.Rows, p.Version = v.sentRows(), v.text("version")
	if v.ticked("preview") {
		return w.previewSnippet(v, p)
	}
	if now := snippetVersion(p.Snippet, before); p.Version != "" && p.Version != now {
		p.Version = now
		return p.refused(v, errs.Conflict("The snippet has changed since you started editing. Save again to overwrite these changes."))
	}
	s, err := w.Snippets.Update(v, v.actor, in, p.Snippet.ID, v.snippetFields(p.Rows, before), nil)
	if err == nil {
		return v.done("The snippet was updated.", snippetAddress(s))
	}
	return p.refused(v, err)
}
