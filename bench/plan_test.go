package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"svc/internal/actor"
	"svc/internal/app"
	"svc/internal/board"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
)

// plannedIssues is the number of issues of the measured project.
const plannedIssues = 1000

// BenchmarkPlan compares how many planning pages per second the server renders with
// the rate of the cheapest API request, for an anonymous user, and measures the size
// of a board with a thousand issues.
func BenchmarkPlan(b *testing.B) {
	t := &table{}
	s := serve(b, "")
	token := newToken(b, s, "somebody")
	board := fillPlan(b, s)
	version := newLeanLoad(b, "http://"+s.Addr()+"/api/v4/version", token)
	for _, r := range []struct {
		name, path string
		least      float64 // minimum ratio to GET /version
		most       int     // maximum size in bytes; 0 means no limit
	}{
		{"list of issues", "/root/engine/-/issues", 0.01, 50 << 10},
		{"issue", "/root/engine/-/issues/1", 0, 50 << 10},
		{"board of 1,000 issues", fmt.Sprintf("/root/engine/-/boards/%d", board), 0, 300 << 10},
	} {
		b.Run(r.name, func(b *testing.B) {
			address := "http://" + s.Addr() + r.path
			var body bytes.Buffer
			if _, err := get(http.DefaultClient, address, "", &body); err != nil {
				b.Fatal(err)
			}
			page := newLeanLoad(b, address, "")
			page.run(b, requestRound)
			version.run(b, requestRound)
			var ratios, pages, answers []float64
			for b.Loop() {
				for range requestRounds {
					pages, answers = append(pages, page.run(b, requestRound)), append(answers, version.run(b, requestRound))
					ratios = append(ratios, pages[len(pages)-1]/answers[len(answers)-1])
				}
			}
			t.add(b, figure{
				name: r.name, measured: median(ratios), limit: r.least, atLeast: true, informational: r.least == 0, unit: "of GET /version",
				note: fmt.Sprintf("%.0f of %.0f requests/s", median(pages), median(answers)),
			})
			t.add(b, figure{name: r.name + ", size", measured: float64(body.Len()) / 1024, limit: float64(r.most) / 1024, unit: "KiB"})
		})
	}
	t.finish(b)
}

// fillPlan creates a public project with issues, and a board that shows them in four
// lists; it returns the board.
func fillPlan(b *testing.B, s *app.Server) int64 {
	b.Helper()
	root, err := s.Users.Find(b.Context(), actor.System(), "root")
	if err != nil {
		b.Fatal(err)
	}
	by := actor.Actor{ID: root.ID, Username: root.Username, Name: root.Name, Email: root.Email, Admin: true}
	public := project.Public
	p, err := s.Repos.Create(b.Context(), by, project.NewProject{Name: "Engine", Path: "engine", Visibility: &public}, repo.FirstFiles{})
	if err != nil {
		b.Fatal(err)
	}
	in := project.Place{Ref: project.RefTo(p.ID)}
	name := "Work"
	board, err := s.Boards.Create(b.Context(), by, in, board.Fields{Name: &name})
	if err != nil {
		b.Fatal(err)
	}
	var labels []string
	for i := range 4 {
		name, color := fmt.Sprintf("Step %d of the work", i+1), "#428bca"
		l, err := s.Plan.CreateLabel(b.Context(), by, in, plan.LabelFields{Name: &name, Color: &color})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Boards.AddList(b.Context(), by, in, board.ID, &l.ID, nil, nil); err != nil {
			b.Fatal(err)
		}
		labels = append(labels, name)
	}
	for i := range plannedIssues {
		title, text, day := fmt.Sprintf("Make part %d of the gear train turn without a sound", i+1), "A *text* with a list:\n\n- [ ] one\n- [x] two\n", "2030-01-01"
		n := plan.NewIssue{IssueFields: plan.IssueFields{Fields: plan.Fields{Title: &title, Description: &text, Assignees: &[]int64{root.ID}}, DueDate: &day}}
		if i%6 < 4 {
			n.Labels.Names = &[]string{labels[i%6], labels[(i+1)%4]}
		}
		made, err := s.Plan.CreateIssue(b.Context(), by, in.Ref, n)
		if err != nil {
			b.Fatal(err)
		}
		if i%6 == 5 {
			if _, err := s.Plan.UpdateIssue(b.Context(), by, in.Ref, made.IID, plan.IssueFields{Fields: plan.Fields{Event: "close"}}); err != nil {
				b.Fatal(err)
			}
		}
	}
	return board.ID
}
