// Package search finds projects, issues, merge requests, milestones, users,
// snippets, comments, commits and files by text: in the whole instance, in a
// group or in a project. Each feature decides what a caller may see: a search is its
// list with one more condition.
package search

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"svc/internal/actor"
	"svc/internal/codesearch"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/plan/listing"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/snippet"
	"svc/internal/user"
	"svc/internal/wiki"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Users    *user.Service
	Projects *project.Service
	Repos    *repo.Service
	Plan     *plan.Service
	Merges   *merge.Service
	Snippets *snippet.Service
	Wikis    *wiki.Service
	Code     *codesearch.Service
}

// Service searches the instance.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{d} }

// Scope is a kind of objects that can be searched.
type Scope string

// The scopes.
const (
	Projects      Scope = "projects"
	Issues        Scope = "issues"
	MergeRequests Scope = "merge_requests"
	Milestones    Scope = "milestones"
	Users         Scope = "users"
	SnippetTitles Scope = "snippet_titles"
	Notes         Scope = "notes"
	Commits       Scope = "commits"
	Blobs         Scope = "blobs"
	WikiBlobs     Scope = "wiki_blobs"
)

// ScopesOf returns the scopes that can be searched at a place, in the order in
// which pages show them; nil is the whole instance. Commits and wikis can be
// searched in a project only, because they are read from its repository.
func ScopesOf(at *project.Place) []Scope {
	switch {
	case at == nil:
		return []Scope{Projects, Blobs, Issues, MergeRequests, Milestones, Notes, SnippetTitles, Users}
	case at.Group:
		return []Scope{Projects, Blobs, Issues, MergeRequests, Milestones, Notes, Users}
	}
	return []Scope{Blobs, Issues, MergeRequests, Milestones, Notes, WikiBlobs, Commits, Users}
}

// Query is a search.
type Query struct {
	At   *project.Place // nil is the whole instance
	Text string
	// State selects issues and merge requests; empty is all.
	State        string
	Confidential *bool  // selects issues
	TitleOnly    bool   // of issues and merge requests
	Archived     bool   // also in archived projects; a project is searched in any case
	Oldest       bool   // the oldest first, of all that is stored in the database
	Ref          string // of commits and files
	Context      int    // lines around a match in a file
	Regex        bool   // Text is a regular expression, in files
	NoForks      bool   // leaves out the files of forks; not in a project
}

// inProject returns the project that is searched. Invalid if the search is not in a
// project.
func (q Query) inProject(scope Scope) (project.Ref, error) {
	if q.At == nil || q.At.Group {
		return "", errs.Invalid("The scope %s is available in projects only.", scope)
	}
	return q.At.Ref, nil
}

// live reports whether archived projects are left out.
func (q Query) live() bool { return !q.Archived && (q.At == nil || q.At.Group) }

func (q Query) sort() listing.Sort { return listing.Sort{By: "created_at", Desc: !q.Oldest} }

// check refuses a search that callers may not make, and one that is empty or too
// long. Unauthorized; Invalid.
func (q Query) check(by actor.Actor) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	return checkText(q.Text)
}

// Projects finds projects by name, path and description. Users may call it. NotFound
// if they cannot see the group; Unauthorized; Invalid.
func (s *Service) Projects(ctx context.Context, by actor.Actor, q Query, p db.Paging) (db.Page[*project.Project], error) {
	if err := q.check(by); err != nil {
		return db.Page[*project.Project]{}, err
	}
	f := project.Filter{Search: q.Text, Deep: true}
	if q.live() {
		archived := false
		f.Archived = &archived
	}
	order := project.Sort{By: "created_at", Desc: !q.Oldest}
	switch {
	case q.At == nil:
		return s.Deps.Projects.List(ctx, by, f, order, p)
	case q.At.Group:
		return s.Deps.Projects.GroupProjects(ctx, by, q.At.Ref, project.GroupFilter{Subgroups: true}, f, order, p)
	}
	return db.Page[*project.Project]{}, errs.Invalid("scope does not have a valid value")
}

// Issues finds issues by title and description. Users may call it. NotFound if they
// cannot see the place or its issues; Unauthorized; Invalid.
func (s *Service) Issues(ctx context.Context, by actor.Actor, q Query, p db.Paging) (db.Page[*plan.Issue], error) {
	if err := q.check(by); err != nil {
		return db.Page[*plan.Issue]{}, err
	}
	f := plan.IssueFilter{Filter: q.filter(), Confidential: q.Confidential}
	if q.At == nil {
		return s.Plan.Issues(ctx, by, f, q.sort(), p)
	}
	return s.Plan.PlaceIssues(ctx, by, *q.At, f, q.sort(), p)
}

