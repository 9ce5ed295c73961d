package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/user"
)

// planners are the callers of the role tables of issues, labels, milestones and
// boards, the weakest first.
func planners() []string {
	return []string{"nobody", "stranger", "guest", "planner", "reporter", "developer", "maintainer", "owner", "root"}
}

// TestPlanRoles visits every page of issues, labels, milestones and boards as every
// role: in a public group, then with issues for members only, and in a private
// group. Then every role uses all buttons. No page shows a confidential issue to
// roles that may not see it.
func TestPlanRoles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newPlanProject(t, s)
		browsers := map[string]*browser{"nobody": newBrowser(t, s), "root": newBrowser(t, s).signIn("root", apptest.RootPassword)}
		for who, level := range map[string]string{"stranger": "", "guest": "10", "planner": "15", "reporter": "20", "developer": "30", "maintainer": "40", "owner": "50"} {
			id, _ := s.User(t, who)
			browsers[who] = newBrowser(t, s).signIn(who, password)
			if level != "" {
				st.s.Check(t, apptest.Call{Do: "POST /groups/g/members", As: st.token, Form: url.Values{"user_id": {fmt.Sprint(id)}, "access_level": {level}}, Status: 201})
			}
		}
		label, goal := st.api("POST /projects/g%2Fp/labels", url.Values{"name": {"bug"}, "color": {"#ff0000"}}), st.api("POST /projects/g%2Fp/milestones", url.Values{"title": {"1.0"}})
		const secret = "XYZZY"
		one := st.api("POST /projects/g%2Fp/issues", url.Values{"title": {"one"}, "labels": {"bug"}, "milestone_id": {fmt.Sprint(goal)}, "description": {"see #2, g/p#2 and %1.0"}})
		st.api("POST /projects/g%2Fp/issues", url.Values{"title": {secret}, "labels": {"bug"}, "milestone_id": {fmt.Sprint(goal)}, "confidential": {"true"}})
		note := st.api("POST /projects/g%2Fp/issues/1/notes", url.Values{"body": {"look at #2"}})
		st.api("POST /projects/g%2Fp/issues/1/notes", url.Values{"body": {secret + " within"}, "internal": {"true"}})
		st.api("POST /projects/g%2Fp/issues/2/notes", url.Values{"body": {secret + " said"}})
		s.Check(t, apptest.Call{Do: "POST /projects/g%2Fp/issues/1/links", As: st.token, Form: url.Values{"target_project_id": {"g/p"}, "target_issue_iid": {"2"}}, Status: 201})
		board, wide := st.api("POST /projects/g%2Fp/boards", url.Values{"name": {"B"}}), st.api("POST /groups/g/boards", url.Values{"name": {"W"}})
		list := st.api(fmt.Sprintf("POST /projects/g%%2Fp/boards/%d/lists", board), url.Values{"label_id": {fmt.Sprint(label)}})
		badge := st.api("POST /projects/g%2Fp/badges", url.Values{"name": {"b"}, "link_url": {"https://example.org"}, "image_url": {"https://example.org/b.svg"}})
		names := strings.NewReplacer("{label}", fmt.Sprint(label), "{board}", fmt.Sprint(board), "{wide}", fmt.Sprint(wide), "{list}", fmt.Sprint(list), "{one}", fmt.Sprint(one), "{badge}", fmt.Sprint(badge), "{note}", fmt.Sprint(note))

		look := func(name, page, want string) {
			t.Helper()
			for i, status := range strings.Fields(want) {
				who := planners()[i]
				if got := browsers[who].get(names.Replace(page)); fmt.Sprint(got.status) != status {
					t.Errorf("%s: %s gets %d for %s, want %s", name, who, got.status, page, status)
				}
			}
		}
		const all, within, plan = "200 200 200 200 200 200 200 200 200", "404 404 200 200 200 200 200 200 200", "303 403 403 200 200 200 200 200 200"
		issues := []string{"/g/p/-/issues", "/g/p/-/issues?state=all&search=" + secret, "/g/p/-/issues/1", "/g/p/-/boards/{board}", "/g/p/-/boards/{board}/columns/{list}", "/g/p/-/boards/{board}/columns/backlog"}
		places := []string{"/g/p", "/g/p/-/labels", "/g/p/-/milestones", "/g/p/-/milestones/1", "/g/p/-/activity"}
		groups := []string{"/groups/g/-/issues?state=all", "/groups/g/-/issues?search=" + secret, "/groups/g/-/boards/{wide}", "/groups/g/-/boards/{wide}/columns/backlog", "/groups/g/-/labels", "/groups/g/-/milestones", "/groups/g/-/activity"}
		for _, page := range append(append(append([]string{"/ada", "/ada?tab=activity"}, issues...), places...), groups...) {
			look("public", page, all)
			// No page shows the confidential issue to roles that may not see it.
			for i, who := range planners() {
				body := browsers[who].get(names.Replace(page)).body
				for _, own := range []string{"search=" + secret, `value="` + secret + `"`, "Search</span> " + secret, "filter Search " + secret} { // the search term of the caller
					body = strings.ReplaceAll(body, own, "")
				}
				if strings.Contains(body, secret) && i < 3 {
					t.Errorf("%s learns of it on %s", who, page)
				}
			}
		}
		browsers["planner"].get("/g/p/-/issues").want(200, secret)
		browsers["planner"].get("/g/p/-/activity").want(200, secret, secret+" said")
		browsers["planner"].get(names.Replace("/groups/g/-/boards/{wide}")).want(200, secret)
		look("confidential", "/g/p/-/issues/2", "404 404 404 200 200 200 200 200 200")
		look("confidential", "/g/p/-/issues/2/edit", "303 404 404 200 200 200 200 200 200")
		for page, texts := range map[string][2]string{ // counts for a Guest, and for a Planner
			"/g/p": {`<span class="count">1</span>`, `<span class="count">2</span>`}, "/g/p/-/issues": {`Open <span class="count">1</span>`, `Open <span class="count">2</span>`},
			"/g/p/-/labels": {"1 open issue<", "2 open issues<"}, "/g/p/-/milestones": {"0 of 1 issue ", "0 of 2 issues "}, "/g/p/-/milestones/1": {"0 of 1 issue ", "0 of 2 issues "},
			names.Replace("/g/p/-/boards/{board}"): {`data-total>1<`, `data-total>2<`}, "/ada": {"3 contributions", "6 contributions"}, // a milestone, issues and notes
		} {
			browsers["nobody"].get(page).want(200, texts[0]).not(texts[1])
			browsers["guest"].get(page).want(200, texts[0]).not(texts[1])
			browsers["planner"].get(page).want(200, texts[1]).not(texts[0])
		}

		look("public", "/g/p/-/issues/new", "303 200 200 200 200 200 200 200 200")
		look("public", "/dashboard/issues", "303 200 200 200 200 200 200 200 200")
		look("public", "/dashboard/activity", "303 200 200 200 200 200 200 200 200")
		for _, page := range []string{
			"/g/p/-/issues/1/edit", "/g/p/-/issues/1/edit/labels", "/g/p/-/issues/1/edit/assignees", "/g/p/-/issues/1/move", "/g/p/-/labels/new", "/g/p/-/labels/{label}/edit", "/g/p/-/milestones/new",
			"/g/p/-/milestones/1/edit", "/g/p/-/boards/{board}/edit", "/g/p/-/boards/{board}/cards/{one}?from={list}", "/groups/g/-/labels/new", "/groups/g/-/milestones/new", "/groups/g/-/boards/{wide}/edit",
		} {
			look("plan", page, plan)
		}
		look("badges", "/g/p/-/settings/badges", "303 403 403 403 403 403 200 200 200")
		look("badges", "/groups/g/-/settings/badges", "303 403 403 403 403 403 403 200 200")

		// Pages have no buttons for actions that the user may not take.
		for _, page := range append(append([]string{}, issues...), append(places[1:], groups...)...) {
			browsers["nobody"].get(names.Replace(page)).not(`<form method="post"`, "data-sheet", "draggable", "/new\"")
			browsers["guest"].get(names.Replace(page)).not("/delete\"", "data-sheet", "draggable", "/labels/new", "/milestones/new", `value="lock"`)
		}

		// The buttons. The weakest role that may do what can be done only once comes
		// first.
		for _, c := range []struct{ page, form, want string }{
			{"/g/p/-/issues", "title=x", "303 303 303 303 303 303 303 303"},
			{"/g/p/-/issues/1/notes", "note=x", "303 303 303 303 303 303 303 303"},
			{"/g/p/-/issues/2/notes", "note=x", "404 404 303 303 303 303 303 303"},
			{"/g/p/-/issues/1/notes/{note}", "note=x", "403 403 403 403 403 303 303 303"},
			{"/g/p/-/issues/1/notes/{note}/delete", "", "403 403 403 403 403 303 404 404"},
			{"/g/p/-/issues/1/subscribe", "want=1", "303 303 303 303 303 303 303 303"},
			{"/g/p/-/issues/1", "title=one", "403 403 422 422 422 422 422 422"}, // the form has an old digest of the text
			{"/g/p/-/issues/1/tasks", "task=0 true", "403 403 303 303 303 303 303 303"},
			{"/g/p/-/issues/1/turn", "event=close", "403 403 303 303 303 303 303 303"},
			{"/g/p/-/issues/1/turn", "event=reopen", "403 403 303 303 303 303 303 303"},
			{"/g/p/-/issues/1/turn", "event=publish", "403 403 303 303 303 303 303 303"},
			{"/g/p/-/issues/1/edit/due_date", "due_date=2030-01-01", "403 403 303 303 303 303 303 303"},
			{"/g/p/-/issues/1/move", "project=no/where", "403 403 422 422 422 422 422 422"},
			{"/g/p/-/preview_markdown", "text=x", "200 200 200 200 200 200 200 200"},
			{"/g/p/-/labels/{label}", "title=bug&color=%23ff0000", "403 403 303 303 303 303 303 303"},
			{"/g/p/-/labels/{label}/subscribe", "want=1", "303 303 303 303 303 303 303 303"},
			{"/g/p/-/milestones/1", "title=1.0", "403 403 303 303 303 303 303 303"},
			{"/g/p/-/milestones/1/turn", "event=activate", "403 403 303 303 303 303 303 303"},
			{"/g/p/-/boards", "name=x", "403 403 303 303 303 303 303 303"},
			{"/g/p/-/boards/{board}", "name=B", "403 403 303 303 303 303 303 303"},
			{"/g/p/-/boards/{board}/lists/{list}/move", "position=0", "403 403 303 303 303 303 303 303"},
			{"/g/p/-/boards/{board}/cards/{one}", "from={list}&to={list}", "403 403 303 303 303 303 303 303"},
			{"/groups/g/-/boards/{wide}/cards/{one}", "from=backlog&to=backlog", "403 403 303 303 303 303 303 303"},
			{"/groups/g/-/labels", "title=x&color=red", "403 403 303 422 422 422 422 422"},
			{"/groups/g/-/milestones", "title=x", "403 403 303 422 422 422 422 422"},
			{"/groups/g/-/boards", "name=x", "403 403 303 303 303 303 303 303"},
			{"/g/p/-/settings/badges/{badge}", "name=c&link_url=https://example.org&image_url=https://example.org/c.svg", "403 403 403 403 403 303 303 303"},
			{"/g/p/-/boards/{board}/lists/{list}/delete", "", "403 403 303 404 404 404 404 404"},
			{"/g/p/-/boards/{board}/delete", "", "403 403 303 404 404 404 404 404"},
			{"/g/p/-/labels/{label}/delete", "", "403 403 303 404 404 404 404 404"},
			{"/g/p/-/milestones/1/delete", "", "403 403 303 404 404 404 404 404"},
			{"/g/p/-/issues/1/delete", "", "403 403 303 404 404 404 404 404"},
			{"/g/p/-/settings/badges/{badge}/delete", "", "403 403 403 403 403 303 404 404"},
		} {
			form, err := url.ParseQuery(names.Replace(c.form))
			if err != nil {
				t.Fatal(err)
			}
			for i, status := range strings.Fields(c.want) {
				who := planners()[i+1]
				form.Set("authenticity_token", browsers[who].get("/").want(200).token())
				if got := browsers[who].post(names.Replace(c.page), form); fmt.Sprint(got.status) != status {
					t.Errorf("%s gets %d for %s with %s, want %s", who, got.status, c.page, c.form, status)
				}
			}
		}

		s.Check(t, apptest.Call{Do: "PUT /projects/g%2Fp", As: st.token, Form: url.Values{"issues_access_level": {"private"}}, Status: 200})
		for _, page := range []string{"/g/p/-/issues", "/g/p/-/issues/4", "/g/p/-/boards"} {
			look("members", page, "404 404")
		}
		browsers["stranger"].get("/g/p").want(200).not("/-/issues\"")
		s.Check(t, apptest.Call{Do: "PUT /projects/g%2Fp", As: st.token, Form: url.Values{"visibility": {"private"}, "issues_access_level": {"enabled"}}, Status: 200})
		for _, page := range []string{"/g/p/-/issues", "/g/p/-/issues/4", "/g/p/-/labels", "/g/p/-/milestones", "/g/p/-/activity"} {
			look("private", page, within)
		}
		for _, who := range []string{"nobody", "stranger"} {
			browsers[who].get("/groups/g/-/issues").want(200, "No issues yet")
			browsers[who].get("/groups/g/-/activity").want(200, "No activity yet")
			browsers[who].get("/ada").want(200, "0 contributions")
		}
	})
}

