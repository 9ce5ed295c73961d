package api

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"svc/internal/bind"
	"svc/internal/git"
	"svc/internal/git/trailer"
	"svc/internal/project"
	"svc/internal/repo"
)

func (a *API) commitRoutes() {
	a.tag("Commits")
	read := readAPI.orAnonymous()
	const one = "/projects/{id}/repository/commits/{sha}"
	handle(a, "GET /projects/{id}/repository/commits", read, a.listCommits, summary("List repository commits"))
	handle(a, "POST /projects/{id}/repository/commits", writeAPI, a.createCommit, large, summary("Create a commit"))
	handle(a, "GET "+one, read, a.getCommit, summary("Get a commit"))
	handle(a, "GET "+one+"/diff", read, a.listCommitDiff, summary("Get the diff of a commit"))
	handle(a, "GET "+one+"/refs", read, a.listCommitRefs, summary("List references a commit is pushed to"))
	handle(a, "GET "+one+"/sequence", read, a.getCommitSequence, summary("Get the sequence of a commit"))
	handle(a, "GET "+one+"/signature", read, a.getCommitSignature, signatures, summary("Get the signature of a commit"))
	handle(a, "POST "+one+"/cherry_pick", writeAPI, a.cherryPickCommit, returns(commitJSON{}), dryRunPassed, pickFailed, summary("Cherry-pick a commit"))
	handle(a, "POST "+one+"/revert", writeAPI, a.revertCommit, returns(commitJSON{}), dryRunPassed, pickFailed, summary("Revert a commit"))
}

// Additional responses of cherry-pick and revert.
var (
	dryRunPassed = response(http.StatusOK, "The change applies without conflicts. Nothing was committed.", dryRunJSON{})
	pickFailed   = response(http.StatusBadRequest, "The change cannot be applied. error_code is conflict, or empty if there is nothing to change.", pickFaultJSON{})
)

// pickFaultJSON is the error body of cherry-pick and revert.
type pickFaultJSON struct {
	Message any    `json:"message,omitempty"`
	Error   string `json:"error,omitempty"`
	Code    string `json:"error_code,omitempty"`
}

// large is an option for endpoints whose parameters contain files.
func large(e *endpoint) { e.limits.Body = 64 << 20 }

// commitJSON is a commit.
type commitJSON struct {
	repositoryCommitJSON
	Trailers         map[string]string   `json:"trailers"`
	ExtendedTrailers map[string][]string `json:"extended_trailers"`
	Stats            *commitStatsJSON    `json:"stats,omitempty"`
}

type commitStatsJSON struct {
	Additions int `json:"additions"`
	Deletions int `json:"deletions"`
	Total     int `json:"total"`
}

// commitDetailJSON is the representation of a single commit.
type commitDetailJSON struct {
	commitJSON
	Status       *string       `json:"status"`
	ProjectID    int64         `json:"project_id"`
	LastPipeline *pipelineJSON `json:"last_pipeline"`
}

func toCommit(c *call, in *project.Project, of *git.Commit) commitJSON {
	return commitJSON{
		repositoryCommitJSON: toRepositoryCommit(c, in, of), Trailers: map[string]string{}, ExtendedTrailers: map[string][]string{},
	}
}

// addTrailers sets the trailers, for requests with the parameter trailers. In other
// responses they are empty: client-go expects strings in extended_trailers and
// fails on a commit with trailers.
func (f *commitJSON) addTrailers(message string) {
	for _, t := range trailer.Parse(message) {
		f.Trailers[t.Key] = t.Value
		f.ExtendedTrailers[t.Key] = append(f.ExtendedTrailers[t.Key], t.Value)
	}
}

func toCommitWithStats(c *call, in *project.Project, d repo.CommitDetail) commitJSON {
	out := toCommit(c, in, d.Commit)
	if d.Stats != nil {
		out.Stats = &commitStatsJSON{d.Stats.Added, d.Stats.Removed, d.Stats.Added + d.Stats.Removed}
	}
	return out
}

func (a *API) presentCommit(c *call, in *project.Project, d *repo.CommitDetail, err error) (commitDetailJSON, error) {
	if err != nil {
		return commitDetailJSON{}, err
	}
	out := commitDetailJSON{commitJSON: toCommitWithStats(c, in, *d), ProjectID: in.ID}
	last, err := a.CI.CommitPipeline(c, c.actor, in, string(d.ID))
	if err != nil {
		return commitDetailJSON{}, err
	}
	if last != nil {
		pipeline := a.toPipeline(in.FullPath, last)
		out.Status, out.LastPipeline = &pipeline.Status, &pipeline
	}
	return out, nil
}

