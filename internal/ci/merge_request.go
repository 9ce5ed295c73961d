package ci

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/plan/listing"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
)

// request is the merge request data that the predefined variables of a pipeline
// use. It is stored as JSON.
type request struct {
	ID              int64    `json:"id"`
	IID             int64    `json:"iid"`
	ProjectID       int64    `json:"project_id"`
	ProjectPath     string   `json:"project_path"`
	SourceProjectID int64    `json:"source_project_id"`
	SourcePath      string   `json:"source_path"`
	SourceBranch    string   `json:"source_branch"`
	SourceProtected bool     `json:"source_protected"`
	TargetBranch    string   `json:"target_branch"`
	TargetProtected bool     `json:"target_protected"`
	Title           string   `json:"title"`
	Description     string   `json:"description"` // truncated
	Truncated       bool     `json:"truncated"`
	Draft           bool     `json:"draft"`
	Squash          bool     `json:"squash"`
	Assignees       []string `json:"assignees,omitempty"`
	Labels          []string `json:"labels,omitempty"`
	Milestone       string   `json:"milestone,omitempty"`
	VersionID       int64    `json:"version_id"`
	Base            string   `json:"base"`
	Approved        bool     `json:"approved,omitempty"` // when the pipeline was created
}

// MergeRequestChanged adds a background job that creates a pipeline for the new
// head of a merge request.
func (s *Service) MergeRequestChanged(ctx context.Context, tx *db.Tx, c merge.Change) error {
	if c.Kind != merge.Collected || c.Request.State != merge.Opened || c.By <= 0 {
		return nil
	}
	w := requestWork{RequestID: c.Request.ID, UserID: c.By, SHA: c.Request.Head, Origin: fmt.Sprintf("merge/%d/%s/%s", c.Request.ID, c.Request.Head, c.Request.TargetBranch)}
	return s.Queue.Add(ctx, tx, w, queue.In(lane))
}

// requestWork is the background job that creates the pipeline of a merge
// request.
type requestWork struct {
	RequestID int64  `json:"merge_request_id"`
	UserID    int64  `json:"user_id"`
	SHA       string `json:"sha"`
	Origin    string `json:"origin"`
}

// Kind implements queue.Work.
func (requestWork) Kind() string { return "ci_merge_request" }

func (s *Service) workRequest(ctx context.Context, w requestWork) error {
	by, err := s.Users.As(ctx, w.UserID)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	m, err := s.Merges.ByID(ctx, by, w.RequestID)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	if m.State != merge.Opened || m.Head != w.SHA {
		return nil
	}
	draft, err := s.proposeRequest(ctx, by, m)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	draft.origin, draft.skip = &w.Origin, skips(draft.commit.Message)
	// If the configuration is invalid, the branch pipeline already reports it.
	if _, err := s.create(ctx, draft, false); errs.IgnoreRefusal(err) != nil {
		return fmt.Errorf("pipeline of merge request %d: %w", m.ID, err)
	}
	return nil
}

// proposeRequest prepares the pipeline of a merge request, which runs in the
// source project. Invalid if it cannot be created, Forbidden or NotFound if the
// actor may not run pipelines there.
func (s *Service) proposeRequest(ctx context.Context, by actor.Actor, m *merge.MergeRequest) (*pipelineDraft, error) {
	if m.SourceProjectID == nil || m.Version == nil || m.State != merge.Opened {
		return nil, errs.InvalidField("base", "Merge request is not open")
	}
	src, err := s.Repos.Source(ctx, by, project.RefTo(*m.SourceProjectID))
	if err != nil {
		return nil, err
	}
	if err := src.Project.Change(by, project.BuildsPart, project.Developer); err != nil {
		return nil, err
	}
	facts, err := s.requestFacts(ctx, by, src, m)
	if err != nil {
		return nil, err
	}
	draft := &pipelineDraft{by: by, src: src}
	draft.pipeline = &Pipeline{
		ProjectID: src.Project.ID, Status: flow.Created, Source: FromMerge, Ref: repo.MergeRef(m.IID, "head"), SHA: m.Head, BeforeSHA: string(git.ZeroOID),
		facts: *facts,
	}
	return draft, s.complete(ctx, draft)
}

