package api

import (
	"io"
	"mime"
	"net/url"
	"strings"
	"time"

	"svc/internal/bind"
	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/snippet"
)

func (a *API) snippetRoutes() {
	a.tag("Snippets")
	read := readAPI.orAnonymous()
	const one = "/snippets/{id}"
	handle(a, "GET /snippets", readAPI, a.listOwnSnippets, summary("List snippets of the current user"))
	handle(a, "POST /snippets", writeAPI, a.createSnippet, large, summary("Create a snippet"))
	handle(a, "GET /snippets/public", readAPI, a.listPublicSnippets, summary("List public snippets"))
	handle(a, "GET /snippets/all", readAPI, a.listAllSnippets, summary("List all snippets"))
	handle(a, "GET "+one, read, getSnippet[snippetParams](a), summary("Get a snippet"))
	handle(a, "PUT "+one, writeAPI, a.updateSnippet, large, summary("Update a snippet"))
	handle(a, "DELETE "+one, writeAPI, deleteSnippet[snippetParams](a), summary("Delete a snippet"))
	handle(a, "GET "+one+"/raw", read, getRawSnippet[snippetParams](a), summary("Get snippet content"))
	handle(a, "GET "+one+"/files/{ref}/{file_path}/raw", read, getSnippetFile[snippetFileParams](a), summary("Get snippet file content"))
	handle(a, "GET "+one+"/user_agent_detail", readAPI, getSnippetAgent[snippetParams](a), summary("Get user agent details of a snippet"))
	a.projectSnippetRoutes()
}

// snippetAt identifies a project snippet or a personal snippet.
type snippetAt interface {
	at() (in *project.Ref, id int64)
}

type snippetParams struct {
	Snippet int64 `param:"id"`
}

func (p snippetParams) at() (*project.Ref, int64) { return nil, p.Snippet }

// snippetFileAt identifies a file of a snippet.
type snippetFileAt interface {
	snippetAt
	file() (ref, path string)
}

type snippetVersionParams struct {
	Ref  string `param:"ref" doc:"Branch or commit."`
	Path string `param:"file_path" doc:"Path of the file."`
}

func (p snippetVersionParams) file() (ref, path string) { return p.Ref, p.Path }

type snippetFileParams struct {
	snippetParams
	snippetVersionParams
}

type snippetJSON struct {
	ID           int64             `json:"id"`
	Title        string            `json:"title"`
	Description  *string           `json:"description"`
	Visibility   string            `json:"visibility"`
	Author       *userPublicJSON   `json:"author"`
	CreatedAt    stamp             `json:"created_at"`
	UpdatedAt    stamp             `json:"updated_at"`
	ProjectID    *int64            `json:"project_id"`
	WebURL       string            `json:"web_url"`
	RawURL       string            `json:"raw_url"`
	SSHURL       string            `json:"ssh_url_to_repo"`
	HTTPURL      string            `json:"http_url_to_repo"`
	FileName     string            `json:"file_name"`
	Files        []snippetFileJSON `json:"files"`
	Storage      *string           `json:"repository_storage,omitempty"` // for administrators
	Imported     bool              `json:"imported"`
	ImportedFrom string            `json:"imported_from"`
}

type snippetFileJSON struct {
	Path   string `json:"path"`
	RawURL string `json:"raw_url"`
}

func (a *API) toSnippet(c *call, s *snippet.Snippet) snippetJSON {
	page := c.site.URL + "/" + s.Path("-/")
	out := snippetJSON{
		ID: s.ID, Title: s.Title, Description: textOrNull(s.Description), Visibility: string(s.Visibility), CreatedAt: toStamp(s.CreatedAt),
		UpdatedAt: toStamp(s.UpdatedAt), ProjectID: s.ProjectID, WebURL: page, RawURL: page + "/raw",
		SSHURL: sshURL(c.site, s.Path("")), HTTPURL: c.site.URL + "/" + s.Path("") + ".git", ImportedFrom: "none",
	}
	if s.Author != nil {
		author := toUserPublic(c.site, s.Author, a.Now())
		out.Author = &author
	}
	for _, path := range s.Files {
		to := url.URL{Path: path}
		out.Files = append(out.Files, snippetFileJSON{path, page + "/raw/main/" + strings.TrimPrefix(to.EscapedPath(), "./")})
	}
	out.FileName = s.Files[0]
	if c.actor.Admin {
		out.Storage = &s.Storage
	}
	return out
}

func (a *API) presentSnippet(c *call, s *snippet.Snippet, err error) (snippetJSON, error) {
	if err != nil {
		return snippetJSON{}, err
	}
	return a.toSnippet(c, s), nil
}

