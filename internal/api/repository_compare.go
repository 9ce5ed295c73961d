package api

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

type compareParams struct {
	projectParams
	From        string `param:"from,required" doc:"Branch, tag or commit."`
	To          string `param:"to,required" doc:"Branch, tag or commit."`
	FromProject *int64 `param:"from_project_id" doc:"Project that contains from, if it is another project of the fork network."`
	Straight    bool   `param:"straight" doc:"true compares directly (from..to), false from the merge base (from...to)."`
	Unidiff     bool   `param:"unidiff" doc:"Return diffs in the unified diff format, with file headers."`
}

// comparisonJSON is a comparison. writeComparison streams the same fields.
type comparisonJSON struct {
	Commit   *commitJSON          `json:"commit"`
	Commits  []commitJSON         `json:"commits"`
	Diffs    []repositoryDiffJSON `json:"diffs"`
	TimedOut bool                 `json:"compare_timeout"`
	Same     bool                 `json:"compare_same_ref"`
	WebURL   string               `json:"web_url"`
}

// compare: https://docs.gitlab.com/api/repositories/#compare-branches-tags-or-commits
func (a *API) compare(c *call, p compareParams) (any, error) {
	found, err := a.Repos.Compare(c, c.actor, p.Project, repo.CompareOptions{
		From: p.From, To: p.To, FromProject: p.FromProject, Straight: p.Straight, Unidiff: p.Unidiff,
	})
	if err != nil {
		return nil, err
	}
	web := compareURL(c, found, p.Straight)
	tag := ""
	if !found.Diff.TimedOut { // a complete result never changes
		sum := xxhash.Sum64String(fmt.Sprint(web, found.From, p.Unidiff, len(found.Diff.Files), found.Diff.Overflow))
		tag = `W/"` + strconv.FormatUint(sum, 16) + `"`
	}
	// The cache key includes web, because the body also contains URLs.
	if kept := found.Kept(web); kept != nil {
		return a.send(c, stream{media: "application/json", size: int64(len(kept)), tag: tag, write: func(w io.Writer) error {
			_, err := w.Write(kept)
			return err
		}})
	}
	return a.send(c, stream{media: "application/json", size: -1, tag: tag, write: func(w io.Writer) error {
		copied := &copyWriter{w: w}
		out := bufio.NewWriterSize(copied, 64<<10)
		if err := a.writeComparison(c, out, found, web); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if copied.text != nil {
			found.Keep(web, copied.text)
		}
		return nil
	}})
}

// copyWriter writes to w and keeps a copy of the output, unless the output is larger
// than 1 MiB.
type copyWriter struct {
	w    io.Writer
	text []byte
	much bool
}

// Write implements io.Writer.
func (k *copyWriter) Write(p []byte) (int, error) {
	if k.much = k.much || len(k.text)+len(p) > 1<<20; k.much {
		k.text = nil
	} else {
		k.text = append(k.text, p...)
	}
	return k.w.Write(p)
}

func compareURL(c *call, found *repo.Comparison, straight bool) string {
	dots := "..."
	if straight {
		dots = ".."
	}
	return c.site.URL + "/" + found.Project.FullPath + "/-/compare/" + string(found.Base) + dots + string(found.To)
}

// writeComparison streams a comparisonJSON, because its number of commits is not
// limited.
func (a *API) writeComparison(c *call, out *bufio.Writer, found *repo.Comparison, web string) error {
	buf := buffers.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= 1<<20 { // as in writeJSON
			buffers.Put(buf)
		}
	}()
	write := func(before string, body any) (err error) {
		*buf, err = a.encoders.appendJSON(append((*buf)[:0], before...), body)
		if err == nil {
			_, err = out.Write(*buf)
		}
		return err
	}
	var last *commitJSON
	if n := len(found.Commits); n > 0 {
		head, err := found.Read(c, found.Commits[n-1:])
		if err != nil {
			return err
		}
		one := toCommit(c, found.Project, head[0])
		last = &one
	}
	if err := write(`{"commit":`, last); err != nil {
		return err
	}
	before := `,"commits":[`
	for part := range slices.Chunk(found.Commits, repo.ReadCommits) {
		commits, err := found.Read(c, part)
		if err != nil {
			return err
		}
		for _, commit := range commits {
			result := toCommit(c, found.Project, commit)
			if err := write(before, &result); err != nil {
				return err
			}
			before = ","
		}
	}
	if len(found.Commits) == 0 {
		fmt.Fprint(out, before) // Flush returns the first write error
	}
	before = `],"diffs":[`
	for _, file := range found.Diff.Files {
		result := toRepositoryDiff(file)
		if err := write(before, &result); err != nil {
			return err
		}
		before = ","
	}
	if len(found.Diff.Files) == 0 {
		fmt.Fprint(out, before)
	}
	fmt.Fprintf(out, `],"compare_timeout":%t,"compare_same_ref":%t`, found.Diff.TimedOut, found.From == found.To)
	if err := write(`,"web_url":`, web); err != nil {
		return err
	}
	return out.WriteByte('}')
}

// repositoryCommitJSON has the fields of all representations of a commit.
type repositoryCommitJSON struct {
	ID             string   `json:"id"`
	ShortID        string   `json:"short_id"`
	CreatedAt      stamp    `json:"created_at"`
	ParentIDs      []string `json:"parent_ids"`
	Title          string   `json:"title"`
	Message        string   `json:"message"`
	AuthorName     string   `json:"author_name"`
	AuthorEmail    string   `json:"author_email"`
	AuthoredDate   stamp    `json:"authored_date"`
	CommitterName  string   `json:"committer_name"`
	CommitterEmail string   `json:"committer_email"`
	CommittedDate  stamp    `json:"committed_date"`
	WebURL         string   `json:"web_url"`
}

func toRepositoryCommit(c *call, in *project.Project, of *git.Commit) repositoryCommitJSON {
	parents := make([]string, len(of.ParentIDs))
	for i, id := range of.ParentIDs {
		parents[i] = string(id)
	}
	committed := toGitStamp(of.Committer.When)
	return repositoryCommitJSON{
		ID: string(of.ID), ShortID: string(of.ID[:8]), CreatedAt: committed, ParentIDs: parents, Title: of.Title, Message: of.Message,
		AuthorName: of.Author.Name, AuthorEmail: of.Author.Email, AuthoredDate: toGitStamp(of.Author.When),
		CommitterName: of.Committer.Name, CommitterEmail: of.Committer.Email, CommittedDate: committed,
		WebURL: c.site.URL + "/" + in.FullPath + "/-/commit/" + string(of.ID),
	}
}

// toGitStamp formats a time with its time zone, which is part of a commit.
func toGitStamp(t time.Time) stamp { return stamp(t.Format("2006-01-02T15:04:05.000-07:00")) }

// repositoryDiffJSON is the diff of one file.
type repositoryDiffJSON struct {
	OldPath string `json:"old_path"`
	NewPath string `json:"new_path"`
	AMode   string `json:"a_mode"`
	BMode   string `json:"b_mode"`
	Diff    string `json:"diff"`
	New     bool   `json:"new_file"`
	Renamed bool   `json:"renamed_file"`
	Deleted bool   `json:"deleted_file"`
}

func toRepositoryDiff(f git.FileDiff) repositoryDiffJSON {
	return repositoryDiffJSON{f.OldPath, f.NewPath, f.AMode, f.BMode, f.Diff, f.New, f.Renamed, f.Deleted}
}
