package api

import (
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"slices"
	"strconv"
	"time"

	"svc/internal/bind"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/limit"
	"svc/internal/repo"
)

func (a *API) repositoryRoutes() {
	a.tag("Repositories")
	read := readAPI.orAnonymous()
	handle(a, "GET /projects/{id}/repository/tree", read, a.listTree, summary("List the repository tree"))
	handle(a, "GET /projects/{id}/repository/blobs/{sha}", read, a.getBlob, returns(blobJSON{}), summary("Get a blob from a repository"))
	handle(a, "GET /projects/{id}/repository/blobs/{sha}/raw", read, a.getRawBlob, summary("Get raw blob content"))
	handle(a, "GET /projects/{id}/repository/archive", read, a.getArchive, summary("Get a file archive"))
	handle(a, "GET /projects/{id}/repository/archive.{format}", read, a.getArchive, summary("Get a file archive in a format"))
	handle(a, "GET /projects/{id}/repository/compare", read, a.compare, returns(comparisonJSON{}), summary("Compare branches, tags or commits"))
	handle(a, "GET /projects/{id}/repository/contributors", read, a.listContributors, summary("List repository contributors"))
	handle(a, "GET /projects/{id}/repository/merge_base", read, a.getMergeBase, summary("Get the merge base of commits"))
}

type treeParams struct {
	projectParams
	Path       string `param:"path" doc:"Path of a directory. Default is the root."`
	Ref        string `param:"ref" doc:"Branch, tag or commit. Default is the default branch."`
	Recursive  bool   `param:"recursive" doc:"List recursively."`
	Pagination string `param:"pagination" enum:"keyset,legacy,offset" doc:"keyset omits the headers with page numbers. Keyset pagination is used in any case."`
	PageToken  string `param:"page_token" doc:"Start of the page, from the Link header, or the ID of the last entry of the previous page."`
	pageParams
}

type treeEntryJSON struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
	Path string `json:"path"`
	Mode string `json:"mode"`
}

// listTree: https://docs.gitlab.com/api/repositories/#list-all-repository-trees-in-a-project
func (a *API) listTree(c *call, p treeParams) (page[treeEntryJSON], error) {
	o := repo.TreeOptions{Ref: p.Ref, Path: p.Path, Recursive: p.Recursive, Limit: int(p.PerPage)}
	if err := p.place(&o); err != nil {
		return page[treeEntryJSON]{}, err
	}
	list, err := a.Repos.Tree(c, c.actor, p.Project, o)
	if err != nil {
		return page[treeEntryJSON]{}, err
	}
	body, err := list.Form(func() ([]byte, error) { return a.encoders.appendJSON(nil, mapped(list.Entries, toTreeEntry)) })
	return page[treeEntryJSON]{encoded: body, head: func(c *call) { p.write(c, list) }}, err
}

// place sets the start of the page in o. Invalid; NotAllowed.
func (p *treeParams) place(o *repo.TreeOptions) error {
	if p.PageToken != "" {
		id, isID := git.ParseOID(p.PageToken)
		key, isKey := readTreeToken(p.PageToken)
		if !isID && !isKey {
			return bind.Invalid("page_token is invalid")
		}
		o.After, o.AfterID = key, id
		return nil
	}
	paging := p.paging()
	if paging.Offset > maxOffset {
		return errs.NotAllowed("Offset pagination has a maximum allowed offset of %d for requests that return objects of type Tree. "+
			"Remaining records can be retrieved using keyset pagination.", maxOffset)
	}
	o.Skip = paging.Offset
	return nil
}

