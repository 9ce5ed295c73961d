package web

import (
	"fmt"
	"html/template"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/snippet"
)

func (w *Web) snippetPages() {
	w.page("GET /explore/snippets", anyone, w.exploreSnippets)
	w.page("GET /dashboard/snippets", signedIn, w.ownSnippets)
	w.page("GET /-/snippets", anyone, func(v *visit) error { return v.redirect("/dashboard/snippets") })
	w.projectPage("GET snippets", anyone, w.projectSnippets)
	w.snippetPage("GET snippets/new", signedIn, w.newSnippetForm)
	w.snippetPage("POST snippets", signedIn, w.newSnippet)
	w.snippetPage("GET snippets/{id}", anyone, w.snippet)
	w.snippetPage("GET snippets/{id}/raw", anyone, w.rawSnippet)
	w.snippetPage("GET snippets/{id}/raw/{ref}/*", anyone, w.rawSnippet)
	w.snippetPage("GET snippets/{id}/edit", signedIn, w.editSnippetForm)
	w.snippetPage("POST snippets/{id}", signedIn, w.editSnippet)
	w.snippetPage("POST snippets/{id}/delete", signedIn, w.deleteSnippet)
	w.commentPages(w.snippetComments())
}

// snippetComments describes the snippets of projects to the pages of comments.
func (w *Web) snippetComments() commentable {
	return commentable{
		at: "snippets/{id}", noun: "snippet", part: "snippets",
		find: func(v *visit, ref project.Ref) (plan.Noteable, error) {
			id, err := v.number("id")
			if err != nil {
				return plan.Noteable{}, err
			}
			return w.Snippets.OnSnippet(v, v.actor, ref, id)
		},
	}
}

// snippetPage adds a page of snippets to projects and to the personal snippets
// of users. in is nil for the latter.
func (w *Web) snippetPage(pattern string, who access, do func(v *visit, in *project.Ref) error) {
	w.projectPage(pattern, who, func(v *visit, ref project.Ref) error { return do(v, &ref) })
	method, path, _ := strings.Cut(pattern, " ")
	w.page(method+" /-/"+path, who, func(v *visit) error { return do(v, nil) })
}

// snippetsPage is a list of snippets: of a project, of the user, or all public ones.
type snippetsPage struct {
	head   // without a project for personal snippets
	Own    bool
	Search string
	Rows   []*snippet.Snippet
	MayAdd bool
	Pager  pager
}

func (snippetsPage) view() string { return "shared/snippets" }

func (p snippetsPage) title() string {
	switch {
	case p.Project != nil:
		return "Snippets · " + p.Project.FullName()
	case p.Own:
		return "Your snippets"
	}
	return "Explore snippets"
}

// Base returns the URL of these snippets.
func (p snippetsPage) Base() string { return snippetBase(p.Project) }

func snippetBase(in *project.Project) string {
	if in != nil {
		return "/" + in.FullPath + "/-/snippets"
	}
	return "/-/snippets"
}

func (w *Web) snippetList(v *visit, p snippetsPage, list func(snippet.Filter, db.Paging) (db.Page[*snippet.Snippet], error)) error {
	p.Search = v.param("search")
	found, err := list(snippet.Filter{Search: p.Search}, v.paging())
	if err != nil {
		return err
	}
	p.SignedIn = v.session != nil
	p.Rows, p.Pager, p.MayAdd = found.Items, v.pager(found.More), snippet.MayCreate(v.actor, p.Project)
	return v.show(p)
}

func (w *Web) exploreSnippets(v *visit) error {
	return w.snippetList(v, snippetsPage{}, func(f snippet.Filter, p db.Paging) (db.Page[*snippet.Snippet], error) {
		return w.Snippets.All(v, v.actor, f, p)
	})
}

func (w *Web) ownSnippets(v *visit) error {
	return w.snippetList(v, snippetsPage{Own: true}, func(f snippet.Filter, p db.Paging) (db.Page[*snippet.Snippet], error) {
		return w.Snippets.Own(v, v.actor, f, p)
	})
}

func (w *Web) projectSnippets(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "snippets")
	if err != nil {
		return err
	}
	return w.snippetList(v, snippetsPage{head: h}, func(f snippet.Filter, p db.Paging) (db.Page[*snippet.Snippet], error) {
		return w.Snippets.OfProject(v, v.actor, ref, f, p)
	})
}

// snippetView is a snippet with its files.
type snippetView struct {
	head     // without a project for a personal snippet
	Snippet  *snippet.Snippet
	Text     template.HTML // the description
	Files    []snippetFile
	Base     string // its own address
	MayEdit  bool
	Clone    cloneURLs
	Comments *discussions // nil for a personal snippet
}

// snippetFile is a file as it is shown.
type snippetFile struct {
	Path  string
	ID    string // of its elements
	Size  int64
	Lines int
	Code  template.HTML
	Image bool
	Raw   string
	Cut   bool   // there are more lines than are shown
	Why   string // why the content is not shown
}

func (snippetView) view() string    { return "shared/snippet" }
func (p snippetView) title() string { return p.Snippet.Title + " · Snippets" }

// snippetHead is the head of the project of a snippet, if it has one.
func (w *Web) snippetHead(v *visit, in *project.Ref) (head, error) {
	if in == nil {
		return head{SignedIn: v.session != nil}, nil
	}
	return w.head(v, *in, "snippets")
}

