package web

import (
	"fmt"
	"html/template"
	"strings"

	"svc/internal/ci"
	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/user"
)

func (w *Web) mergeOnePages() {
	w.projectPage("GET merge_requests/{id}", anybody, w.mergeTab("overview"))
	w.projectPage("GET merge_requests/{id}/commits", anybody, w.mergeTab("commits"))
	w.projectPage("GET merge_requests/{id}/pipelines", anybody, w.mergeTab("pipelines"))
	w.projectPage("GET merge_requests/{id}/diffs", anybody, w.mergeTab("changes"))
	w.projectPage("POST merge_requests/{id}/diff_notes", signedIn, w.sayOnLine)
	w.mergeActions()
	w.talkPages(w.mergeTalk())
}

// mergeTalk says how people talk about merge requests.
func (w *Web) mergeTalk() talker {
	return talker{
		at: "merge_requests/{id}", word: "merge request", part: "merges",
		find: func(v *visit, ref project.Ref) (plan.Noteable, error) {
			iid, err := v.number("id")
			if err != nil {
				return plan.Noteable{}, err
			}
			return w.Merges.OnMergeRequest(v, v.actor, ref, iid)
		},
		turn: func(v *visit, ref project.Ref, iid int64, event string) error {
			_, err := w.Merges.Update(v, v.actor, ref, iid, merge.Fields{Event: event})
			return err
		},
	}
}

// mergePage is a merge request: one of its tabs.
type mergePage struct {
	planHead
	mergeRow
	Shows   string           // overview, commits, pipelines or changes
	Source  *project.Project // nil when it is gone, or not for the visitor
	Edits   bool             // its title, description and state
	Deletes bool
	Box     mergeBox

	// The overview.
	Text   template.HTML
	Done   int // of its tasks
	Tasks  int
	Closes []issueRow
	People []*user.User
	Talk   talk

	// The other tabs.
	Commits   []commitDay
	Count     int
	Pipelines []mergePipeline
	Diff      diffView
	Versions  []*merge.Version
	Version   *merge.Version
	Pager     pager
}

func (mergePage) view() string    { return "project/merge" }
func (p mergePage) title() string { return shown(p.Title) + " (" + p.Ref + ") · " + p.Name() }

// Full is how the merge request is called everywhere.
func (p mergePage) Full() string { return fmt.Sprintf("%s!%d", p.ProjectPath, p.IID) }

// Shut tells whether only members may talk.
func (p mergePage) Shut() bool { return p.Locked != nil && *p.Locked }

// Files is how many files differ.
func (p mergePage) Files() int64 {
	if p.MergeRequest.Version == nil {
		return 0
	}
	return p.MergeRequest.Version.Files
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
		return v.show(p)
	}
}

// mergeRequest is what all pages of a merge request begin with.
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
	p := mergePage{planHead: h, mergeRow: newMergeRow(m, false)}
	may := m.Can(v.actor, h.P.Project)
	p.Edits, p.Plans, p.Deletes = may.Edit, may.Plan, may.Delete
	if p.Source, err = w.Merges.Source(v, v.actor, m); err != nil {
		return p, err
	}
	p.Box, err = w.mergeBox(v, &p, may)
	return p, err
}

func (w *Web) mergeOverview(v *visit, p *mergePage) error {
	tasks, err := w.Markup.Tasks(v, p.Description)
	if err != nil {
		return err
	}
	for _, done := range tasks {
		if p.Tasks++; done {
			p.Done++
		}
	}
	on, err := w.Merges.OnMergeRequest(v, v.actor, p.Place.Ref, p.IID)
	if err != nil {
		return err
	}
	var texts []template.HTML
	if p.Talk, texts, err = w.talk(v, on, w.mergeTalk(), plan.Text{Source: p.Description}); err != nil {
		return err
	}
	p.Text = texts[0]
	if p.Edits && p.Talk.May && p.State != merge.Merged {
		p.Talk.Event = map[bool]string{true: "reopen", false: "close"}[p.State == merge.Closed]
	}
	if p.People, err = w.Merges.Participants(v, v.actor, p.Place.Ref, p.IID); err != nil {
		return err
	}
	closes, err := w.Merges.ClosesIssues(v, v.actor, p.Place.Ref, p.IID)
	for _, i := range closes {
		p.Closes = append(p.Closes, w.issueRow(i, i.ProjectID != p.ProjectID))
	}
	return err
}

// perCommits is how many commits a page shows.
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
	p.Commits, p.Count, p.Pager = days(lines), found.Commits.Total, v.pager(found.Commits.More)
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

func (w *Web) mergeChanges(v *visit, p *mergePage) error {
	want := merge.Part{Diff: true}
	page, err := w.Merges.Versions(v, v.actor, p.Place.Ref, p.IID, db.Paging{Limit: 50})
	if err != nil {
		return err
	}
	p.Versions = page.Items
	for _, one := range p.Versions {
		if v.param("diff_id") == fmt.Sprint(one.ID) {
			want.VersionID = one.ID
		}
	}
	found, err := w.Merges.Contents(v, v.actor, p.Place.Ref, p.IID, want)
	if err != nil {
		return err
	}
	p.Version = found.Version
	said, err := w.lineTalk(v, p, found.Version)
	if err != nil {
		return err
	}
	files := part(found.Diff.Files, v.diffPaging())
	p.Diff = v.diffView(*p.P, files, git.OID(found.Version.Base), git.OID(found.Version.Head), said)
	return nil
}

// branchOf leads to a branch of a project.
func branchOf(p *project.Project, name string) string {
	if p == nil {
		return ""
	}
	return pathTo(p.FullPath, "-", "tree", name)
}

// SourcePath leads to the source branch; empty when the visitor can not go there.
func (p mergePage) SourcePath() string { return branchOf(p.Source, p.SourceBranch) }

// TargetPath leads to the target branch.
func (p mergePage) TargetPath() string { return branchOf(p.P.Project, p.TargetBranch) }

// Fetch is how the source branch comes to one who wants to try it or to mend
// what clashes.
func (p mergePage) Fetch() string {
	return "git fetch origin merge-requests/" + strings.TrimPrefix(p.Ref, "!") + "/head"
}
