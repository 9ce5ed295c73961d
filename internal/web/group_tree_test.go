package web_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestGroupTree shows a group whose projects are in subgroups.
func TestGroupTree(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.User(t, "eve")
		group := func(path, visibility string, parent int64) int64 {
			body := fmt.Sprintf(`{"name":"Group %s","path":%q,"visibility":%q`, path, path, visibility)
			if parent != 0 {
				body += fmt.Sprintf(`,"parent_id":%d`, parent)
			}
			made := s.Check(t, apptest.Call{Do: "POST /groups", As: ada, JSON: body + "}", Status: 201})
			id, err := strconv.ParseInt(regexp.MustCompile(`"id":(\d+)`).FindStringSubmatch(string(made.Body))[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		project := func(name, visibility string, in int64) {
			s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: fmt.Sprintf(`{"name":%q,"visibility":%q,"namespace_id":%d}`, name, visibility, in), Status: 201})
		}
		top := group("top", "public", 0)
		lib := group("lib", "public", top)
		deep := group("deep", "public", lib)
		hidden := group("hidden", "private", top)
		project("Engine", "public", deep)
		project("Wheel", "private", deep)
		project("Secret", "private", hidden)

		guest := newBrowser(t, s)
		page := guest.get("/top").want(200, "Group lib", "Group deep", "Engine", `href="/top/lib/deep/engine"`).not("No subgroups or projects yet", "Wheel", "Group hidden", "Secret")
		counts := regexp.MustCompile(`(\d+)<span class="sr"> (subgroups|projects)`).FindAllStringSubmatch(page.body, -1)
		var shown []string
		for _, c := range counts {
			shown = append(shown, c[1]+" "+c[2])
		}
		if got := strings.Join(shown, ", "); got != "1 subgroups, 0 projects, 0 subgroups, 1 projects" {
			t.Errorf("the tree has the counts %q", got)
		}
		owner := newBrowser(t, s).signIn("ada", password)
		owner.get("/top").want(200, "Wheel", "Group hidden", "Secret")
		newBrowser(t, s).signIn("eve", password).get("/top").want(200, "Engine").not("Secret")
		guest.get("/top?tab=subgroups").want(200, "Group lib")
		guest.get("/top?search=engine").want(200, "Group lib / Group deep / Engine").not("Group hidden")
		guest.get("/top?search=deep").want(200, "Group lib / Group deep<", "1<span class=\"sr\"> projects")
		guest.get("/top?search=secret").want(200, "No results found")

		// A large group is shown level by level, subgroups before projects.
		for i := range 45 {
			group(fmt.Sprintf("s%02d", i), "public", top)
		}
		for i := range 6 {
			group(fmt.Sprintf("n%02d", i), "public", lib)
			project(fmt.Sprintf("P%02d", i), "public", top)
		}
		first := guest.get("/top?sort=name").want(200, "Group lib", "Group s00", "page=2", "7<span class=\"sr\"> subgroups").not("Group n00", "P00")
		seen := strings.Count(first.body, "title=\"Subgroups\"")
		for n := 2; strings.Contains(first.body, fmt.Sprintf("page=%d", n)); n++ {
			first = guest.get(fmt.Sprintf("/top?sort=name&page=%d", n))
			seen += strings.Count(first.body, "title=\"Subgroups\"")
		}
		if seen != 46 {
			t.Errorf("the pages have %d subgroups, want 46", seen)
		}
		first.want(200, "P00", "P05").not("Engine")
	})
}
