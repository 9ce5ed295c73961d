package api

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"svc/internal/bind"
	"svc/internal/git"
	"svc/internal/repo"
)

func (a *API) repositoryFileRoutes() {
	a.tag("Repository files")
	read := readAPI.orAnonymous()
	const at = "/projects/{id}/repository/files/{file_path}"
	handle(a, "GET "+at, read, a.getFile, returns(fileJSON{}), summary("Get a file from a repository"))
	handle(a, "GET "+at+"/raw", read, a.getRawFile, summary("Get a raw file from a repository"))
	handle(a, "GET "+at+"/blame", read, a.getBlame, summary("Get file blame from a repository"))
	handle(a, "POST "+at, writeAPI, a.createFile, large, summary("Create a file in a repository"))
	handle(a, "PUT "+at, writeAPI, a.updateFile, large, summary("Update a file in a repository"))
	handle(a, "DELETE "+at, writeAPI, a.deleteFile, summary("Delete a file in a repository"))
}

type filePathParams struct {
	projectParams
	FilePath string `param:"file_path" doc:"Path of the file."`
}

type getFileParams struct {
	filePathParams
	Ref string `param:"ref,required" doc:"Branch, tag, commit or HEAD."`
}

// fileJSON is a file. getFile streams the same fields.
type fileJSON struct {
	fileMetaJSON
	Content string `json:"content"`
}

type fileMetaJSON struct {
	FileName     string `json:"file_name"`
	FilePath     string `json:"file_path"`
	Size         int64  `json:"size"`
	Encoding     string `json:"encoding"`
	SHA256       string `json:"content_sha256"`
	Ref          string `json:"ref"`
	BlobID       string `json:"blob_id"`
	CommitID     string `json:"commit_id"`
	LastCommitID string `json:"last_commit_id"`
	Executable   bool   `json:"execute_filemode"`
}

func toFileMeta(f *repo.File) fileMetaJSON {
	return fileMetaJSON{
		FileName: f.Name, FilePath: f.Path, Size: f.Size, Encoding: "base64", SHA256: f.SHA256, Ref: f.Ref, BlobID: string(f.BlobID),
		CommitID: string(f.CommitID), LastCommitID: string(f.LastCommitID), Executable: f.Executable,
	}
}

// describeFile writes the metadata of a file to headers.
func describeFile(c *call, f *repo.File) {
	m := toFileMeta(f)
	values := [...]string{
		m.BlobID, m.CommitID, m.SHA256, m.Encoding, m.FileName, m.FilePath, m.LastCommitID, m.Ref, strconv.FormatInt(m.Size, 10),
		strconv.FormatBool(m.Executable),
	}
	h := c.w.Header()
	for i, name := range c.site.file {
		at := i % len(values)
		h[name] = values[at : at+1 : at+1]
	}
}

// fileHeaders returns the names of the headers of describeFile: those with the name
// of the service, and those of the public API, which public clients read.
func fileHeaders(service string) []string {
	names := []string{
		"Blob-Id", "Commit-Id", "Content-Sha256", "Encoding", "File-Name", "File-Path", "Last-Commit-Id", "Ref", "Size", "Execute-Filemode",
	}
	var list []string
	for _, prefix := range []string{"X-" + service + "-", "X-Gitlab-"} {
		for _, name := range names {
			list = append(list, http.CanonicalHeaderKey(prefix+name))
		}
	}
	return list
}

// getFile: https://docs.gitlab.com/api/repository_files/#retrieve-a-file-from-a-repository
//
// The content is streamed: a file may be larger than memory.
func (a *API) getFile(c *call, p getFileParams) (any, error) {
	f, err := a.Repos.File(c, c.actor, p.Project, p.FilePath, p.Ref)
	if err != nil {
		return nil, err
	}
	meta, err := json.Marshal(toFileMeta(f))
	if err != nil {
		return nil, err
	}
	head := strings.TrimSuffix(string(meta), "}") + `,"content":"`
	describeFile(c, f)
	return a.send(c, stream{
		media: "application/json", size: int64(len(head)) + (f.Size+2)/3*4 + int64(len(`"}`)), tag: fileTag(f),
		write: func(w io.Writer) error {
			return withFile(c, f, func(content io.Reader) error { return writeBase64(w, head, content, `"}`) })
		},
	})
}

