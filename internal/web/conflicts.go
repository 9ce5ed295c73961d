package web

import (
	"fmt"
	"strconv"
	"strings"

	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/project"
)

func (w *Web) conflictPages() {
	w.projectPage("GET merge_requests/{id}/conflicts", signedIn, w.showConflicts)
	w.projectPage("POST merge_requests/{id}/conflicts", signedIn, w.resolveConflicts)
}

// conflictsPage resolves the conflicts of a merge request.
type conflictsPage struct {
	planHead
	*merge.ConflictSet
	Path  string // of the merge request
	Form  form
	Shown []conflictView
}

func (conflictsPage) view() string    { return "project/conflicts" }
func (conflictsPage) wide() bool      { return true }
func (p conflictsPage) title() string { return "Resolve conflicts · " + p.Name() }

// conflictView is a file with conflicts in the form.
type conflictView struct {
	merge.ConflictFile
	Number int
	Edits  bool   // it is edited as a whole
	Text   string // that is edited
	Parts  []conflictPart
}

// conflictPart is a section of a file. Name is the name of its field, if it has a
// conflict.
type conflictPart struct {
	Name         string
	Chosen       string
	Ours, Theirs string
	Lines        []string // shown around conflicts
	Left         int      // lines that are not shown
}

// shownContext is the number of lines that are shown before and after a
// conflict.
const shownContext = 5

func (w *Web) conflicts(v *visit, ref project.Ref) (conflictsPage, error) {
	h, err := w.planHead(v, project.Place{Ref: ref}, "merges")
	if err != nil {
		return conflictsPage{}, err
	}
	iid, err := v.number("id")
	if err != nil {
		return conflictsPage{}, err
	}
	p := conflictsPage{planHead: h, Path: fmt.Sprintf("%smerge_requests/%d", h.Base, iid)}
	p.ConflictSet, err = w.Merges.Conflicts(v, v.actor, ref, iid)
	if errs.Is(err, errs.KindNotAllowed) {
		err = errs.Conflict("The merge request has no conflicts.").Because(err)
	}
	return p, err
}

func (w *Web) showConflicts(v *visit, ref project.Ref) error {
	p, err := w.conflicts(v, ref)
	if errs.Is(err, errs.KindConflict) {
		return v.redirectWithFlash(err, "", p.Path)
	}
	if err != nil {
		return err
	}
	p.Form = filled("message", p.Message)
	p.fill(form{}, -1)
	return v.show(p)
}

// fill prepares the files with the values of the submitted form. toggled is the
// file whose editor is opened or closed.
func (p *conflictsPage) fill(f form, toggled int) {
	for i, file := range p.Files {
		one := conflictView{ConflictFile: file, Number: i, Text: file.Content}
		if one.Edits = f.Get(fieldOf("mode", i)) == "edit"; one.Edits {
			one.Text = lines(f.Get(fieldOf("text", i)), file.Content)
		}
		if i == toggled {
			one.Edits = !one.Edits
		}
		n := 0
		for at, part := range file.Sections {
			view := conflictPart{}
			if part.Conflict {
				view.Name = fieldOf("choice", i) + "_" + strconv.Itoa(n)
				view.Chosen, view.Ours, view.Theirs = f.Get(view.Name), strings.Join(part.Ours, ""), strings.Join(part.Theirs, "")
				n++
			} else {
				view.Lines, view.Left = around(part.Lines, at > 0, at < len(file.Sections)-1)
			}
			one.Parts = append(one.Parts, view)
		}
		p.Shown = append(p.Shown, one)
	}
}

// around returns the lines of a section near the conflicts after or before it.
func around(list []string, before, after bool) (shown []string, left int) {
	most := 0
	if before {
		most += shownContext
	}
	if after {
		most += shownContext
	}
	if len(list) <= most+1 {
		return list, 0
	}
	if before {
		shown = append(shown, list[:shownContext]...)
	}
	shown = append(shown, fmt.Sprintf("… %d lines …\n", len(list)-most))
	if after {
		shown = append(shown, list[len(list)-shownContext:]...)
	}
	return shown, len(list) - most
}

func fieldOf(name string, file int) string { return name + "_" + strconv.Itoa(file) }

// resolveConflicts commits the resolution, or shows the form again to edit a file.
func (w *Web) resolveConflicts(v *visit, ref project.Ref) error {
	p, err := w.conflicts(v, ref)
	if errs.Is(err, errs.KindConflict) {
		return v.redirectWithFlash(err, "", p.Path)
	}
	if err != nil {
		return err
	}
	p.Form = v.sent()
	if edit := v.text("edit"); edit != "" {
		toggled, err := strconv.Atoi(edit)
		if err != nil {
			return errs.Invalid("Choose a file.")
		}
		p.fill(p.Form, toggled)
		return v.show(p)
	}
	r := merge.Resolution{Head: v.text("head"), Target: v.text("target"), Message: v.prose("message"), Files: map[string]merge.FileResolution{}}
	for i, file := range p.Files {
		var one merge.FileResolution
		if p.Form.Get(fieldOf("mode", i)) == "edit" {
			text := lines(p.Form.Get(fieldOf("text", i)), file.Content)
			one.Content = &text
		}
		n := 0
		for _, part := range file.Sections {
			if part.Conflict {
				one.Choices = append(one.Choices, p.Form.Get(fieldOf("choice", i)+"_"+strconv.Itoa(n)))
				n++
			}
		}
		r.Files[file.Path] = one
	}
	err = w.Merges.ResolveConflicts(v, v.actor, ref, p.Request.IID, r)
	if err == nil {
		return v.done("The conflicts were resolved.", p.Path)
	}
	if err := p.Form.refused(err); err != nil {
		return err
	}
	p.fill(p.Form, -1)
	return v.showForm(p, p.Form)
}