func (a *API) presentSnippets(c *call, p pageParams, list db.Page[*snippet.Snippet], err error) (page[snippetJSON], error) {
	if err != nil {
		return page[snippetJSON]{}, err
	}
	return offsetPage(p, list, func(s *snippet.Snippet) snippetJSON { return a.toSnippet(c, s) }), nil
}

type snippetsParams struct {
	CreatedAfter  *time.Time `param:"created_after"`
	CreatedBefore *time.Time `param:"created_before"`
	pageParams
}

func (p *snippetsParams) filter() snippet.Filter {
	return snippet.Filter{CreatedAfter: p.CreatedAfter, CreatedBefore: p.CreatedBefore}
}

// listOwnSnippets: https://docs.gitlab.com/api/snippets/#list-all-snippets-for-current-user
func (a *API) listOwnSnippets(c *call, p snippetsParams) (page[snippetJSON], error) {
	list, err := a.Snippets.Own(c, c.actor, p.filter(), p.paging())
	return a.presentSnippets(c, p.pageParams, list, err)
}

// listPublicSnippets: https://docs.gitlab.com/api/snippets/#list-all-public-snippets
func (a *API) listPublicSnippets(c *call, p snippetsParams) (page[snippetJSON], error) {
	list, err := a.Snippets.Public(c, c.actor, p.filter(), p.paging())
	return a.presentSnippets(c, p.pageParams, list, err)
}

type allSnippetsParams struct {
	snippetsParams
	Storage string `param:"repository_storage" doc:"Only snippets on this repository storage (administrators only)."`
}

// listAllSnippets: https://docs.gitlab.com/api/snippets/#list-all-snippets
func (a *API) listAllSnippets(c *call, p allSnippetsParams) (page[snippetJSON], error) {
	f := p.filter()
	f.Storage = p.Storage
	list, err := a.Snippets.All(c, c.actor, f, p.paging())
	return a.presentSnippets(c, p.pageParams, list, err)
}

// getSnippet: https://docs.gitlab.com/api/snippets/#get-a-single-snippet
func getSnippet[P snippetAt](a *API) func(*call, P) (snippetJSON, error) {
	return func(c *call, p P) (snippetJSON, error) {
		in, id := p.at()
		s, err := a.Snippets.Get(c, c.actor, in, id)
		return a.presentSnippet(c, s, err)
	}
}

// newSnippetParams are the attributes of a new snippet.
type newSnippetParams struct {
	Title       string                 `param:"title,required,nonblank"`
	Description string                 `param:"description"`
	Visibility  string                 `param:"visibility" enum:"private,internal,public" default:"private"`
	Files       []newSnippetFileParams `param:"files" doc:"Files of the snippet."`
	FileName    *string                `param:"file_name" doc:"Deprecated: use files. Name of the file."`
	Content     *string                `param:"content,nonblank" doc:"Deprecated: use files. Content of the file."`
}

type newSnippetFileParams struct {
	Path    string `param:"file_path,required"`
	Content string `param:"content,required"`
}

func (newSnippetParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.ExactlyOne("files", "content"), bind.Exclusive("files", "file_name")}
}

func (p *newSnippetParams) fields(c *call) snippet.Fields {
	visibility := project.Visibility(p.Visibility)
	f := snippet.Fields{Title: &p.Title, Description: &p.Description, Visibility: &visibility, UserAgent: c.r.UserAgent()}
	for _, one := range p.Files {
		f.Files = append(f.Files, snippet.FileChange{Kind: git.Create, Path: one.Path, Content: one.Content})
	}
	if p.Content != nil {
		one := snippet.FileChange{Kind: git.Create, Content: *p.Content}
		patch.Set(&one.Path, p.FileName)
		f.Files = append(f.Files, one)
	}
	return f
}

type createSnippetParams struct{ newSnippetParams }

// createSnippet: https://docs.gitlab.com/api/snippets/#create-new-snippet
func (a *API) createSnippet(c *call, p createSnippetParams) (snippetJSON, error) {
	s, err := a.Snippets.Create(c, c.actor, nil, p.fields(c))
	return a.presentSnippet(c, s, err)
}

// changeSnippetParams are the attributes for update.
type changeSnippetParams struct {
	Title       *string                   `param:"title,nonblank"`
	Description *string                   `param:"description"`
	Visibility  *string                   `param:"visibility" enum:"private,internal,public"`
	Files       []changeSnippetFileParams `param:"files" doc:"Actions on files, applied in order."`
	FileName    *string                   `param:"file_name,nonblank" doc:"Deprecated: use files. New name of the file."`
	Content     *string                   `param:"content,nonblank" doc:"Deprecated: use files. New content of the file."`
}

