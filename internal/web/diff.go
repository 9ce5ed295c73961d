package web

import (
	"bytes"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/plan/diffnote"
)

const (
	// diffFiles is the number of files of a comparison on a page.
	diffFiles = 50
	// maxFileLines is the maximum number of lines of a file that is shown at
	// once. All files of a page share maxDiffText.
	maxFileLines = 500
	// maxDiffText is the maximum size in bytes of the HTML of all files on a
	// page. Further files are loaded when they come into view.
	maxDiffText = 144 << 10
	// leastRow is the minimum overhead of a line in bytes.
	leastRow = 40
	// maxOneFile is the maximum size of a file that was requested alone.
	maxOneFile = 10_000
	// allContext is the number of lines around a change that shows whole files.
	allContext = 1 << 20
)

// diffSource is a comparison to be shown.
type diffSource struct {
	head          head           // a head without a project has no links to files
	files         []git.FileDiff // all of them
	before, after git.OID        // the commits that are compared
	threads       *lineThreads   // nil where lines have no comments
	viewed        merge.Viewed   // by the user
	marks         *viewedMarks   // nil if files cannot be marked as viewed
	// again compares the same commits with other options; nil if it cannot.
	again func(git.DiffOptions) (*git.Diff, error)
}

// viewedMarks is the form of the marks of viewed files.
type viewedMarks struct {
	Action, Token string
	Version       int64
}

// diffView is a part of a comparison: the files of one page.
type diffView struct {
	Files     []diffFile
	Total     int // files in all
	Added     int // lines in all files
	Removed   int // the same
	Parallel  bool
	HideSpace bool   // changes of whitespace are not shown
	Single    bool   // one file at a time
	Only      string // the one file that was asked for
	Inline    string // addresses of the same page in either form
	Side      string
	Space     string // with changes of whitespace, or without
	OneByOne  string // one file at a time, or all
	All       string // the whole comparison, from the page of one file
	Tree      template.HTML
	Part      bool // the tree has the files of this page only
	Pager     pager
	Threads   *lineThreads // nil where lines have no comments
	Marks     *viewedMarks
	Viewed    int // files that the user has viewed
}

// diffFile is the diff of one file.
type diffFile struct {
	git.FileDiff
	ID      string        // of the element: diffnote.FileCode
	Body    template.HTML // table rows; empty if nothing is shown
	Above   template.HTML // threads on the whole file
	Why     string        // why no text is shown
	Show    string        // URL that shows only this file
	More    string        // the same, with all lines of the file
	Before  string        // raw, before and after: for images
	After   string
	File    string // its page
	Cut     bool   // it can be shown
	LFS     string // sizes of a file that is stored with Git LFS; empty for other files
	Later   bool   // it is loaded when it comes into view
	Viewed  bool
	Threads int // on its lines
}

// Kind describes the change of the file.
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

// Submodule reports whether it is a submodule.
func (f diffFile) Submodule() bool { return f.AMode == "160000" || f.BMode == "160000" }

// Picture reports whether browsers show the file.
func (f diffFile) Picture() bool { return f.Binary && imageKind(f.NewPath) != "" }

// Expands reports whether lines around the changes can be shown.
func (f diffFile) Expands() bool { return f.Body != "" && !f.New && !f.Deleted && !f.Submodule() }

// diffChoice is a display setting of comparisons: the value of the query, which
// is remembered, or the saved one. The first value is the default.
func (v *visit) diffChoice(name, cookie string, values ...string) string {
	want, kept := v.param(name), v.cookie(cookie)
	for _, value := range values {
		if want == value {
			if kept != want {
				v.setCookie(cookie, want, "/", 365*24*time.Hour)
			}
			return want
		}
	}
	for _, value := range values {
		if kept == value {
			return kept
		}
	}
	return values[0]
}

func (v *visit) parallel() bool {
	if v.session != nil && v.session.User.Appearance.DiffView == "parallel" {
		return v.diffChoice("view", "diff_view", "parallel", "inline") == "parallel"
	}
	return v.diffChoice("view", "diff_view", "inline", "parallel") == "parallel"
}

// hideSpace reports whether whitespace changes are hidden: as chosen in this
// browser, or else in the preferences.
func (v *visit) hideSpace() bool {
	if v.session != nil && !v.session.User.ShowWhitespaceInDiffs {
		return v.diffChoice("w", "diff_w", "1", "0") == "1"
	}
	return v.diffChoice("w", "diff_w", "0", "1") == "1"
}

