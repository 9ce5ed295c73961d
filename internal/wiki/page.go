package wiki

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/markup"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
)

// Page is a page of a wiki.
type Page struct {
	Slug   string // as used in URLs
	Title  string
	Format Format
	Path   string // of its file

	// Read by Page, and by Pages if that is wanted.
	Content string
	Fields  map[string]string // front matter
	Version git.OID           // the last commit that touched it; by Page only

	blob git.OID
}

// Home is the slug of the start page of a wiki, and Sidebar that of the page shown
// beside all others.
const (
	Home    = "home"
	Sidebar = "_sidebar"
)

// Pages lists the pages of a wiki by slug, optionally with content. Requires read
// access to the wiki. NotFound.
func (s *Service) Pages(ctx context.Context, by actor.Actor, at project.Place, content bool, p db.Paging) (*Wiki, db.Page[*Page], error) {
	var page db.Page[*Page]
	w, err := s.Wiki(ctx, by, at)
	if err != nil {
		return nil, page, err
	}
	r, ok, err := s.files(ctx, w)
	if err != nil || !ok {
		page.Items = []*Page{}
		return w, page, err
	}
	all, err := pages(ctx, r, "HEAD")
	if err != nil {
		return nil, page, err
	}
	page.Total, page.Over = len(all), len(all) > db.CountLimit
	all = all[min(p.Offset, len(all)):]
	if len(all) > p.Limit {
		all, page.More = all[:p.Limit], true
	}
	page.Items = []*Page{}
	for _, one := range all {
		copied := one
		if content {
			if err := read(ctx, r, &copied); err != nil {
				return nil, page, err
			}
		}
		page.Items = append(page.Items, &copied)
	}
	return w, page, nil
}

// pages returns all pages of a revision. They are computed once per tree.
func pages(ctx context.Context, r git.Repo, rev string) ([]Page, error) {
	tree, err := r.ResolveTree(ctx, rev)
	if err != nil {
		return nil, repo.Missing(err, "Wiki Page")
	}
	name := "wiki pages " + string(tree)
	if kept, ok := r.Kept(name); ok {
		return kept.([]Page), nil
	}
	entries, err := r.Tree(ctx, git.TreeOptions{Rev: string(tree), Recursive: true})
	if err != nil {
		return nil, repo.Missing(err, "Wiki Page")
	}
	var list []Page
	size := 0
	for _, e := range entries {
		if e.Type != git.TypeBlob || e.Mode == "120000" {
			continue // a symbolic link may point out of the wiki
		}
		if p, ok := pageOf(e.Path); ok {
			p.blob = e.OID
			list = append(list, p)
			size += 200 + 3*len(e.Path)
		}
	}
	slices.SortStableFunc(list, func(a, b Page) int { return strings.Compare(strings.ToLower(a.Slug), strings.ToLower(b.Slug)) })
	r.Keep(name, list, size)
	return list, nil
}

// find returns a page by its slug, or nil.
func find(ctx context.Context, r git.Repo, rev, slug string) (*Page, error) {
	all, err := pages(ctx, r, rev)
	if err != nil {
		return nil, err
	}
	slug = slugOf(slug)
	for _, p := range all {
		if p.Slug == slug {
			return &p, nil
		}
	}
	return nil, nil
}

// read reads the content of a page, up to a limit.
func read(ctx context.Context, r git.Repo, p *Page) error {
	content, err := r.Open(ctx, p.blob)
	if err != nil {
		return repo.Missing(err, "Wiki Page")
	}
	defer content.Close()
	text, err := io.ReadAll(io.LimitReader(content, maxContent))
	if err != nil {
		return fmt.Errorf("read page %s: %w", p.Path, err)
	}
	p.Content = strings.ReplaceAll(strings.ToValidUTF8(string(text), "\uFFFD"), "\x00", "\uFFFD")
	p.Fields, _ = frontMatter(p.Content)
	if title := p.Fields["title"]; title != "" {
		p.Title = title
	}
	return nil
}

// Page returns a page, in the newest version or in that of a commit. Requires read
// access to the wiki. NotFound.
func (s *Service) Page(ctx context.Context, by actor.Actor, at project.Place, slug, version string) (*Wiki, *Page, error) {
	w, err := s.Wiki(ctx, by, at)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.page(ctx, w, slug, version)
	return w, p, err
}

func (s *Service) page(ctx context.Context, w *Wiki, slug, version string) (*Page, error) {
	r, ok, err := s.files(ctx, w)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errs.NotFound("Wiki Page")
	}
	rev := "HEAD"
	if version != "" {
		rev = version
	}
	p, err := find(ctx, r, rev, slug)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errs.NotFound("Wiki Page")
	}
	if err := read(ctx, r, p); err != nil {
		return nil, err
	}
	last, err := r.Log(ctx, git.LogOptions{From: []string{rev}, Paths: []string{p.Path}, Limit: 1})
	if err != nil {
		return nil, repo.Missing(err, "Wiki Page")
	}
	if len(last) > 0 {
		p.Version = last[0].ID
	}
	return p, nil
}

