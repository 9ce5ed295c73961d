package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/ci"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/user"
)

func (w *Web) mergeOnePages() {
	w.projectPage("GET merge_requests/{id}", anyone, w.mergeTab("overview"))
	w.projectPage("GET merge_requests/{id}/commits", anyone, w.mergeTab("commits"))
	w.projectPage("GET merge_requests/{id}/pipelines", anyone, w.mergeTab("pipelines"))
	w.projectPage("GET merge_requests/{id}/diffs", anyone, w.mergeTab("changes"))
	w.mergeChangePages()
	w.mergeActions()
	w.approvalPages()
	w.reviewPages()
	w.mergeDependencyPages()
	w.issuablePages(w.mergeKind())
}

// mergeKind describes merge requests to the pages that they share with issues.
func (w *Web) mergeKind() issuableKind {
	k := issuableKind{
		title: "Merge requests", access: project.MergePart, parts: []string{"labels", "assignees", "reviewers", "milestone", "time"},
		participants: func(v *visit, by actor.Actor, ref project.Ref, iid int64) ([]*user.User, error) {
			return w.Merges.Participants(v, by, ref, iid)
		},
		remove: func(v *visit, by actor.Actor, ref project.Ref, iid int64, since *time.Time) error {
			return w.Merges.Delete(v, by, ref, iid, since)
		},
	}
	k.commentable = commentable{
		at: "merge_requests/{id}", noun: "merge request", part: "merges", drafts: true,
		find: func(v *visit, ref project.Ref) (plan.Noteable, error) {
			iid, err := v.number("id")
			if err != nil {
				return plan.Noteable{}, err
			}
			return w.Merges.OnMergeRequest(v, v.actor, ref, iid)
		},
		update: func(v *visit, ref project.Ref, iid int64, f plan.Fields) error {
			_, err := w.Merges.Update(v, v.actor, ref, iid, merge.Fields{Fields: f})
			return err
		},
	}
	k.events = map[string]issuableEvent{
		"draft": {"The merge request was marked as draft.", false, w.setDraft(true)},
		"ready": {"The merge request was marked as ready.", false, w.setDraft(false)},
	}
	k.load = func(v *visit, ref project.Ref) (issuable, error) {
		p, err := w.mergeRequest(v, ref)
		if err != nil {
			return issuable{}, err
		}
		return issuable{planHead: p.planHead, Issuable: &p.Issuable, Path: p.Path, Ref: p.Ref}, nil
	}
	k.save = func(v *visit, ref project.Ref, iid int64, c planChange) error {
		_, err := w.Merges.Update(v, v.actor, ref, iid, merge.Fields{Fields: c.Fields, Reviewers: c.Reviewers})
		return err
	}
	k.todo = func(v *visit, ref project.Ref, iid int64) error {
		_, _, err := w.Todos.AddMergeRequest(v, v.actor, ref, iid)
		return err
	}
	k.subscribe = func(v *visit, ref project.Ref, iid int64, want bool) error {
		_, _, err := w.Merges.Subscribe(v, v.actor, ref, iid, want)
		return err
	}
	return k
}

// mergePage is a tab of a merge request.
type mergePage struct {
	issuableView // of the overview
	mergeRow
	Shows    string           // overview, commits, pipelines or changes
	Source   *project.Project // nil if it was deleted or the user has no access
	Box      mergeBox
	Closes   []issueRow // of the overview
	Mentions []issueRow // of the overview: that it does not close
	// Needs are the dependencies of the overview, Blocks those on the merge request.
	Needs, Blocks []dependencyRow
	// Approvals of the overview.
	Approvals *approvalBox
	Review    reviewView
	drafts    []*merge.DraftNote
	// Reviews are the reviewers with their states, of the overview.
	Reviews []reviewerView

	// The other tabs.
	Commits   []commitDay
	Count     int
	Context   []byline // context commits
	Pipelines []mergePipeline
	Diff      diffView
	Versions  []*merge.Version
	Shown     *merge.Version
	Since     *merge.Version // the version that it is compared with; nil for the base
	Elsewhere string         // URL of the version with the requested note
	Threads   plan.ThreadCount
	Pager     pager
}

func (mergePage) view() string    { return "project/merge" }
func (p mergePage) wide() bool    { return p.Shows == "changes" }
func (p mergePage) title() string { return shown(p.Title) + " (" + p.Ref + ") · " + p.Name() }

// Full is the reference with the path of the project.
func (p mergePage) Full() string { return fmt.Sprintf("%s!%d", p.ProjectPath, p.IID) }

// Files returns the number of changed files.
func (p mergePage) Files() int64 {
	if p.Version == nil {
		return 0
	}
	return p.Version.Files
}

// SourceLabel is the source branch, with the project that it is in if that is
// another one.
func (p mergePage) SourceLabel() string {
	switch {
	case !p.FromFork():
		return p.SourceBranch
	case p.Source == nil:
		return "(another project):" + p.SourceBranch
	}
	return p.Source.FullPath + ":" + p.SourceBranch
}

// mergeTab shows one of the pages of a merge request.
func (w *Web) mergeTab(tab string) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		p, err := w.mergeRequest(v, ref)
		if err != nil {
			return err
		}
		p.Shows = tab
		switch tab {
		case "overview":
			err = w.mergeOverview(v, &p)
		case "commits":
			err = w.mergeCommits(v, &p)
		case "pipelines":
			err = w.mergePipelines(v, &p)
		default:
			err = w.mergeChanges(v, &p)
		}
		if err != nil {
			return err
		}
		if p.Elsewhere != "" {
			return v.redirect(p.Elsewhere)
		}
		return v.showDiff(p, p.Diff)
	}
}

