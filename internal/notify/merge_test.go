package notify_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
)

// TestMergeRequests tells of what happens to a merge request.
func TestMergeRequests(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		st := newStage(t, s, m, "owner", "ada", "guest", "rev", "wat")
		st.project = st.do("owner", "POST /projects", `{"name":"Shop","path":"shop","visibility":"private","initialize_with_readme":true}`, 201)
		at := fmt.Sprintf("/projects/%d", st.project)
		for who, level := range map[string]int{"ada": 40, "guest": 10, "rev": 30, "wat": 30} {
			st.member("projects", st.project, who, level)
		}
		st.level("wat", at, `{"level":"watch"}`)
		st.level("guest", at, `{"level":"watch"}`) // reads no merge requests here
		st.do("owner", "POST "+at+"/repository/branches?branch=work&ref=main", "", 201)
		st.do("ada", "POST "+at+"/repository/files/new.txt", `{"branch":"work","content":"x","commit_message":"more"}`, 201)
		st.do("owner", "POST "+at+"/repository/branches?branch=work2&ref=work", "", 201)
		request := at + "/merge_requests/1"
		var last map[string]mailtest.Letter
		for _, row := range []struct{ name, who, do, json, want string }{
			{"new", "ada", "POST " + at + "/merge_requests", fmt.Sprintf(`{"title":"Take it","source_branch":"work","target_branch":"main","description":"for @guest","reviewer_ids":[%d]}`, st.ids["rev"]), "rev review_requested, wat watching"},
			{"another reviewer", "ada", "PUT " + request, fmt.Sprintf(`{"reviewer_ids":[%d]}`, st.ids["owner"]), "owner review_requested, rev participated, wat watching"},
			{"an assignee", "owner", "PUT " + request, fmt.Sprintf(`{"assignee_ids":[%d]}`, st.ids["rev"]), "ada participated, rev assigned, wat watching"},
			{"a push, not to those who watch", "ada", "POST " + at + "/repository/files/newer.txt", `{"branch":"work","content":"x","commit_message":"more"}`, "owner review_requested, rev assigned"},
			{"closed", "rev", "PUT " + request, `{"state_event":"close"}`, "ada participated, owner review_requested, wat watching"},
			{"reopened", "rev", "PUT " + request, `{"state_event":"reopen"}`, "ada participated, owner review_requested, wat watching"},
			{"merged", "ada", "PUT " + request + "/merge", `{}`, "owner review_requested, rev assigned, wat watching"},
		} {
			st.do(row.who, row.do, row.json, map[bool]int{true: 201, false: 200}[strings.HasPrefix(row.do, "POST")])
			last = st.told(row.name, row.want)
		}
		if l := last["wat"]; l.Subject != "Re: Shop | Take it (!1)" || l.Header.Get("X-Svc-Mergerequest-Iid") != "1" || l.Header.Get("X-Svc-Mergerequest-State") != "merged" ||
			!strings.Contains(l.Text, "ada merged work into main.") || !strings.Contains(l.Text, "/owner/shop/-/merge_requests/1") {
			t.Errorf("the letter: %v %s", l.Header, l.Text)
		}
	})
}
