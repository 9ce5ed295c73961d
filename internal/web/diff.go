package web

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/markup"
	"svc/internal/secret"
)

const (
	// diffFiles is how many files of a comparison a page shows.
	diffFiles = 50
	// maxFileLines is how long the text of one file may be to be shown at
	// once. All files on a page share maxText.
	maxFileLines = 500
	// leastRow is what a line has around it, at least.
	leastRow = 40
	// maxOneFile bounds a file that was asked for alone.
	maxOneFile = 10_000
	// maxHighlightedDiff is the most bytes of a text that are highlighted.
	maxHighlightedDiff = 64 << 10
)

// diffView is a part of a comparison: the files of one page.
type diffView struct {
	Files    []diffFile
	Total    int    // files in all
	Added    int    // lines in the files of this page
	Removed  int    // the same
	Parallel bool   // old and new side by side
	Only     string // the one file that was asked for
	Inline   string // addresses of the same page in either form
	Side     string
	All      string // the whole comparison, from the page of one file
	Pager    pager
	Threads  *lineThreads // nil where lines have no comments
}

// diffFile is what became of a file.
type diffFile struct {
	git.FileDiff
	ID     string        // of the element
	Body   template.HTML // lines of a table; empty when there is nothing to show
	Why    string        // why there is nothing
	Show   string        // the address that shows it all the same
	Before string        // raw, before and after: for pictures
	After  string
	File   string // its page
	Cut    bool
}

// Kind says in a word what happened.
func (f diffFile) Kind() string {
	switch {
	case f.New:
		return "Added"
	case f.Deleted:
		return "Deleted"
	case f.Renamed:
		return "Renamed"
	case f.ModeChanged() && f.OldID == f.NewID:
		return "Mode"
	}
	return "Changed"
}

// ModeChanged reports whether the file became another kind of file.
func (f diffFile) ModeChanged() bool {
	return !f.New && !f.Deleted && f.AMode != f.BMode
}

// Submodule reports whether it is another repository.
func (f diffFile) Submodule() bool { return f.AMode == "160000" || f.BMode == "160000" }

// Picture reports whether browsers show the file.
func (f diffFile) Picture() bool { return f.Binary && imageKind(f.NewPath) != "" }

// parallel is how the visitor wants to see comparisons: as the address says,
// and from then on.
func (v *visit) parallel() bool {
	const name = "diff_view"
	want := v.param("view")
	if want != "inline" && want != "parallel" {
		return v.cookie(name) == "parallel"
	}
	if v.cookie(name) != want {
		v.setCookie(name, want, "/", 365*24*time.Hour)
	}
	return want == "parallel"
}

// diffPaging is the part of a comparison that the visitor wants: a page of the
// files, or all of them to find one.
func (v *visit) diffPaging() db.Paging {
	if v.param("file") != "" {
		return db.Paging{Limit: 1 << 20}
	}
	return db.Paging{Limit: diffFiles, Offset: (v.pageNumber() - 1) * diffFiles}
}

// diffView draws the files. before and after are the commits that are compared,
// for the links to files as they were; a head without a project has none.
func (v *visit) diffView(h head, files db.Page[git.FileDiff], before, after git.OID, threads *lineThreads) diffView {
	address := func(name, value string) string {
		q := v.r.URL.Query()
		q.Set(name, value)
		if value == "" {
			q.Del(name)
		}
		if name == "file" {
			q.Del("page")
		}
		return "?" + q.Encode()
	}
	d := diffView{Total: files.Total, Parallel: v.parallel(), Only: v.param("file"), Inline: address("view", "inline"), Side: address("view", "parallel"), All: address("file", ""), Threads: threads}
	if d.Only == "" {
		d.Pager = v.pager(files.More)
	}
	size := 0
	for i, file := range files.Items {
		if d.Only != "" && file.NewPath != d.Only {
			continue
		}
		f := diffFile{FileDiff: file, ID: "file-" + strconv.Itoa(i), Show: address("file", file.NewPath)}
		d.Added, d.Removed = d.Added+f.Added, d.Removed+f.Removed
		if h.Project != nil {
			f.lead(h.Project.FullPath, before, after)
		}
		if f.Submodule() {
			f.File = ""
		}
		n := strings.Count(f.Diff, "\n")
		room := maxText - size
		if d.Only != "" {
			room = math.MaxInt
		}
		if f.Why, f.Cut = why(f, n, d.Only != ""); f.Why == "" {
			if len(f.Diff)+n*leastRow <= room { // else it need not be drawn to be seen too large
				f.Body = v.web.drawnDiff(v, f.NewPath, f.Diff, d.Parallel, threads.below(f.NewPath))
			}
			if f.Body == "" || len(f.Body) > room {
				f.Body, f.Why, f.Cut = "", folded(n), true
			}
			size += len(f.Body)
		}
		d.Files = append(d.Files, f)
	}
	return d
}

