package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"svc/internal/app/apptest"
)

// planProject is a group with a project, a user who can plan in it, and their browser.
type planProject struct {
	t     *testing.T
	s     *apptest.Server
	token string
	b     *browser
}

func newPlanProject(t *testing.T, s *apptest.Server) *planProject {
	t.Helper()
	_, token := s.User(t, "ada")
	st := &planProject{t, s, token, newBrowser(t, s).signIn("ada", password)}
	st.api("POST /groups", url.Values{"name": {"G"}, "path": {"g"}, "visibility": {"public"}})
	var g struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "GET /groups/g", As: token, Status: 200}).JSON(t, &g)
	st.api("POST /projects", url.Values{"name": {"P"}, "path": {"p"}, "namespace_id": {fmt.Sprint(g.ID)}, "visibility": {"public"}})
	return st
}

// api creates an object.
func (st *planProject) api(do string, form url.Values) int64 {
	st.t.Helper()
	var made struct{ ID int64 }
	st.s.Check(st.t, apptest.Call{Do: do, As: st.token, Form: form, Status: 201}).JSON(st.t, &made)
	return made.ID
}

func (st *planProject) issue(title string, labels ...string) int64 {
	st.t.Helper()
	return st.api("POST /projects/g%2Fp/issues", url.Values{"title": {title}, "labels": {strings.Join(labels, ",")}})
}

// titles returns the titles of the cards of a column, from the top.
func titles(body, column string) string {
	_, rest, _ := strings.Cut(body, `data-cards="`+column+`"`)
	rest, _, _ = strings.Cut(rest, "</ol>")
	var list []string
	for _, m := range regexp.MustCompile(`class="name" href="[^"]+">([^<]+)<`).FindAllStringSubmatch(rest, -1) {
		list = append(list, m[1])
	}
	return strings.Join(list, " ")
}