// oneFile reports whether one file is shown at a time.
func (v *visit) oneFile() bool {
	if v.session != nil && v.session.User.ViewDiffsFileByFile {
		return v.diffChoice("single_file", "diff_single_file", "true", "false") == "true"
	}
	return v.diffChoice("single_file", "diff_single_file", "false", "true") == "true"
}

// diffAddress returns the URL of this page with another value.
func (v *visit) diffAddress(name, value string) string {
	q := v.r.URL.Query()
	q.Set(name, value)
	if value == "" {
		q.Del(name)
	}
	if name == "file" || name == "single_file" {
		q.Del("page")
		q.Del("note")
	}
	q.Del("context")
	q.Del("fragment")
	q.Del("threads")
	return "?" + q.Encode()
}

// diffView draws the requested files: a page of them, or one.
func (v *visit) diffView(s diffSource) (diffView, error) {
	d := diffView{
		Total: len(s.files), Parallel: v.parallel(), HideSpace: v.hideSpace(), Single: v.oneFile(),
		Only: v.param("file"), Inline: v.diffAddress("view", "inline"), Side: v.diffAddress("view", "parallel"), All: v.diffAddress("file", ""),
		Threads: s.threads, Marks: s.marks,
	}
	s.files = sortFiles(s.files)
	d.Space, d.OneByOne = v.diffAddress("w", "1"), v.diffAddress("single_file", "true")
	if d.HideSpace {
		d.Space = v.diffAddress("w", "0")
	}
	per := diffFiles
	if d.Single {
		per, d.OneByOne = 1, v.diffAddress("single_file", "false")
	}
	for _, f := range s.files {
		d.Added, d.Removed = d.Added+f.Added, d.Removed+f.Removed
		if s.viewed.Has(f) {
			d.Viewed++
		}
	}
	first := s.threads.wantedFile() // always drawn
	page := min(v.pageNumber(), max(1, (len(s.files)+per-1)/per))
	for i, f := range s.files {
		if d.Only == "" && first != "" && f.NewPath == first {
			page = i/per + 1
		}
	}
	from, to := (page-1)*per, min(page*per, len(s.files))
	if d.Only != "" {
		from, to = only(s.files, d.Only)
	} else {
		d.Pager = pagerOf(v.r.URL.Query(), "page", page, to < len(s.files))
	}
	left := maxDiffText
	for _, file := range s.files[from:to] {
		f, room := v.diffFile(s, file), left
		if d.Only != "" || d.Single || f.NewPath == first {
			room = math.MaxInt
		}
		if err := v.drawFile(s, &f, &d, room); err != nil {
			return d, err
		}
		if left -= len(f.Body) + len(f.Above); f.Later {
			left = 0 // nor do the files after it need to be drawn to see that
		}
		d.Files = append(d.Files, f)
	}
	d.tree(s, from, to, per)
	return d, nil
}

// only finds a file by its path.
func only(files []git.FileDiff, path string) (from, to int) {
	for i, f := range files {
		if f.NewPath == path {
			return i, i + 1
		}
	}
	return 0, 0
}

func (v *visit) diffFile(s diffSource, file git.FileDiff) diffFile {
	f := diffFile{FileDiff: file, ID: diffnote.FileCode(file.NewPath), Show: v.diffAddress("file", file.NewPath), Viewed: s.marks != nil && s.viewed.Has(file), Threads: s.threads.count(file.NewPath)}
	if s.again != nil {
		f.More = f.Show + "&context=all"
	}
	if s.head.Project != nil {
		f.lead(s.head.Project.FullPath, s.before, s.after)
	}
	if f.Submodule() {
		f.File = ""
	}
	return f
}

// drawFile draws the text of a file within the remaining size of the page.
func (v *visit) drawFile(s diffSource, f *diffFile, d *diffView, room int) error {
	alone := d.Only != ""
	if err := v.readAgain(s, f, alone); err != nil {
		return err
	}
	if s.head.Project != nil && s.head.Project.Settings.LFSEnabled {
		f.findPointers()
	}
	n := strings.Count(f.Diff, "\n")
	if f.Why, f.Cut = why(*f, n, alone, room == math.MaxInt); f.Why != "" {
		_, f.Above = s.threads.of(f.NewPath, false)
		return s.threads.failure()
	}
	if len(f.Diff)+n*leastRow <= room { // else it need not be drawn to be seen too large
		if err := v.widen(s, f); err != nil {
			return err
		}
		below, above := s.threads.of(f.NewPath, true)
		f.Above = above
		f.Body = v.web.drawnDiff(v, f.NewPath, f.Diff, d.Parallel, below)
	}
	if f.Body == "" || len(f.Body) > room {
		f.Body, f.Above, f.Why, f.Cut, f.Later = "", "", folded(n), true, true
	}
	return s.threads.failure()
}