func (w *Web) snippet(v *visit, in *project.Ref) error {
	s, err := w.findSnippet(v, in)
	if err != nil {
		return err
	}
	if in == nil && s.In != nil { // it has a page in the project
		return v.redirect(snippetAddress(s))
	}
	p := snippetView{Snippet: s, Base: snippetAddress(s), MayEdit: s.MayChange(v.actor)}
	if p.head, err = w.snippetHead(v, in); err != nil {
		return err
	}
	p.Clone = w.cloneURLs(s.Path(""))
	if in != nil {
		err = w.fillSnippet(v, *in, &p)
	} else if s.Description != "" {
		p.Text, err = w.renderDescription(v, nil, s.Description)
	}
	if err != nil {
		return err
	}
	files, err := w.Snippets.Files(v, s)
	if err != nil {
		return err
	}
	for i, f := range files {
		shown, err := w.showFile(v, p.Base, i, f)
		if err != nil {
			return err
		}
		p.Files = append(p.Files, shown)
	}
	return v.show(p)
}

// fillSnippet adds the texts of a snippet of a project: its description and its
// comments.
func (w *Web) fillSnippet(v *visit, in project.Ref, p *snippetView) error {
	on, err := w.Snippets.OnSnippet(v, v.actor, in, p.Snippet.ID)
	if err != nil {
		return err
	}
	comments, texts, err := w.discussions(v, on, w.snippetComments(), plan.Text{Source: p.Snippet.Description})
	if err != nil {
		return err
	}
	p.Comments, p.Text = &comments, texts[0]
	return nil
}

func (w *Web) findSnippet(v *visit, in *project.Ref) (*snippet.Snippet, error) {
	id, err := v.number("id")
	if err != nil {
		return nil, err
	}
	return w.Snippets.Get(v, v.actor, in, id)
}

func snippetAddress(s *snippet.Snippet) string {
	return snippetBase(s.In) + "/" + strconv.FormatInt(s.ID, 10)
}

// lineAnchor matches the IDs of lines and the links to them.
var lineAnchor = regexp.MustCompile(`((?:id="|href="#)L\d+)"`)

// maxSnippetFile is the maximum size of a file that is shown if a snippet has
// several.
const maxSnippetFile = 128 << 10

func (w *Web) showFile(v *visit, base string, i int, f *snippet.File) (snippetFile, error) {
	s := snippetFile{Path: f.Path, ID: fmt.Sprintf("file-%d", i), Size: f.Size, Image: imageKind(f.Path) != "", Raw: base + "/raw/main" + pathTo(f.Path)}
	switch {
	case s.Image:
		return s, nil
	case f.Size > maxSnippetFile:
		s.Why = "The file is too large to display."
		return s, nil
	}
	text, err := f.Read(v, maxSnippetFile)
	if err != nil {
		return s, err
	}
	if strings.ContainsRune(string(text), 0) {
		s.Why = "The file is not a text file."
		return s, nil
	}
	lines, err := w.highlighted(v, f.Path, strings.ToValidUTF8(string(text), "\uFFFD"), "")
	if err != nil {
		return s, err
	}
	s.Lines, s.Cut = len(lines), len(lines) > maxLines
	code := anchored(lines, excerpt{First: 1, Last: min(len(lines), maxLines)})
	// Line anchors are made unique for each file. Quotes in the text are escaped, so
	// only anchors match.
	s.Code = template.HTML(lineAnchor.ReplaceAllString(string(code), fmt.Sprintf(`${1}-%d"`, i)))
	return s, nil
}

// rawSnippet sends a file so that browsers never treat it as a page of this
// site.
func (w *Web) rawSnippet(v *visit, in *project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	_, f, err := w.Snippets.File(v, v.actor, in, id, chi.URLParam(v.r, "ref"), v.rest())
	if err != nil {
		return err
	}
	content, err := f.Open(v)
	if err != nil {
		return err
	}
	defer content.Close()
	kind := imageKind(f.Path)
	if kind == "" {
		kind = "text/plain; charset=utf-8"
	}
	h := v.w.Header()
	foreign(h, kind, "private, max-age=60")
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	how := "inline"
	if v.param("download") != "" {
		how = "attachment"
	}
	h.Set("Content-Disposition", disposition(how, f.Name()))
	v.w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(v.w, content)
	return nil
}

func (w *Web) deleteSnippet(v *visit, in *project.Ref) error {
	s, err := w.findSnippet(v, in)
	if err != nil {
		return err
	}
	to := "/dashboard/snippets"
	if s.In != nil {
		to = snippetBase(s.In)
	}
	return v.redirectWithFlash(w.Snippets.Delete(v, v.actor, in, s.ID, nil), "The snippet was deleted.", to)
}

// editableText returns a text that can be edited in a form; ok is false for
// others.
func editableText(b []byte) (string, bool) {
	return string(b), utf8.Valid(b) && !strings.ContainsRune(string(b), 0)
}

// notChangeable refuses the form to users who may not change the snippet.
func notChangeable(s *snippet.Snippet, v *visit) error {
	if s.MayChange(v.actor) {
		return nil
	}
	return errs.Forbidden("You are not allowed to change this snippet.")
}
