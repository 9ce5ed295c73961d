package notify_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
)

// TestMergeRequests checks who is notified of changes to a merge request.
func TestMergeRequests(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		f := newFixture(t, s, m, "owner", "ada", "guest", "rev", "wat")
		f.project = f.do("owner", "POST /projects", `{"name":"Shop","path":"shop","visibility":"private","initialize_with_readme":true}`, 201)
		at := fmt.Sprintf("/projects/%d", f.project)
		for who, level := range map[string]int{"ada": 40, "guest": 10, "rev": 30, "wat": 30} {
			f.member("projects", f.project, who, level)
		}
		f.level("wat", at, `{"level":"watch"}`)
		f.level("guest", at, `{"level":"watch"}`) // cannot read merge requests of this project
		f.do("owner", "POST "+at+"/repository/branches?branch=work&ref=main", "", 201)
		f.do("ada", "POST "+at+"/repository/files/new.txt", `{"branch":"work","content":"x","commit_message":"more"}`, 201)
		f.do("owner", "POST "+at+"/repository/branches?branch=work2&ref=work", "", 201)
		request := at + "/merge_requests/1"
		var last map[string]mailtest.Email
		for _, row := range []struct{ name, who, do, json, want string }{
			{"new", "ada", "POST " + at + "/merge_requests", fmt.Sprintf(`{"title":"Take it","source_branch":"work","target_branch":"main","description":"for @guest","reviewer_ids":[%d]}`, f.ids["rev"]), "rev review_requested, wat watching"},
			{"another reviewer", "ada", "PUT " + request, fmt.Sprintf(`{"reviewer_ids":[%d]}`, f.ids["owner"]), "owner review_requested, rev participated, wat watching"},
			{"an assignee", "owner", "PUT " + request, fmt.Sprintf(`{"assignee_ids":[%d]}`, f.ids["rev"]), "ada participated, rev assigned, wat watching"},
			{"a push, not to those who watch", "ada", "POST " + at + "/repository/files/newer.txt", `{"branch":"work","content":"x","commit_message":"more"}`, "owner review_requested, rev assigned"},
			{"a note", "owner", "POST " + request + "/notes", `{"body":"well"}`, "ada participated, rev assigned, wat watching"},
			{"on a line", "rev", "POST " + request + "/discussions", `{"body":"why?","position":{"position_type":"text",{refs},"new_path":"new.txt","old_path":"new.txt","new_line":1}}`, "ada participated, owner review_requested, wat watching"},
			{"its pipeline runs", "ada", "POST " + at + "/statuses/{sha}", `{"ref":"work","state":"running"}`, ""},
			{"to be merged when that succeeds", "ada", "PUT " + request + "/merge", `{"auto_merge":true}`, "owner review_requested, rev assigned, wat watching"},
			{"closed", "rev", "PUT " + request, `{"state_event":"close"}`, "ada participated, owner review_requested, wat watching"},
			{"reopened", "rev", "PUT " + request, `{"state_event":"reopen"}`, "ada participated, owner review_requested, wat watching"},
			{"merged", "ada", "PUT " + request + "/merge", `{}`, "owner review_requested, rev assigned, wat watching"},
		} {
			f.do(row.who, f.fill(request, row.do), f.fill(request, row.json), map[bool]int{true: 201, false: 200}[strings.HasPrefix(row.do, "POST")])
			last = f.notified(row.name, row.want)
		}
		if l := last["wat"]; l.Subject != "Re: Shop | Take it (!1)" || l.Header.Get("X-Svc-Mergerequest-Iid") != "1" || l.Header.Get("X-Svc-Mergerequest-State") != "merged" ||
			!strings.Contains(l.Text, "ada merged work into main.") || !strings.Contains(l.Text, "/owner/shop/-/merge_requests/1") {
			t.Errorf("the email: %v %s", l.Header, l.Text)
		}
	})
}

// fill replaces placeholders in a text with commits of a merge request.
func (f *fixture) fill(request, text string) string {
	f.t.Helper()
	if !strings.Contains(text, "{sha}") && !strings.Contains(text, "{refs}") {
		return text
	}
	var m struct {
		SHA  string
		Refs struct {
			Base  string `json:"base_sha"`
			Head  string `json:"head_sha"`
			Start string `json:"start_sha"`
		} `json:"diff_refs"`
	}
	f.Check(f.t, apptest.Call{Do: "GET " + request, As: f.as["owner"], Status: 200}).JSON(f.t, &m)
	refs := fmt.Sprintf(`"base_sha":%q,"head_sha":%q,"start_sha":%q`, m.Refs.Base, m.Refs.Head, m.Refs.Start)
	return strings.NewReplacer("{sha}", m.SHA, "{refs}", refs).Replace(text)
}