// readAgain reads the text of a file that was requested alone, if it is missing
// or needs more context.
func (v *visit) readAgain(s diffSource, f *diffFile, alone bool) error {
	context := 0
	if text := v.param("context"); text == "all" {
		context = allContext
	} else if n, err := strconv.Atoi(text); err == nil {
		context = min(max(n, 1), allContext)
	}
	if !alone || s.again == nil || context == 0 && !f.TooLarge {
		return nil
	}
	o := git.DiffOptions{Paths: []string{f.OldPath, f.NewPath}, Context: context, MaxFiles: 2, MaxLines: 10 * maxOneFile, IgnoreWhitespace: v.hideSpace()}
	found, err := s.again(o)
	if err != nil {
		return err
	}
	for _, one := range found.Files {
		if one.NewPath == f.NewPath && !one.TooLarge {
			f.FileDiff = one
		}
	}
	return nil
}

// lead sets the URLs of the file before and after the change.
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

// why returns why the text of a file is not shown; cut is true if it can be
// shown on request. A requested file is shown even if it is long, generated or
// viewed.
func why(f diffFile, lines int, alone, wanted bool) (text string, cut bool) {
	switch {
	case f.LFS != "":
		return "Stored with Git LFS. Size: " + f.LFS + ".", false
	case f.Binary:
		return "Binary file. No diff is shown.", false
	case f.TooLarge:
		return "The diff is too large to display.", !alone
	case f.Diff == "" && f.Renamed:
		return "The file was renamed without changes.", false
	case f.Diff == "" && f.ModeChanged():
		return "Only the file mode changed.", false
	case f.Diff == "" && !f.New && !f.Deleted:
		return "Only whitespace changed.", false
	case f.Diff == "":
		return "The file is empty.", false
	case lines > maxOneFile:
		return "The diff has " + plural(lines, "line") + " and is too large to display.", false
	case wanted:
		return "", false
	case f.Viewed:
		return "You have viewed this file.", true
	case lines > maxFileLines:
		return folded(lines), true
	case generated(f.NewPath):
		return "The file is generated, and its diff is collapsed.", true
	}
	return "", false
}

func folded(lines int) string {
	return "The diff has " + plural(lines, "line") + " and is collapsed."
}

// generatedNames are names of files that tools generate.
var generatedNames = map[string]bool{
	"go.sum": true, "package-lock.json": true, "npm-shrinkwrap.json": true, "yarn.lock": true, "pnpm-lock.yaml": true, "bun.lock": true, "composer.lock": true,
	"Cargo.lock": true, "Gemfile.lock": true, "poetry.lock": true, "Pipfile.lock": true, "uv.lock": true, "flake.lock": true, "pubspec.lock": true, "mix.lock": true,
	"gradle.lockfile": true, "Podfile.lock": true,
}

// generated reports whether a file is generated, by its name.
func generated(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if generatedNames[name] {
		return true
	}
	for _, end := range []string{".min.js", ".min.css", ".js.map", ".css.map", ".pb.go", ".pb.cc", ".pb.h", "_pb2.py", ".g.dart", ".designer.cs"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// showDiff responds with a page, or with one file of the comparison if the
// script requests it.
func (v *visit) showDiff(c content, d diffView) error {
	if v.param("fragment") == "" {
		return v.show(c)
	}
	return v.diffFragment(http.StatusOK, d)
}

// diffFragment responds with the files of a comparison, the state of its
// threads and the flash message.
func (v *visit) diffFragment(status int, d diffView) error {
	if len(d.Files) == 0 {
		return errs.NotFound("")
	}
	html, err := v.web.part("project/merge", "difffragment", pair{&frame{visit: v, Now: v.web.Now(), Flash: v.flash}, d})
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.Header().Set("Cache-Control", "no-store")
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	b.WriteString(string(html))
	v.answer(status, b)
	return nil
}

// encode returns the query of a URL.
func encode(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q.Encode()
}
