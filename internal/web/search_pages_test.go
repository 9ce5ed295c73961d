package web_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestSearchPages searches from the header, without JavaScript.
func TestSearchPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		_, _ = s.User(t, "eve")
		b, other := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password)
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: `{"name":"walrus","description":"A <b>Quokka</b> & friends"}`, Status: 201}).JSON(t, &made)
		s.Repository(t, made.ID, gittest.Commit{Message: "Feed the quokka", Changes: []gittest.Change{{Path: "a <b>.txt", Content: "one\n<i>Quokka</i>\n"}}})
		at := fmt.Sprintf("/projects/%d", made.ID)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/issues", As: ada, JSON: `{"title":"Quokka <script>","description":"x"}`, Status: 201},
			{Do: "POST " + at + "/issues/1/notes", As: ada, JSON: `{"body":"a quokka comment"}`, Status: 201},
			{Do: "POST " + at + "/milestones", As: ada, JSON: `{"title":"Quokka 1.0"}`, Status: 201},
			{Do: "POST " + at + "/wikis", As: ada, JSON: `{"title":"Home","content":"the quokka page"}`, Status: 201},
			{Do: "POST /snippets", As: ada, JSON: `{"title":"Quokka snippet","file_name":"a","content":"x","visibility":"private"}`, Status: 201},
		})
		in := fmt.Sprintf("/search?project_id=%d&search=quokka", made.ID)
		b.get("/").want(200, `action="/search"`, `/search/autocomplete?term=`)
		b.get("/ada/walrus").want(200, fmt.Sprintf(`name="project_id" value="%d"`, made.ID))
		b.get("/search").want(200, "Find projects, code, issues", `name="search"`)
		b.get("/search?search=quokka").want(200, `href="/ada/walrus"`, `<mark>Quokka</mark>`, "scope=issues", `<span class="count">1</span>`, "Comments").not("<script>", "<b>Quokka")
		b.get("/search?search=QUOKKA&scope=issues").want(200, `<mark>Quokka</mark> &lt;script&gt;`, "/ada/walrus/-/issues/1")
		b.get("/search?search=quokka&scope=notes").want(200, "Comment on ada/walrus#1", "/ada/walrus/-/issues/1#note_", "<mark>quokka</mark>")
		b.get("/search?search=quokka&scope=milestones").want(200, "/ada/walrus/-/milestones/1")
		b.get("/search?search=quokka&scope=snippet_titles").want(200, "<mark>Quokka</mark> snippet")
		b.get("/search?search=ada&scope=users").want(200, `href="/ada"`)
		b.get(in+"&scope=blobs").want(200, "a%20%3Cb%3E.txt#L2", "&lt;i&gt;<mark>Quokka</mark>", "Everything").not("<i>")
		b.get(in+"&scope=blobs&ref=none").want(200, "does not exist")
		if err := s.Code.Rebuild(t.Context(), actor.Actor{ID: 1, Admin: true}); err != nil {
			t.Fatal(err)
		}
		s.Settled(t)
		b.get("/search?search=quokka&scope=blobs").want(200, "a%20%3Cb%3E.txt#L2", "&lt;i&gt;<mark>Quokka</mark>", "ada/walrus", "lang:").not("<i>")
		other.get("/search?search=quokka&scope=blobs").want(200, "No results found").not("walrus")
		b.get(in+"&scope=commits").want(200, "/-/commit/", "Feed the <mark>quokka</mark>")
		b.get(in+"&scope=wiki_blobs").want(200, "/ada/walrus/-/wikis/Home")
		b.get("/search?search=quo.ka&scope=blobs").want(200, "No results found", `name="regex"`, `name="exclude_forks"`, `name="include_archived"`).not(`name="state"`)
		b.get("/search?search=quo.ka&scope=blobs&regex=true").want(200, "a%20%3Cb%3E.txt#L2", "<mark>Quokka</mark>", `name="regex" value="true" checked`)
		b.get(in+"&scope=blobs&sort=asc&state=closed").want(200, `name="ref"`, `type="hidden" name="sort" value="asc"`, `type="hidden" name="state" value="closed"`).not(`name="exclude_forks"`)
		b.get("/search?search=quokka&scope=issues&state=closed").want(200, "No results found", `<option value="closed" selected>`, `name="confidential"`, `name="sort"`)
		b.get("/search?search=quokka&scope=issues&state=opened&confidential=false").want(200, "/ada/walrus/-/issues/1")
		b.get("/search?search=quokka&scope=issues&confidential=true").want(200, "No results found")
		b.get("/search?search=quokka&scope=issues&state=nonsense").want(200, "/ada/walrus/-/issues/1")
		b.get("/search?search=nothing-like-this").want(200, "No results found")
		b.get("/search?search="+strings.Repeat("x", 1001)).want(200, "too long")
		b.get("/search?search=x&scope=none&page=9").want(200)
		b.get("/search?search=x&project_id=99999").want(404)
		b.get("/search?search=x&group_id=99999").want(404)
		other.get(in).want(404)
		other.get("/search?search=quokka").want(200, "No results found").not("walrus")
		other.get("/search/autocomplete?term=quokka").want(200).not("walrus")
		other.get(fmt.Sprintf("/search/autocomplete?term=quokka&project_id=%d", made.ID)).want(200).not("Quokka")
		b.get("/search/autocomplete?term=quokka").want(200, `"category":"Projects","label":"walrus"`, `"url":"/ada/walrus/-/issues/1"`)
		b.get("/search/autocomplete?term=q").want(200, "[]")
	})
}
