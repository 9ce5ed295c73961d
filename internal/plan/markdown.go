package plan

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/markup"
	"svc/internal/project"
	"svc/internal/user"
)

// Referrer resolves references to objects of another feature. It returns nil if
// the object does not exist or the actor cannot see it.
type Referrer func(ctx context.Context, by actor.Actor, proj *project.Project, name string) (*markup.Target, error)

// OnReference registers a Referrer. It is called at startup.
func (s *Service) OnReference(kind markup.Kind, r Referrer) { s.referrers[kind] = r }

// Render renders Markdown to HTML. With a project, references to objects that the
// reader can see become links. NotFound if the reader cannot see the project;
// TooLarge.
func (s *Service) Render(ctx context.Context, by actor.Actor, in *project.Ref, source string) (string, error) {
	list, err := s.RenderAll(ctx, by, in, Text{Source: source})
	if err != nil {
		return "", err
	}
	return list[0], nil
}

// Text is a Markdown text to render. Task renders task list checkboxes and Link
// rewrites link targets; both may be nil, see markup.Options. Relative links that
// Link returns unchanged are resolved as usual. LinkKey identifies Link for
// caching: texts with the same key have the same links.
type Text struct {
	Source  string
	Task    func(n int, done bool) string
	Link    func(to string, image bool) string
	LinkKey string
	Wiki    bool   // render [[page]] as a link; see markup.Options
	Whole   string // URL of the Markdown source; see markup.Options
	// Suggestion renders the suggestions of a diff note; see markup.Options.
	Suggestion func(n int) string
}

// RenderAll renders the texts of one page. Each reference is resolved only once.
func (s *Service) RenderAll(ctx context.Context, by actor.Actor, in *project.Ref, texts ...Text) ([]string, error) {
	ctx = markup.WithPage(ctx)
	r := reader{s: s, ctx: ctx, by: by, known: map[string]*project.Project{}, found: map[markup.Reference]*markup.Target{}}
	if in != nil {
		p, err := s.Projects.Require(ctx, by, *in, project.NoAccess)
		if err != nil {
			return nil, err
		}
		r.known[""] = p
	}
	list := make([]string, len(texts))
	for i, t := range texts {
		if len(t.Source) > MaxText {
			return nil, errs.TooLarge("The text is longer than %d bytes.", MaxText)
		}
		link, key := r.link, strconv.FormatInt(r.id(), 10)+" "+r.files()
		if t.Link != nil {
			link = func(to string, image bool) string { return r.link(t.Link(to, image), image) }
			key += " " + t.LinkKey
		}
		var err error
		if list[i], err = s.Markup.Markdown(ctx, t.Source, markup.Options{Resolve: r.resolve, Link: link, LinkKey: key, Highlight: true, Task: t.Task, Wiki: t.Wiki, Whole: t.Whole, Suggestion: t.Suggestion}); err != nil {
			return nil, fmt.Errorf("render text: %w", err)
		}
	}
	return list, nil
}

// reader resolves links and references with the permissions of the user who reads
// the text.
type reader struct {
	s     *Service
	ctx   context.Context
	by    actor.Actor
	known map[string]*project.Project // by path in the reference; nil if the reader cannot see the project
	reads int                         // number of lookups in repositories
	found map[markup.Reference]*markup.Target
}

// id returns the ID of the project that contains the text, or 0.
func (r *reader) id() int64 {
	if p := r.known[""]; p != nil {
		return p.ID
	}
	return 0
}

// files returns the path and the default branch of the project, which relative
// links refer to. It is empty if the reader cannot see the code.
func (r *reader) files() string {
	p := r.known[""]
	if p == nil || p.DefaultBranch == "" || !p.MayRead(r.by, project.CodePart) {
		return ""
	}
	return p.FullPath + " " + p.DefaultBranch
}

// link resolves links to uploads, files of the repository and headings.
func (r *reader) link(to string, image bool) string {
	p := r.known[""]
	if id, ok := strings.CutPrefix(to, "#"); ok && id != "" && !strings.HasPrefix(id, "note_") && !strings.HasPrefix(id, markup.HeadingPrefix) {
		return "#" + markup.HeadingPrefix + id
	}
	if p == nil {
		return to
	}
	if strings.HasPrefix(to, "/uploads/") {
		return "/-/project/" + strconv.FormatInt(p.ID, 10) + to
	}
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || u.Path == "" || strings.HasPrefix(to, "/") || r.files() == "" {
		return to
	}
	kind := "blob"
	if image {
		kind = "raw"
	}
	file := url.URL{Path: "/" + p.FullPath + "/-/" + kind + "/" + p.DefaultBranch + path.Join("/", u.Path)}
	if u.Fragment != "" {
		file.Fragment = markup.HeadingPrefix + u.Fragment
	}
	return file.String()
}

// maxLookups is the maximum number of distinct references of a page that are
// resolved.
const maxLookups = 500

// resolve returns the targets of references.
func (r *reader) resolve(refs []markup.Reference) (map[markup.Reference]markup.Target, error) {
	found := map[markup.Reference]markup.Target{}
	for _, ref := range refs {
		target, known := r.found[ref]
		if !known && len(r.found) >= maxLookups {
			continue
		}
		if !known {
			var err error
			if target, err = r.target(ref); err != nil && !hidden(err) {
				return nil, err
			} else if err != nil {
				target = nil
			}
			r.found[ref] = target
		}
		if target != nil {
			found[ref] = *target
		}
	}
	return found, nil
}

