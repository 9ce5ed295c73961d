package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

func TestMarkdown(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		_, dan := s.User(t, "dan")
		top := group(t, s, alice, "top", `,"visibility":"public"`)
		id := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, top))
		hidden := newProject(t, s, alice, "hidden", `,"visibility":"private"`)
		enlist(t, s, id, bobID, project.Guest)
		file := commitFile(id, "main", "a", "x")
		file.As = alice
		s.Check(t, file)
		var commits []struct{ ID string }
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/repository/commits", id), Status: 200}).JSON(t, &commits)
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: alice, JSON: `{"title":"An <open> one","labels":"two words"}`, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: alice, JSON: `{"title":"SECRET","confidential":true}`, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/issues", hidden), As: alice, JSON: `{"title":"SECRET"}`, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/milestones", id), As: alice, JSON: `{"title":"v1"}`, Status: 201},
		})
		text := "#1 #2 #9 alice/hidden#1 top/p#1 p#1 hidden#1 @bob @top @nobody ~\"two words\" ~none %v1 !1 " + commits[0].ID[:10] + " ![x](/uploads/0/x.png) <script>"
		render := func(as, text, in string) string {
			t.Helper()
			var out struct{ HTML string }
			s.Check(t, apptest.Call{Do: "POST /markdown", As: as, JSON: fmt.Sprintf(`{"text":%q,"gfm":true%s}`, text, in), Status: 201}).JSON(t, &out)
			return out.HTML
		}
		here := fmt.Sprintf(`,"project":"%d"`, id)
		got := render(bob, text, here)
		for _, want := range []string{
			`/top/p/-/issues/1" class="gfm gfm-issue" title="An &lt;open&gt; one">#1</a>`, `>top/p#1</a>`, `/top/p/-/issues/1" class="gfm gfm-issue" title="An &lt;open&gt; one">p#1</a> hidden#1 `, `/bob" class="gfm gfm-user" title="bob">@bob</a>`, `/groups/top" class="gfm gfm-user"`,
			`/top/p/-/issues?label_name[]=two+words" class="gfm gfm-label chip"><svg viewBox="0 0 8 8" aria-hidden="true"><circle cx="4" cy="4" r="4" fill="`, `"/></svg>two words</a>`, `/top/p/-/milestones/1" class="gfm gfm-milestone"`,
			`/top/p/-/commit/` + commits[0].ID + `" class="gfm gfm-commit" title="m">` + commits[0].ID[:8] + `</a>`, " #2 #9 alice/hidden#1 ", " @nobody ", "~none", "!1",
			fmt.Sprintf(`src="/-/project/%d/uploads/0/x.png"`, id),
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in %s", want, got)
			}
		}
		if strings.Contains(got, "SECRET") || strings.Contains(got, "<script") {
			t.Errorf("tells too much: %s", got)
		}
		if n := strings.Count(render(alice, text, here), "SECRET"); n != 2 {
			t.Errorf("alice sees %d secrets", n)
		}
		if got := render(dan, "#1 p#1 top/p#1", ""); strings.Count(got, "<a ") != 1 {
			t.Errorf("outside of a project: %s", got)
		}
		s.Table(t, []apptest.Call{
			{Name: "a project that is not seen", Do: "POST /markdown", As: dan, JSON: `{"text":"x","project":"alice/hidden"}`, Status: 404},
			{Name: "as it was written", Do: "POST /markdown", As: dan, JSON: `{"text":"**a** <b>\n#1","gfm":false}`, Status: 201, Want: `{"html":"<p>**a** &lt;b&gt;<br>\n#1</p>"}`},
			{Name: "anonymous", Do: "POST /markdown", JSON: `{"text":"x"}`, Status: 401},
		})
	})
}
