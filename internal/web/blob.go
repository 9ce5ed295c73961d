package web

import (
	"html/template"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/git"
	"svc/internal/imageproxy"
	"svc/internal/lfs"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) blobPages() {
	w.projectPage("GET blob/*", anyone, w.blob)
	w.projectPage("GET blame/*", anyone, w.blame)
	w.projectPage("GET raw/*", anyone, w.raw)
	w.projectPage("GET diff_lines/*", anyone, w.diffLines)
}

// blobPage is a file.
type blobPage struct {
	codeHead
	File     *repo.File
	Commit   *git.Commit
	Lines    int
	Span     excerpt
	Source   template.HTML
	Rendered template.HTML
	Image    bool
	Drawing  bool // an SVG, which is shown as an image or as source
	Binary   bool
	LFS      *lfs.Pointer // the file is stored with Git LFS; nil for other files
	TooLarge bool
	CRLF     bool // lines end with CRLF
	Plain    bool // the source was requested of a file that can be rendered
	Long     bool // too long to be rendered
	Blame    bool // Source has table rows, each with its commit

	Owners     []codeOwner
	OwnersFile string // path of CODEOWNERS; empty if there is none
}

func (blobPage) view() string    { return "project/blob" }
func (p blobPage) title() string { return p.name() + " · " + p.Project.FullName() }

// excerpt is the range of lines of a file that a page shows, from 1.
type excerpt struct {
	First, Last int
	Most        int // maximum number of lines on a page
	Pager       pager
	All         string // URL of the page with all lines; empty on that page
}

// Maximum numbers of lines of a file on a page. A line of a blame is larger.
const (
	maxLines      = 1000
	maxBlameLines = 500
	leastLines    = 50
)

// maxText is the maximum size in bytes of the HTML of file texts on a page. It
// compresses to about a sixth, and a page should be smaller than 50 KiB.
const maxText = 192 << 10

// lineCount returns the number of lines of a file per page, chosen so that no
// page becomes too large. Each line has some overhead. The number is the same
// for all pages, because links to lines redirect to the page with the line.
func lineCount(lines []string, most, beside int) int {
	for ; most > leastLines; most /= 2 {
		size, largest := 0, 0
		for i, line := range lines {
			if i%most == 0 {
				size = 0
			}
			size += len(line) + beside
			largest = max(largest, size)
		}
		if largest <= maxText {
			break
		}
	}
	return most
}

// span returns the lines that the query asks for: one of the pages, or all
// lines.
func (v *visit) span(total, most int) excerpt {
	if total <= most || v.param("all") == "1" {
		return excerpt{First: 1, Last: total}
	}
	n := min(v.pageNumber(), (total+most-1)/most)
	all := v.r.URL.Query()
	all.Del("page")
	all.Set("all", "1")
	return excerpt{First: (n-1)*most + 1, Last: min(n*most, total), Most: most, Pager: pagerOf(v.r.URL.Query(), "page", n, n*most < total), All: "?" + all.Encode()}
}

// maxRendered is the maximum length of a text that is rendered on a page. A
// longer README is cut off.
const maxRendered = 128 << 10

// maxBlob is the largest file that a page shows.
const maxBlob = 512 << 10

func (w *Web) blob(v *visit, ref project.Ref) error {
	p, text, err := w.openBlob(v, ref, v.param("plain") == "1")
	if err != nil || text == "" {
		return orShow(v, p, err)
	}
	p.Plain = v.param("plain") == "1"
	p.Long = isMarkdown(p.Path) && len(text) > maxRendered
	if isMarkdown(p.Path) && !p.Plain && !p.Long {
		p.Rendered, err = w.renderText(v, p.Path, text, spot{project: p.Project.FullPath, ref: p.Ref, dir: strings.TrimSuffix(path.Dir(p.Path), ".")})
	} else {
		var lines []string
		lines, err = w.highlighted(v, p.Path, text, p.File.BlobID)
		p.Lines, p.Span = len(lines), v.span(len(lines), lineCount(lines, maxLines, 80))
		p.Source = anchored(lines, p.Span)
	}
	return orShow(v, p, err)
}

func orShow(v *visit, p blobPage, err error) error {
	if err != nil {
		return err
	}
	return v.show(p)
}

// openBlob reads the file of a page. The text is empty if it cannot be shown as
// text. An SVG is an image unless its source was requested.
func (w *Web) openBlob(v *visit, ref project.Ref, source bool) (blobPage, string, error) {
	h, err := w.codeHead(v, ref, "files")
	if err != nil {
		return blobPage{}, "", err
	}
	p := blobPage{codeHead: h}
	if p.File, err = w.Repos.File(v, v.actor, p.in(), p.Path, string(p.At)); err != nil {
		return p, "", err
	}
	_, commit, err := w.Repos.Commit(v, v.actor, p.in(), string(p.File.LastCommitID), false)
	if err != nil {
		return p, "", err
	}
	p.Commit = commit.Commit
	if err := w.codeOwners(v, &p); err != nil {
		return p, "", err
	}
	kind := imageKind(p.Path)
	if p.LFS, err = w.LFS.PointerOf(v, &p.File.FileBlob); err != nil {
		return p, "", err
	}
	if p.LFS != nil {
		p.Image, p.Binary = kind != "", kind == ""
		return p, "", nil
	}
	p.Drawing = kind == imageproxy.SVG
	p.TooLarge, p.Image = p.File.Size > maxBlob, kind != "" && !(p.Drawing && source)
	if p.TooLarge || p.Image {
		return p, "", nil
	}
	text, err := readText(v, p.File, maxBlob)
	if err != nil {
		return p, "", err
	}
	p.Binary = text == "" && p.File.Size > 0
	p.CRLF = strings.Contains(text, "\r\n")
	return p, text, nil
}

