package web

import (
	"html/template"
	"os"
	"strings"
	"testing"
	"time"

	"svc/internal/board"
	"svc/internal/ci"
	"svc/internal/ci/flow"
	"svc/internal/emoji"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/user"
)

// TestRows compares the rows that are drawn in Go with those of a template: both
// escape every text in the same way and look the same.
func TestRows(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	w := &Web{assets: loadAssets(), Deps: Deps{Now: func() time.Time { return now }}}
	w.views = w.parseViews()
	text, err := os.ReadFile("testdata/rows.html")
	if err != nil {
		t.Fatal(err)
	}
	drawReply := func(f *frame, on discussions, id string) template.HTML {
		m := &markupWriter{web: w}
		m.reply(f, on, id)
		return m.html()
	}
	templates := template.New("").Funcs(w.funcs()).Funcs(template.FuncMap{"goalpath": milestonePath, "replylater": drawReply})
	for _, file := range templateFiles(parts) {
		template.Must(templates.Parse(w.source(file)))
	}
	template.Must(templates.Parse(indentation.ReplaceAllString(string(text), "")))
	draw := func(name string, rows any) string {
		var b strings.Builder
		if err := templates.ExecuteTemplate(&b, name, rows); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}

	const odd = "<script>alert(1)</script> \"quoted\" 'x' & a+b \x00 \u202e é \u2028 `"
	weight, zero := int64(3), int64(0)
	ada := &user.User{ID: 1, Username: "ada", Name: odd}
	bob := &user.User{ID: 9, Username: "bob", Name: "Bob", Avatar: `a "b".png`}
	label := &plan.Label{Name: odd, Color: "#ff0000", Description: odd}
	goal := &plan.Milestone{IID: 7, Title: odd, Path: "g/p"}
	group := int64(2)
	all := plan.Issuable{
		IID: 12, ProjectPath: "g.x/p_y", Title: odd, State: plan.Opened, Author: ada, Assignees: []*user.User{ada, bob}, Reviewers: []*user.User{bob, ada},
		Labels: []*plan.Label{label, {Name: "bug"}}, Milestone: goal, Notes: 5, CreatedAt: now.Add(-time.Hour),
	}
	closed := all
	closed.State, closed.Milestone, closed.Author, closed.Notes = plan.Closed, &plan.Milestone{IID: 1, Path: "g", GroupID: &group}, nil, 0

	issues := []issueRow{
		{Issue: &plan.Issue{Issuable: all, Confidential: true, DueDate: "2001-01-01", Weight: &weight}, Path: "/g.x/p_y/-/issues/12", Ref: "g.x/p_y#12", Late: true, Pick: true},
		{Issue: &plan.Issue{Issuable: closed, DueDate: "2030-01-01", Weight: &zero}, Path: "/g/p/-/issues/1", Ref: "#1"},
		{Issue: &plan.Issue{}},
	}
	if got, want := string(w.drawIssues(issues)), draw("issuerows", issues); got != want {
		t.Errorf("issues:\n%s\nwant\n%s", got, want)
	}

	var merges []mergeRow
	for _, state := range []plan.State{merge.Opened, merge.Closed, merge.Merged, "locked"} {
		for _, draft := range []bool{false, true} {
			m := &merge.MergeRequest{Issuable: all, TargetBranch: odd, Draft: draft, Status: merge.Status{Git: "cannot_be_merged"}}
			m.State = state
			r := newMergeRow(m, draft)
			if draft {
				r.AutoMergeBy, r.Pick, r.CI = ada, true, &ciStatus{Status: "success", URL: "/g.x/p_y/-/pipelines/3", Warning: true}
			} else {
				r.CI = &ciStatus{Status: odd, URL: "/g/p/-/pipelines/3"}
			}
			merges = append(merges, r)
		}
	}
	merges = append(merges, mergeRow{MergeRequest: &merge.MergeRequest{}})
	if got, want := string(w.drawMerges(merges)), draw("mergerows", merges); got != want {
		t.Errorf("merge requests:\n%s\nwant\n%s", got, want)
	}

	page := &frame{visit: &visit{token: "to-ken"}}
	given := []plan.Reaction{
		{Emoji: emoji.Find("thumbsup"), Count: 3, Own: true, Names: []string{odd}},
		{Emoji: &emoji.Emoji{Name: odd, Text: odd}, Count: 1, Names: []string{"Bob"}},
	}
	for _, may := range []bool{false, true} {
		for _, list := range [][]plan.Reaction{nil, given} {
			r := reactions{Action: "/g.x/p_y/-/issues/12/react", Part: "reactions_" + odd, List: list, May: may}
			if got, want := string(w.drawReactions(page, r)), draw("reactions", pair{page, r}); got != want {
				t.Errorf("reactions:\n%s\nwant\n%s", got, want)
			}
			for _, by := range []*user.User{nil, ada} {
				on := discussions{At: "/g.x/p_y/-/issues/12", Base: "/g.x/p_y/-/"}
				if may {
					on.Review = odd
				}
				n := noteView{Note: &plan.Note{ID: 77, Author: by, Internal: may, CreatedAt: now.Add(-time.Minute)}, Text: "<p>x</p>", May: may, Reactions: r}
				if got, want := string(w.drawNote(page, on, n)), draw("note", pair{page, pair{on, n}}); got != want {
					t.Errorf("note:\n%s\nwant\n%s", got, want)
				}
				if got, want := string(drawReply(page, on, "6a9c")), draw("replylater", pair{page, pair{on, "6a9c"}}); got != want {
					t.Errorf("reply:\n%s\nwant\n%s", got, want)
				}
			}
		}
	}

	for _, plans := range []bool{false, true} {
		c := columnView{Column: &board.Column{Key: "7"}, Cards: issues, Base: "/g.x/p_y/-/boards/3", Plans: plans}
		if got, want := string(w.drawCards(c)), draw("cards", c); got != want {
			t.Errorf("cards:\n%s\nwant\n%s", got, want)
		}
	}

	for _, by := range []*user.User{nil, ada} {
		full := all
		full.Subscribed, full.TimeEstimate, full.TimeSpent, full.Description = true, 3600, 1800, odd
		signed := &frame{visit: &visit{token: "to-ken"}, User: by}
		reviews := []reviewerView{{Reviewer: merge.Reviewer{User: ada, State: merge.Approved}, Token: "to-ken"}, {Reviewer: merge.Reviewer{User: bob, State: merge.Unreviewed}}}
		for i, d := range []details{
			{Issuable: &plan.Issuable{}, List: "/g/p/-/issues"},
			{Issuable: &plan.Issuable{TimeSpent: 60}, List: "/g/p/-/merge_requests", Merge: true, Plans: true},
			{Issuable: &full, Path: "/g.x/p_y/-/issues/12", Full: "g.x/p_y#12", List: "/g.x/p_y/-/issues", Plans: true, DueDate: "2001-01-01", Late: true, Weight: &weight, Tasks: 1, Edits: true},
			{Issuable: &full, Path: "/g.x/p_y/-/issues/12", Full: "g.x/p_y#12", DueDate: "2030-01-01", Weight: &zero, Todo: 4, Tasks: 3, Done: 2, Text: "<p>x</p>", Participants: []*user.User{ada, bob}},
			{Issuable: &full, Path: "/g.x/p_y/-/merge_requests/12", Full: "g.x/p_y!12", Merge: true, Plans: true, Reviews: reviews, Participants: []*user.User{ada}},
		} {
			if got, want := string(w.drawDetails(signed, d)), draw("details", pair{signed, d}); got != want {
				t.Errorf("details %d:\n%s\nwant\n%s", i, got, want)
			}
			if got, want := string(w.drawDescription(d)), draw("description", d); got != want {
				t.Errorf("description %d:\n%s\nwant\n%s", i, got, want)
			}
			if got, want := string(w.drawTasksForm(signed, d)), draw("taskform", pair{signed, d}); got != want {
				t.Errorf("form of tasks %d:\n%s\nwant\n%s", i, got, want)
			}
		}
	}

	for _, f := range []*frame{
		{visit: page.visit, User: ada}, {visit: page.visit, User: &user.User{ID: 2, Username: "eve", Name: "Eve", Admin: true}, Status: odd},
	} {
		if got, want := string(w.drawAccountMenu(f)), draw("accountmenu", f); got != want {
			t.Errorf("account menu:\n%s\nwant\n%s", got, want)
		}
	}

	page.Page = issuePage{}
	note := func(system string, by *user.User) noteView {
		return noteView{Note: &plan.Note{ID: 78, Author: by, System: system, CreatedAt: now.Add(-time.Minute)}, Text: "<p>x</p>"}
	}
	for _, may := range []bool{false, true} {
		on := discussions{At: "/g.x/p_y/-/issues/12", Base: "/g.x/p_y/-/", Noun: "issue", May: may, Settles: may, Threads: []thread{
			{ID: "a", Notes: []noteView{note("closed", nil)}}, {ID: "b", Notes: []noteView{note("closed", ada)}}, {ID: "c", Notes: []noteView{note("", ada)}},
			{ID: "d", Notes: []noteView{note("", ada), note("", nil)}, Together: true}, {ID: "e", Notes: []noteView{note("", ada)}, Together: true, Settled: &plan.Note{ResolvedBy: ada}},
			{ID: "f", Notes: []noteView{note("", ada)}, Drafts: []draftView{{DraftNote: &merge.DraftNote{ID: 5}, Text: "<p>y</p>"}}},
		}}
		got, err := w.drawThreads(page, on)
		if want := draw("threads", pair{page, on}); err != nil || string(got) != want {
			t.Errorf("threads: %v\n%s\nwant\n%s", err, got, want)
		}
	}

	list := pipelinesPage{ciHead: ciHead{Base: "/g.x/p_y/-", at: now, runs: map[ci.RunRef]bool{{Name: odd}: true}}}
	for i, status := range []flow.Status{flow.Success, flow.Failed, flow.Canceled, flow.Running, flow.Pending} {
		began := now.Add(-time.Minute)
		p := &ci.Pipeline{ID: int64(100 + i), Status: status, Ref: odd, SHA: "0123456789abcdef", Source: ci.FromPush, CreatedAt: began, StartedAt: &began}
		r := &ci.PipelineRow{Pipeline: p, StageRow: []ci.Stage{{Name: odd, Status: status}, {Name: "x", Status: flow.Success, Warnings: true}}}
		switch i {
		case 0:
			p.Name, p.User, p.Warnings = odd, ada, true
		case 1:
			r.Commit = &git.Commit{Title: odd}
		case 2:
			p.YAMLErrors = odd
		case 4:
			p.Ref, p.Tag = "v1", true
		}
		list.Rows = append(list.Rows, r)
	}
	page.Page = list
	if got, want := string(w.drawPipelines(page, list)), draw("pipelinerows", page); got != want {
		t.Errorf("pipelines:\n%s\nwant\n%s", got, want)
	}

	graph := pipelinePage{ciHead: list.ciHead, MayRun: true}
	page.Page = graph
	for i, status := range []flow.Status{flow.Success, flow.Failed, flow.Canceled, flow.Running, flow.Pending, flow.Manual, flow.Scheduled, flow.Skipped} {
		for _, blocked := range []bool{false, true} {
			j := &ci.Job{JobState: ci.JobState{ID: int64(i), Status: status}, Name: odd, AllowFailure: i%2 == 1, Blocked: blocked, Bridge: i == 2 || i == 3}
			switch i {
			case 0, 4:
				j.Needs = []flow.Need{{Name: odd}, {Name: "b"}}
			case 2:
				j.Downstream, j.DownstreamPath = &ci.Pipeline{ID: 4, Status: flow.Failed}, "g.x/p_y"
			}
			one := nodeJob{Job: j, Label: odd}
			if got, want := string(w.drawNode(page, graph, one)), draw("node", pair{page, one}); got != want {
				t.Errorf("node:\n%s\nwant\n%s", got, want)
			}
		}
	}
}
