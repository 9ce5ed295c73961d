package web

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/url"
	"strconv"
	"strings"
	"svc/internal/markup"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/featureflag"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/mirror"
	"svc/internal/notify"
	"svc/internal/project"
	"svc/internal/release"
	"svc/internal/repo"
	"svc/internal/terraform"
)

func isMoved(err error) (*project.Moved, bool) { return errors.AsType[*project.Moved](err) }

func (w *Web) treePages() {
	w.projectPage("GET tree/*", anyone, w.tree)
	w.importPages()
	w.projectPage("POST star", signedIn, w.star)
	w.projectPage("POST unstar", signedIn, w.unstar)
}

// head has the common data of the pages of a project.
type head struct {
	Project  *project.Project
	Parents  []crumb
	Section  *crumb // the item of the sidebar that the page belongs to, if any
	Tab      string
	SignedIn bool
	Builds   bool   // the user sees the pipelines
	Code     bool   // the user may read the code
	Issues   bool   // the user sees the issues
	Open     string // number of open ones
	Wiki     bool   // the user may read the wiki
	WikiURL  string // of an external wiki; empty without one
	Snippets bool   // and the snippets
	Releases bool   // and the releases
	Packages bool   // and the packages
	Merges   bool   // the user sees the merge requests
	Pending  string // number of open ones
	MayPush  bool
	MayFork  bool // the visitor may fork it
	Proposes bool // the visitor may create merge requests from its branches
	MaySet   bool // the visitor may change its settings
	HTTP     string
	SSH      string

	SeesErrors bool // the user sees the errors
	SeesAlerts bool // the user sees the alerts
	Terraform  bool // the user sees the Terraform states
	Flags      bool // the user sees the feature flags
}

func (w *Web) head(v *visit, ref project.Ref, tab string) (head, error) {
	p, err := w.Projects.Summary(v, v.actor, ref)
	if err != nil {
		return head{}, err
	}
	if err := v.visited(); err != nil {
		return head{}, err
	}
	may := p.Can(v.actor)
	v.level = int64(p.Access.Level())
	h := head{
		Project: p, Parents: crumbs(p.Namespace.FullPath, p.Namespace.FullName), Tab: tab, SignedIn: v.session != nil,
		HTTP: w.Site.URL + "/" + p.FullPath + ".git", Builds: w.CI.Sees(v.actor, p), Code: p.MayRead(v.actor, project.CodePart),
		Wiki: p.MayRead(v.actor, project.WikiPart), Snippets: p.MayRead(v.actor, project.SnippetPart), Releases: p.MayRead(v.actor, project.ReleasePart), Packages: p.MayRead(v.actor, project.PackagePart),
		SeesAlerts: w.Alerts.Sees(v.actor, p), SeesErrors: w.Errors.Sees(v.actor, p), Terraform: terraform.Sees(v.actor, p), Flags: featureflag.Sees(v.actor, p), MaySet: may.Configure, MayPush: may.Push,
		Proposes: v.session != nil && merge.CanCreate(v.actor, p), MayFork: v.session != nil && repo.CanFork(v.actor, p),
	}
	if h.WikiURL, err = w.Hooks.ExternalWiki(v, p); err != nil {
		return head{}, err
	}
	if h.Issues = p.MayRead(v.actor, project.IssuePart); h.Issues {
		n, over, err := w.Plan.CountOpen(v, v.actor, p)
		if err != nil {
			return head{}, err
		}
		if h.Open = strconv.Itoa(n); over {
			h.Open = "10k+"
		}
	}
	if h.Merges = p.MayRead(v.actor, project.MergePart); h.Merges {
		n, over, err := w.Merges.CountOpen(v, v.actor, p)
		if err != nil {
			return head{}, err
		}
		if h.Pending = strconv.Itoa(n); over {
			h.Pending = "10k+"
		}
	}
	if w.Site.SSHPort != "" {
		h.SSH = sshAddress(w.Site, p.FullPath)
	}
	v.inside = h.sideBar()
	h.Section = v.inside.section(v)
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
	codeHead
	Body              template.HTML // everything except the star button
	Overview          bool
	About             template.HTML // the description
	Table             template.HTML // of the entries
	Pager             pager
	Commit            *git.Commit // the newest that touched this directory
	CI                *ciStatus   // of that commit; nil without a pipeline
	Languages         []bar
	Readme            template.HTML
	ReadmeAt          string
	Hidden            bool // the visitor may not read the code
	passing           bool // a part of the data is currently unavailable
	Starred           bool
	Fork              *forkView      // of a fork
	Mirror            *mirror.Mirror // nil unless the project is a pull mirror
	Membership        project.MembershipState
	Badges            []badgeView
	Newest            *release.Summary // the latest release
	Published         int              // the number of releases
	NotificationLevel notify.Level     // of the visitor, in this project or group
}

// bar is a language in the bar of all languages.
type bar struct {
	git.Language
	From, Width string // percent
}

func (treePage) view() string { return "project/tree" }

func (p treePage) title() string {
	if p.Overview {
		return p.Project.FullName()
	}
	return p.name() + " · " + p.Project.FullName()
}

// maxEntries is the maximum number of entries of a directory on a page.
const maxEntries = 75

