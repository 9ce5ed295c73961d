package web

import (
	"fmt"
	"html/template"
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
)

// lineAt is a line of the diff of a file: its number in the old and in the new
// one, 0 where it is not.
type lineAt struct{ old, new int }

// lineThreads has the threads on the lines of a diff, and the form for new ones.
type lineThreads struct {
	Action  string // empty if the user may not comment
	Token   string
	Version int64
	threads map[string]map[lineAt]template.HTML // by file
}

// below returns the threads on the lines of a file.
func (t *lineThreads) below(path string) map[lineAt]template.HTML {
	if t == nil {
		return nil
	}
	return t.threads[path]
}

// drawBelow writes the threads on a line below it.
func drawBelow(b *strings.Builder, columns string, below map[lineAt]template.HTML, l *diffLine) {
	if l == nil || below == nil {
		return
	}
	if html := below[lineAt{l.old, l.new}]; html != "" {
		b.WriteString(`<tr class="talkrow"><td colspan="` + columns + `">` + string(html) + "</td></tr>\n")
	}
}

// maxThreads is how many discussions are looked through for those about lines.
const maxThreads = 500

// lineThreads reads the threads on the lines of a version of a merge request.
func (w *Web) lineThreads(v *visit, p *mergePage, version *merge.Version) (*lineThreads, error) {
	on, err := w.Merges.OnMergeRequest(v, v.actor, p.Place.Ref, p.IID)
	if err != nil {
		return nil, err
	}
	page, err := w.Plan.Discussions(v, on, db.Paging{Limit: maxThreads})
	if err != nil {
		return nil, err
	}
	var list []*plan.Discussion
	for _, d := range page.Items {
		if at := d.Notes[0].Position; at != nil && at.HeadSHA == version.Head && at.BaseSHA == version.Base {
			list = append(list, d)
		}
	}
	threads, _, err := w.threads(v, on, p.Path, list)
	if err != nil {
		return nil, err
	}
	t := discussions{At: p.Path, Base: p.Base, Noun: "merge request", Settles: on.CanResolve(v.actor), Insider: on.Insider, May: on.CanComment(v.actor)}
	found := &lineThreads{Version: version.ID, threads: map[string]map[lineAt]template.HTML{}}
	if t.May {
		found.Action, found.Token = p.Path+"/diff_notes", v.csrf()
	}
	for _, one := range threads {
		position := one.Notes[0].Position
		at := lineAt{}
		if position.OldLine != nil {
			at.old = int(*position.OldLine)
		}
		if position.NewLine != nil {
			at.new = int(*position.NewLine)
		}
		one.There = "" // it is here
		html, err := w.part("project/merge", "thread", pair{frame{visit: v, Now: w.Now()}, pair{t, one}})
		if err != nil {
			return nil, err
		}
		if found.threads[position.NewPath] == nil {
			found.threads[position.NewPath] = map[lineAt]template.HTML{}
		}
		found.threads[position.NewPath][at] += `<div class="thread">` + html + "</div>"
	}
	return found, nil
}

// createDiffNote begins a thread about a line of the changes. The form names the line
// on one side; where it stands on the other the diff says.
func (w *Web) createDiffNote(v *visit, ref project.Ref) error {
	p, err := w.mergeRequest(v, ref)
	if err != nil {
		return err
	}
	f := v.sent()
	version, line := v.whole(&f, "version"), v.whole(&f, "line")
	if f.bad() {
		return errs.Invalid("Enter a line number.")
	}
	found, err := w.Merges.Contents(v, v.actor, p.Place.Ref, p.IID, merge.Part{VersionID: version, Diff: true})
	if err != nil {
		return err
	}
	position := &plan.Position{BaseSHA: found.Version.Base, StartSHA: found.Version.Start, HeadSHA: found.Version.Head, Type: plan.OnText, NewPath: f.Get("path")}
	for _, file := range found.Diff.Files {
		if file.NewPath != position.NewPath {
			continue
		}
		position.OldPath = file.OldPath
		for l := range file.Lines() {
			old := v.text("side") == "old"
			if old && l.Kind != '+' && l.Old == line || !old && l.Kind != '-' && l.New == line {
				if l.Kind != '+' {
					position.OldLine = &l.Old
				}
				if l.Kind != '-' {
					position.NewLine = &l.New
				}
				break
			}
		}
	}
	to := fmt.Sprintf("%s/diffs?diff_id=%d", p.Path, found.Version.ID)
	if position.OldLine == nil && position.NewLine == nil {
		return v.redirectWithFlash(errs.Invalid("The line is not part of the diff."), "", to)
	}
	on, err := w.Merges.OnMergeRequest(v, v.actor, p.Place.Ref, p.IID)
	if err != nil {
		return err
	}
	n, err := w.Plan.CreateNote(v, v.actor, on, plan.NewNote{Body: v.text("note"), Position: position})
	if err != nil {
		return v.redirectWithFlash(err, "", to)
	}
	return v.redirect(fmt.Sprintf("%s#note_%d", to, n.ID))
}
