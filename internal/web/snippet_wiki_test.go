package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// evil is markup that must not run on a page of another user.
const evil = `<script>alert(1)</script><img src=x onerror=alert(1)>`

// harmless checks that a page has no markup of users.
func (p answer) harmless() answer {
	p.t.Helper()
	for _, bad := range []string{"<script>alert", "<img src=x", "onerror=alert(1)>", `="javascript:alert`} {
		if strings.Contains(p.body, bad) {
			p.t.Errorf("the page has %q:\n%s", bad, p.body)
		}
	}
	return p
}

func TestSnippetPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "ada")
		newProject(t, s, token, "p", "public")
		ada, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s)
		ada.get("/dashboard/snippets").want(200, "No snippets yet", "New snippet")
		guest.get("/explore/snippets").want(200, "No snippets yet")
		for _, base := range []string{"/-/snippets", "/ada/p/-/snippets"} {
			at := ada.submit(base+"/new", base, "title", "A "+evil, "description", "**bold** [x](javascript:alert(1)) "+evil, "visibility", "public",
				"was", "", "path", evil+".go", "content", "package x // "+evil+"\r\n", "was", "", "path", "", "content", "two", "was", "", "path", "", "content", "").want(303).header.Get("Location")
			if !strings.HasPrefix(at, base+"/") {
				t.Fatalf("leads to %q", at)
			}
			guest.get(at).want(200, "A &lt;script&gt;", "<strong>bold</strong>", "package", `id="L1-0"`, `id="L1-1"`, "snippetfile2.txt", strings.TrimSuffix(strings.Replace(at, "/-/", "/", 1), "")+".git").harmless()
			ada.submit(base+"/new", base, "title", "x", "description", "**soon** "+evil, "visibility", "public", "path", "a", "content", "kept", "preview", "1").want(200, "<strong>soon</strong>", "kept").harmless()
			ada.submit(at+"/edit", at, "title", "x", "description", "**later**", "visibility", "public", "preview", "1").want(200, "<strong>later</strong>")
			token := ada.get(base + "/new").token()
			place, _, _ := strings.Cut(base, "snippets")
			ada.post(place+"preview_markdown", url.Values{"authenticity_token": {token}, "text": {"**now** " + evil}}).want(200, "<strong>now</strong>").harmless()
			guest.get(base + "/raw").want(404)
			raw := guest.get(at+"/raw").want(200, "package x // "+evil+"\n")
			if kind, rules := raw.header.Get("Content-Type"), raw.header.Get("Content-Security-Policy"); kind != "text/plain; charset=utf-8" || !strings.Contains(rules, "sandbox") {
				t.Errorf("raw is %q under %q", kind, rules)
			}
			guest.get(at+"/raw/main/snippetfile2.txt").want(200, "two")
			guest.get(at + "/raw/main/none").want(404)
			ada.get(at+"/edit").want(200, "Clear the name of a file", `value="snippetfile2.txt"`).harmless()
			ada.submit(at+"/edit", at, "title", "", "visibility", "public", "was", "snippetfile2.txt", "path", "b", "content", "changed").want(422, "can&#39;t be blank", "changed")
			edited := ada.get(at + "/edit").want(200)
			version := regexp.MustCompile(`name="version" value="(\w+)"`).FindStringSubmatch(edited.body)[1]
			ada.submit(at+"/edit", at, "title", "A", "visibility", "public", "version", version, "was", "snippetfile2.txt", "path", "snippetfile2.txt", "content", "first").leads(at)
			late := []string{"title", "A", "visibility", "public", "was", "snippetfile2.txt", "path", "snippetfile2.txt", "content", "late", "version"}
			again := ada.submit(at+"/edit", at, append(late, version)...).want(422, "has changed since you started editing", "late")
			guest.get(at+"/raw/main/snippetfile2.txt").want(200, "first")
			version = regexp.MustCompile(`name="version" value="(\w+)"`).FindStringSubmatch(again.body)[1]
			ada.submit(at+"/edit", at, append(late, version)...).leads(at)
			guest.get(at+"/raw/main/snippetfile2.txt").want(200, "late")
			ada.submit(at+"/edit", at, "title", "B", "description", "", "visibility", "internal", "was", evil+".go", "path", "", "content", "", "was", "snippetfile2.txt", "path", "b.txt", "content", "changed").leads(at)
			ada.get(at).want(200, "B", "b.txt", "changed", "Internal")
			guest.get(at).want(404)
			ada.submit(at, at+"/delete").want(303)
			ada.get(at).want(404)
		}
		ada.get("/ada/p/-/snippets/new").want(200, `data-editor="/ada/p/-/" data-uploads`)
		ada.get("/-/snippets/new").want(200, `data-editor="/-/"`).not("data-uploads") // no place stores files for personal snippets
		ada.submit("/-/snippets/new", "/-/snippets", "title", "x", "visibility", "public", "path", "../x", "content", "x").want(422, "path of a file is invalid")
		ada.submit("/-/snippets/new", "/-/snippets", "title", "x", "visibility", "public").want(422)
		inside := ada.submit("/ada/p/-/snippets/new", "/ada/p/-/snippets", "title", "in", "visibility", "public", "path", "a", "content", "x").want(303).header.Get("Location")
		guest.get(strings.TrimPrefix(inside, "/ada/p")).leads(inside)
		guest.get("/explore/snippets?search=IN").want(200, "in", "p</a>")
		guest.get("/ada/p/-/snippets").want(200, `href="/ada/p/-/snippets"`, "in")

		// Comments.
		guest.get(inside).want(200, "Sign in</a> to comment")
		s.User(t, "eve")
		eve := newBrowser(t, s).signIn("eve", password)
		eve.submit(inside, inside+"/notes", "note", "").want(422, "can&#39;t be blank", `href="/ada/p/-/snippets" aria-current`)
		eve.submit(inside, inside+"/notes", "note", "*hello* "+evil, "preview", "1").want(200, "<em>hello</em>").harmless()
		note := regexp.MustCompile(`^` + inside + `#note_(\d+)$`).FindStringSubmatch(eve.submit(inside, inside+"/notes", "note", "*hello* "+evil, "event", "close").header.Get("Location"))[1]
		guest.get(inside).want(200, "<em>hello</em>").not("/notes/"+note, "Internal:").harmless()
		thread := regexp.MustCompile(`/discussions/(\w+)"`).FindStringSubmatch(eve.get(inside).want(200, "/notes/"+note+"/edit").body)[1]
		ada.submit(inside, inside+"/discussions/"+thread, "note", "a reply", "resolve", "1").want(303)
		ada.get(inside).want(200, "a reply", "Thread", "2 comments").not("esolve")
		eve.submit(inside, inside+"/notes/"+note, "note", "changed").leads(inside + "#note_" + note)
		guest.get("/ada/p/-/activity").want(200, inside+"#note_"+note, "changed")
		eve.submit(inside, inside+"/notes/"+note+"/delete").leads(inside)
		guest.get(inside).want(200, "a reply").not("changed")
	})
}

func TestWikiPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "ada")
		newProject(t, s, token, "p", "public")
		s.Check(t, apptest.Call{Do: "POST /groups", As: token, Status: 201, Form: url.Values{"name": {"g"}, "path": {"g"}, "visibility": {"public"}}})
		ada, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s)
		for base, git := range map[string]string{"/ada/p/-/wikis": "/ada/p.wiki.git", "/groups/g/-/wikis": "/g.wiki.git"} {
			guest.get(base).leads(base + "/home")
			guest.get(base+"/home").want(200, "The wiki is empty")
			ada.get(base+"/home").want(200, "Create your first page")
			ada.submit(base+"/new", base, "title", "home", "content", "# Hello\r\n\r\n[a](docs/A%20B) [b](javascript:alert(1))\r\n\r\n"+evil, "format", "markdown").leads(base + "/home")
			guest.get(base+"/home").want(200, `<h1 id="user-content-hello">Hello</h1>`, base+"/docs/A%20B", git, "All pages").harmless()
			ada.submit(base+"/new", base, "title", "docs/A <b>", "content", evil, "format", "asciidoc").want(303)
			guest.get(base+"/docs/A-%3Cb%3E").want(200, "&lt;script&gt;alert(1)").harmless()
			ada.submit(base+"/new", base, "title", "_sidebar", "content", "- [Home](/home)\n"+evil, "format", "markdown").want(303)
			guest.get(base+"/home").want(200, `<a href="`+base+`/home" rel="nofollow">Home</a>`).harmless()
			ada.get(base+"/none").want(404, "This page does not exist", "Create page")
			guest.get(base + "/none").want(404)
			ada.submit(base+"/new", base, "title", "x", "content", "*some*"+evil, "format", "markdown", "do", "preview").want(200, "<em>some</em>", "Nothing is saved yet").harmless()
			guest.get(base + "/x").want(404)
			ada.submit(base+"/new", base, "title", "HOME", "content", "x", "format", "markdown").want(422, "Duplicate page")
			version := regexp.MustCompile(`name="version" value="(\w+)"`).FindStringSubmatch(ada.get(base+"/home/edit").want(200, "# Hello").body)[1]
			ada.submit(base+"/home/edit", base+"/home", "title", "home", "content", "# Second", "format", "markdown", "version", version, "message", "Say it "+evil).leads(base + "/home")
			ada.submit(base+"/home/edit", base+"/home", "title", "home", "content", "# Third", "format", "markdown", "version", version).want(422, "has changed since you started editing it", "# Third")
			guest.get(base+"/home/history").want(200, "Say it &lt;script&gt;", "ada created page: home").harmless()
			last := regexp.MustCompile(`diff\?version_id=(\w+)`).FindStringSubmatch(guest.get(base + "/home/history").body)[1]
			guest.get(base+"/home/diff?version_id="+last).want(200, "Second", "Hello", `class="diff`).harmless()
			guest.get(base+"/home?version_id="+version).want(200, "This is an old version", "Hello")
			guest.get(base + "/home?version_id=none").want(404)
			guest.get(base + "/home/diff?version_id=none").want(404)
			guest.get(base+"/pages").want(200, "_sidebar.md", "docs/A-&lt;b&gt;.asciidoc").harmless()
			guest.get(base + "/uploads/1/x.png").want(404)
			ada.submit(base+"/home", base+"/home/delete", "version", version).want(303)
			ada.get(base+"/home").want(200, "changed since")
			ada.submit(base+"/home", base+"/home/delete").leads(base + "/pages")
			guest.get(base + "/home/history").want(404)
		}
	})
}