// Versions lists the commits that changed a page, newest first. Requires read
// access to the wiki. NotFound.
func (s *Service) Versions(ctx context.Context, by actor.Actor, at project.Place, slug string, p db.Paging) (*Wiki, *Page, db.Page[*git.Commit], error) {
	var list db.Page[*git.Commit]
	w, page, err := s.Page(ctx, by, at, slug, "")
	if err != nil {
		return nil, nil, list, err
	}
	r, err := s.Repos.OpenAuxRepo(w.auxRepo)
	if err != nil {
		return nil, nil, list, err
	}
	list.Items, err = r.Log(ctx, git.LogOptions{From: []string{"HEAD"}, Paths: []string{page.Path}, Follow: true, Skip: p.Offset, Limit: p.Limit + 1})
	if err != nil {
		return nil, nil, list, repo.Missing(err, "Wiki Page")
	}
	if len(list.Items) > p.Limit {
		list.Items, list.More = list.Items[:p.Limit], true
	}
	return w, page, list, nil
}

// Diff returns the changes of a commit to the wiki. Requires read access to the
// wiki. NotFound.
func (s *Service) Diff(ctx context.Context, by actor.Actor, at project.Place, version string) (*Wiki, *git.Commit, *git.Diff, error) {
	w, err := s.Wiki(ctx, by, at)
	if err != nil {
		return nil, nil, nil, err
	}
	r, ok, err := s.files(ctx, w)
	if err != nil {
		return nil, nil, nil, err
	}
	if !ok {
		return nil, nil, nil, errs.NotFound("Commit")
	}
	c, err := r.Commit(ctx, version)
	if err != nil {
		return nil, nil, nil, repo.Missing(err, "Commit")
	}
	from := ""
	if len(c.ParentIDs) > 0 {
		from = string(c.ParentIDs[0])
	}
	d, err := r.Whole().Diff(ctx, git.DiffOptions{From: from, To: string(c.ID), Straight: true})
	return w, c, d, repo.Missing(err, "Commit")
}

// File is an attachment of a wiki.
type File struct {
	Name string
	Size int64
	ID   git.OID

	repo git.Repo
}

// Open returns the content as a stream.
func (f *File) Open(ctx context.Context) (io.ReadCloser, error) {
	content, err := f.repo.Open(ctx, f.ID)
	if err != nil {
		return nil, fmt.Errorf("open blob %s: %w", f.ID, err)
	}
	return content, nil
}

// File returns an attachment of a wiki. Requires read access to the wiki.
// NotFound.
func (s *Service) File(ctx context.Context, by actor.Actor, at project.Place, name string) (*File, error) {
	w, err := s.Wiki(ctx, by, at)
	if err != nil {
		return nil, err
	}
	r, ok, err := s.files(ctx, w)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errs.NotFound("File")
	}
	entry, err := r.Entry(ctx, "HEAD", name)
	if err == nil && (entry.Type != git.TypeBlob || entry.Mode == "120000") {
		err = git.ErrNotFound
	}
	if err != nil {
		return nil, repo.Missing(err, "File")
	}
	info, err := r.Info(ctx, entry.OID)
	if err != nil {
		return nil, repo.Missing(err, "File")
	}
	return &File{Name: entry.Name, Size: info.Size, ID: entry.OID, repo: r}, nil
}

// Render renders a page to HTML.
func (s *Service) Render(ctx context.Context, by actor.Actor, w *Wiki, p *Page) (string, error) {
	if p.Format != Markdown {
		return markup.Plain(p.Content), nil
	}
	_, text := frontMatter(p.Content)
	var in *project.Ref
	if w.Project != nil {
		ref := project.RefTo(w.Project.ID)
		in = &ref
	}
	made, err := s.Plan.RenderAll(ctx, by, in, plan.Text{Source: text, Wiki: true, LinkKey: w.Base() + " " + p.Slug, Link: func(to string, image bool) string { return link(w.Base(), p.Slug, to, image) }})
	if errs.Is(err, errs.KindTooLarge) {
		return markup.Plain(p.Content), nil
	}
	if err != nil {
		return "", err
	}
	return made[0], nil
}

// link resolves a link in a page: to a page relative to it, to a page from the root of
// the wiki, or to an attachment.
func link(base, slug, to string, image bool) string {
	name, rest := to, ""
	if i := strings.IndexAny(to, "?#"); i >= 0 {
		name, rest = to[:i], to[i:]
	}
	switch {
	case name == "" && strings.HasPrefix(rest, "#"):
		return heading(rest)
	case name == "", strings.Contains(name, ":"), strings.HasPrefix(to, "//"), strings.HasPrefix(name, "/"+uploads), strings.HasPrefix(name, "/-/"):
		return to
	case strings.HasPrefix(name, "/"):
	case strings.HasPrefix(name, uploads):
		name = "/" + name
	default:
		name = path.Join("/", path.Dir(slug), name)
	}
	if page, _, ok := splitFile(name); ok && !image {
		name = page
	}
	return base + path.Clean(name) + heading(rest)
}

// heading returns the fragment of a link to a heading, which has the ID of the heading
// on the page.
func heading(rest string) string {
	before, id, ok := strings.Cut(rest, "#")
	if !ok {
		return rest
	}
	return before + "#" + markup.HeadingPrefix + id
}