// requestFacts returns the request of a merge request.
func (s *Service) requestFacts(ctx context.Context, by actor.Actor, src *repo.Source, m *merge.MergeRequest) (*facts, error) {
	const most = 2700 // bytes of a description
	r := &request{
		ID: m.ID, IID: m.IID, ProjectID: m.ProjectID, ProjectPath: m.ProjectPath, SourceProjectID: src.Project.ID, SourcePath: src.Project.FullPath,
		SourceBranch: m.SourceBranch, TargetBranch: m.TargetBranch, Title: m.Title, Description: m.Description, Draft: m.Draft, Squash: m.SquashOnMerge,
		VersionID: m.Version.ID, Base: m.Version.Base,
	}
	if len(r.Description) > most {
		r.Description, r.Truncated = strings.ToValidUTF8(r.Description[:most], ""), true
	}
	for _, u := range m.Assignees {
		r.Assignees = append(r.Assignees, u.Username)
	}
	for _, l := range m.Labels {
		r.Labels = append(r.Labels, l.Name)
	}
	if m.Milestone != nil {
		r.Milestone = m.Milestone.Title
	}
	var err error
	if r.SourceProtected, err = src.Protected(ctx, m.SourceBranch, false); err != nil {
		return nil, err
	}
	target, err := s.Repos.Source(ctx, actor.System(), project.RefTo(m.ProjectID))
	if err != nil {
		return nil, err
	}
	if r.TargetProtected, err = target.Protected(ctx, m.TargetBranch, false); err != nil {
		return nil, err
	}
	approvals, err := s.Merges.ApprovalsOf(ctx, by, target.Project, m)
	if err != nil {
		return nil, err
	}
	r.Approved = len(approvals.Given) > 0 && approvals.Approved()
	return &facts{Request: r}, nil
}

