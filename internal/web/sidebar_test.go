package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
)

var (
	sideBarOf   = regexp.MustCompile(`(?s)<nav class="nav".*?</nav>`)
	linksOf     = regexp.MustCompile(`<a [^>]*?href="([^"]+)"([^>]*)>`)
	currentLink = regexp.MustCompile(`<a [^>]*?href="([^"]+)" aria-current="page"`)
)

// links returns the links of the sidebar of a page.
func (p answer) links() []string {
	p.t.Helper()
	bar := sideBarOf.FindString(p.body)
	if bar == "" {
		p.t.Fatalf("the page has no sidebar: %s", p.body)
	}
	var list []string
	for _, m := range linksOf.FindAllStringSubmatch(bar, -1) {
		list = append(list, html.UnescapeString(m[1]))
	}
	return list
}

// current returns the link of the sidebar that is marked as the current page.
func (p answer) current() string {
	p.t.Helper()
	list := currentLink.FindAllStringSubmatch(sideBarOf.FindString(p.body), -1)
	switch len(list) {
	case 0:
		return ""
	case 1:
		return html.UnescapeString(list[0][1])
	}
	p.t.Errorf("%d links are marked as current", len(list))
	return ""
}

// TestSideBar follows every link of every sidebar as every role: each opens a page
// that the user may see, and which is marked as the current one.
func TestSideBar(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, owner := s.User(t, "owner")
		var group struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: owner, JSON: `{"name":"g","path":"g","visibility":"public"}`, Status: 201}).JSON(t, &group)
		var project struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: owner, JSON: fmt.Sprintf(`{"name":"p","namespace_id":%d,"visibility":"public"}`, group.ID), Status: 201}).JSON(t, &project)
		s.Repository(t, project.ID, gittest.Commit{Changes: change("a.txt", "one\n")})
		visitors := map[string]*browser{"nobody": newBrowser(t, s), "root": newBrowser(t, s).signIn("root", apptest.RootPassword), "owner": newBrowser(t, s).signIn("owner", password)}
		for name, level := range map[string]int{"stranger": 0, "guest": 10, "reporter": 20, "developer": 30, "maintainer": 40} {
			id, _ := s.User(t, name)
			visitors[name] = newBrowser(t, s).signIn(name, password)
			if level > 0 {
				s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", group.ID), As: owner, Status: 201,
					Form: url.Values{"user_id": {fmt.Sprint(id)}, "access_level": {fmt.Sprint(level)}}})
			}
		}
		counts := map[string]int{}
		for role, b := range visitors {
			for _, start := range []string{"/g/p", "/g", "/-/user_settings/profile", "/admin"} {
				if (role == "nobody" && strings.HasPrefix(start, "/-/")) || (role != "root" && start == "/admin") {
					continue
				}
				list := b.get(start).want(200).links()
				counts[role+start] = len(list)
				for _, to := range list {
					page := b.get(to)
					for n := 0; page.status == http.StatusSeeOther && n < 3; n++ {
						to = page.header.Get("Location")
						page = b.get(to)
					}
					if page.status != 200 {
						t.Errorf("%s: %s answers %d", role, to, page.status)
						continue
					}
					if got := page.current(); got != to && got+"/home" != to && !strings.HasPrefix(to, got+"/") {
						t.Errorf("%s: the current link of %s is %q", role, to, got)
					}
				}
			}
		}
		t.Log(counts)
		if counts["nobody/g/p"] >= counts["developer/g/p"] || counts["developer/g/p"] >= counts["maintainer/g/p"] {
			t.Error("the sidebar does not depend on the role")
		}
		// Pages below an item belong to it.
		b := visitors["owner"]
		for page, want := range map[string]string{
			"/g/p/-/blob/main/a.txt": "/g/p/-/tree/main", "/g/p/-/commit/main": "/g/p/-/commits/main", "/g/p/-/issues/new": "/g/p/-/issues",
			"/g/p/-/pipelines/new": "/g/p/-/pipelines", "/g/p/-/pipelines/charts": "/g/p/-/pipelines/charts", "/g": "/g", "/admin/users/new": "",
		} {
			if strings.HasPrefix(page, "/admin") {
				b, want = visitors["root"], "/admin/users"
			}
			if got := b.get(page).want(200).current(); got != want {
				t.Errorf("the current link of %s is %q, want %q", page, got, want)
			}
			b = visitors["owner"]
		}
		// A group that was closed stays closed, unless it has the current page.
		u, _ := url.Parse(s.URL)
		b.client.Jar.SetCookies(u, []*http.Cookie{{Name: "nav", Value: "plan0.manage1.code0"}})
		b.get("/g/p/-/branches").want(200, `data-nav="plan">`, `data-nav="manage" open>`, `data-nav="code" open>`)
		// A missing page of a project that the visitor cannot see has no sidebar.
		visitors["nobody"].get("/g/none/-/issues").want(404).not(`<nav class="nav"`)
		visitors["stranger"].get("/admin").want(404).not(`<nav class="nav"`)
	})
}

// TestShellWeight checks that a page without content transfers at most 40 KiB on the
// first visit and 15 KiB afterwards, when the browser has the assets.
func TestShellWeight(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	_, ada := s.User(t, "ada")
	id := newProject(t, s, ada, "p", "public")
	s.Repository(t, id, gittest.Commit{Changes: change("a.txt", "one\n")})
	b := newBrowser(t, s).signIn("ada", password)
	sent := func(path string) answer {
		r, err := http.NewRequestWithContext(t.Context(), "GET", b.address(path), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", "gzip")
		return b.send(r)
	}
	for _, path := range []string{"/", "/ada/p", "/ada/p/-/issues", "/ada/p/-/settings/general"} {
		warm := len(sent(path).want(200).body)
		cold := warm
		for _, a := range regexp.MustCompile(` (?:src|href)="(/assets/[^"#]+)`).FindAllStringSubmatch(b.get(path).want(200).body, -1) {
			if !strings.Contains(a[1], "/icons-") {
				cold += len(sent(a[1]).want(200).body)
			}
		}
		cold += len(sent(regexp.MustCompile(`/assets/icons-[^"#]+`).FindString(b.get(path).body)).want(200).body)
		t.Logf("%s: %.1f KiB cold, %.1f KiB warm", path, float64(cold)/1024, float64(warm)/1024)
		if cold > 40<<10 || warm > 15<<10 {
			t.Errorf("%s has %d bytes cold and %d warm", path, cold, warm)
		}
	}
}
