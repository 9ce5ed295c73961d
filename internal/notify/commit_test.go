package notify_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
)

// TestCommitComments checks who is notified of comments on a commit: its author,
// users who commented before, mentioned users and watchers, if they can read the
// code.
func TestCommitComments(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		f := newFixture(t, s, m, "owner", "ada", "rev", "guest", "wat")
		f.project = f.do("owner", "POST /projects", `{"name":"Shop","path":"shop","visibility":"private","initialize_with_readme":true}`, 201)
		at := fmt.Sprintf("/projects/%d", f.project)
		for who, level := range map[string]int{"ada": 40, "rev": 30, "guest": 10, "wat": 30} {
			f.member("projects", f.project, who, level)
		}
		f.level("wat", at, `{"level":"watch"}`)
		f.do("ada", "POST "+at+"/repository/files/new.txt", `{"branch":"work","start_branch":"main","content":"x","commit_message":"Add oil"}`, 201)
		var c struct{ ID string }
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/commits/work", As: f.as["ada"], Status: 200}).JSON(t, &c)
		f.settle()
		comments := "POST " + at + "/repository/commits/" + c.ID + "/comments"
		f.do("rev", comments, `{"note":"Why **oil**, @guest?"}`, 201)
		last := f.notified("the first comment", "ada participated, wat watching") // a guest cannot read the code
		if l := last["ada"]; l.Subject != "Shop | Add oil ("+c.ID[:8]+")" || !strings.Contains(l.Text, "rev commented on commit "+c.ID[:8]) ||
			!strings.Contains(l.HTML, "<strong>oil</strong>") || !strings.Contains(l.Text, "/owner/shop/-/commit/"+c.ID+"#note_") || l.Header.Get("X-Svc-Commit-Id") != c.ID {
			t.Errorf("the email: %s %v %s", l.Subject, l.Header, l.Text)
		}
		f.do("owner", comments, `{"note":"Well"}`, 201)
		again := f.notified("another comment", "ada participated, rev participated, wat watching")
		if a, b := last["ada"].Header.Get("In-Reply-To"), again["ada"].Header.Get("In-Reply-To"); a == "" || a != b {
			t.Errorf("the emails are of threads %q and %q", a, b)
		}
	})
}