// requestVariables adds the predefined variables of merge request pipelines.
func (sc *variableContext) requestVariables(v *variables) {
	v.addSome("CI_OPEN_MERGE_REQUESTS", strings.Join(sc.pipeline.facts.OpenRequests, ","))
	r := sc.pipeline.facts.Request
	if r == nil {
		return
	}
	id := func(n int64) string { return strconv.FormatInt(n, 10) }
	v.add("CI_MERGE_REQUEST_ID", id(r.ID))
	v.add("CI_MERGE_REQUEST_IID", id(r.IID))
	v.add("CI_MERGE_REQUEST_REF_PATH", repo.MergeRef(r.IID, "head"))
	v.add("CI_MERGE_REQUEST_PROJECT_ID", id(r.ProjectID))
	v.add("CI_MERGE_REQUEST_PROJECT_PATH", r.ProjectPath)
	v.add("CI_MERGE_REQUEST_PROJECT_URL", sc.site.URL+"/"+r.ProjectPath)
	v.add("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", r.TargetBranch)
	v.add("CI_MERGE_REQUEST_TARGET_BRANCH_PROTECTED", strconv.FormatBool(r.TargetProtected))
	v.add("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "")
	v.add("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", id(r.SourceProjectID))
	v.add("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", r.SourcePath)
	v.add("CI_MERGE_REQUEST_SOURCE_PROJECT_URL", sc.site.URL+"/"+r.SourcePath)
	v.add("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", r.SourceBranch)
	v.add("CI_MERGE_REQUEST_SOURCE_BRANCH_PROTECTED", strconv.FormatBool(r.SourceProtected))
	v.add("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "")
	v.add("CI_MERGE_REQUEST_TITLE", r.Title)
	v.add("CI_MERGE_REQUEST_DESCRIPTION", r.Description)
	v.add("CI_MERGE_REQUEST_DESCRIPTION_IS_TRUNCATED", strconv.FormatBool(r.Truncated))
	v.add("CI_MERGE_REQUEST_DRAFT", strconv.FormatBool(r.Draft))
	v.add("CI_MERGE_REQUEST_SQUASH_ON_MERGE", strconv.FormatBool(r.Squash))
	v.addTrue("CI_MERGE_REQUEST_APPROVED", r.Approved)
	v.addSome("CI_MERGE_REQUEST_ASSIGNEES", strings.Join(r.Assignees, ", "))
	v.addSome("CI_MERGE_REQUEST_LABELS", strings.Join(r.Labels, ","))
	v.addSome("CI_MERGE_REQUEST_MILESTONE", r.Milestone)
	v.add("CI_MERGE_REQUEST_EVENT_TYPE", "detached")
	v.add("CI_MERGE_REQUEST_DIFF_ID", id(r.VersionID))
	v.add("CI_MERGE_REQUEST_DIFF_BASE_SHA", r.Base)
}

// branch returns the branch whose permissions apply to a pipeline: for a merge
// request pipeline, the source branch.
func (p *Pipeline) branch() string {
	if r := p.facts.Request; r != nil {
		return r.SourceBranch
	}
	return p.Ref
}

// HeadPipelines returns the newest pipeline of the head of each merge request.
// Merge request pipelines take precedence over branch pipelines.
func (s *Service) HeadPipelines(ctx context.Context, list []*merge.MergeRequest) (map[int64]*merge.Pipeline, error) {
	ids, heads := make([]int64, len(list)), map[int64]string{}
	for i, m := range list {
		ids[i], heads[m.ID] = m.ID, m.Head
	}
	rows, err := findHeadPipelines(ctx, s.DB, ids)
	if err != nil {
		return nil, fmt.Errorf("pipelines of merge requests: %w", err)
	}
	found := map[int64]*merge.Pipeline{}
	for _, r := range rows {
		if r.sha != heads[r.requestID] {
			continue // the merge request was pushed to since it was read
		}
		found[r.requestID] = &merge.Pipeline{
			ID: r.id, ProjectID: r.projectID, Active: !r.status.Done() && r.status != flow.Manual, Success: r.status == flow.Success, Skipped: r.status == flow.Skipped,
		}
	}
	return found, nil
}

// RequestStates returns the newest pipelines of the heads of merge requests, keyed
// by the ID of the merge request, as far as the actor sees pipelines in their
// projects. Only the ID, the project and the state are set.
func (s *Service) RequestStates(ctx context.Context, by actor.Actor, list []*merge.MergeRequest) (map[int64]*Pipeline, map[int64]*project.Project, error) {
	if len(list) == 0 {
		return nil, nil, nil
	}
	ids, heads := make([]int64, len(list)), map[int64]string{}
	for i, m := range list {
		ids[i], heads[m.ID] = m.ID, m.Head
	}
	rows, err := findHeadPipelines(ctx, s.DB, ids)
	if err != nil || len(rows) == 0 {
		return nil, nil, err
	}
	var places []int64
	for _, r := range rows {
		places = append(places, r.projectID)
	}
	slices.Sort(places)
	seen, err := s.Projects.Among(ctx, by, slices.Compact(places))
	if err != nil {
		return nil, nil, err
	}
	in := map[int64]*project.Project{}
	for _, p := range seen {
		if s.Sees(by, p) {
			in[p.ID] = p
		}
	}
	states := map[int64]*Pipeline{}
	var found []*Pipeline
	for _, r := range rows {
		if in[r.projectID] != nil && r.sha == heads[r.requestID] {
			p := &Pipeline{ID: r.id, ProjectID: r.projectID, SHA: r.sha, Status: r.status}
			states[r.requestID], found = p, append(found, p)
		}
	}
	return states, in, s.fillWarnings(ctx, found)
}

// RequestPipelines lists the pipelines of all heads that a merge request has
// had, newest first, as far as the actor can see them, with their projects.
// NotFound; Forbidden if the actor cannot see the pipelines of the target
// project.
func (s *Service) RequestPipelines(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, pg db.Paging) (map[int64]*project.Project, db.Page[*Pipeline], error) {
	var page db.Page[*Pipeline]
	m, err := s.Merges.Get(ctx, by, ref, iid)
	if err != nil {
		return nil, page, err
	}
	in, err := s.seePipelines(ctx, by, project.RefTo(m.ProjectID))
	if err != nil {
		return nil, page, err
	}
	places, projects := []int64{in.ID}, map[int64]*project.Project{in.ID: in}
	if m.FromFork() && m.SourceProjectID != nil {
		if p, err := s.seePipelines(ctx, by, project.RefTo(*m.SourceProjectID)); err == nil {
			places, projects[p.ID] = append(places, p.ID), p
		} else if !errs.IsRefusal(err) {
			return nil, page, err
		}
	}
	heads, err := s.Merges.Heads(ctx, m)
	if err != nil {
		return nil, page, err
	}
	if page, err = listRequestPipelines(ctx, s.DB, places, heads, []string{repo.MergeRef(m.IID, "head"), m.SourceBranch}, pg); err != nil {
		return nil, page, fmt.Errorf("pipelines of merge request %d: %w", m.ID, err)
	}
	return projects, page, s.fillWarnings(ctx, page.Items)
}

// CreateRequestPipeline creates a pipeline for the head of a merge request, for
// users who may run pipelines on its source branch. NotFound; Forbidden;
// Invalid with all reasons why it cannot be created.
func (s *Service) CreateRequestPipeline(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*project.Project, *Pipeline, error) {
	m, err := s.Merges.Get(ctx, by, ref, iid)
	if err != nil {
		return nil, nil, err
	}
	if err := by.RequireUser(); err != nil {
		return nil, nil, err
	}
	draft, err := s.proposeRequest(ctx, by, m)
	if errs.Is(err, errs.KindNotFound) { // the actor sees the merge request but not the source project
		err = errs.Forbidden("")
	}
	if err != nil {
		return nil, nil, err
	}
	p, err := s.create(ctx, draft, false)
	if err != nil {
		return nil, nil, err
	}
	return draft.src.Project, p, s.fillPipelines(ctx, []*Pipeline{p})
}

// openRequests returns references to the open merge requests of a branch, for
// the rules of its pipelines.
func (s *Service) openRequests(ctx context.Context, projectID int64, branch string) ([]string, error) {
	const most = 4
	page, err := s.Merges.List(ctx, actor.System(), merge.Filter{Filter: listing.Filter{State: merge.Opened}, SourceProjectID: projectID, SourceBranch: branch}, listing.Sort{Desc: true}, db.Paging{Limit: most})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range page.Items {
		names = append(names, fmt.Sprintf("%s!%d", m.ProjectPath, m.IID))
	}
	slices.Sort(names)
	return names, nil
}