// filter returns the filter for issues and merge requests.
func (q Query) filter() listing.Filter {
	f := listing.Filter{State: plan.State(q.State), Search: q.Text, InTitle: q.TitleOnly, Live: q.live()}
	if q.State == "all" {
		f.State = ""
	}
	return f
}

// MergeRequests finds merge requests by title and description. Users may call it.
// NotFound if they cannot see the place or its merge requests; Unauthorized; Invalid.
func (s *Service) MergeRequests(ctx context.Context, by actor.Actor, q Query, p db.Paging) (db.Page[*merge.MergeRequest], error) {
	if err := q.check(by); err != nil {
		return db.Page[*merge.MergeRequest]{}, err
	}
	f := merge.Filter{Filter: q.filter()}
	if q.At == nil {
		return s.Merges.List(ctx, by, f, q.sort(), p)
	}
	return s.Merges.PlaceList(ctx, by, *q.At, f, q.sort(), p)
}

// Milestones finds milestones by title and description: of projects, and in a group
// also those of the group and its subgroups. Users may call it. NotFound if they
// cannot see the place; Unauthorized; Invalid.
func (s *Service) Milestones(ctx context.Context, by actor.Actor, q Query, p db.Paging) (db.Page[*plan.Milestone], error) {
	if err := q.check(by); err != nil {
		return db.Page[*plan.Milestone]{}, err
	}
	f := plan.MilestoneFilter{Search: q.Text, Oldest: q.Oldest, Live: q.live()}
	if q.At == nil {
		return s.Plan.AllMilestones(ctx, by, f, p)
	}
	f.Descendants = q.At.Group
	return s.Plan.Milestones(ctx, by, *q.At, f, p)
}

// Users finds users by name, username and whole email address, in a group or project
// its members. Users may call it. NotFound if they cannot see the place;
// Unauthorized; Invalid.
func (s *Service) Users(ctx context.Context, by actor.Actor, q Query, p db.Paging) (db.Page[*user.User], error) {
	if err := q.check(by); err != nil {
		return db.Page[*user.User]{}, err
	}
	if q.At == nil {
		return s.Deps.Users.List(ctx, by, user.Filter{Search: q.Text}, user.Sort{By: "id", Desc: true}, p)
	}
	members, err := s.Deps.Projects.Members(ctx, by, *q.At, project.MemberFilter{All: true, Query: q.Text}, p)
	page := db.Page[*user.User]{Items: []*user.User{}, More: members.More, Total: members.Total, Over: members.Over}
	for _, m := range members.Items {
		if m.User != nil {
			page.Items = append(page.Items, m.User)
		}
	}
	return page, err
}

// Snippets finds snippets by title. Users may call it. Unauthorized; Invalid.
func (s *Service) Snippets(ctx context.Context, by actor.Actor, q Query, p db.Paging) (db.Page[*snippet.Snippet], error) {
	if err := q.check(by); err != nil {
		return db.Page[*snippet.Snippet]{}, err
	}
	if q.At != nil {
		return db.Page[*snippet.Snippet]{}, errs.Invalid("scope does not have a valid value")
	}
	return s.Deps.Snippets.All(ctx, by, snippet.Filter{Search: q.Text, Oldest: q.Oldest}, p)
}

// Notes finds comments by their text. Users may call it. NotFound if they cannot see
// the place; Unauthorized; Invalid.
func (s *Service) Notes(ctx context.Context, by actor.Actor, q Query, p db.Paging) (db.Page[*plan.Note], error) {
	var none db.Page[*plan.Note]
	if err := q.check(by); err != nil {
		return none, err
	}
	projectID, groupID, err := s.place(ctx, by, q.At)
	if err != nil {
		return none, err
	}
	ids, err := s.listNotes(ctx, by, projectID, groupID, q, p)
	if err != nil {
		return none, fmt.Errorf("search comments: %w", err)
	}
	found, err := s.Plan.NotesOf(ctx, ids.Items)
	if err != nil {
		return none, err
	}
	page := db.Page[*plan.Note]{Items: []*plan.Note{}, More: ids.More, Total: ids.Total, Over: ids.Over}
	for _, id := range ids.Items {
		if n := found[id]; n != nil { // else it was deleted just now
			page.Items = append(page.Items, n)
		}
	}
	return page, nil
}

// place returns the ID of the project or group that is searched; both are 0 for the
// whole instance. NotFound.
func (s *Service) place(ctx context.Context, by actor.Actor, at *project.Place) (projectID, groupID int64, err error) {
	switch {
	case at == nil:
		return 0, 0, nil
	case at.Group:
		g, err := s.Deps.Projects.RequireGroup(ctx, by, at.Ref, project.NoAccess)
		if err != nil {
			return 0, 0, err
		}
		return 0, g.ID, nil
	}
	p, err := s.Deps.Projects.Require(ctx, by, at.Ref, project.NoAccess)
	if err != nil {
		return 0, 0, err
	}
	return p.ID, 0, nil
}

