package web_test

import (
	"fmt"
	"net/url"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
)

// codeRoles are the visitors, the weakest first.
var codeRoles = []string{"nobody", "stranger", "guest", "reporter", "developer", "maintainer", "owner", "root"}

// levels sets the access level of the repository and of the parts that depend on it.
func levels(level string) url.Values {
	return url.Values{"repository_access_level": {level}, "builds_access_level": {level}, "merge_requests_access_level": {level}}
}

// TestCodeRoles visits every page of the code as every role, in projects of each
// visibility. Each page is allowed from some role on; the refusal for weaker roles
// reveals no more than they may know.
func TestCodeRoles(t *testing.T) {
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
		for _, place := range []struct {
			path, visibility, repository string
			read                         string         // the weakest role that may read the code
			below                        map[string]int // the status for weaker roles
		}{
			{"open", "public", "enabled", "nobody", nil},
			{"inner", "internal", "enabled", "stranger", map[string]int{"nobody": 404}},
			{"closed", "private", "enabled", "reporter", map[string]int{"nobody": 404, "stranger": 404, "guest": 403}},
			{"members", "public", "private", "reporter", map[string]int{"nobody": 303, "stranger": 403, "guest": 403}},
		} {
			id := newProject(t, s, owner, place.path, place.visibility)
			s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: owner, Status: 200, Form: levels(place.repository)})
			for name, level := range map[string]int{"guest": 10, "reporter": 20, "developer": 30, "maintainer": 40} {
				s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", id), As: owner, Status: 201,
					Form: url.Values{"user_id": {fmt.Sprint(ids[name])}, "access_level": {fmt.Sprint(level)}}})
			}
			r := s.Repository(t, id, gittest.Commit{Changes: change("a.txt", "one\n", "d/b.txt", "two\n")})
			at := "/owner/" + place.path + "/-/"
			reading, writing := false, false
			for _, role := range codeRoles {
				b := visitors[role]
				reading = reading || role == place.read
				writing = writing || role == "developer"
				for _, page := range []string{"tree/main/d", "blob/main/a.txt", "raw/main/a.txt", "blame/main/a.txt", "commits/main", "commit/main", "branches", "tags", "compare", "compare/main...main", "find_file/main", "find_file/main?format=json", "refs", "graphs", "archive/main/x.zip"} {
					want := 200
					if !reading {
						want = place.below[role]
					}
					if p := b.get(at + page); p.status != want {
						t.Errorf("%s: %s%s: status %d, want %d", role, at, page, p.status, want)
					}
				}
				for _, page := range []string{"edit/main/a.txt", "new/main", "delete/main/a.txt", "edit_files/main/a.txt", "upload/main", "new_dir/main"} {
					want := 200
					switch {
					case role == "nobody":
						want = 303 // the sign-in page, whether or not the object exists
					case !reading:
						want = place.below[role]
					case !writing:
						want = 403
					}
					if p := b.get(at + page); p.status != want {
						t.Errorf("%s: %s%s: status %d, want %d", role, at, page, p.status, want)
					}
				}
				// Requests of users who have no button are refused. Two projects are
				// enough: a public and a private one.
				presses := []struct {
					page string
					form url.Values
				}{
					{"branches", url.Values{"name": {"b-" + role}, "ref": {"main"}}},
					{"branches/delete", url.Values{"name": {"b-" + role}}},
					{"tags", url.Values{"name": {"t-" + role}, "ref": {"main"}}},
					{"tags/delete", url.Values{"name": {"t-" + role}}},
					{"new/main", url.Values{"path": {"f-" + role}, "branch": {"f-" + role}}},
					{"edit/main/a.txt", url.Values{"content": {"x"}, "branch": {"e-" + role}}},
					{"delete/main/a.txt", url.Values{"branch": {"d-" + role}}},
				}
				if place.path != "open" && place.path != "closed" {
					presses = nil
				}
				for i, c := range presses {
					c.form.Set("authenticity_token", tokens[role])
					want := 303
					switch {
					case role == "nobody":
					case !writing && !reading && place.below[role] == 404:
						want = 404
					case !writing:
						want = 403
					}
					if p := b.post(at+c.page, c.form); p.status != want {
						t.Errorf("%s: %s%s: status %d, want %d: %s", role, at, c.page, p.status, want, p.body)
					}
					if made := r.Tip("refs/heads/f-" + role); i == 4 && (made != "") != writing {
						t.Errorf("%s: a file of his is there: %v", role, made != "")
					}
				}
				if !reading {
					continue
				}
				for page, button := range map[string]string{"branches": "New branch", "tags": "New tag", "tree/main": "New file", "blob/main/a.txt": ">Edit<"} {
					p := b.get(at + page).want(200)
					if writing {
						p.want(200, button)
					} else {
						p.not(button)
					}
				}
			}
		}
	})
}

