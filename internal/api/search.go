package api

import (
	"path"
	"strings"

	"svc/internal/bind"
	"svc/internal/db"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/search"
	"svc/internal/snippet"
	"svc/internal/user"
)

func (a *API) searchRoutes() {
	a.tag("Search")
	shapes := returns(projectBasicJSON{}, projectJSON{}, issueJSON{}, mergeRequestJSON{}, milestoneJSON{}, userPublicJSON{}, snippetJSON{}, noteJSON{},
		commitDetailJSON{}, blobHitJSON{})
	handle(a, "GET /search", readAPI, a.searchInstance, shapes, summary("Search an instance"))
	handle(a, "GET /groups/{id}/search", readAPI, a.searchGroup, shapes, summary("Search a group"))
	handle(a, "GET /projects/{id}/search", readAPI, a.searchProject, shapes, summary("Search a project"))
	// Some clients send these paths.
	handle(a, "GET /groups/{id}/-/search", readAPI, a.searchGroup, shapes, variant("Dash"), summary("Search a group"))
	handle(a, "GET /projects/{id}/-/search", readAPI, a.searchProject, shapes, variant("Dash"), summary("Search a project"))
}

// blobHitJSON is a match in a file.
type blobHitJSON struct {
	Basename  string  `json:"basename"` // the path without the extension
	Data      string  `json:"data"`     // the lines around the match
	Path      string  `json:"path"`
	Filename  string  `json:"filename"` // deprecated: the same as path
	ID        *string `json:"id"`       // always null
	Ref       string  `json:"ref"`
	Startline int     `json:"startline"`
	ProjectID int64   `json:"project_id"`
}

func toBlobHit(h repo.FileHit, projectID int64) blobHitJSON {
	data := strings.Join(h.Lines, "\n")
	if data != "" {
		data += "\n"
	}
	return blobHitJSON{
		Basename: strings.TrimSuffix(h.Path, path.Ext(h.Path)), Data: data, Path: h.Path, Filename: h.Path, Ref: h.Ref, Startline: h.Start, ProjectID: projectID,
	}
}

// searchParams are the parameters of all searches.
type searchParams struct {
	Search       string   `param:"search,required,nonblank" doc:"Text to search for. In files it can have the filters filename:, path:, extension:, lang: and case:."`
	State        string   `param:"state" enum:"opened,closed,merged,locked,all" doc:"State of issues and merge requests. Other scopes ignore it."`
	Confidential *bool    `param:"confidential" doc:"Confidentiality of issues. Other scopes ignore it."`
	OrderBy      string   `param:"order_by" enum:"created_at"`
	Sort         string   `param:"sort" enum:"asc,desc" default:"desc" doc:"Order by creation. The scopes users, commits, blobs and wiki_blobs ignore it."`
	Fields       []string `param:"fields,csv" enum:"title" doc:"Fields of issues and merge requests to search. Other scopes ignore it."`
	Type         string   `param:"search_type" enum:"basic,advanced,zoekt" doc:"Type of search. Each scope has one type; the parameter changes nothing."`
	Context      *int64   `param:"num_context_lines" doc:"Lines before and after a match in a file, at most 20. Default is 2."`
	Regex        bool     `param:"regex" doc:"In the scope blobs, the text is a regular expression. Other scopes ignore it."`
	pageParams
}

// query returns the search in a project or group, or in the whole instance if at is
// nil.
func (p *searchParams) query(at *project.Place) search.Query {
	q := search.Query{
		At: at, Text: p.Search, State: p.State, Confidential: p.Confidential, TitleOnly: len(p.Fields) > 0, Oldest: p.Sort == "asc", Context: blobContext,
		Regex: p.Regex,
	}
	if p.Context != nil {
		q.Context = int(*p.Context)
	}
	return q
}

// blobContext is the default number of lines before and after a match in a file.
const blobContext = 2

// maxBlobContext is the maximum of num_context_lines.
const maxBlobContext = 20

type searchInstanceParams struct {
	Scope    search.Scope `param:"scope,required" enum:"projects,issues,merge_requests,milestones,snippet_titles,users,notes,commits,blobs,wiki_blobs" doc:"Scope of the search. commits and wiki_blobs are available in projects only."`
	Archived bool         `param:"include_archived" doc:"Also search archived projects."`
	NoForks  bool         `param:"exclude_forks" doc:"Leave out the files of forks. Other scopes than blobs ignore it."`
	searchParams
}