type commitsParams struct {
	projectParams
	RefName     string     `param:"ref_name" doc:"Branch, tag, commit, or range with two dots. Default is the default branch."`
	Since       *time.Time `param:"since" doc:"Only commits on or after this time."`
	Until       *time.Time `param:"until" doc:"Only commits on or before this time."`
	Path        string     `param:"path" doc:"Only commits that change this path."`
	Follow      bool       `param:"follow" doc:"Follow renames of the path."`
	Author      string     `param:"author" max:"1024" doc:"Text in the author's name or email."`
	All         bool       `param:"all" doc:"List the commits of all references."`
	WithStats   bool       `param:"with_stats"`
	FirstParent bool       `param:"first_parent" doc:"Follow only the first parent of merge commits."`
	Order       string     `param:"order" enum:"default,topo" default:"default"`
	Trailers    bool       `param:"trailers" doc:"Include Git trailers in the response."`
	pageParams
}

// listCommits: https://docs.gitlab.com/api/commits/#list-all-repository-commits
func (a *API) listCommits(c *call, p commitsParams) (page[commitJSON], error) {
	f := repo.CommitFilter{
		Ref: p.RefName, All: p.All, Path: p.Path, Follow: p.Follow, Author: p.Author, FirstParent: p.FirstParent, Topo: p.Order == "topo", Stats: p.WithStats,
	}
	if p.Since != nil {
		f.Since = *p.Since
	}
	if p.Until != nil {
		f.Until = *p.Until
	}
	in, list, err := a.Repos.Commits(c, c.actor, p.Project, f, p.paging())
	if err != nil {
		return page[commitJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(d repo.CommitDetail) commitJSON {
		out := toCommitWithStats(c, in, d)
		if p.Trailers {
			out.addTrailers(d.Commit.Message)
		}
		return out
	}), nil
}

// startParams are the start of a new branch and the author of its commit.
type startParams struct {
	StartBranch  string       `param:"start_branch" doc:"Branch to create the new branch from."`
	StartProject *project.Ref `param:"start_project" doc:"Project that contains start_branch or start_sha, if it is another project of the fork network."`
	AuthorName   string       `param:"author_name"`
	AuthorEmail  string       `param:"author_email"`
}

type createCommitParams struct {
	projectParams
	Branch  string `param:"branch,required" doc:"Branch to commit to."`
	Message string `param:"commit_message,required,nonblank"`
	startParams
	StartSHA string               `param:"start_sha" doc:"Commit to create the new branch from."`
	Actions  []commitActionParams `param:"actions,required" doc:"Actions of the commit, applied in order."`
	Stats    bool                 `param:"stats" default:"true"`
	Force    bool                 `param:"force" doc:"Overwrite the branch with a new commit based on start_branch or start_sha."`
}

func (createCommitParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.Exclusive("start_branch", "start_sha")}
}

type commitActionParams struct {
	Action       string  `param:"action,required" enum:"create,delete,move,update,chmod"`
	FilePath     string  `param:"file_path,required"`
	PreviousPath string  `param:"previous_path" doc:"Original path of a moved file."`
	Content      *string `param:"content"`
	Encoding     string  `param:"encoding" enum:"text,base64" default:"text"`
	LastCommit   string  `param:"last_commit_id" doc:"Last known commit ID of the file."`
	Executable   *bool   `param:"execute_filemode"`
}

// check validates the combination of parameters of each action.
func (p *createCommitParams) check() error {
	var wrong []string
	for i, a := range p.Actions {
		switch {
		case a.Content == nil && a.Action == "update":
			wrong = append(wrong, fmt.Sprintf("actions[%d][content] is missing", i))
		case a.PreviousPath == "" && a.Action == "move":
			wrong = append(wrong, fmt.Sprintf("actions[%d][previous_path] is missing", i))
		case a.Executable == nil && a.Action == "chmod":
			wrong = append(wrong, fmt.Sprintf("actions[%d][execute_filemode] is missing", i))
		}
	}
	if len(wrong) > 0 {
		return bind.Invalid(wrong...)
	}
	return nil
}

// decodeContent decodes the content of a file.
func decodeContent(text, encoding, name string) ([]byte, error) {
	if encoding != "base64" {
		return []byte(text), nil
	}
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == ' ' {
			return -1
		}
		return r
	}, text)
	content, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, bind.Invalid(name + " is invalid")
	}
	return content, nil
}

func (p *createCommitParams) commit() (repo.NewCommit, error) {
	n := repo.NewCommit{
		Branch: p.Branch, StartBranch: p.StartBranch, StartSHA: p.StartSHA, StartProject: p.StartProject, Force: p.Force, Message: p.Message,
		AuthorName: p.AuthorName, AuthorEmail: p.AuthorEmail,
	}
	for i, a := range p.Actions {
		next := repo.FileAction{Kind: git.ActionKind(a.Action), Path: a.FilePath, From: a.PreviousPath, LastCommit: a.LastCommit, Executable: a.Executable}
		if a.Content != nil {
			content, err := decodeContent(*a.Content, a.Encoding, fmt.Sprintf("actions[%d][content]", i))
			if err != nil {
				return n, err
			}
			next.Content, next.HasContent = content, true
		}
		n.Actions = append(n.Actions, next)
	}
	return n, nil
}