// TestProtectedBranch edits a branch to which only Maintainers can push: the change
// of a Developer goes to a new branch.
func TestProtectedBranch(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	_, owner := s.User(t, "owner")
	dev, _ := s.User(t, "dev")
	id := newProject(t, s, owner, "p", "private")
	s.Repository(t, id, gittest.Commit{Changes: change("a.txt", "one\n")})
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", id), As: owner, Status: 201, Form: url.Values{"user_id": {fmt.Sprint(dev)}, "access_level": {"30"}}})
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/protected_branches", id), As: owner, Status: 201, Form: url.Values{"name": {"main"}}})
	b := newBrowser(t, s).signIn("dev", password)
	const at = "/owner/p/-/edit/main/a.txt"
	b.get("/owner/p/-/branches").want(200, "Protected").not("/-/branches/delete")
	b.get(at).want(200, "is protected", "dev-patch-1")
	b.form(at, at, "content", "x", "branch", "main").want(422, "not allowed", ">\nx</textarea>")
	b.form(at, at, "content", "x", "branch", "dev-patch-1").leads("/owner/p/-/blob/dev-patch-1/a.txt")
	b.get("/owner/p/-/raw/main/a.txt").want(200, "one")
	newBrowser(t, s).signIn("owner", password).get(at).want(200, `value="main"`).not("is protected")
}

// TestKeptPages changes the data of cached pages: the next visitor sees the change
// at once.
func TestKeptPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.User(t, "eve")
		id := newProject(t, s, ada, "p", "public")
		s.Repository(t, id, gittest.Commit{Changes: change("README.md", "# First\n", "d/x", "x\n")})
		guest, eve, owner := newBrowser(t, s), newBrowser(t, s).signIn("eve", password), newBrowser(t, s).signIn("ada", password)
		put := func(name, value string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: ada, Status: 200, Form: url.Values{name: {value}}})
		}
		for range 3 { // cached for each visitor by now
			guest.get("/ada/p").want(200, "First").not("New file", "authenticity_token")
			eve.get("/ada/p").want(200, "First").not("New file", owner.get("/ada/p").want(200, "First", "New file").token())
			guest.get("/ada/p/-/tree/main/d").want(200, ">x<")
		}
		put("description", "Of steam")
		guest.get("/ada/p").want(200, "Of steam")
		put("topics", "brass")
		guest.get("/ada/p").want(200, "brass")
		eve.submit("/ada/p", "/ada/p/-/star").leads("/ada/p")
		eve.get("/ada/p").want(200, "Unstar")
		guest.get("/ada/p").want(200, "</svg> 1</span>")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/branches", id), As: ada, Status: 201, Form: url.Values{"branch": {"topic"}, "ref": {"main"}}})
		guest.get("/ada/p/-/refs?search=top").want(200, "topic")
		owner.form("/ada/p/-/edit/main/README.md", "/ada/p/-/edit/main/README.md", "content", "# Second", "branch", "main").leads("/ada/p/-/blob/main/README.md")
		guest.get("/ada/p").want(200, "Second").not("First")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/archive", id), As: ada, Status: 201})
		owner.get("/ada/p").want(200, "Archived").not("New file")
		put("path", "q")
		if p := guest.get("/ada/p"); p.status != 301 || p.header.Get("Location") != "/ada/q" {
			t.Errorf("the old path: %d to %s", p.status, p.header.Get("Location"))
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: ada, Status: 200, Form: levels("private")})
		guest.get("/ada/q").want(200, "have access to this").not("Second")
		owner.get("/ada/q").want(200, "Second")
		put("visibility", "private")
		guest.get("/ada/q").want(404)
		eve.get("/ada/q").want(404)
	})
}
