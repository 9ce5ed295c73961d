package web_test

import (
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestWritingPages checks suggestions of the editor, description templates, quick
// actions, time tracking and cross references on pages.
func TestWritingPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.User(t, "eve")
		s.User(t, "evelyn")
		call := func(do string, form url.Values) {
			t.Helper()
			s.Check(t, apptest.Call{Do: do, As: ada, Form: form, Status: 201})
		}
		const in = "/projects/ada%2Fp"
		call("POST /projects", url.Values{"path": {"p"}, "visibility": {"private"}})
		call("POST "+in+"/labels", url.Values{"name": {"to do"}, "color": {"#ff0000"}})
		call("POST "+in+"/milestones", url.Values{"title": {"1.0"}})
		call("POST "+in+"/issues", url.Values{"title": {"Wheel"}})
		call("POST "+in+"/issues", url.Values{"title": {"Axle"}, "description": {"for #1"}})
		for _, name := range []string{"Bug", "Default"} {
			call("POST "+in+"/repository/files/.gitlab%2Fissue_templates%2F"+name+".md", url.Values{"branch": {"main"}, "content": {"Describe the " + name}, "commit_message": {"add"}})
		}
		b, eve := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password)

		// Suggestions.
		const from = "/ada/p/-/autocomplete_sources/"
		b.get(from+"members?search=ad").want(200, `"value":"@ada"`)
		b.get(from+"members?search=eve").want(200, `"value":"@eve"`, `"value":"@evelyn"`)
		call("POST "+in+"/members", url.Values{"username": {"evelyn"}, "access_level": {"20"}})
		if body := b.get(from + "members?search=EVE").body; !strings.HasPrefix(body, `[{"value":"@eve",`) { // an exact match is first, before members
			t.Errorf("the username itself is not the first suggestion: %s", body)
		}
		b.get(from+"issues?search=axl").want(200, `"value":"#2","label":"Axle"`).not("Wheel")
		b.get(from+"issues?search=1").want(200, `"value":"#1"`).not("Axle")
		b.get(from+"issues").want(200, "Wheel", "Axle")
		b.get(from+"labels?search=to").want(200, `"value":"~\"to do\""`, "#ff0000")
		b.get(from+"milestones").want(200, `"value":"%1.0"`)
		b.get(from+"emojis?search=rocke").want(200, ":rocket:")
		b.get(from+"merge_requests").want(200, "[]")
		b.get(from+"snippets").want(200, "[]")
		b.get(from+"commands?on=issues&iid=1").want(200, `"/close"`, `"/label"`).not("/approve", "/draft")
		b.get(from+"commands?on=issues").want(200, `"/label"`).not(`"/close"`)
		b.get(from+"commands?on=merges").want(200, `"/draft"`)
		b.get(from + "nothing").want(404)
		b.get(from + "commands").want(404)
		eve.get(from + "issues").want(404)
		eve.get(from + "members?search=ada").want(404)
		newBrowser(t, s).get(from + "issues").leads("/users/sign_in?return_to=%2Fada%2Fp%2F-%2Fautocomplete_sources%2Fissues")

		// Description templates.
		b.get("/ada/p/-/issues/new").want(200, "Choose a template", "Describe the Default</textarea>", "issuable_template=Bug", "Assign to me")
		b.get("/ada/p/-/issues/new?issuable_template=Bug").want(200, "Describe the Bug</textarea>")
		b.get("/ada/p/-/templates/issue/Bug").want(200, "Describe the Bug")
		b.get("/ada/p/-/templates/issue/None").want(404)
		eve.get("/ada/p/-/templates/issue/Bug").want(404)

		// Quick actions in a comment, and in a new issue.
		const at = "/ada/p/-/issues/1"
		b.submit(at, at+"/notes", "note", "/spend 1h\n/estimate 2h\n/label ~none").leads(at)
		b.get(at).want(200, "Added 1h of spent time. Set the time estimate to 2h. Could not apply label command.", "Spent: 1h", "Estimate: 2h")
		b.submit(at, at+"/notes", "note", "/label ~none").want(422, "Could not apply label command.")
		b.submit("/ada/p/-/issues/new", "/ada/p/-/issues", "title", "Third", "description", "Like #1\n/assign me").leads("/ada/p/-/issues/3")
		b.get("/ada/p/-/issues/3").want(200, "Assigned @ada.")

		// Cross references, "Assign yourself", time and weight beside the issue.
		b.get(at).want(200, "mentioned in issue", "Assign yourself")
		b.submit(at, at+"/turn", "event", "assign").leads(at)
		b.get(at).want(200, `href="/ada"`).not("Assign yourself")
		b.submit(at, at+"/edit/time", "estimate", "soon").want(422, "is not a duration")
		b.submit(at, at+"/edit/time", "estimate", "1d", "spent", "30m", "summary", "read").leads(at)
		b.get(at).want(200, "Spent: 1h 30m", "Estimate: 1d")
		b.submit(at, at+"/edit/weight", "weight", "5").leads(at)
		b.get(at).want(200, "set weight to")
	})
}
