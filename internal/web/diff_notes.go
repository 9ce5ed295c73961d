package web

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/plan/diffnote"
	"svc/internal/project"
)

// lineAt is a line of the diff of a file: its numbers in the old and in the new
// file, 0 if it is not in that file.
type lineAt struct{ old, new int }

// String returns the line as forms and scripts name it.
func (l lineAt) String() string { return fmt.Sprintf("%d_%d", l.old, l.new) }

// lineNotes has the threads on the lines of a file.
type lineNotes struct {
	at map[lineAt]template.HTML
	// newSide means that lines are identified by their number in the new file only,
	// because the threads are not about this old file.
	newSide bool
}

// drawBelow writes the threads of a line below it.
func drawBelow(b *strings.Builder, columns string, below lineNotes, l *diffLine) {
	if l == nil || below.at == nil {
		return
	}
	at := lineAt{l.old, l.new}
	if below.newSide {
		at.old = 0
	}
	html := below.at[at]
	if l.old != 0 && l.new != 0 && !below.newSide {
		// If whitespace changes are hidden, a changed line may look unchanged.
		html += below.at[lineAt{old: l.old}] + below.at[lineAt{new: l.new}]
	}
	if html != "" {
		b.WriteString(`<tr class="talkrow"><td colspan="` + columns + `">` + string(html) + "</td></tr>\n")
	}
}

// lineThreads has the threads on the lines of a diff, and the form for new ones.
type lineThreads struct {
	Action  string // empty if the user may not comment
	Token   string
	Version int64
	NewSide bool // two versions are compared: only lines of the newer one can have comments
	Count   plan.ThreadCount
	List    []threadLink  // all threads
	Review  string        // see discussions
	Bar     template.HTML // the review bar, for scripts

	drafts map[string][]placedDraft // by the new path
	reply  map[string][]draftView   // by discussion
	w      *Web
	v      *visit
	on     plan.Noteable
	show   discussions
	files  map[string][]placedThread // by the new path
	wanted int64                     // ID of the note that the URL names
	err    error                     // of drawing
}

// placedThread is a thread with its position in the diff that is shown.
type placedThread struct {
	*plan.Discussion
	at *diffnote.Position
}

// threadLink is a link to a thread.
type threadLink struct {
	Note     int64
	File     string // diffnote.FileCode; empty if it is not in this diff
	Where    string
	Text     string // beginning of its text
	Author   string
	To       string
	Open     bool
	Outdated bool // its line has changed since
}

// Next is the first open thread.
func (t *lineThreads) Next() string {
	for _, l := range t.List {
		if l.Open {
			return l.To
		}
	}
	return ""
}

// wantedFile is the file with the note that the URL names.
func (t *lineThreads) wantedFile() string {
	if t == nil || t.wanted == 0 {
		return ""
	}
	for path, list := range t.files {
		for _, one := range list {
			for _, n := range one.Notes {
				if n.ID == t.wanted {
					return path
				}
			}
		}
	}
	return ""
}

// elsewhere returns the URL of the requested note if it is in another version.
func (t *lineThreads) elsewhere() string {
	for _, l := range t.List {
		if l.Outdated && l.Note == t.wanted {
			return l.To
		}
	}
	return ""
}

// count is the number of threads on a file.
func (t *lineThreads) count(path string) int {
	if t == nil {
		return 0
	}
	return len(t.files[path])
}

// failure is the error of the threads that were drawn.
func (t *lineThreads) failure() error {
	if t == nil {
		return nil
	}
	return t.err
}

// of draws the threads of a file: those on its lines, unless no lines are shown,
// and those on the file as a whole.
func (t *lineThreads) of(path string, lines bool) (below lineNotes, above template.HTML) {
	if t == nil {
		return below, ""
	}
	below = lineNotes{at: map[lineAt]template.HTML{}, newSide: t.NewSide}
	var list []placedThread
	for _, one := range t.files[path] {
		if lines || one.at.Type != diffnote.OnText {
			list = append(list, one)
		}
	}
	t.draw(list, func(p *diffnote.Position, html template.HTML) {
		if p.Type == diffnote.OnText {
			below.at[t.lineOf(p.OldLine, p.NewLine)] += html
		} else {
			above += html
		}
	})
	t.drawDrafts(path, lines, &below, &above)
	return below, above
}