// lead finds the addresses of the file in a project, before and after.
func (f *diffFile) lead(in string, before, after git.OID) {
	if before != "" && !f.New {
		f.Before = pathTo(in, "-", "raw", string(before), f.OldPath)
	}
	f.File = pathTo(in, "-", "blob", string(before), f.OldPath)
	if !f.Deleted {
		f.After = pathTo(in, "-", "raw", string(after), f.NewPath)
		f.File = pathTo(in, "-", "blob", string(after), f.NewPath)
	}
}

// why says why the text of a file is not shown; cut, that it could be.
func why(f diffFile, lines int, alone bool) (text string, cut bool) {
	switch {
	case f.Binary:
		return "Binary file. No diff is shown.", false
	case f.TooLarge:
		return "The diff is too large to display.", false
	case f.Diff == "" && f.Renamed:
		return "The file was renamed without changes.", false
	case f.Diff == "" && f.ModeChanged():
		return "Only the file mode changed.", false
	case f.Diff == "":
		return "The file is empty.", false
	case alone && lines > maxOneFile:
		return "The diff has " + plural(lines, "line") + " and is too large to display.", false
	case alone:
		return "", false
	case lines > maxFileLines:
		return folded(lines), true
	}
	return "", false
}

func folded(lines int) string {
	return "The diff has " + plural(lines, "line") + " and is collapsed."
}

// diffLine is a line of a comparison: ' ' is in both files, '-' and '+' are in
// the old and the new one, '@' begins a part, and '\' is a remark.
type diffLine struct {
	kind     byte
	old, new int // numbers of lines
	html     string
}

// parseDiff takes the text of a comparison apart. Carriage returns that end
// every line are left out; where they differ they are shown.
func (w *Web) parseDiff(ctx context.Context, name, text string) []diffLine {
	raw := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	windows := true
	for _, line := range raw {
		if line != "" && strings.IndexByte(" +-", line[0]) >= 0 && !strings.HasSuffix(line, "\r") {
			windows = false
		}
	}
	list := make([]diffLine, 0, len(raw))
	var sides [2][]string // lines of the old and the new file
	var at [][2]int       // of each line in sides, or -1
	old, now := 0, 0
	for _, line := range raw {
		if line == "" {
			continue
		}
		l := diffLine{kind: line[0]}
		place := [2]int{-1, -1}
		content := line[1:]
		if windows {
			content = strings.TrimSuffix(content, "\r")
		}
		switch l.kind {
		case '@':
			old, now = hunk(line)
			content = line
		case ' ', '-', '+':
			if l.kind != '+' {
				l.old, place[0] = old, len(sides[0])
				sides[0] = append(sides[0], content)
				old++
			}
			if l.kind != '-' {
				l.new, place[1] = now, len(sides[1])
				sides[1] = append(sides[1], content)
				now++
			}
		case '\\':
			content = strings.TrimSpace(content)
		default:
			continue
		}
		l.html = template.HTMLEscapeString(shown(content))
		list, at = append(list, l), append(at, place)
	}
	w.highlightSides(ctx, name, list, sides, at)
	return list
}

// highlightSides highlights the lines, each file as far as it is known.
func (w *Web) highlightSides(ctx context.Context, name string, list []diffLine, sides [2][]string, at [][2]int) {
	for side, lines := range sides {
		text := strings.Join(lines, "\n")
		if len(text) == 0 || len(text) > maxHighlightedDiff {
			continue
		}
		highlighted, err := w.Markup.Lines(ctx, markup.Source{Name: name, Text: shownText(text)})
		if err != nil || len(highlighted) < len(lines) {
			continue // plain is good enough
		}
		for i, place := range at {
			if place[side] >= 0 {
				list[i].html = highlighted[place[side]]
			}
		}
	}
}

