package web

import (
	"bytes"
	"errors"
	"html/template"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

func isMoved(err error) (*project.Moved, bool) { return errors.AsType[*project.Moved](err) }

func (w *Web) filePages() {
	w.projectPage("GET tree/*", anybody, w.tree)
	w.projectPage("GET blob/*", anybody, w.blob)
	w.projectPage("GET raw/*", anybody, w.raw)
	w.projectPage("POST star", signedIn, w.star)
	w.projectPage("POST unstar", signedIn, w.unstar)
}

// head is what every page of a project begins with.
type head struct {
	Project *project.Project
	Parents []crumb
	Tab     string
	User    bool // somebody has signed in
	Builds  bool // he sees the pipelines
	HTTP    string
	SSH     string
}

func (w *Web) head(v *visit, ref project.Ref, tab string) (head, error) {
	p, err := w.Projects.Glance(v, v.actor, ref)
	if err != nil {
		return head{}, err
	}
	h := head{
		Project: p, Parents: crumbs(p.Namespace.FullPath, p.Namespace.FullName), Tab: tab, User: v.session != nil,
		HTTP: w.Site.URL + "/" + p.FullPath + ".git", Builds: w.CI.Sees(v.actor, p),
	}
	if w.Site.SSHPort != "" {
		h.SSH = sshAddress(w.Site, p.FullPath)
	}
	return h, nil
}

func sshAddress(site Site, path string) string {
	if site.SSHPort == "22" {
		return "git@" + site.SSHHost + ":" + path + ".git"
	}
	u := url.URL{Scheme: "ssh", User: url.User("git"), Host: net.JoinHostPort(site.SSHHost, site.SSHPort), Path: "/" + path + ".git"}
	return u.String()
}

// treePage is a directory of a repository; the root of the default branch is
// the overview of the project.
type treePage struct {
	head
	Overview  bool
	Ref       string
	Path      string
	Steps     []crumb       // of the path
	Table     template.HTML // of the entries
	More      bool
	Commit    *git.Commit // the newest that touched this directory
	CI        *ciStatus   // of that commit; nil without a pipeline
	Branches  []string
	Languages []bar
	Readme    template.HTML
	ReadmeAt  string
	Hidden    bool // the code is not for this person
	MayPush   bool
	Starred   bool
}

// bar is the share of a language in the bar of all of them.
type bar struct {
	git.Language
	From, Width string // percent
}

func (treePage) view() string { return "tree" }

func (p treePage) title() string {
	if p.Overview {
		return p.Project.FullName()
	}
	return strings.TrimPrefix(p.Path+" at "+p.Ref, " at ") + " · " + p.Project.FullName()
}

// maxEntries is how many entries of a directory a page shows.
const maxEntries = 500

func (w *Web) project(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "overview")
	if err != nil {
		return err
	}
	p := treePage{head: h, Overview: true, Ref: h.Project.DefaultBranch, MayPush: v.actor.Admin || h.Project.Access.Level() >= project.Developer}
	if p.Starred, err = w.Projects.HasStarred(v, v.actor, h.Project.ID); err != nil {
		return err
	}
	if p.Ref == "" {
		return v.show(p)
	}
	if err := w.fillTree(v, &p); err != nil {
		if errs.Is(err, errs.KindForbidden) || errs.Is(err, errs.KindUnauthorized) {
			p.Hidden = true
			return v.show(p)
		}
		if !errs.Is(err, errs.KindNotFound) {
			return err
		}
		p.Ref = "" // what was there is gone
		return v.show(p)
	}
	return v.show(p)
}

func bars(list []git.Language) []bar {
	var bars []bar
	at := 0.0
	for _, l := range list {
		if l.Color == "" {
			l.Color = "#8a8fa3"
		}
		bars = append(bars, bar{l, strconv.FormatFloat(at, 'f', 2, 64), strconv.FormatFloat(l.Share, 'f', 2, 64)})
		at += l.Share
	}
	return bars
}

// fillTree reads the directory, its newest commits and its README.
func (w *Web) fillTree(v *visit, p *treePage) error {
	view, err := w.Repos.Browse(v, v.actor, project.RefTo(p.Project.ID), p.Ref, p.Path, maxEntries)
	if err != nil {
		return err
	}
	p.More, p.Commit, p.Branches = view.More, view.Newest, view.Branches
	if p.Commit != nil {
		newest, err := w.CI.CommitPipeline(v, v.actor, p.Project, string(p.Commit.ID))
		if err != nil {
			return err
		}
		p.CI = stateOf(p.Project, newest)
	}
	at := spot{project: p.Project.FullPath, ref: p.Ref, dir: p.Path}
	key := rendering{at, "", view.CommitID}
	var ok bool
	if p.Table, ok = w.rendered.get(key); !ok {
		p.Table = w.fileTable(at, view)
		w.rendered.put(key, p.Table)
	}
	p.Steps = steps(p.Path)
	if p.Overview {
		list, err := view.Languages(v)
		if err != nil && !errs.Is(err, errs.KindUnavailable) {
			return err
		}
		p.Languages = bars(list)
	}
	return w.readme(v, p, view)
}

func steps(at string) []crumb {
	var list []crumb
	for i, part := range strings.Split(at, "/") {
		if part != "" {
			list = append(list, crumb{part, strings.Join(strings.Split(at, "/")[:i+1], "/")})
		}
	}
	return list
}

// maxReadme is the most of a README that is shown.
const maxReadme = 256 << 10