// TestBoardPages creates a board and moves cards on it: with and without a script,
// and two at once.
func TestBoardPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newPlanProject(t, s)
		eveID, _ := s.User(t, "eve")
		doing, review := st.api("POST /groups/g/labels", url.Values{"name": {"Doing"}, "color": {"#ff0000"}}), st.api("POST /projects/g%2Fp/labels", url.Values{"name": {"Review"}, "color": {"#00ff00"}})
		goal := st.api("POST /projects/g%2Fp/milestones", url.Values{"title": {"1.0"}})
		ids := map[string]int64{}
		for _, title := range []string{"one", "two", "three", "four"} {
			ids[title] = st.issue(title)
		}
		b, guest := st.b, newBrowser(t, s)
		guest.get("/g/p/-/boards").want(200, "No boards yet").not("<form method=\"post\"")
		b.submit("/g/p/-/boards", "/g/p/-/boards", "name", "").want(422, "can&#39;t be blank")
		at := b.submit("/g/p/-/boards", "/g/p/-/boards", "name", "Work").header.Get("Location")
		b.get("/g/p/-/boards").leads(at)
		b.submit(at+"/edit", at+"/lists").leads(at + "/edit")
		for name, id := range map[string]int64{"label_id": doing, "assignee_id": eveID, "milestone_id": goal} {
			b.submit(at+"/edit", at+"/lists", name, fmt.Sprint(id)).leads(at + "/edit")
		}
		b.submit(at+"/edit", at+"/lists", "label_id", fmt.Sprint(review)).leads(at + "/edit")
		b.submit(at+"/edit", at+"/lists", "label_id", fmt.Sprint(review)).leads(at + "/edit")
		b.get(at+"/edit").want(200, "already has such a list")
		lists := map[string]string{}
		page := b.get(at).want(200).body
		for _, m := range regexp.MustCompile(`data-part="column-(\w+)" aria-label="([^"]+)"`).FindAllStringSubmatch(page, -1) {
			lists[m[2]] = m[1]
		}
		if len(lists) != 6 || titles(page, "backlog") != "one two three four" {
			t.Fatalf("columns %v, open %q", lists, titles(page, "backlog"))
		}
		token := b.get("/").token()
		move := func(card, from, to, after, before string) answer {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+fmt.Sprintf("%s/cards/%d", at, ids[card]), strings.NewReader(url.Values{
				"from": {lists[from]}, "to": {lists[to]}, "after": {fmt.Sprint(ids[after])}, "before": {fmt.Sprint(ids[before])},
			}.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("X-Csrf-Token", token)
			r.Header.Set("Accept", "application/json")
			return b.send(r)
		}
		is := func(column, want string) {
			t.Helper()
			if got := titles(b.get(at).want(200).body, lists[column]); got != want {
				t.Errorf("%s has %q, want %q", column, got, want)
			}
		}
		move("four", "Open", "Open", "one", "two").want(204)
		is("Open", "one four two three")
		move("four", "Open", "Doing", "", "").want(204)
		move("two", "Open", "Doing", "", "four").want(204)
		is("Doing", "two four")
		is("Open", "one three")
		move("two", "Open", "Review", "", "").want(409) // the card is no longer in that column
		move("two", "Doing", "nowhere", "", "").want(404)
		move("two", "Doing", "eve", "", "").want(204)
		move("two", "eve", "1.0", "", "").want(204)
		is("1.0", "two")
		is("eve", "")
		move("two", "1.0", "Closed", "", "").want(204)
		is("Closed", "two")
		move("two", "Closed", "Review", "", "").want(204)
		is("Review", "two")
		move("two", "Review", "Open", "three", "").want(204)
		is("Open", "one three two")
		b.get("/g/p/-/issues/2").want(200, "removed", "reopened", "closed")

		// A card can be moved between two neighbors any number of times.
		move("four", "Doing", "Open", "one", "three").want(204)
		for range 12 {
			move("two", "Open", "Open", "one", "four").want(204)
			is("Open", "one two four three")
			move("four", "Open", "Open", "one", "two").want(204)
			is("Open", "one four two three")
		}

		// Without a script.
		b.get(fmt.Sprintf("%s/cards/%d?from=%s", at, ids["one"], lists["Open"])).want(200, "Move one", "At the bottom")
		b.get(fmt.Sprintf("%s/cards/%d?from=%s", at, ids["one"], lists["Doing"])).want(404)
		b.submit(at, fmt.Sprintf("%s/cards/%d", at, ids["one"]), "from", "backlog", "to", "backlog", "end", "bottom").leads(at)
		is("Open", "four two three one")
		b.submit(at, fmt.Sprintf("%s/cards/%d", at, ids["one"]), "from", "backlog", "to", "backlog", "end", "top").leads(at)
		is("Open", "one four two three")

		// Two users move cards at the same time: both moves are saved.
		var both sync.WaitGroup
		for card, to := range map[string]string{"one": "Doing", "two": "Review", "three": "Doing", "four": "1.0"} {
			both.Go(func() { move(card, "Open", to, "", "") })
		}
		both.Wait()
		is("Open", "")
		is("1.0", "four")
		is("Review", "two")
		if got := titles(b.get(at).body, lists["Doing"]); got != "one three" && got != "three one" {
			t.Errorf("Doing has %q", got)
		}
		// Two users move the same card: one of them gets an error.
		var statuses [2]int
		for i, to := range []string{"Review", "Closed"} {
			both.Go(func() { statuses[i] = move("one", "Doing", to, "", "").status })
		}
		both.Wait()
		if statuses[0]+statuses[1] != 204+409 {
			t.Errorf("two who move one card get %v", statuses)
		}

		// A board of the group has the same cards; lists are added, reordered and
		// removed.
		group := st.api("POST /groups/g/boards", url.Values{"name": {"All"}})
		b.get(fmt.Sprintf("/groups/g/-/boards/%d", group)).want(200, "g/p#3", `href="/groups/g/-/issues/new"`)
		b.get("/groups/g/-/issues").want(200, `href="/groups/g/-/issues/new"`)
		b.get("/groups/g/-/issues/new?milestone_id=7").want(200, `href="/g/p/-/issues/new?milestone_id=7"`)
		b.get("/groups/g/-/issues/new?search=nothing").want(200, "No results found")
		order := func() (names []string) {
			for _, m := range regexp.MustCompile(`<section class="column"[^>]+aria-label="([^"]+)"`).FindAllStringSubmatch(b.get(at).body, -1) {
				names = append(names, m[1])
			}
			return names
		}
		last := order()[4]
		b.submit(at+"/edit", at+"/lists/"+lists[last]+"/move", "position", "0").leads(at + "/edit")
		if got := order(); got[1] != last {
			t.Errorf("order %v, %s was put first", got, last)
		}
		b.submit(at+"/edit", at+"/lists/"+lists["eve"]+"/delete").leads(at + "/edit")
		b.submit(at+"/edit", at, "name", "Work", "hide_closed", "1").leads(at)
		if got := order(); len(got) != 4 {
			t.Errorf("columns %v", got)
		}
		b.get(at+"?search=three").want(200, "three").not(">two<")
		b.submit(at+"/edit", at+"/delete").leads("/g/p/-/boards")
		b.get(at).want(404)
	})
}