// createCommit: https://docs.gitlab.com/api/commits/#create-a-commit
func (a *API) createCommit(c *call, p createCommitParams) (commitDetailJSON, error) {
	n, err := p.commit()
	if err != nil {
		return commitDetailJSON{}, err
	}
	in, d, err := a.Repos.CreateCommit(c, c.actor, p.Project, n, p.Stats)
	return a.presentCommit(c, in, d, err)
}

type commitParams struct {
	projectParams
	SHA string `param:"sha" doc:"Commit, branch or tag."`
}

type getCommitParams struct {
	commitParams
	Stats bool `param:"stats" default:"true"`
}

// getCommit: https://docs.gitlab.com/api/commits/#retrieve-a-commit
func (a *API) getCommit(c *call, p getCommitParams) (commitDetailJSON, error) {
	in, d, err := a.Repos.Commit(c, c.actor, p.Project, p.SHA, p.Stats)
	return a.presentCommit(c, in, d, err)
}

type commitDiffParams struct {
	commitParams
	Unidiff bool `param:"unidiff" doc:"Return diffs in the unified diff format, with file headers."`
	pageParams
}

// commitDiffJSON is the diff of one file in a commit.
type commitDiffJSON struct {
	repositoryDiffJSON
	Collapsed bool `json:"collapsed"`
	TooLarge  bool `json:"too_large"`
}

// listCommitDiff: https://docs.gitlab.com/api/commits/#retrieve-commit-diff
func (a *API) listCommitDiff(c *call, p commitDiffParams) (page[commitDiffJSON], error) {
	list, err := a.Repos.CommitDiff(c, c.actor, p.Project, p.SHA, p.Unidiff, p.paging())
	if err != nil {
		return page[commitDiffJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(f git.FileDiff) commitDiffJSON {
		return commitDiffJSON{repositoryDiffJSON: toRepositoryDiff(f), TooLarge: f.TooLarge}
	}), nil
}

type commitRefsParams struct {
	commitParams
	Type string `param:"type" enum:"branch,tag,all" default:"all"`
	pageParams
}

type commitRefJSON struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// listCommitRefs: https://docs.gitlab.com/api/commits/#list-all-references-a-commit-is-pushed-to
func (a *API) listCommitRefs(c *call, p commitRefsParams) (page[commitRefJSON], error) {
	kind := repo.RefKind(p.Type)
	if p.Type == "all" {
		kind = ""
	}
	list, err := a.Repos.CommitRefs(c, c.actor, p.Project, p.SHA, kind, p.paging())
	if err != nil {
		return page[commitRefJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(r repo.CommitRef) commitRefJSON { return commitRefJSON{string(r.Type), r.Name} }), nil
}

type commitSequenceParams struct {
	commitParams
	FirstParent bool `param:"first_parent" doc:"Follow only the first parent of merge commits."`
}

type commitSequenceJSON struct {
	Count int `json:"count"`
}

// getCommitSequence: https://docs.gitlab.com/api/commits/#retrieve-commit-sequence
func (a *API) getCommitSequence(c *call, p commitSequenceParams) (commitSequenceJSON, error) {
	n, err := a.Repos.CommitSequence(c, c.actor, p.Project, p.SHA, p.FirstParent)
	return commitSequenceJSON{n}, err
}

// getCommitSignature: https://docs.gitlab.com/api/commits/#retrieve-commit-signature
func (a *API) getCommitSignature(c *call, p commitParams) (any, error) {
	return presentSignature(a.Repos.CommitSignature(c, c.actor, p.Project, p.SHA))
}

type pickParams struct {
	commitParams
	Branch string `param:"branch,required" doc:"Branch to commit to."`
	DryRun bool   `param:"dry_run" doc:"Check for conflicts without creating a commit."`
}

type cherryPickParams struct {
	pickParams
	Message string `param:"message" doc:"Commit message. Default is derived from the original message."`
}

// dryRunJSON is the result of a successful dry run.
type dryRunJSON struct {
	DryRun string `json:"dry_run"`
}

func presentPick(c *call, in *project.Project, made *git.Commit, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if made == nil {
		return withStatus{http.StatusOK, dryRunJSON{"success"}}, nil
	}
	return toCommit(c, in, made), nil
}

// cherryPickCommit: https://docs.gitlab.com/api/commits/#cherry-pick-a-commit
func (a *API) cherryPickCommit(c *call, p cherryPickParams) (any, error) {
	in, made, err := a.Repos.CherryPick(c, c.actor, p.Project, repo.Pick{Rev: p.SHA, Branch: p.Branch, Message: p.Message, DryRun: p.DryRun})
	return presentPick(c, in, made, err)
}

// revertCommit: https://docs.gitlab.com/api/commits/#revert-a-commit
func (a *API) revertCommit(c *call, p pickParams) (any, error) {
	in, made, err := a.Repos.Revert(c, c.actor, p.Project, repo.Pick{Rev: p.SHA, Branch: p.Branch, DryRun: p.DryRun})
	return presentPick(c, in, made, err)
}