func (w *Web) project(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "overview")
	if err != nil {
		return err
	}
	p := treePage{codeHead: codeHead{head: h, Ref: h.Project.DefaultBranch}, Overview: true}
	if p.Starred, err = w.Projects.HasStarred(v, v.actor, h.Project.ID); err != nil {
		return err
	}
	if p.Fork, err = w.forkView(v, h.Project); err != nil {
		return err
	}
	pulls, err := w.Mirrors.PullMirrors(v, h.Project.ID)
	if err != nil {
		return err
	}
	p.Mirror = pulls[h.Project.ID]
	if h.Project.Import.Pending() {
		v.w.Header().Set("Refresh", "3") // until the repository is copied
	}
	badges, err := w.Badges.List(v, v.actor, project.Place{Ref: p.in()}, "", db.Paging{Limit: maxBadges})
	if err != nil {
		return err
	}
	if p.Badges, err = w.badgeViews(v, badges.Items, false); err != nil {
		return err
	}
	if p.Newest, p.Published, err = w.Releases.Newest(v, v.actor, h.Project); err != nil {
		return err
	}
	if h.SignedIn {
		at := project.Place{Ref: project.RefTo(h.Project.ID)}
		if p.Membership, err = w.Projects.MembershipState(v, v.actor, at); err != nil {
			return err
		}
		if p.NotificationLevel, err = w.Notify.LevelAt(v, v.actor, at); err != nil {
			return err
		}
	}
	switch {
	case p.Ref == "":
	case !p.Code:
		p.Hidden = true
	default:
		err := w.draw(v, &p)
		if err == nil {
			return v.show(p)
		}
		if !errs.Is(err, errs.KindNotFound) {
			return err
		}
		p.Ref = "" // the ref was deleted
	}
	if p.About, err = w.description(v, p.Project.Description); err != nil {
		return err
	}
	if p.Body, err = w.part("project/tree", "treebody", p); err != nil {
		return err
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

// draw renders the body of the page, unless a cached one is still valid: it
// depends only on the commit, the project and the visitor.
func (w *Web) draw(v *visit, p *treePage) error {
	view, err := w.Repos.Browse(v, v.actor, p.in(), string(p.At), p.Path)
	if err != nil {
		return err
	}
	p.At = view.CommitID
	if p.Path == "" { // that of the commit itself
		newest, err := w.CI.CommitPipeline(v, v.actor, p.Project, string(p.At))
		if err != nil {
			return err
		}
		p.CI = stateOf(p.Project, newest)
	}
	at := spot{project: p.Project.FullPath, ref: p.Ref, dir: p.Path}
	key := rendering{at, fmt.Sprint(p.Project.Edition, v.pageNumber(), p.Overview, p.SignedIn, p.Code, p.MayPush, p.CI.text()), p.At}
	var ok bool
	if p.Body, ok = w.drawn.get(key); ok {
		return nil
	}
	if err := w.fillTree(v, p, view, at); err != nil {
		return err
	}
	if p.Body, err = w.part("project/tree", "treebody", p); err != nil {
		return err
	}
	if !p.passing && !markup.Degraded(v) {
		w.drawn.put(key, p.Body)
	}
	return nil
}

// fillTree reads the directory, its newest commits and its README.
func (w *Web) fillTree(v *visit, p *treePage, view *repo.View, at spot) error {
	from := (v.pageNumber() - 1) * maxEntries
	if err := view.List(v, from, maxEntries); err != nil {
		return err
	}
	p.Pager, p.Commit = pagerOf(url.Values{}, "page", v.pageNumber(), from+maxEntries < view.Total), view.Newest // others are shown it too
	key := rendering{at, strconv.Itoa(from), view.CommitID}
	var ok bool
	if p.Table, ok = w.rendered.get(key); !ok {
		p.Table = w.fileTable(at, view)
		if p.passing = view.Last == nil; !p.passing { // else it is not whole
			w.rendered.put(key, p.Table)
		}
	}
	if p.Overview {
		var err error
		if p.About, err = w.description(v, p.Project.Description); err != nil {
			return err
		}
		list, err := view.Languages(v)
		slow := errs.Is(err, errs.KindUnavailable)
		if err != nil && !slow {
			return err
		}
		p.passing = p.passing || slow
		p.Languages = bars(list)
	}
	return w.readme(v, p, view)
}

// steps returns the parent directories of a path.
func steps(at string) []crumb {
	var list []crumb
	for i, part := range strings.Split(at, "/") {
		if part != "" {
			list = append(list, crumb{part, strings.Join(strings.Split(at, "/")[:i+1], "/")})
		}
	}
	return list
}

// readme renders the README of a directory, if it has one. Renderings are
// cached.
func (w *Web) readme(v *visit, p *treePage, view *repo.View) error {
	if view.Readme == nil {
		return nil
	}
	e := *view.Readme
	at := spot{project: p.Project.FullPath, ref: p.Ref, dir: p.Path}
	key := rendering{at, e.Name, e.OID}
	html, ok := w.rendered.get(key)
	if !ok {
		text, err := view.Text(v, e, maxRendered)
		if err != nil || len(text) == 0 || bytes.IndexByte(text, 0) >= 0 {
			return err
		}
		if html, err = w.renderText(v, e.Name, strings.ToValidUTF8(string(text), "\uFFFD"), at); err != nil {
			return err
		}
		if !markup.Degraded(v) {
			w.rendered.put(key, html)
		}
	}
	p.ReadmeAt, p.Readme = strings.TrimPrefix(p.Path+"/"+e.Name, "/"), html
	return nil
}

func (w *Web) tree(v *visit, ref project.Ref) error {
	h, err := w.codeHead(v, ref, "files")
	if err != nil {
		return err
	}
	p := treePage{codeHead: h}
	if err := w.draw(v, &p); err != nil {
		return err
	}
	return v.show(p)
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