// write writes the headers of a page: the Link header, and the page numbers for
// clients that use offset pagination.
func (p *treeParams) write(c *call, list *repo.TreePage) {
	h := c.w.Header()
	perPage := strconv.FormatInt(p.PerPage, 10)
	if p.Pagination != "keyset" && p.PageToken == "" {
		values := [4]string{strconv.FormatInt(p.Page, 10), perPage}
		if list.More {
			values[2] = strconv.FormatInt(p.Page+1, 10)
		}
		if p.Page > 1 {
			values[3] = strconv.FormatInt(p.Page-1, 10)
		}
		for i, name := range [...]string{"X-Page", "X-Per-Page", "X-Next-Page", "X-Prev-Page"} {
			h[name] = values[i : i+1 : i+1]
		}
	}
	if !list.More {
		return
	}
	query := c.pageQuery()
	query.Del("page")
	query.Set("pagination", "keyset")
	query.Set("per_page", perPage)
	query.Set("page_token", writeTreeToken(list.Entries[len(list.Entries)-1].Key()))
	h["Link"] = []string{"<" + c.pageURL(query) + `>; rel="next"`}
}

// writeTreeToken returns the page token of the last entry: its key in base64,
// because file names may be invalid UTF-8. The prefix distinguishes page tokens from
// object IDs, which are accepted too.
func writeTreeToken(key string) string {
	return "p" + base64.RawURLEncoding.EncodeToString([]byte(key))
}

func readTreeToken(token string) (string, bool) {
	if token[0] != 'p' {
		return "", false
	}
	key, err := base64.RawURLEncoding.DecodeString(token[1:])
	return string(key), err == nil && len(key) > 0
}

func toTreeEntry(e git.Entry) treeEntryJSON {
	return treeEntryJSON{string(e.OID), e.Name, string(e.Type), e.Path, e.Mode}
}

type blobParams struct {
	projectParams
	SHA string `param:"sha" doc:"SHA of the blob."`
}

type blobJSON struct {
	Size     int64  `json:"size"`
	Encoding string `json:"encoding"`
	Content  string `json:"content"`
	SHA      string `json:"sha"`
}

// getBlob: https://docs.gitlab.com/api/repositories/#retrieve-a-blob-from-a-repository
//
// The body is streamed: a blob may be larger than memory.
func (a *API) getBlob(c *call, p blobParams) (any, error) {
	b, err := a.Repos.Blob(c, c.actor, p.Project, p.SHA)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf(`{"size":%d,"encoding":"base64","content":"`, b.Size)
	tail := fmt.Sprintf(`","sha":%q}`, b.ID)
	size := int64(len(head)) + (b.Size+2)/3*4 + int64(len(tail))
	return a.send(c, stream{media: "application/json", size: size, tag: `W/"` + string(b.ID) + `"`, write: func(w io.Writer) error {
		content, err := b.Open(c)
		if err != nil {
			return err
		}
		defer content.Close()
		return writeBase64(w, head, content, tail)
	}})
}

// getRawBlob: https://docs.gitlab.com/api/repositories/#raw-blob-content
func (a *API) getRawBlob(c *call, p blobParams) (streamed, error) {
	b, err := a.Repos.Blob(c, c.actor, p.Project, p.SHA)
	if err != nil {
		return streamed{}, err
	}
	// The content is untrusted: browsers must not render it as a page.
	return a.send(c, stream{
		media: "application/octet-stream", size: b.Size, tag: `"` + string(b.ID) + `"`, name: attachment(string(b.ID)),
		write: func(w io.Writer) error {
			content, err := b.Open(c)
			if err != nil {
				return err
			}
			defer content.Close()
			_, err = io.Copy(w, content)
			return err
		},
	})
}

// attachment returns the Content-Disposition of a file that is saved under a name.
func attachment(name string) string {
	return mime.FormatMediaType("attachment", map[string]string{"filename": name})
}

type archiveParams struct {
	projectParams
	Format string `param:"format" default:"tar.gz" doc:"Archive format: bz2, tar, tar.bz2, tar.gz, tb2, tbz, tbz2 or zip."`
	SHA    string `param:"sha" doc:"Commit, tag or branch. Default is the default branch."`
	Path   string `param:"path" doc:"Path of a file or directory to include."`
	LFS    bool   `param:"include_lfs_blobs" default:"true" doc:"Include LFS objects. Otherwise their pointers are included."`
}