// writeBase64 writes content in base64 between head and tail. It reads before it
// writes, so that an error response can still be sent if git has no free slot.
func writeBase64(w io.Writer, head string, content io.Reader, tail string) error {
	from := bufio.NewReader(content)
	if _, err := from.Peek(1); err != nil && err != io.EOF {
		return err
	}
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	text := base64.NewEncoder(base64.StdEncoding, w)
	if _, err := io.Copy(text, from); err != nil {
		return err
	}
	if err := text.Close(); err != nil {
		return err
	}
	_, err := io.WriteString(w, tail)
	return err
}

// fileTag returns the ETag of a file. It depends on the blob and on the commit.
func fileTag(f *repo.File) string { return `W/"` + string(f.BlobID) + "-" + string(f.CommitID) + `"` }

// withFile opens a file and calls do with its content.
func withFile(c *call, f *repo.File, do func(io.Reader) error) error {
	content, err := f.Open(c)
	if err != nil {
		return err
	}
	defer content.Close()
	return do(content)
}

type rawFileParams struct {
	filePathParams
	Ref string `param:"ref" doc:"Branch, tag or commit. Default is HEAD."`
	LFS bool   `param:"lfs" doc:"Return the content of a Git LFS file instead of its pointer."`
}

// getRawFile: https://docs.gitlab.com/api/repository_files/#retrieve-a-raw-file-from-a-repository
func (a *API) getRawFile(c *call, p rawFileParams) (streamed, error) {
	f, err := a.Repos.File(c, c.actor, p.Project, p.FilePath, p.Ref)
	if err != nil {
		return streamed{}, err
	}
	if p.LFS {
		pointer, err := a.LFS.PointerOf(c, &f.FileBlob)
		if err != nil {
			return streamed{}, err
		}
		if pointer != nil {
			return a.sendLFS(c, f, pointer.OID)
		}
	}
	describeFile(c, f)
	// The content is untrusted: browsers must not render it as a page.
	return a.send(c, stream{
		media: "text/plain; charset=utf-8", size: f.Size, tag: fileTag(f), name: mime.FormatMediaType("inline", map[string]string{"filename": f.Name}),
		write: func(w io.Writer) error {
			return withFile(c, f, func(content io.Reader) error {
				_, err := io.Copy(w, content)
				return err
			})
		},
	})
}

// sendLFS sends the LFS object that a file points to.
func (a *API) sendLFS(c *call, f *repo.File, oid string) (streamed, error) {
	object, err := a.LFS.Open(c, f.Project, oid)
	if err != nil {
		return streamed{}, err
	}
	defer object.Close()
	whole := *f
	whole.Size, whole.SHA256 = object.Size, object.OID
	describeFile(c, &whole)
	return a.send(c, stream{
		media: "application/octet-stream", size: object.Size, tag: `"` + object.OID + `"`, name: attachment(f.Name),
		write: func(w io.Writer) error {
			_, err := io.Copy(w, object)
			return err
		},
	})
}

type blameParams struct {
	getFileParams
	Range *blameRangeParams `param:"range" doc:"Line range. Default is all lines."`
}

type blameRangeParams struct {
	Start int64 `param:"start,required" doc:"First line, starting at 1."`
	End   int64 `param:"end,required" doc:"Last line."`
}

func (p *blameParams) check() error {
	switch {
	case p.Range == nil:
		return nil
	case p.Range.Start < 1 || p.Range.Start > 1<<31:
		return bind.Invalid("range[start] does not have a valid value")
	case p.Range.End < 1 || p.Range.End > 1<<31:
		return bind.Invalid("range[end] does not have a valid value")
	case p.Range.Start > p.Range.End:
		return bind.Invalid("range[start] must be less than or equal to range[end]")
	}
	return nil
}

// blameJSON is a range of consecutive lines that were last changed by one commit.
type blameJSON struct {
	Commit blameCommitJSON `json:"commit"`
	Lines  []string        `json:"lines"`
}

