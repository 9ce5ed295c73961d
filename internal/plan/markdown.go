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

// Referrer finds what references of a kind that another feature knows stand for,
// as far as the actor may know: nil when they may not, or there is nothing.
type Referrer func(ctx context.Context, by actor.Actor, in *project.Project, name string) (*markup.Target, error)

// OnReference registers a Referrer; it is called at start-up.
func (s *Service) OnReference(kind markup.Kind, r Referrer) { s.referrers[kind] = r }

// Render makes HTML of a text in Markdown for a reader. In a project, if one is
// named, its references become links as far as the reader sees what they stand
// for. NotFound when they do not see the project; TooLarge.
func (s *Service) Render(ctx context.Context, by actor.Actor, in *project.Ref, source string) (string, error) {
	list, err := s.RenderAll(ctx, by, in, Text{Source: source})
	if err != nil {
		return "", err
	}
	return list[0], nil
}

// Text is a text that is to be shown. Task draws the boxes of its tasks, as it
// does for markup. Link leads links elsewhere than as they are written, if it is
// given; what it leaves as it is is taken as in any other text. LinkKey goes with
// it: texts with the same one have the same links.
type Text struct {
	Source  string
	Task    func(n int, done bool) string
	Link    func(to string, image bool) string
	LinkKey string
	Wiki    bool   // [[page]] is a link: see markup.Options
	Whole   string // the address of the text as it was written: see markup.Options
	// Suggestion draws the suggestions of a diff note, as it does for markup.
	Suggestion func(n int) string
}

// RenderAll is Render for the texts of a page: what they refer to is looked for
// once.
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
		lead, key := r.link, strconv.FormatInt(r.id(), 10)+" "+r.files()
		if t.Link != nil {
			lead = func(to string, image bool) string { return r.link(t.Link(to, image), image) }
			key += " " + t.LinkKey
		}
		var err error
		if list[i], err = s.Markup.Markdown(ctx, t.Source, markup.Options{Resolve: r.resolve, Link: lead, LinkKey: key, Highlight: true, Task: t.Task, Wiki: t.Wiki, Whole: t.Whole, Suggestion: t.Suggestion}); err != nil {
			return nil, fmt.Errorf("render text: %w", err)
		}
	}
	return list, nil
}

// reader is one for whom a text is rendered.
type reader struct {
	s     *Service
	ctx   context.Context
	by    actor.Actor
	known map[string]*project.Project // by the path of a reference; nil for what they do not see
	reads int                         // how often the repository was asked
	found map[markup.Reference]*markup.Target
}

// id is the id of the project that the text stands in, or 0.
func (r *reader) id() int64 {
	if p := r.known[""]; p != nil {
		return p.ID
	}
	return 0
}

// files is where relative links lead: the default branch of the project, up to
// the kind of page. It is empty when the reader does not see the code.
func (r *reader) files() string {
	p := r.known[""]
	if p == nil || p.DefaultBranch == "" || !p.MayRead(r.by, project.CodePart) {
		return ""
	}
	return p.FullPath + " " + p.DefaultBranch
}

// link leads links to uploads, to files of the repository and to headings to
// where they are.
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

// maxLookups is how many different references of a page are looked up.
const maxLookups = 500

// resolve finds what references stand for.
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

// hidden reports whether something is not there for the reader.
func hidden(err error) bool {
	return errs.Is(err, errs.KindNotFound) || errs.Is(err, errs.KindForbidden) || errs.Is(err, errs.KindUnauthorized) || errs.Is(err, errs.KindInvalid)
}

func (r *reader) target(ref markup.Reference) (*markup.Target, error) {
	if ref.Kind == markup.User {
		return r.person(ref.Name)
	}
	in, err := r.project(ref.Project)
	if err != nil || in == nil {
		return nil, err
	}
	at := "/" + in.FullPath + "/-/"
	switch ref.Kind {
	case markup.Issue:
		iid, err := strconv.ParseInt(ref.Name, 10, 64)
		if err != nil {
			return nil, nil
		}
		_, i, err := r.s.issue(r.ctx, r.by, project.RefTo(in.ID), iid)
		if err != nil {
			return nil, err
		}
		return &markup.Target{URL: at + "issues/" + ref.Name, Title: i.Title}, nil
	case markup.Label:
		l, err := findLabel(r.ctx, r.s.DB, place{project: in}, ref.Name, true)
		if err != nil {
			return nil, db.NotFound(err, "Label")
		}
		return &markup.Target{URL: at + "issues?label_name[]=" + url.QueryEscape(l.Name), Title: l.Description, Text: l.Name}, nil
	case markup.Milestone:
		return r.milestone(in, ref.Name)
	case markup.Commit:
		return r.commit(in, ref)
	}
	if referrer := r.s.referrers[ref.Kind]; referrer != nil {
		return referrer(r.ctx, r.by, in, ref.Name)
	}
	return nil, nil
}

// project returns the project of a reference, if the reader sees it.
func (r *reader) project(path string) (*project.Project, error) {
	p, asked := r.known[path]
	if asked || path == "" {
		return p, nil
	}
	full := path
	if !strings.Contains(path, "/") {
		here := r.known[""]
		if here == nil {
			return nil, nil // there is none beside it
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

// person is a user, or a group.
func (r *reader) person(name string) (*markup.Target, error) {
	if strings.Trim(name, "0123456789") == "" {
		return nil, nil // it would be taken for an id
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

func (r *reader) milestone(in *project.Project, name string) (*markup.Target, error) {
	if !in.MayRead(r.by, project.IssuePart) && !in.MayRead(r.by, project.MergePart) {
		return nil, nil
	}
	id, err := findMilestoneTitled(r.ctx, r.s.DB, place{project: in}, name)
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

// maxReads is how many commits of a text are looked for: each costs a read of a
// repository.
const maxReads = 20

func (r *reader) commit(in *project.Project, ref markup.Reference) (*markup.Target, error) {
	if r.reads++; r.reads > maxReads || in.DefaultBranch == "" || !in.MayRead(r.by, project.CodePart) {
		return nil, nil
	}
	_, c, err := r.s.Repos.Commit(r.ctx, r.by, project.RefTo(in.ID), ref.Name, false)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(c.Commit.ID), ref.Name) {
		return nil, nil // a branch or tag of that name
	}
	shown := string(c.Commit.ID)[:8]
	if ref.Project != "" {
		shown = ref.Project + "@" + shown
	}
	return &markup.Target{URL: "/" + in.FullPath + "/-/commit/" + string(c.Commit.ID), Title: c.Commit.Title, Text: shown}, nil
}