// archiveFormats are the archive formats by extension.
var archiveFormats = map[string]struct {
	form  git.ArchiveFormat
	media string
}{
	"tar":     {git.Tar, "application/x-tar"},
	"tar.gz":  {git.TarGz, "application/gzip"},
	"tar.bz2": {git.TarBz2, "application/x-bzip2"},
	"tbz":     {git.TarBz2, "application/x-bzip2"},
	"tbz2":    {git.TarBz2, "application/x-bzip2"},
	"tb2":     {git.TarBz2, "application/x-bzip2"},
	"bz2":     {git.TarBz2, "application/x-bzip2"},
	"zip":     {git.Zip, "application/zip"},
}

// archiveRate is the rate limit for archives on a hosted instance.
var archiveRate = limit.Rate{Name: "project_repositories_archive", Requests: 5, Period: time.Minute}

// getArchive: https://docs.gitlab.com/api/repositories/#retrieve-file-archive
func (a *API) getArchive(c *call, p archiveParams) (streamed, error) {
	format, known := archiveFormats[p.Format]
	if !known {
		return streamed{}, errs.NotFound("")
	}
	if a.Site.Hosted {
		if err := a.takeToken(c, c.rateKey(), archiveRate); err != nil {
			return streamed{}, err
		}
	}
	found, err := a.Repos.Archive(c, c.actor, p.Project, repo.ArchiveOptions{Ref: p.SHA, Path: p.Path, Format: format.form, WithoutLFS: !p.LFS})
	if err != nil {
		return streamed{}, err
	}
	return a.send(c, stream{
		media: format.media, size: -1, tag: archiveTag(found.Commit, p.LFS), name: attachment(found.Name + "." + p.Format),
		write: func(w io.Writer) error { return found.Write(c, w) },
	})
}

// archiveTag returns the ETag of an archive, with LFS objects or their pointers.
func archiveTag(commit git.OID, objects bool) string {
	if !objects {
		return `W/"` + string(commit) + `-pointers"`
	}
	return `W/"` + string(commit) + `"`
}

// rateKey returns the key of the caller for rate limits.
func (c *call) rateKey() string {
	if c.actor.Anonymous() {
		return "ip:" + limit.AddressKey(c.actor.IP)
	}
	return "user:" + c.actor.Username
}

type contributorsParams struct {
	projectParams
	Ref     string `param:"ref" doc:"Branch, tag or commit. Default is the default branch."`
	OrderBy string `param:"order_by" enum:"name,email,commits" default:"commits"`
	Sort    string `param:"sort" enum:"asc,desc" default:"asc"`
	pageParams
}

type contributorJSON struct {
	Name      string `json:"name"`
	Email     string `json:"email"`
	Commits   int    `json:"commits"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
}

// listContributors: https://docs.gitlab.com/api/repositories/#list-all-repository-contributors
func (a *API) listContributors(c *call, p contributorsParams) (page[contributorJSON], error) {
	all, err := a.Repos.Contributors(c, c.actor, p.Project, repo.ContributorOptions{Ref: p.Ref, By: p.OrderBy, Desc: p.Sort == "desc"})
	if err != nil {
		return page[contributorJSON]{}, err
	}
	paging := p.paging()
	list := db.Page[git.Contributor]{Total: len(all), Over: len(all) > 10_000}
	list.Items = all[min(paging.Offset, len(all)):]
	list.More = len(list.Items) > paging.Limit
	list.Items = slices.Clip(list.Items[:min(paging.Limit, len(list.Items))])
	return offsetPage(p.pageParams, list, func(one git.Contributor) contributorJSON {
		return contributorJSON{one.Name, one.Email, one.Commits, one.Added, one.Removed}
	}), nil
}

type mergeBaseParams struct {
	projectParams
	Refs []string `param:"refs,required,csv" max:"100" doc:"Two or more branches, tags or commits."`
}

// getMergeBase: https://docs.gitlab.com/api/repositories/#retrieve-merge-base
func (a *API) getMergeBase(c *call, p mergeBaseParams) (commitJSON, error) {
	in, commit, err := a.Repos.MergeBase(c, c.actor, p.Project, p.Refs)
	if err != nil {
		return commitJSON{}, err
	}
	return toCommit(c, in, commit), nil
}