func (t *lineThreads) lineOf(old, now *int64) (at lineAt) {
	if old != nil && !t.NewSide {
		at.old = int(*old)
	}
	if now != nil {
		at.new = int(*now)
	}
	return at
}

// draw draws threads.
func (t *lineThreads) draw(placed []placedThread, yield func(*diffnote.Position, template.HTML)) {
	if len(placed) == 0 || t.err != nil {
		return
	}
	list := make([]*plan.Discussion, len(placed))
	for i, one := range placed {
		list[i] = one.Discussion
	}
	threads, _, err := t.w.threads(t.v, t.on, t.show.At, list)
	if err != nil {
		t.err = err
		return
	}
	for i, one := range threads {
		at := placed[i].at
		one.There, one.Where, one.Drafts = "", "", t.reply[one.ID] // it is here
		from, to := t.lineOf(at.OldLine, at.NewLine), t.lineOf(at.OldLine, at.NewLine)
		if at.Range != nil {
			from = t.lineOf(at.Range.Start.OldLine, at.Range.Start.NewLine)
			if text := rangeText(at); text != "" {
				one.Where = "Comment on " + text
			}
		}
		html, err := t.w.part("project/merge", "thread", pair{&frame{visit: t.v, Now: t.w.Now()}, pair{t.show, one}})
		if err != nil {
			t.err = err
			return
		}
		class := "thread"
		if one.Settled != nil {
			class += " settled"
		}
		yield(at, template.HTML(fmt.Sprintf(`<div class="%s" data-from="%s" data-to="%s">%s</div>`, class, from, to, html)))
	}
}

// rangeText names the lines of a position: "lines +12 to +18". It is empty for a
// position on a single line.
func rangeText(p *diffnote.Position) string {
	if p.Range == nil {
		return ""
	}
	from, to := lineText(p.Range.Start.OldLine, p.Range.Start.NewLine), lineText(p.Range.End.OldLine, p.Range.End.NewLine)
	if from == to {
		return ""
	}
	return "lines " + from + " to " + to
}

// lineText is the number of a line, with a sign if it was added or removed.
func lineText(old, now *int64) string {
	switch {
	case now != nil && old == nil:
		return "+" + strconv.FormatInt(*now, 10)
	case now != nil:
		return strconv.FormatInt(*now, 10)
	case old != nil:
		return "−" + strconv.FormatInt(*old, 10)
	}
	return ""
}

// maxThreads is the maximum number of threads shown in the changes of a merge
// request.
const maxThreads = 500

// lineThreads reads the threads of a merge request and places those on diffs in
// the version that is shown.
func (w *Web) lineThreads(v *visit, p *mergePage, found *merge.Contents) (*lineThreads, error) {
	on, err := w.Merges.OnMergeRequest(v, v.actor, p.Place.Ref, p.IID)
	if err != nil {
		return nil, err
	}
	t := &lineThreads{Version: found.Version.ID, NewSide: found.From != nil, w: w, v: v, on: on, files: map[string][]placedThread{}}
	t.show = discussions{At: p.Path, Base: p.Base, Noun: "merge request", Settles: on.CanResolve(v.actor), Insider: on.Insider, May: on.CanComment(v.actor)}
	if t.show.May {
		t.Action, t.Token = p.Path+"/diff_notes", v.csrf()
	}
	t.Review, t.show.Review, t.show.Follow = p.Review.Label(), p.Review.Label(), p.Box.FollowUp
	if err := t.placeDrafts(p, found); err != nil {
		return nil, err
	}
	if t.Count, err = w.Plan.CountThreads(v, on); err != nil || t.Count.Total == 0 {
		return t, err
	}
	page, err := w.Plan.Threads(v, on, db.Paging{Limit: maxThreads})
	if err != nil {
		return nil, err
	}
	if t.wanted, err = strconv.ParseInt(v.param("note"), 10, 64); err != nil {
		t.wanted = 0
	}
	var list []*plan.Discussion
	var at []*diffnote.Position
	for _, d := range page.Items {
		if first := d.Notes[0].Position; first != nil {
			list, at = append(list, d), append(at, first)
		}
	}
	traced, err := w.Merges.Trace(v, found, at)
	if err != nil {
		return nil, err
	}
	shown := map[string]bool{}
	for _, f := range found.Diff.Files {
		shown[f.NewPath] = true
	}
	now := map[*plan.Discussion]*diffnote.Position{}
	for i, d := range list {
		if traced[i] != nil && !shown[traced[i].NewPath] {
			continue // its file does not differ between the two versions
		}
		if now[d] = traced[i]; traced[i] != nil && (!t.NewSide || traced[i].NewLine != nil || traced[i].Type != diffnote.OnText) {
			t.files[traced[i].NewPath] = append(t.files[traced[i].NewPath], placedThread{d, traced[i]})
		}
	}
	for _, d := range page.Items {
		t.List = append(t.List, t.link(p, d, now[d]))
	}
	return t, nil
}