// TestSnippetAndWikiRoles visits the pages of snippets and wikis as every role, in
// projects of each visibility, with these parts for members only or not.
func TestSnippetAndWikiRoles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, owner := s.User(t, "owner")
		visitors := map[string]*browser{"nobody": newBrowser(t, s), "root": newBrowser(t, s).signIn("root", apptest.RootPassword)}
		ids := map[string]int64{}
		for _, name := range []string{"stranger", "guest", "reporter", "developer", "maintainer"} {
			ids[name], _ = s.User(t, name)
			visitors[name] = newBrowser(t, s).signIn(name, password)
		}
		visitors["owner"] = newBrowser(t, s).signIn("owner", password)
		tokens := map[string]string{}
		for role, b := range visitors {
			tokens[role] = b.get(map[bool]string{true: "/users/sign_in", false: "/"}[role == "nobody"]).token()
		}
		rank := map[string]int{}
		for i, role := range codeRoles {
			rank[role] = i
		}
		for _, place := range []struct{ path, visibility, part, read string }{
			{"open", "public", "enabled", "nobody"}, {"inner", "internal", "enabled", "stranger"}, {"closed", "private", "enabled", "guest"}, {"members", "public", "private", "guest"},
			{"off", "public", "disabled", "never"},
		} {
			id := newProject(t, s, owner, place.path, place.visibility)
			for name, level := range map[string]int{"guest": 10, "reporter": 20, "developer": 30, "maintainer": 40} {
				s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", id), As: owner, Status: 201, Form: url.Values{"user_id": {fmt.Sprint(ids[name])}, "access_level": {fmt.Sprint(level)}}})
			}
			var made struct{ ID int64 }
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/snippets", id), As: owner, Status: 201, JSON: `{"title":"t","content":"x","visibility":"public"}`}).JSON(t, &made)
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/wikis", id), As: owner, Status: 201, JSON: `{"title":"home","content":"x"}`})
			s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: owner, Status: 200, Form: url.Values{"wiki_access_level": {place.part}, "snippets_access_level": {place.part}}})
			at := "/owner/" + place.path + "/-/"
			one := fmt.Sprintf("%ssnippets/%d", at, made.ID)
			least := 99
			if place.read != "never" {
				least = rank[place.read]
			}
			for _, c := range []struct {
				do, page string
				need     string // the role that is required, of those who can read
				ok       int
			}{
				{"GET", at + "snippets", "nobody", 200}, {"GET", one, "nobody", 200}, {"GET", one + "/raw", "nobody", 200}, {"GET", one + "/raw/main/snippetfile1.txt", "nobody", 200},
				{"GET", at + "snippets/new", "reporter", 200}, {"GET", one + "/edit", "maintainer", 200},
				{"POST", at + "snippets", "reporter", 422}, {"POST", one, "maintainer", 422}, {"POST", one + "/notes", "stranger", 422},
				{"GET", at + "wikis/home", "nobody", 200}, {"GET", at + "wikis/pages", "nobody", 200}, {"GET", at + "wikis/home/history", "nobody", 200},
				{"GET", at + "wikis/new", "developer", 200}, {"GET", at + "wikis/home/edit", "developer", 200},
				{"POST", at + "wikis", "developer", 422}, {"POST", at + "wikis/home", "developer", 422}, {"POST", at + "wikis/none/delete", "developer", 404},
			} {
				for role, b := range visitors {
					want := c.ok
					edit := c.need != "nobody"
					switch {
					case role == "nobody" && edit:
						want = 303
					case rank[role] < least:
						want = 404
					case rank[role] < rank[c.need]:
						want = 403
					}
					var got int
					if c.do == "GET" {
						got = b.get(c.page).status
					} else {
						got = b.post(c.page, url.Values{"authenticity_token": {tokens[role]}}).status
					}
					if got != want {
						t.Errorf("%s: %s %s: status %d, want %d", role, c.do, c.page, got, want)
					}
				}
			}
		}
	})
}