// TestPlanMarkup uses markup as the names of issues, labels, milestones and boards.
func TestPlanMarkup(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newPlanProject(t, s)
		name := bad
		who, err := s.Users.Find(t.Context(), actor.System(), "ada")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Users.Update(t.Context(), actor.System(), who.ID, user.Change{Name: &name}); err != nil {
			t.Fatal(err)
		}
		text := bad + "\n\n- [ ] " + bad + "\n- [x] [x](javascript:alert(5))\n\n<button form=\"tasks\" name=\"task\" onclick=\"alert(6)\">x</button><form action=/x><input name=authenticity_token></form>\n\n~\"" + bad + "\" %\"" + bad + "\" #1\n"
		label, goal := st.api("POST /groups/g/labels", url.Values{"name": {bad}, "color": {"#ff0000"}, "description": {bad}}), st.api("POST /projects/g%2Fp/milestones", url.Values{"title": {bad}, "description": {text}})
		st.api("POST /projects/g%2Fp/issues", url.Values{"title": {bad}, "description": {text}, "labels": {bad}, "milestone_id": {fmt.Sprint(goal)}, "assignee_ids[]": {fmt.Sprint(who.ID)}})
		st.api("POST /projects/g%2Fp/issues/1/notes", url.Values{"body": {text}})
		board := st.api("POST /projects/g%2Fp/boards", url.Values{"name": {bad}})
		for field, id := range map[string]int64{"label_id": label, "milestone_id": goal} {
			st.api(fmt.Sprintf("POST /projects/g%%2Fp/boards/%d/lists", board), url.Values{field: {fmt.Sprint(id)}})
		}
		st.api("POST /projects/g%2Fp/badges", url.Values{"name": {bad}, "link_url": {"https://example.org"}, "image_url": {s.URL + "/x.svg?" + url.QueryEscape(bad)}})
		var issue struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /projects/g%2Fp/issues/1", As: st.token, Status: 200}).JSON(t, &issue)
		b := st.b
		b.submit("/g/p/-/issues/1", "/g/p/-/issues/1/edit/labels").want(303) // adds system notes
		b.submit("/g/p/-/issues/1", "/g/p/-/issues/1/edit/labels", "labels", bad).want(303)
		tag := regexp.MustCompile(`<(script>|img src="?x|u>)|="javascript:|<[a-z][^>]*\son(error|click)=|<button form="tasks"[^>]*onclick`)
		quoted := regexp.MustCompile(`"[^"<>]*"`)
		query := "?search=" + url.QueryEscape(bad) + "&author_username=" + url.QueryEscape(bad) + "&label_name[]=" + url.QueryEscape(bad) + "&milestone_title=" + url.QueryEscape(bad) + "&state=" + url.QueryEscape(bad)
		at := fmt.Sprintf("/g/p/-/boards/%d", board)
		for _, page := range []string{
			"/g/p", "/g/p/-/issues", "/g/p/-/issues" + query, "/groups/g/-/issues", "/dashboard/issues", "/dashboard/activity", "/g/p/-/issues/1", "/g/p/-/issues/1/edit", "/g/p/-/issues/1/edit/labels",
			"/g/p/-/issues/1/edit/assignees", "/g/p/-/issues/1/edit/milestone", "/g/p/-/issues/1/move", "/g/p/-/issues/new?title=" + url.QueryEscape(bad) + "&labels=" + url.QueryEscape(bad), at, at + query, at + "/edit",
			at + "/columns/backlog" + query, fmt.Sprintf("%s/cards/%d?from=closed", at, issue.ID), "/g/p/-/labels", "/groups/g/-/labels", fmt.Sprintf("/groups/g/-/labels/%d/edit", label), "/g/p/-/milestones", "/g/p/-/milestones/1",
			"/g/p/-/milestones/1/edit", "/groups/g/-/milestones", "/g/p/-/activity", "/groups/g/-/activity", "/ada?tab=activity", "/g/p/-/settings/badges",
		} {
			p := b.get(page)
			if p.status != 200 && p.status != 404 || p.status == 404 && !strings.Contains(page, "from=closed") {
				t.Errorf("%s: status %d", page, p.status)
			}
			if found := tag.FindString(quoted.ReplaceAllString(p.body, `""`)); found != "" {
				t.Errorf("%s has %q", page, found)
			}
		}
		if n := strings.Count(b.get("/g/p/-/issues/1").body, `form="tasks"`); n != 2 {
			t.Errorf("%d boxes can be ticked, want two", n)
		}
	})
}