// link makes the link to a thread: on this page, in the version that it was
// written for, or on the overview.
func (t *lineThreads) link(p *mergePage, d *plan.Discussion, now *diffnote.Position) threadLink {
	first := d.Notes[0]
	text, _, _ := strings.Cut(strings.TrimSpace(first.Body), "\n")
	l := threadLink{Note: first.ID, Text: strings.ToValidUTF8(text[:min(len(text), 80)], ""), Open: first.ResolvedAt == nil, To: fmt.Sprintf("%s#note_%d", p.Path, first.ID)}
	if first.Author != nil {
		l.Author = first.Author.Name
	}
	switch {
	case now != nil:
		l.File, l.Where = diffnote.FileCode(now.NewPath), positionText(now)
		l.To = fmt.Sprintf("%s#note_%d", t.v.diffAddress("note", strconv.FormatInt(first.ID, 10)), first.ID)
	case first.Position != nil && t.NewSide:
		l.Where, l.To = positionText(first.Position), fmt.Sprintf("%s/diffs?note=%d#note_%[2]d", p.Path, first.ID)
	case first.Position != nil:
		l.Outdated, l.Where = true, positionText(first.Position)
		for _, version := range p.Versions {
			if version.Head == first.Position.HeadSHA && version.Base == first.Position.BaseSHA {
				l.To = fmt.Sprintf("%s/diffs?%s#note_%d", p.Path, encode("diff_id", fmt.Sprint(version.ID), "note", fmt.Sprint(first.ID)), first.ID)
			}
		}
	}
	return l
}

// createDiffNote starts a thread on lines of the changes, or on a file.
func (w *Web) createDiffNote(v *visit, ref project.Ref) error {
	p, err := w.mergeRequest(v, ref)
	if err != nil {
		return err
	}
	on, err := w.Merges.OnMergeRequest(v, v.actor, p.Place.Ref, p.IID)
	if err != nil {
		return err
	}
	position, version, err := w.sentPosition(v, &p, on)
	if err != nil {
		return w.refuseDiffNote(v, &p, version, err)
	}
	if v.ticked("review") {
		return w.addDiffDraft(v, &p, version, merge.NewDraft{Body: v.text("note"), Position: position})
	}
	n, err := w.Plan.CreateNote(v, v.actor, on, plan.NewNote{Body: v.text("note"), Position: position})
	if err != nil {
		return w.refuseDiffNote(v, &p, version, err)
	}
	to := fmt.Sprintf("%s/diffs?diff_id=%d", p.Path, version)
	if n.ID != 0 {
		to = fmt.Sprintf("%s/diffs?%s#note_%d", p.Path, encode("diff_id", fmt.Sprint(version), "note", fmt.Sprint(n.ID)), n.ID)
	}
	if v.param("fragment") != "" {
		return w.showStored(v, &p, to)
	}
	v.flashCommands(n.Commands)
	return v.redirect(to)
}