// searchInstance: https://docs.gitlab.com/api/search/#search-an-instance
func (a *API) searchInstance(c *call, p searchInstanceParams) (page[any], error) {
	q := p.query(nil)
	q.Archived, q.NoForks = p.Archived, p.NoForks
	return a.search(c, p.Scope, q, p.pageParams)
}

type searchGroupParams struct {
	placeParams
	Scope    search.Scope `param:"scope,required" enum:"projects,issues,merge_requests,milestones,users,notes,commits,blobs,wiki_blobs" doc:"Scope of the search. commits and wiki_blobs are available in projects only."`
	Archived bool         `param:"include_archived" doc:"Also search archived projects."`
	NoForks  bool         `param:"exclude_forks" doc:"Leave out the files of forks. Other scopes than blobs ignore it."`
	searchParams
}

// searchGroup: https://docs.gitlab.com/api/search/#search-a-group
func (a *API) searchGroup(c *call, p searchGroupParams) (page[any], error) {
	q := p.query(&project.Place{Ref: p.Ref, Group: true})
	q.Archived, q.NoForks = p.Archived, p.NoForks
	return a.search(c, p.Scope, q, p.pageParams)
}

type searchProjectParams struct {
	placeParams
	Scope  search.Scope `param:"scope,required" enum:"issues,merge_requests,milestones,users,notes,wiki_blobs,commits,blobs"`
	Branch string       `param:"ref" doc:"Branch, tag or commit of the scopes blobs and commits. Default is the default branch."`
	searchParams
}

func (p *searchParams) check() error {
	if p.Context != nil && (*p.Context < 0 || *p.Context > maxBlobContext) {
		return bind.Invalid("num_context_lines does not have a valid value")
	}
	return p.pageParams.check()
}

// searchProject: https://docs.gitlab.com/api/search/#search-a-project
func (a *API) searchProject(c *call, p searchProjectParams) (page[any], error) {
	q := p.query(&project.Place{Ref: p.Ref})
	q.Ref = p.Branch
	return a.search(c, p.Scope, q, p.pageParams)
}

// search searches in one scope. The items have the representation that lists of the
// scope use.
func (a *API) search(c *call, scope search.Scope, q search.Query, p pageParams) (page[any], error) {
	now := a.Now()
	switch scope {
	case search.Projects:
		list, err := a.Search.Projects(c, c.actor, q, p.paging())
		return found(p, list, err, func(one *project.Project) any { return toProject(c, one, true, false, now) })
	case search.Issues:
		list, err := a.Search.Issues(c, c.actor, q, p.paging())
		shown, err := a.presentIssues(c, p, list, false, err)
		return page[any]{items: mapped(shown.items, func(one issueJSON) any { return one }), head: shown.head}, err
	case search.MergeRequests:
		list, err := a.Search.MergeRequests(c, c.actor, q, p.paging())
		return found(p, list, err, func(one *merge.MergeRequest) any { return toMergeRequest(c.site, one, false, now) })
	case search.Milestones:
		list, err := a.Search.Milestones(c, c.actor, q, p.paging())
		return found(p, list, err, func(one *plan.Milestone) any { return toMilestone(c.site, one, now) })
	case search.Users:
		list, err := a.Search.Users(c, c.actor, q, p.paging())
		return found(p, list, err, func(one *user.User) any { return toUserPublic(c.site, one, now) })
	case search.SnippetTitles:
		list, err := a.Search.Snippets(c, c.actor, q, p.paging())
		return found(p, list, err, func(one *snippet.Snippet) any { return a.toSnippet(c, one) })
	case search.Notes:
		list, err := a.Search.Notes(c, c.actor, q, p.paging())
		return found(p, list, err, func(one *plan.Note) any { return a.toNote(c, one) })
	case search.Commits:
		in, list, err := a.Search.Commits(c, c.actor, q, p.paging())
		return found(p, list, err, func(one repo.CommitDetail) any {
			return commitDetailJSON{commitJSON: toCommit(c, in, one.Commit), ProjectID: in.ID}
		})
	case search.WikiBlobs:
		in, list, err := a.Search.WikiBlobs(c, c.actor, q, p.paging())
		return found(p, list, err, func(one repo.FileHit) any { return toBlobHit(one, in.Project.ID) })
	}
	list, err := a.Search.Blobs(c, c.actor, q, p.paging())
	return found(p, list.Page, err, func(one search.BlobHit) any { return toBlobHit(one.FileHit, one.Project.ID) })
}

// found returns a page of results.
func found[F any](p pageParams, list db.Page[F], err error, to func(F) any) (page[any], error) {
	if err != nil {
		return page[any]{}, err
	}
	return offsetPage(p, list, to), nil
}