// hunk reads the first lines out of "@@ -1,2 +3,4 @@".
func hunk(line string) (old, now int) {
	for _, word := range strings.Fields(line) {
		number, _, _ := strings.Cut(strings.TrimLeft(word, "-+"), ",")
		n, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		switch word[0] {
		case '-':
			old = n
		case '+':
			return old, n
		}
	}
	return old, now
}

// drawnDiff is drawDiff for a text that may have been drawn before, if no one
// says anything about its lines.
func (w *Web) drawnDiff(ctx context.Context, name, text string, parallel bool, below map[lineAt]template.HTML) template.HTML {
	if len(below) > 0 {
		return w.drawDiff(ctx, name, text, parallel, below)
	}
	key := rendering{name: fmt.Sprint("changes of ", name, parallel), id: git.OID(secret.Digest(text))}
	html, ok := w.painted.get(key)
	if !ok {
		html = w.drawDiff(ctx, name, text, parallel, nil)
		if !markup.Degraded(ctx) {
			w.painted.put(key, html)
		}
	}
	return html
}

// drawDiff makes the rows of a table. There may be thousands, so they are
// drawn without a template, and numbers and signs are left to the stylesheet:
// who copies lines gets the lines alone. The threads on a line are below
// it.
func (w *Web) drawDiff(ctx context.Context, name, text string, parallel bool, below map[lineAt]template.HTML) template.HTML {
	var b strings.Builder
	lines := w.parseDiff(ctx, name, text)
	if !parallel {
		for _, l := range lines {
			drawLine(&b, l)
			drawBelow(&b, "3", below, &l)
		}
		return template.HTML(b.String())
	}
	for i := 0; i < len(lines); {
		if k := lines[i].kind; k == '@' || k == '\\' {
			b.WriteString(`<tr class="` + class(k) + `"><td colspan="4">` + lines[i].html + "</td></tr>\n")
			i++
			continue
		}
		if lines[i].kind == ' ' {
			drawPair(&b, &lines[i], &lines[i])
			drawBelow(&b, "4", below, &lines[i])
			i++
			continue
		}
		removed, added := run(lines[i:], '-'), 0
		added = run(lines[i+removed:], '+')
		for n := range max(removed, added) {
			var old, now *diffLine
			if n < removed {
				old = &lines[i+n]
			}
			if n < added {
				now = &lines[i+removed+n]
			}
			drawPair(&b, old, now)
			drawBelow(&b, "4", below, old)
			drawBelow(&b, "4", below, now)
		}
		i += removed + added
	}
	return template.HTML(b.String())
}

// run is how many lines of a kind follow each other.
func run(lines []diffLine, kind byte) int {
	n := 0
	for n < len(lines) && lines[n].kind == kind {
		n++
	}
	return n
}

func class(kind byte) string {
	return map[byte]string{'@': "hunk", '\\': "hint", '+': "add", '-': "del", ' ': "same"}[kind]
}

func drawLine(b *strings.Builder, l diffLine) {
	if l.kind == '@' || l.kind == '\\' {
		b.WriteString(`<tr class="` + class(l.kind) + `"><td colspan="3">` + l.html + "</td></tr>\n")
		return
	}
	b.WriteString(`<tr class="` + class(l.kind) + `"><td` + number(l.old) + "></td><td" + number(l.new) + "></td><td>" + l.html + "</td></tr>\n")
}

func drawPair(b *strings.Builder, old, now *diffLine) {
	b.WriteString("<tr>")
	for i, l := range []*diffLine{old, now} {
		if l == nil {
			b.WriteString(`<td></td><td class="none"></td>`)
			continue
		}
		n := l.old
		if i == 1 {
			n = l.new
		}
		b.WriteString("<td" + number(n) + `></td><td class="` + class(l.kind) + `">` + l.html + "</td>")
	}
	b.WriteString("</tr>\n")
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return ` data-n="` + strconv.Itoa(n) + `"`
}