// showStored responds to a script with the file of a comment that was stored. If
// the shown version does not have the file, it redirects to a page that does: after
// an error the script would not know that the comment was stored.
func (w *Web) showStored(v *visit, p *mergePage, to string) error {
	if err := w.mergeChanges(v, p); err != nil {
		return err
	}
	if len(p.Diff.Files) == 0 {
		return v.done("Your comment was saved. The latest version does not contain its file.", to)
	}
	return v.showDiff(*p, p.Diff)
}

// refuseDiffNote shows why a comment was refused, to the script or on the page.
func (w *Web) refuseDiffNote(v *visit, p *mergePage, version int64, err error) error {
	if e, ok := errs.As(err); ok && v.param("fragment") != "" && e.Kind == errs.KindInvalid {
		v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		v.w.WriteHeader(422)
		_, _ = v.w.Write([]byte(sentence(e)))
		return nil
	}
	if version == 0 {
		return err
	}
	return v.redirectWithFlash(err, "", fmt.Sprintf("%s/diffs?diff_id=%d", p.Path, version))
}

// sentPosition reads the position of a new thread. The form names lines by both
// numbers (from, to: "12_13"), or by a number on one side (side, line and, for
// several lines, first), or none for the whole file (type).
func (w *Web) sentPosition(v *visit, p *mergePage, on plan.Noteable) (*diffnote.Position, int64, error) {
	f := v.sent()
	version, line, first := v.whole(&f, "version"), v.whole(&f, "line"), v.whole(&f, "first")
	if f.bad() {
		return nil, 0, errs.Invalid("Enter a line number.")
	}
	found, err := w.Merges.Contents(v, v.actor, p.Place.Ref, p.IID, merge.Part{VersionID: version})
	if err != nil {
		return nil, 0, err
	}
	at := found.Version
	position := &diffnote.Position{BaseSHA: at.Base, StartSHA: at.Start, HeadSHA: at.Head, Type: diffnote.OnText, NewPath: f.Get("path")}
	if v.text("type") == "file" {
		position.Type = diffnote.OnFile
		return position, at.ID, nil
	}
	to, from := parseLine(v.text("to")), parseLine(v.text("from"))
	if to == (lineAt{}) {
		to, from = lineAt{new: int(line)}, lineAt{new: int(first)}
		if v.text("side") == "old" {
			to, from = lineAt{old: int(line)}, lineAt{old: int(first)}
		}
	}
	file, err := on.Diff(v, position)
	if errs.Is(err, errs.KindNotFound) {
		return nil, at.ID, errs.Invalid("The line is not part of the diff.")
	}
	if err != nil {
		return nil, at.ID, err
	}
	end, start := pointAt(file, to), pointAt(file, from)
	if end == nil {
		return nil, at.ID, errs.Invalid("The line is not part of the diff.")
	}
	position.OldLine, position.NewLine = end.OldLine, end.NewLine
	if start != nil && from != to {
		position.Range = &diffnote.LineRange{Start: *start, End: *end}
	}
	return position, at.ID, nil
}

// parseLine reads a line as lineAt.String writes it; the zero value for anything
// else.
func parseLine(text string) lineAt {
	old, now, _ := strings.Cut(text, "_")
	a, err := strconv.Atoi(old)
	b, wrong := strconv.Atoi(now)
	if err != nil || wrong != nil || a < 0 || b < 0 {
		return lineAt{}
	}
	return lineAt{a, b}
}

// pointAt finds a line of the diff of a file. A line that did not change may be
// named by one of its numbers.
func pointAt(f *git.FileDiff, at lineAt) *diffnote.LinePoint {
	if at == (lineAt{}) {
		return nil
	}
	for l := range f.Lines() {
		old, now := l.Old, l.New
		switch {
		case l.Kind == '+' && at.old == 0 && int64(at.new) == now:
			return &diffnote.LinePoint{NewLine: &now}
		case l.Kind == '-' && at.new == 0 && int64(at.old) == old:
			return &diffnote.LinePoint{OldLine: &old}
		case l.Kind == ' ' && (at.old == 0 || int64(at.old) == old) && (at.new == 0 || int64(at.new) == now):
			return &diffnote.LinePoint{OldLine: &old, NewLine: &now}
		}
	}
	return nil
}