type changeSnippetFileParams struct {
	Action       string  `param:"action,required" enum:"create,update,delete,move"`
	Path         string  `param:"file_path"`
	PreviousPath string  `param:"previous_path" doc:"Original path of a moved file."`
	Content      *string `param:"content"`
}

func (changeSnippetParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AtLeastOne("title", "description", "visibility", "files", "file_name", "content"), bind.Exclusive("files", "file_name"), bind.Exclusive("files", "content")}
}

func (p *changeSnippetParams) fields() snippet.Fields {
	f := snippet.Fields{Title: p.Title, Description: p.Description, Visibility: (*project.Visibility)(p.Visibility), FileName: p.FileName, Content: p.Content}
	for _, one := range p.Files {
		next := snippet.FileChange{Kind: git.ActionKind(one.Action), Path: one.Path, From: one.PreviousPath}
		if one.Action != "move" && one.Action != "create" && one.Path == "" {
			next.Path = one.PreviousPath
		}
		if one.Content != nil {
			next.Content, next.HasContent = *one.Content, true
		}
		f.Files = append(f.Files, next)
	}
	return f
}

// check validates the combination of parameters of each file action.
func (p *changeSnippetParams) check() error {
	for _, one := range p.Files {
		switch {
		case one.Content == nil && (one.Action == "create" || one.Action == "update"):
			return bind.Invalid("files[content] is missing")
		case one.PreviousPath == "" && one.Action == "move":
			return bind.Invalid("files[previous_path] is missing")
		}
	}
	return nil
}

type updateSnippetParams struct {
	snippetParams
	changeSnippetParams
}

// updateSnippet: https://docs.gitlab.com/api/snippets/#update-snippet
func (a *API) updateSnippet(c *call, p updateSnippetParams) (snippetJSON, error) {
	s, err := a.Snippets.Update(c, c.actor, nil, p.Snippet, p.fields(), c.unmodifiedSince())
	return a.presentSnippet(c, s, err)
}

// deleteSnippet: https://docs.gitlab.com/api/snippets/#delete-snippet
func deleteSnippet[P snippetAt](a *API) func(*call, P) (none, error) {
	return func(c *call, p P) (none, error) {
		in, id := p.at()
		return none{}, a.Snippets.Delete(c, c.actor, in, id, c.unmodifiedSince())
	}
}

// getRawSnippet: https://docs.gitlab.com/api/snippets/#single-snippet-contents
func getRawSnippet[P snippetAt](a *API) func(*call, P) (streamed, error) {
	return func(c *call, p P) (streamed, error) { return a.sendSnippetFile(c, p, "", "") }
}

// getSnippetFile: https://docs.gitlab.com/api/snippets/#snippet-repository-file-content
func getSnippetFile[P snippetFileAt](a *API) func(*call, P) (streamed, error) {
	return func(c *call, p P) (streamed, error) {
		ref, path := p.file()
		return a.sendSnippetFile(c, p, ref, path)
	}
}

// sendSnippetFile sends a file as plain text. The file is untrusted: browsers must
// not render it as a page.
func (a *API) sendSnippetFile(c *call, p snippetAt, ref, path string) (streamed, error) {
	in, id := p.at()
	_, f, err := a.Snippets.File(c, c.actor, in, id, ref, path)
	if err != nil {
		return streamed{}, err
	}
	content, err := f.Open(c)
	if err != nil {
		return streamed{}, err
	}
	defer content.Close()
	return a.send(c, stream{
		media: "text/plain; charset=utf-8", size: f.Size, tag: `W/"` + string(f.ID) + `"`,
		name: mime.FormatMediaType("inline", map[string]string{"filename": f.Name()}),
		write: func(w io.Writer) error {
			_, err := io.Copy(w, content)
			return err
		},
	})
}

type userAgentJSON struct {
	UserAgent string `json:"user_agent"`
	IPAddress string `json:"ip_address"`
	Submitted bool   `json:"akismet_submitted"`
}

// getSnippetAgent: https://docs.gitlab.com/api/snippets/#get-user-agent-details
func getSnippetAgent[P snippetAt](a *API) func(*call, P) (userAgentJSON, error) {
	return func(c *call, p P) (userAgentJSON, error) {
		in, id := p.at()
		s, err := a.Snippets.Agent(c, c.actor, in, id)
		if err != nil {
			return userAgentJSON{}, err
		}
		return userAgentJSON{UserAgent: s.UserAgent, IPAddress: s.IPAddress}, nil
	}
}