// mergeRequest returns the common data of the pages of a merge request.
func (w *Web) mergeRequest(v *visit, ref project.Ref) (mergePage, error) {
	h, err := w.planHead(v, project.Place{Ref: ref}, "merges")
	if err != nil {
		return mergePage{}, err
	}
	iid, err := v.number("id")
	if err != nil {
		return mergePage{}, err
	}
	m, err := w.Merges.Get(v, v.actor, h.Place.Ref, iid)
	if err != nil {
		return mergePage{}, err
	}
	p := mergePage{issuableView: issuableView{planHead: h}, mergeRow: newMergeRow(m, false)}
	may := m.Can(v.actor, h.P.Project)
	p.Edits, p.Plans, p.Deletes = may.Edit, may.Plan, may.Delete
	if p.Source, err = w.Merges.Source(v, v.actor, m); err != nil {
		return p, err
	}
	if err := w.fillReview(v, &p, may); err != nil {
		return p, err
	}
	p.Box, err = w.mergeBox(v, &p, may)
	return p, err
}

func (w *Web) mergeOverview(v *visit, p *mergePage) error {
	if err := w.fillIssuable(v, &p.issuableView, w.mergeKind(), &p.Issuable); err != nil {
		return err
	}
	var err error
	if p.Approvals, err = w.approvals(v, p); err != nil {
		return err
	}
	on, err := w.Merges.OnMergeRequest(v, v.actor, p.Place.Ref, p.IID)
	if err != nil {
		return err
	}
	if p.Threads, err = w.Plan.CountThreads(v, on); err != nil {
		return err
	}
	closes, err := w.Merges.ClosesIssues(v, v.actor, p.Place.Ref, p.IID)
	for _, i := range closes {
		p.Closes = append(p.Closes, w.issueRow(i, i.ProjectID != p.ProjectID))
	}
	if err != nil {
		return err
	}
	related, err := w.Merges.RelatedIssues(v, v.actor, p.Place.Ref, p.IID)
	for _, i := range related {
		if !slices.ContainsFunc(closes, func(c *plan.Issue) bool { return c.ID == i.ID }) {
			p.Mentions = append(p.Mentions, w.issueRow(i, i.ProjectID != p.ProjectID))
		}
	}
	if err != nil {
		return err
	}
	if err := w.fillDependencies(v, p); err != nil {
		return err
	}
	if err := w.showDrafts(v, p); err != nil {
		return err
	}
	return w.fillReviewers(v, p, p.MergeRequest.Can(v.actor, p.P.Project))
}

// perCommits is the number of commits on a page.
const perCommits = 50

func (w *Web) mergeCommits(v *visit, p *mergePage) error {
	found, err := w.Merges.Contents(v, v.actor, p.Place.Ref, p.IID, merge.Part{
		Commits: true, Paging: db.Paging{Limit: perCommits, Offset: (v.pageNumber() - 1) * perCommits, Totals: true},
	})
	if err != nil {
		return err
	}
	in := p.P.Project
	if p.Source != nil {
		in = p.Source // where they were pushed to
	}
	lines, err := w.bylines(v, in, found.Commits.Items)
	if err != nil {
		return err
	}
	p.Commits, p.Count, p.Pager = days(lines), found.Commits.Total, v.pager(found.Commits.More)
	target, list, err := w.Merges.ContextCommits(v, v.actor, p.Place.Ref, p.IID)
	if errs.Is(err, errs.KindNotFound) || errs.Is(err, errs.KindForbidden) { // the repository is not visible
		return nil
	}
	if err != nil || len(list) == 0 {
		return err
	}
	p.Context, err = w.bylines(v, target, list)
	return err
}

// mergePipelines lists the pipelines of the merge request, in the project of the
// source and in that of the target.
func (w *Web) mergePipelines(v *visit, p *mergePage) error {
	places, page, err := w.CI.RequestPipelines(v, v.actor, p.Place.Ref, p.IID, v.paging())
	if err != nil {
		return err
	}
	for _, one := range page.Items {
		p.Pipelines = append(p.Pipelines, mergePipeline{one, places[one.ProjectID].FullPath})
	}
	p.Pager = v.pager(page.More)
	return nil
}

// mergePipeline is a pipeline with the project that it runs in.
type mergePipeline struct {
	*ci.Pipeline
	In string
}

// branchOf returns the URL of a branch of a project.
func branchOf(p *project.Project, name string) string {
	if p == nil {
		return ""
	}
	return pathTo(p.FullPath, "-", "tree", name)
}

// SourcePath returns the URL of the source branch, or an empty string if the
// visitor cannot see it.
func (p mergePage) SourcePath() string { return branchOf(p.Source, p.SourceBranch) }

// TargetPath returns the URL of the target branch.
func (p mergePage) TargetPath() string { return branchOf(p.P.Project, p.TargetBranch) }

// Fetch returns the command that fetches the source branch, to try it or to
// resolve conflicts.
func (p mergePage) Fetch() string {
	return "git fetch origin merge-requests/" + strings.TrimPrefix(p.Ref, "!") + "/head"
}