type blameCommitJSON struct {
	ID             string   `json:"id"`
	ParentIDs      []string `json:"parent_ids"`
	Message        string   `json:"message"`
	AuthoredDate   stamp    `json:"authored_date"`
	AuthorName     string   `json:"author_name"`
	AuthorEmail    string   `json:"author_email"`
	CommittedDate  stamp    `json:"committed_date"`
	CommitterName  string   `json:"committer_name"`
	CommitterEmail string   `json:"committer_email"`
}

func toBlame(r git.BlameRange) blameJSON {
	parents := make([]string, len(r.Commit.ParentIDs))
	for i, id := range r.Commit.ParentIDs {
		parents[i] = string(id)
	}
	of := r.Commit
	return blameJSON{
		Commit: blameCommitJSON{
			ID: string(of.ID), ParentIDs: parents, Message: of.Message, AuthoredDate: toGitStamp(of.Author.When), AuthorName: of.Author.Name,
			AuthorEmail: of.Author.Email, CommittedDate: toGitStamp(of.Committer.When), CommitterName: of.Committer.Name, CommitterEmail: of.Committer.Email,
		},
		Lines: r.Lines,
	}
}

// getBlame: https://docs.gitlab.com/api/repository_files/#retrieve-file-blame-history-from-a-repository
func (a *API) getBlame(c *call, p blameParams) ([]blameJSON, error) {
	var first, last int
	if p.Range != nil {
		first, last = int(p.Range.Start), int(p.Range.End)
	}
	f, list, err := a.Repos.Blame(c, c.actor, p.Project, p.FilePath, p.Ref, first, last)
	if err != nil {
		return nil, err
	}
	describeFile(c, f)
	return mapped(list, toBlame), nil
}

type changeFileParams struct {
	filePathParams
	Branch  string `param:"branch,required" doc:"Branch to commit to."`
	Message string `param:"commit_message,required,nonblank"`
	startParams
	LastCommit string `param:"last_commit_id" doc:"Last known commit ID of the file."`
}

type writeFileParams struct {
	changeFileParams
	Content    string `param:"content,required,blank"`
	Encoding   string `param:"encoding" enum:"text,base64" default:"text"`
	Executable *bool  `param:"execute_filemode"`
}

// fileChangeJSON identifies the changed file.
type fileChangeJSON struct {
	FilePath string `json:"file_path"`
	Branch   string `json:"branch"`
}

// changeFile creates a commit with one file action.
func (a *API) changeFile(c *call, p *changeFileParams, do repo.FileAction) (fileChangeJSON, error) {
	do.Path, do.LastCommit = p.FilePath, p.LastCommit
	_, _, err := a.Repos.CreateCommit(c, c.actor, p.Project, repo.NewCommit{
		Branch: p.Branch, StartBranch: p.StartBranch, StartProject: p.StartProject, Message: p.Message,
		AuthorName: p.AuthorName, AuthorEmail: p.AuthorEmail, Actions: []repo.FileAction{do},
	}, false)
	return fileChangeJSON{p.FilePath, p.Branch}, err
}

func (a *API) writeFile(c *call, p *writeFileParams, kind git.ActionKind) (fileChangeJSON, error) {
	content, err := decodeContent(p.Content, p.Encoding, "content")
	if err != nil {
		return fileChangeJSON{}, err
	}
	return a.changeFile(c, &p.changeFileParams, repo.FileAction{Kind: kind, Content: content, HasContent: true, Executable: p.Executable})
}

// createFile: https://docs.gitlab.com/api/repository_files/#create-a-file-in-a-repository
func (a *API) createFile(c *call, p writeFileParams) (fileChangeJSON, error) {
	return a.writeFile(c, &p, git.Create)
}

// updateFile: https://docs.gitlab.com/api/repository_files/#update-a-file-in-a-repository
func (a *API) updateFile(c *call, p writeFileParams) (fileChangeJSON, error) {
	return a.writeFile(c, &p, git.Modify)
}

// deleteFile: https://docs.gitlab.com/api/repository_files/#delete-a-file-in-a-repository
func (a *API) deleteFile(c *call, p changeFileParams) (none, error) {
	_, err := a.changeFile(c, &p, repo.FileAction{Kind: git.Delete})
	return none{}, err
}
