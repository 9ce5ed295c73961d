package api

import (
	"strconv"

	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/merge"
)

func (a *API) mergeChangeRoutes() {
	a.tag("Merge requests")
	const one = "/projects/{id}/merge_requests/{merge_request_iid}"
	read := readAPI.orAnonymous()
	handle(a, "GET "+one+"/commits", read, a.listMergeCommits, summary("List merge request commits"))
	handle(a, "GET "+one+"/changes", read, a.getMergeChanges, summary("Get merge request changes (deprecated)"))
	handle(a, "GET "+one+"/diffs", read, a.listMergeDiffs, summary("List merge request diffs"))
	handle(a, "GET "+one+"/raw_diffs", read, a.getMergeRawDiffs, summary("Get merge request raw diffs"))
	handle(a, "GET "+one+"/versions", read, a.listMergeVersions, summary("List merge request diff versions"))
	handle(a, "GET "+one+"/versions/{version_id}", read, a.getMergeVersion, summary("Get a merge request diff version"))
}

// listMergeCommits: https://docs.gitlab.com/api/merge_requests/#get-single-merge-request-commits
func (a *API) listMergeCommits(c *call, p mergePageParams) (page[commitJSON], error) {
	found, err := a.Merges.Contents(c, c.actor, p.Project, p.Request, merge.Part{Commits: true, Paging: p.paging()})
	if err != nil {
		return page[commitJSON]{}, err
	}
	return offsetPage(p.pageParams, found.Commits, func(of *git.Commit) commitJSON { return toCommit(c, found.Project, of) }), nil
}

// mergeDiffJSON is the diff of one file.
type mergeDiffJSON struct {
	repositoryDiffJSON
	Generated bool `json:"generated_file"`
	Collapsed bool `json:"collapsed"`
	TooLarge  bool `json:"too_large"`
}

func toMergeDiff(f git.FileDiff) mergeDiffJSON {
	return mergeDiffJSON{repositoryDiffJSON: toRepositoryDiff(f), TooLarge: f.TooLarge}
}

type mergeChangesJSON struct {
	mergeDetailJSON
	Changes  []mergeDiffJSON `json:"changes"`
	Overflow bool            `json:"overflow"`
}

type mergeChangesParams struct {
	mergeParams
	Raw     bool `param:"access_raw_diffs" doc:"No effect: diffs are always read from Git."`
	Unidiff bool `param:"unidiff" doc:"Return diffs in the unified diff format, with file headers."`
}

// getMergeChanges: https://docs.gitlab.com/api/merge_requests/#get-single-merge-request-changes
func (a *API) getMergeChanges(c *call, p mergeChangesParams) (mergeChangesJSON, error) {
	m, err := a.Merges.Get(c, c.actor, p.Project, p.Request)
	out, err := a.presentMerge(c, m, err)
	if err != nil {
		return mergeChangesJSON{}, err
	}
	found, err := a.Merges.Contents(c, c.actor, p.Project, p.Request, merge.Part{Diff: true, Options: git.DiffOptions{Unidiff: p.Unidiff}})
	if err != nil {
		return mergeChangesJSON{}, err
	}
	return mergeChangesJSON{out, mapped(found.Diff.Files, toMergeDiff), found.Diff.Overflow}, nil
}

type mergeDiffsParams struct {
	mergePageParams
	Unidiff bool `param:"unidiff" doc:"Return diffs in the unified diff format, with file headers."`
}

// listMergeDiffs: https://docs.gitlab.com/api/merge_requests/#list-merge-request-diffs
func (a *API) listMergeDiffs(c *call, p mergeDiffsParams) (page[mergeDiffJSON], error) {
	found, err := a.Merges.Contents(c, c.actor, p.Project, p.Request, merge.Part{Diff: true, Options: git.DiffOptions{Unidiff: p.Unidiff}})
	if err != nil {
		return page[mergeDiffJSON]{}, err
	}
	return offsetPage(p.pageParams, db.SlicePage(found.Diff.Files, p.paging()), toMergeDiff), nil
}

// getMergeRawDiffs: https://docs.gitlab.com/api/merge_requests/#show-merge-request-raw-diffs
func (a *API) getMergeRawDiffs(c *call, p mergeParams) (streamed, error) {
	found, err := a.Merges.Contents(c, c.actor, p.Project, p.Request, merge.Part{Diff: true, Options: git.RawDiff()})
	if err != nil {
		return streamed{}, err
	}
	return a.send(c, stream{media: "text/plain; charset=utf-8", size: -1, write: found.Diff.WriteRaw})
}

// mergeVersionJSON is a diff version.
type mergeVersionJSON struct {
	ID             int64   `json:"id"`
	HeadCommitSHA  string  `json:"head_commit_sha"`
	BaseCommitSHA  string  `json:"base_commit_sha"`
	StartCommitSHA string  `json:"start_commit_sha"`
	CreatedAt      stamp   `json:"created_at"`
	RequestID      int64   `json:"merge_request_id"`
	State          string  `json:"state"`
	RealSize       string  `json:"real_size"`
	PatchID        *string `json:"patch_id_sha"`
}

func toMergeVersion(v *merge.Version) mergeVersionJSON {
	out := mergeVersionJSON{
		ID: v.ID, HeadCommitSHA: v.Head, BaseCommitSHA: v.Base, StartCommitSHA: v.Start, CreatedAt: toStamp(v.CreatedAt), RequestID: v.RequestID,
		State: "collected", RealSize: strconv.FormatInt(v.Files, 10),
	}
	if v.Files == 0 {
		out.State = "empty"
	}
	return out
}

// listMergeVersions: https://docs.gitlab.com/api/merge_requests/#get-merge-request-diff-versions
func (a *API) listMergeVersions(c *call, p mergePageParams) (page[mergeVersionJSON], error) {
	return offsetList(p.pageParams, toMergeVersion)(a.Merges.Versions(c, c.actor, p.Project, p.Request, p.paging()))
}

type mergeVersionParams struct {
	mergeParams
	Version int64 `param:"version_id"`
	Unidiff bool  `param:"unidiff" doc:"Return diffs in the unified diff format, with file headers."`
}

type mergeVersionDetailJSON struct {
	mergeVersionJSON
	Commits []commitJSON    `json:"commits"`
	Diffs   []mergeDiffJSON `json:"diffs"`
}

// getMergeVersion: https://docs.gitlab.com/api/merge_requests/#get-a-single-merge-request-diff-version
func (a *API) getMergeVersion(c *call, p mergeVersionParams) (mergeVersionDetailJSON, error) {
	const most = 1000 // commits in one response
	want := merge.Part{VersionID: p.Version, Commits: true, Diff: true, Options: git.DiffOptions{Unidiff: p.Unidiff}}
	want.Paging.Limit = most
	found, err := a.Merges.Contents(c, c.actor, p.Project, p.Request, want)
	if err != nil {
		return mergeVersionDetailJSON{}, err
	}
	return mergeVersionDetailJSON{
		mergeVersionJSON: toMergeVersion(found.Version), Diffs: mapped(found.Diff.Files, toMergeDiff),
		Commits: mapped(found.Commits.Items, func(of *git.Commit) commitJSON { return toCommit(c, found.Project, of) }),
	}, nil
}