// readme renders the README of a directory, if it has one. A text that has
// been rendered for the same place is not rendered again.
func (w *Web) readme(v *visit, p *treePage, view *repo.View) error {
	for _, e := range view.Entries {
		name := strings.ToLower(e.Name)
		if e.Type != git.TypeBlob || strings.TrimSuffix(name, path.Ext(name)) != "readme" {
			continue
		}
		at := spot{project: p.Project.FullPath, ref: p.Ref, dir: p.Path}
		key := rendering{at, e.Name, e.OID}
		html, ok := w.rendered.get(key)
		if !ok {
			text, err := view.Text(v, e, maxReadme)
			if err != nil || len(text) == 0 || bytes.IndexByte(text, 0) >= 0 {
				return err
			}
			if html, err = renderText(e.Name, strings.ToValidUTF8(string(text), "\uFFFD"), at); err != nil {
				return err
			}
			w.rendered.put(key, html)
		}
		p.ReadmeAt, p.Readme = strings.TrimPrefix(p.Path+"/"+e.Name, "/"), html
		return nil
	}
	return nil
}

// readText gives the beginning of a file; empty for one that is not text.
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

// split tells the name of a branch, tag or commit from the path behind it:
// both may have slashes. Git has no branch a beside a branch a/b, so the
// shortest name that there is is the one.
func (w *Web) split(v *visit, ref project.Ref, text string) (rev, at string, err error) {
	parts := strings.Split(strings.Trim(text, "/"), "/")
	if parts[0] == "" {
		return "", "", errs.NotFound("")
	}
	for n := 1; n <= min(len(parts), 8); n++ {
		rev, at = strings.Join(parts[:n], "/"), strings.Join(parts[n:], "/")
		_, _, err = w.Repos.Commit(v, v.actor, ref, rev, false)
		if !errs.Is(err, errs.KindNotFound) && !errs.Is(err, errs.KindInvalid) {
			return rev, at, err
		}
	}
	return "", "", err
}

func (w *Web) tree(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "files")
	if err != nil {
		return err
	}
	p := treePage{head: h}
	if p.Ref, p.Path, err = w.split(v, project.RefTo(h.Project.ID), v.rest()); err != nil {
		return err
	}
	if err := w.fillTree(v, &p); err != nil {
		return err
	}
	return v.show(p)
}

// blobPage is a file.
type blobPage struct {
	head
	Ref, Path string
	Steps     []crumb
	File      *repo.File
	Commit    *git.Commit
	Lines     int
	Code      template.HTML
	Rendered  template.HTML
	Image     bool
	Binary    bool
	TooLarge  bool
	Plain     bool // the source was asked for, though it could be rendered
}

func (blobPage) view() string    { return "blob" }
func (p blobPage) title() string { return p.Path + " · " + p.Project.FullName() }

// maxBlob is the largest file that a page shows.
const maxBlob = 512 << 10

func (w *Web) blob(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "files")
	if err != nil {
		return err
	}
	p := blobPage{head: h, Plain: v.param("plain") == "1"}
	in := project.RefTo(h.Project.ID)
	if p.Ref, p.Path, err = w.split(v, in, v.rest()); err != nil {
		return err
	}
	if p.File, err = w.Repos.File(v, v.actor, in, p.Path, p.Ref); err != nil {
		return err
	}
	_, commit, err := w.Repos.Commit(v, v.actor, in, string(p.File.LastCommitID), false)
	if err != nil {
		return err
	}
	p.Commit, p.Steps = commit.Commit, steps(p.Path)
	p.TooLarge, p.Image = p.File.Size > maxBlob, imageKind(p.Path) != ""
	if p.TooLarge || p.Image {
		return v.show(p)
	}
	text, err := readText(v, p.File, maxBlob)
	if err != nil {
		return err
	}
	if p.Binary = text == "" && p.File.Size > 0; p.Binary {
		return v.show(p)
	}
	if isMarkdown(p.Path) && !p.Plain {
		p.Rendered, err = renderText(p.Path, text, spot{project: h.Project.FullPath, ref: p.Ref, dir: strings.TrimSuffix(path.Dir(p.Path), ".")})
	} else {
		p.Code, p.Lines, err = highlight(p.Path, text)
	}
	if err != nil {
		return err
	}
	return v.show(p)
}

// imageKind is the type of a file that browsers show as a picture. SVG is
// none: it may hold scripts.
func imageKind(name string) string {
	return map[string]string{
		".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".ico": "image/x-icon",
	}[strings.ToLower(path.Ext(name))]
}

// raw gives the content of a file, in a form that no browser takes for a page
// of ours.
func (w *Web) raw(v *visit, ref project.Ref) error {
	h, err := w.Projects.Require(v, v.actor, ref, project.NoAccess)
	if err != nil {
		return err
	}
	in := project.RefTo(h.ID)
	rev, at, err := w.split(v, in, v.rest())
	if err != nil {
		return err
	}
	f, err := w.Repos.File(v, v.actor, in, at, rev)
	if err != nil {
		return err
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
	head.Set("Content-Type", kind)
	head.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	head.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	head.Set("Cache-Control", "private, max-age=60")
	head.Set("Etag", `"`+string(f.BlobID)+`"`)
	if strings.Contains(v.r.Header.Get("If-None-Match"), string(f.BlobID)) {
		head.Del("Content-Length")
		v.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if v.param("download") != "" {
		head.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	}
	v.w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(v.w, content)
	return nil
}

func (w *Web) star(v *visit, ref project.Ref) error {
	p, _, err := w.Projects.Star(v, v.actor, ref)
	if err != nil {
		return err
	}
	return v.redirect("/" + p.FullPath)
}

func (w *Web) unstar(v *visit, ref project.Ref) error {
	p, _, err := w.Projects.Unstar(v, v.actor, ref)
	if err != nil {
		return err
	}
	return v.redirect("/" + p.FullPath)
}