// hidden reports whether an error means that the object does not exist for the
// reader.
func hidden(err error) bool {
	return errs.Is(err, errs.KindNotFound) || errs.Is(err, errs.KindForbidden) || errs.Is(err, errs.KindUnauthorized) || errs.Is(err, errs.KindInvalid)
}

func (r *reader) target(ref markup.Reference) (*markup.Target, error) {
	if ref.Kind == markup.User {
		return r.userOrGroup(ref.Name)
	}
	proj, err := r.project(ref.Project)
	if err != nil || proj == nil {
		return nil, err
	}
	at := "/" + proj.FullPath + "/-/"
	switch ref.Kind {
	case markup.Issue:
		iid, err := strconv.ParseInt(ref.Name, 10, 64)
		if err != nil {
			return nil, nil
		}
		_, i, err := r.s.issue(r.ctx, r.by, project.RefTo(proj.ID), iid)
		if err != nil {
			return nil, err
		}
		return &markup.Target{URL: at + "issues/" + ref.Name, Title: i.Title}, nil
	case markup.Label:
		l, err := findLabel(r.ctx, r.s.DB, place{project: proj}, ref.Name, true)
		if err != nil {
			return nil, db.NotFound(err, "Label")
		}
		return &markup.Target{URL: at + "issues?label_name[]=" + url.QueryEscape(l.Name), Title: l.Description, Text: l.Name, Color: l.Color}, nil
	case markup.Milestone:
		return r.milestone(proj, ref.Name)
	case markup.Commit:
		return r.commit(proj, ref)
	}
	if referrer := r.s.referrers[ref.Kind]; referrer != nil {
		return referrer(r.ctx, r.by, proj, ref.Name)
	}
	return nil, nil
}

// project returns the project of a reference, or nil if the reader cannot see it.
func (r *reader) project(path string) (*project.Project, error) {
	p, asked := r.known[path]
	if asked || path == "" {
		return p, nil
	}
	full := path
	if !strings.Contains(path, "/") {
		here := r.known[""]
		if here == nil {
			return nil, nil // a relative path needs a project
		}
		full = here.Namespace.FullPath + "/" + path
	}
	p, err := r.s.Projects.Require(r.ctx, r.by, project.Ref(full), project.NoAccess)
	if err != nil && !hidden(err) {
		return nil, err
	}
	if err != nil {
		p = nil
	}
	r.known[path] = p
	return p, nil
}

// userOrGroup resolves a mention of a user or group.
func (r *reader) userOrGroup(name string) (*markup.Target, error) {
	if strings.Trim(name, "0123456789") == "" {
		return nil, nil // a number would be interpreted as an ID
	}
	u, err := r.s.Users.Find(r.ctx, r.by, user.Ref(name))
	if err == nil && strings.EqualFold(u.Username, name) {
		return &markup.Target{URL: "/" + u.Username, Title: u.Name}, nil
	}
	if err != nil && !hidden(err) {
		return nil, err
	}
	g, err := r.s.Projects.RequireGroup(r.ctx, r.by, project.Ref(name), project.NoAccess)
	if err != nil {
		return nil, err
	}
	return &markup.Target{URL: "/groups/" + g.FullPath, Title: g.FullName}, nil
}

func (r *reader) milestone(proj *project.Project, name string) (*markup.Target, error) {
	if !proj.MayRead(r.by, project.IssuePart) && !proj.MayRead(r.by, project.MergePart) {
		return nil, nil
	}
	id, err := findMilestoneTitled(r.ctx, r.s.DB, place{project: proj}, name)
	if err != nil || id == nil {
		return nil, err
	}
	found, err := findMilestones(r.ctx, r.s.DB, []int64{*id})
	if err != nil {
		return nil, err
	}
	m := found[*id]
	at := "/" + m.Path
	if m.GroupID != nil {
		at = "/groups/" + m.Path
	}
	return &markup.Target{URL: at + "/-/milestones/" + strconv.FormatInt(m.IID, 10), Title: m.Title}, nil
}

// maxReads is the maximum number of commits that are looked up for a text. Each
// lookup reads a repository.
const maxReads = 20

func (r *reader) commit(proj *project.Project, ref markup.Reference) (*markup.Target, error) {
	if r.reads++; r.reads > maxReads || proj.DefaultBranch == "" || !proj.MayRead(r.by, project.CodePart) {
		return nil, nil
	}
	_, c, err := r.s.Repos.Commit(r.ctx, r.by, project.RefTo(proj.ID), ref.Name, false)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(c.Commit.ID), ref.Name) {
		return nil, nil // the name is a branch or tag, not a commit ID
	}
	text := string(c.Commit.ID)[:8]
	if ref.Project != "" {
		text = ref.Project + "@" + text
	}
	return &markup.Target{URL: "/" + proj.FullPath + "/-/commit/" + string(c.Commit.ID), Title: c.Commit.Title, Text: text}, nil
}