// blame shows a file with the commit that each line comes from.
func (w *Web) blame(v *visit, ref project.Ref) error {
	p, text, err := w.openBlob(v, ref, true)
	if err != nil || text == "" {
		return orShow(v, p, err)
	}
	lines, err := w.highlighted(v, p.Path, text, p.File.BlobID)
	if err != nil {
		return err
	}
	p.Blame, p.Lines, p.Span = true, len(lines), v.span(len(lines), lineCount(lines, maxBlameLines, 240))
	_, ranges, err := w.Repos.Blame(v, v.actor, p.in(), p.Path, string(p.At), p.Span.First, p.Span.Last)
	if err != nil {
		return err
	}
	p.Source = w.blameTable(p.codeHead, ranges, lines)
	return v.show(p)
}

// blameTable draws the lines of a file in runs of one commit.
func (w *Web) blameTable(h codeHead, ranges []git.BlameRange, lines []string) template.HTML {
	var b strings.Builder
	base := "/" + h.Project.FullPath + "/-/"
	before := string(w.icon("clock"))
	for _, r := range ranges {
		title := template.HTMLEscapeString(shown(r.Commit.Title))
		b.WriteString(`<tr class="run"><td class="by age` + strconv.Itoa(ageStep(w.Now().Sub(r.Commit.Committer.When))) + `" rowspan="` + strconv.Itoa(len(r.Lines)) + `"><div><a href="` + base + "commit/" + string(r.Commit.ID) + `" title="` + title + `">` + title +
			`</a><span class="muted">` + template.HTMLEscapeString(shown(r.Commit.Author.Name)) + " · " + string(w.since(r.Commit.Committer.When)) + "</span>")
		if r.Previous != "" {
			const prior = "View blame prior to this change"
			b.WriteString(`<a class="prior" href="` + base + "blame" + template.HTMLEscapeString(pathTo(string(r.Previous), r.PreviousPath)) + `" title="` + prior + `" aria-label="` + prior + `">` + before + "</a>")
		}
		b.WriteString("</div></td>")
		for i := range r.Lines {
			n := strconv.Itoa(r.First + i)
			if i > 0 {
				b.WriteString("<tr>")
			}
			line := ""
			if r.First+i <= len(lines) {
				line = lines[r.First+i-1]
			}
			b.WriteString(`<td class="n" id="L` + n + `"><a href="#L` + n + `" data-n="` + n + `" aria-label="Line ` + n + `"></a></td><td class="t">` + line + "</td></tr>\n")
		}
	}
	return template.HTML(b.String())
}

// ageStep rates the age of a change from 0, this week, to 9, the oldest.
func ageStep(age time.Duration) int {
	const week = 7 * 24 * time.Hour
	step := 0
	for limit := week; age > limit && step < 9; limit *= 2 {
		step++
	}
	return step
}

// raw sends the content of a file so that browsers never treat it as a page of
// this site.
func (w *Web) raw(v *visit, ref project.Ref) error {
	_, at, id, err := w.split(v, ref, v.rest())
	if err != nil {
		return err
	}
	f, err := w.Repos.FileBlob(v, v.actor, ref, at, string(id))
	if err != nil {
		return err
	}
	pointer, err := w.LFS.PointerOf(v, f)
	if err != nil {
		return err
	}
	if pointer != nil {
		return w.rawObject(v, f, pointer.OID)
	}
	content, err := f.Open(v)
	if err != nil {
		return err
	}
	defer content.Close()
	head := v.w.Header()
	kind := imageKind(at)
	if kind == "" {
		kind = "text/plain; charset=utf-8"
	}
	foreign(head, kind, "private, max-age=60")
	head.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	head.Set("Etag", `"`+string(f.BlobID)+`"`)
	if strings.Contains(v.r.Header.Get("If-None-Match"), string(f.BlobID)) {
		head.Del("Content-Length")
		v.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if v.param("download") != "" {
		head.Set("Content-Disposition", disposition("attachment", f.Name))
	}
	v.w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(v.w, content)
	return nil
}

// rawObject is raw for a file that is stored with Git LFS.
func (w *Web) rawObject(v *visit, f *repo.FileBlob, oid string) error {
	object, err := w.LFS.Open(v, f.Project, oid)
	if err != nil {
		return err
	}
	defer object.Close()
	head := v.w.Header()
	foreignFile(head, f.Name, "private, max-age=60")
	head.Set("Etag", `"`+object.OID+`"`)
	if v.param("download") != "" {
		head.Set("Content-Disposition", disposition("attachment", f.Name))
	}
	http.ServeContent(v.w, v.r, "", time.Time{}, object)
	return nil
}

// readText returns the beginning of a file, or an empty string if it is not
// text.
func readText(v *visit, f *repo.File, most int64) (string, error) {
	content, err := f.Open(v)
	if err != nil {
		return "", err
	}
	defer content.Close()
	b, err := io.ReadAll(io.LimitReader(content, most))
	if err != nil {
		return "", err
	}
	if strings.ContainsRune(string(b), 0) {
		return "", nil
	}
	if !utf8.Valid(b) {
		b = []byte(strings.ToValidUTF8(string(b), "\uFFFD"))
	}
	return string(b), nil
}