// TestLabelPages creates, changes, promotes and deletes labels and milestones.
func TestLabelPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newPlanProject(t, s)
		b, guest := st.b, newBrowser(t, s)
		const labels, goals = "/g/p/-/labels", "/g/p/-/milestones"
		b.get(labels).want(200, "Create a label")
		b.submit(labels+"/new", labels, "title", "", "color", "#ff0000").want(422, "can&#39;t be blank")
		b.submit(labels+"/new", labels, "title", "x", "color", "reddish").want(422, "valid color")
		b.submit(labels+"/new", labels, "title", "bug", "color", "#ff0000", "description", "It is wrong", "priority", "2").leads(labels)
		b.submit(labels+"/new", labels, "title", "bug", "color", "#ff0000").want(422, "already exists")
		id := regexp.MustCompile(`labels/(\d+)/edit`).FindStringSubmatch(b.get(labels).want(200, "It is wrong", "Priority 2", `fill="#ff0000"`).body)[1]
		st.issue("one", "bug")
		guest.get(labels).want(200, "1 open issue").not("labels/"+id, "labels/new")
		guest.get(labels+"?search=nothing").want(200, "No results found")
		b.get(labels+"/"+id+"/edit").want(200, `value="bug"`)
		b.submit(labels+"/new", labels+"/"+id, "title", "fault", "color", "#00ff00").leads(labels)
		b.submit(labels, labels+"/"+id+"/subscribe", "want", "1").leads(labels)
		b.get(labels).want(200, "Unsubscribe", "fault")
		b.submit(labels, labels+"/"+id+"/promote").leads(labels)
		b.get(labels).want(200, "Inherited from group").not("labels/" + id + "/edit")
		b.get("/groups/g/-/labels").want(200, "fault", "labels/"+id+"/edit")
		b.submit("/groups/g/-/labels", "/groups/g/-/labels/"+id+"/delete").leads("/groups/g/-/labels")
		b.get("/groups/g/-/labels").want(200, "No labels yet")

		b.get(goals).want(200, "Create a milestone")
		b.submit(goals+"/new", goals, "title", "1.0", "due_date", "soon").want(422, "is not a date")
		b.submit(goals+"/new", goals, "title", "1.0", "start_date", "2020-02-02", "due_date", "2020-01-01").want(422, "greater than start date")
		b.submit(goals+"/new", goals, "title", "1.0", "description", "*soon*", "preview", "1").want(200, "<em>soon</em>")
		b.submit(goals+"/new", goals, "title", "1.0", "description", "*soon*", "due_date", "2020-01-01").leads(goals + "/1")
		b.submit("/g/p/-/issues/1", "/g/p/-/issues/1/edit/milestone", "milestone_id", regexp.MustCompile(`milestone_id=(\d+)`).FindStringSubmatch(b.get(goals + "/1").body)[1]).leads("/g/p/-/issues/1")
		guest.get(goals).want(200, "1.0", "Overdue", "0 of 1 issue closed").not("/new")
		guest.get(goals+"/1").want(200, "<em>soon</em>", ">one<", "0 % done").not("<form method=\"post\"")
		b.submit("/g/p/-/issues/1", "/g/p/-/issues/1/turn", "event", "close").leads("/g/p/-/issues/1")
		b.get(goals+"/1?state=closed").want(200, "100 % done", ">one<")
		b.submit(goals+"/1/edit", goals+"/1", "title", "1.1").leads(goals + "/1")
		b.submit(goals+"/1", goals+"/1/turn", "event", "close").leads(goals + "/1")
		b.get(goals).want(200).not("1.1")
		b.get(goals+"?state=closed").want(200, "1.1")
		b.submit(goals+"/1", goals+"/1/turn", "event", "explode").want(422)
		b.submit(goals+"/1", goals+"/1/promote").leads("/groups/g/-/milestones/1")
		b.get("/groups/g/-/milestones/1").want(200, "1.1", "1 of 1 issue closed")
		b.submit("/groups/g/-/milestones/1", "/groups/g/-/milestones/1/delete").leads("/groups/g/-/milestones")
		b.get("/groups/g/-/milestones/1").want(404)
		b.get("/groups/g/-/issues?state=all").want(200, ">one<", "g/p#1")
	})
}