// commitID matches the ID of a commit or its beginning.
var commitID = regexp.MustCompile(`^[0-9a-fA-F]{7,40}$`)

// Commits finds commits of a project by their messages and IDs. Users who can read
// its code may call it. NotFound; Unauthorized; Invalid, also outside of a project;
// Unavailable if the search takes too long.
func (s *Service) Commits(ctx context.Context, by actor.Actor, q Query, p db.Paging) (*project.Project, db.Page[repo.CommitDetail], error) {
	var none db.Page[repo.CommitDetail]
	if err := q.check(by); err != nil {
		return nil, none, err
	}
	ref, err := q.inProject(Commits)
	if err != nil {
		return nil, none, err
	}
	in, page, err := s.Repos.Commits(ctx, by, ref, repo.CommitFilter{Ref: q.Ref, Message: q.Text}, p)
	if err != nil || p.Offset > 0 || !commitID.MatchString(q.Text) {
		return in, page, err
	}
	_, named, err := s.Repos.Commit(ctx, by, ref, q.Text, false)
	if errs.Is(err, errs.KindNotFound) {
		return in, page, nil
	}
	if err != nil {
		return nil, none, err
	}
	page.Items = slices.DeleteFunc(page.Items, func(c repo.CommitDetail) bool { return c.ID == named.ID })
	page.Items = append([]repo.CommitDetail{*named}, page.Items...)
	return in, page, nil
}

// BlobHit is a part of a file that was found.
type BlobHit struct {
	repo.FileHit
	Project *project.Project
}

// BlobPage is a page of files.
type BlobPage struct {
	db.Page[BlobHit]
	Pending int            // projects that are not indexed yet
	Expr    *regexp.Regexp // what the lines match, if the search is a regular expression
}

// Blobs finds files by their content and paths: in a branch of a project, or in the
// default branches of all projects that the caller may read the code of. The text can
// have the filters filename:, path:, extension:, lang: and case:. Users may call it.
// NotFound; Unauthorized; Invalid; Unavailable if the search takes too long.
func (s *Service) Blobs(ctx context.Context, by actor.Actor, q Query, p db.Paging) (BlobPage, error) {
	if err := q.check(by); err != nil {
		return BlobPage{}, err
	}
	parsed, err := s.parseCode(q)
	if err != nil {
		return BlobPage{}, err
	}
	if q.At == nil || q.At.Group {
		return s.indexed(ctx, by, q, parsed, p)
	}
	in, err := s.Deps.Projects.ReadCode(ctx, by, q.At.Ref)
	if err != nil {
		return BlobPage{}, err
	}
	if q.Regex || parsed.onIndex() {
		if q.Ref != "" && q.Ref != in.DefaultBranch {
			return BlobPage{}, errs.Invalid("Regular expressions and the filters lang: and case: are available on the default branch only.")
		}
		return s.indexed(ctx, by, q, parsed, p)
	}
	f := parsed.filter(q.Context)
	f.Ref = q.Ref
	_, list, err := s.Repos.Grep(ctx, by, q.At.Ref, f, p)
	page := BlobPage{Page: db.Page[BlobHit]{Items: []BlobHit{}, More: list.More, Total: list.Total, Over: list.Over}}
	for _, h := range list.Items {
		page.Items = append(page.Items, BlobHit{FileHit: h, Project: in})
	}
	return page, err
}

// indexed searches the index of all projects, of a group or of a project.
func (s *Service) indexed(ctx context.Context, by actor.Actor, q Query, parsed fileQuery, p db.Paging) (BlobPage, error) {
	if !s.Code.Enabled() {
		return BlobPage{}, errs.Invalid("The code search index is disabled. Search in a project, without a regular expression and without the filters lang: and case:.")
	}
	projectID, groupID, err := s.place(ctx, by, q.At)
	if err != nil {
		return BlobPage{}, err
	}
	in := codesearch.Query{
		ProjectID: projectID, GroupID: groupID, Live: q.live(), NoForks: q.NoForks && projectID == 0, Text: parsed.text, Regex: q.Regex, Case: parsed.exact, Context: q.Context,
		Languages: parsed.languages,
	}
	for _, f := range parsed.filters {
		in.Paths = append(in.Paths, codesearch.Path{Expr: f.expr(), Not: f.not})
	}
	found, err := s.Code.Search(ctx, by, in, p)
	if err != nil {
		return BlobPage{}, err
	}
	page := BlobPage{
		Page:    db.Page[BlobHit]{Items: []BlobHit{}, More: found.More, Total: found.Total, Over: found.Over},
		Pending: found.Pending,
	}
	if q.Regex && parsed.text != "" {
		flags := "(?i)"
		if parsed.exact {
			flags = ""
		}
		if page.Expr, err = regexp.Compile(flags + parsed.text); err != nil {
			return page, errs.Invalid("%s", err)
		}
	}
	var ids []int64
	for _, h := range found.Items {
		if !slices.Contains(ids, h.ProjectID) {
			ids = append(ids, h.ProjectID)
		}
	}
	seen, err := s.Deps.Projects.Among(ctx, by, ids)
	if err != nil {
		return page, err
	}
	projects := map[int64]*project.Project{}
	for _, one := range seen {
		if one.MayRead(by, project.CodePart) {
			projects[one.ID] = one
		}
	}
	for _, h := range found.Items {
		if in := projects[h.ProjectID]; in != nil { // else access ended just now
			hunk := git.Hunk{Path: h.Path, Start: h.Start, Lines: h.Lines}
			page.Items = append(page.Items, BlobHit{FileHit: repo.FileHit{Hunk: hunk, Ref: h.Branch}, Project: in})
		}
	}
	return page, nil
}

// files returns the search in the files of a repository.
func (q Query) files(by actor.Actor, scope Scope) (f repo.GrepFilter, err error) {
	if err := q.check(by); err != nil {
		return f, err
	}
	if _, err := q.inProject(scope); err != nil {
		return f, err
	}
	parsed, err := parseFiles(q.Text)
	if err != nil {
		return f, err
	}
	return parsed.filter(q.Context), nil
}

// WikiBlobs finds pages of the wiki of a project, as Blobs finds files. Users who can
// read the wiki may call it.
func (s *Service) WikiBlobs(ctx context.Context, by actor.Actor, q Query, p db.Paging) (*wiki.Wiki, db.Page[repo.FileHit], error) {
	f, err := q.files(by, WikiBlobs)
	if err != nil {
		return nil, db.Page[repo.FileHit]{}, err
	}
	return s.Wikis.Grep(ctx, by, *q.At, f, p)
}

// Count is the number of results of a scope, up to MaxCount.
type Count struct {
	Scope Scope
	N     int
	Over  bool // there are more
	// Unknown reports that the search took too long, or that the scope is not counted.
	Unknown bool
}

// MaxCount is the maximum number of results that are counted.
const MaxCount = 1000

// Counts counts the results of the scopes of a place. Scopes that the caller cannot
// see are left out. Commits and files are not counted, because that costs as much as
// reading all of them. Users may call it. Unauthorized; Invalid.
func (s *Service) Counts(ctx context.Context, by actor.Actor, q Query) ([]Count, error) {
	if err := q.check(by); err != nil {
		return nil, err
	}
	var list []Count
	for _, scope := range ScopesOf(q.At) {
		c := Count{Scope: scope}
		total, over, err := s.count(ctx, by, scope, q)
		switch {
		case errs.Is(err, errs.KindNotFound):
			continue
		case errors.Is(err, errUncounted), errs.Is(err, errs.KindUnavailable):
			c.Unknown = true
		case err != nil:
			return nil, err
		case over || total > MaxCount:
			c.N, c.Over = MaxCount, true
		default:
			c.N = total
		}
		list = append(list, c)
	}
	return list, nil
}

// errUncounted marks a scope that is not counted.
var errUncounted = errors.New("not counted")

func (s *Service) count(ctx context.Context, by actor.Actor, scope Scope, q Query) (n int, over bool, err error) {
	one := db.Paging{Limit: 1, Totals: true}
	switch scope {
	case Projects:
		return total(s.Projects(ctx, by, q, one))
	case Issues:
		return total(s.Issues(ctx, by, q, one))
	case MergeRequests:
		return total(s.MergeRequests(ctx, by, q, one))
	case Milestones:
		return total(s.Milestones(ctx, by, q, one))
	case Users:
		return total(s.Users(ctx, by, q, one))
	case SnippetTitles:
		return total(s.Snippets(ctx, by, q, one))
	case Notes:
		return total(s.Notes(ctx, by, q, one))
	}
	if scope == Blobs && (q.At == nil || q.At.Group) {
		return 0, false, errUncounted
	}
	// The caller may lack access to the code or the wiki.
	ref, err := q.inProject(scope)
	if err != nil {
		return 0, false, err
	}
	in, err := s.Deps.Projects.Require(ctx, by, ref, project.NoAccess)
	if err != nil {
		return 0, false, err
	}
	part := project.CodePart
	if scope == WikiBlobs {
		part = project.WikiPart
	}
	if !in.MayRead(by, part) {
		return 0, false, errs.NotFound("")
	}
	return 0, false, errUncounted
}

func total[T any](page db.Page[T], err error) (int, bool, error) { return page.Total, page.Over, err }
