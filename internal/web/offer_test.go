package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// offer is a control of a page, and the call of the API that does the same.
// {role} and the other names in braces stand for objects of the one who looks:
// a call that succeeds changes nothing that others look at.
type offer struct {
	name    string
	page    string
	control string // a text that the page has when it offers the control
	do      string
	form    url.Values
}

func offers() []offer {
	return []offer{
		{"issue edit", "/ada/p/-/issues/1", `/-/issues/1/edit"`, "PUT /projects/{project}/issues/1", url.Values{"title": {"T"}}},
		{"issue delete", "/ada/p/-/issues/1", `/-/issues/1/delete"`, "DELETE /projects/{project}/issues/1", nil},
		{"own issue edit", "/ada/p/-/issues/{issue}", `/-/issues/{issue}/edit"`, "PUT /projects/{project}/issues/{issue}", url.Values{"title": {"T"}}},
		{"own issue delete", "/ada/p/-/issues/{issue}", `/-/issues/{issue}/delete"`, "DELETE /projects/{project}/issues/{issue}", nil},
		{"note edit", "/ada/p/-/issues/1", `/notes/{note}/edit"`, "PUT /projects/{project}/issues/1/notes/{note}", url.Values{"body": {"b"}}},
		{"comment", "/ada/p/-/issues/1", `/-/issues/1/notes"`, "POST /projects/{project}/issues/1/notes", url.Values{"body": {"b"}}},
		{"comment on a locked issue", "/ada/p/-/issues/2", `/-/issues/2/notes"`, "POST /projects/{project}/issues/2/notes", url.Values{"body": {"b"}}},
		{"new label", "/ada/p/-/labels", `/-/labels/new"`, "POST /projects/{project}/labels", url.Values{"name": {"l-{role}"}, "color": {"#ff0000"}}},
		{"merge request edit", "/ada/p/-/merge_requests/1", `/-/merge_requests/1/edit"`, "PUT /projects/{project}/merge_requests/1", url.Values{"title": {"T"}}},
		{"merge request delete", "/ada/p/-/merge_requests/1", `/-/merge_requests/1/delete"`, "DELETE /projects/{project}/merge_requests/1", nil},
		{"pipeline delete", "/ada/p/-/pipelines/{pipeline}", `/-/pipelines/{pipeline}/delete"`, "DELETE /projects/{project}/pipelines/{pipeline}", nil},
		{"pipeline variables", "/ada/p/-/pipelines/{pipeline}", `/-/pipelines/{pipeline}/variables"`, "GET /projects/{project}/pipelines/{pipeline}/variables", nil},
		{"job erase", "/ada/p/-/jobs/{job}", `/-/jobs/{job}/erase"`, "POST /projects/{project}/jobs/{job}/erase", nil},
		{"job retry", "/ada/p/-/jobs/{job}", `/-/jobs/{job}/retry"`, "POST /projects/{project}/jobs/{job}/retry", nil},
		{"pipeline retry", "/ada/p/-/pipelines/{pipeline}", `/-/pipelines/{pipeline}/retry"`, "POST /projects/{project}/pipelines/{pipeline}/retry", nil},
		{"schedule edit", "/ada/p/-/pipeline_schedules", `/pipeline_schedules/{schedule}/edit"`, "PUT /projects/{project}/pipeline_schedules/{schedule}", url.Values{"description": {"d"}}},
		{"schedule delete", "/ada/p/-/pipeline_schedules", `/pipeline_schedules/{schedule}/delete"`, "DELETE /projects/{project}/pipeline_schedules/{schedule}", nil},
		{"schedule play", "/ada/p/-/pipeline_schedules", `/pipeline_schedules/{schedule}/play"`, "POST /projects/{project}/pipeline_schedules/{schedule}/play", nil},
		{"schedule take", "/ada/p/-/pipeline_schedules", `/pipeline_schedules/{schedule}/take_ownership"`, "POST /projects/{project}/pipeline_schedules/{schedule}/take_ownership", nil},
		{"default branch delete", "/ada/p/-/branches?search=%5Emain", `/-/branches/delete"`, "DELETE /projects/{project}/repository/branches/main", nil},
		{"branch delete", "/ada/p/-/branches?search=free-{role}", `/-/branches/delete"`, "DELETE /projects/{project}/repository/branches/free-{role}", nil},
		{"protected branch delete", "/ada/p/-/branches?search=kept-{role}", `/-/branches/delete"`, "DELETE /projects/{project}/repository/branches/kept-{role}", nil},
		{"tag delete", "/ada/p/-/tags?search=free-{role}", `/-/tags/delete"`, "DELETE /projects/{project}/repository/tags/free-{role}", nil},
		{"protected tag delete", "/ada/p/-/tags?search=held-{role}", `/-/tags/delete"`, "DELETE /projects/{project}/repository/tags/held-{role}", nil},
		{"project settings", "/ada/p", `href="/ada/p/-/settings"`, "PUT /projects/{project}", url.Values{"description": {"d"}}},
	}
}

// TestPagesOfferWhatTheAPIAllows looks at controls as everybody, in a project
// that is archived and in one that is not: a page has a control if and only if
// the API lets the same person do the same.
func TestPagesOfferWhatTheAPIAllows(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newStage(t, s, "a:\n  script: [x]\n")
		browsers := map[string]*browser{"nobody": newBrowser(t, s), "root": newBrowser(t, s).signIn("root", apptest.RootPassword)}
		tokens := map[string]string{"root": apptest.RootToken}
		for who, level := range map[string]string{"stranger": "", "guest": "10", "planner": "15", "reporter": "20", "developer": "30", "maintainer": "40", "owner": "50"} {
			id, token := s.User(t, who)
			browsers[who], tokens[who] = newBrowser(t, s).signIn(who, password), token
			if level != "" {
				st.api("POST /projects/%d/members", 201, url.Values{"user_id": {fmt.Sprint(id)}, "access_level": {level}})
			}
		}
		names := offerObjects(st, tokens)
		check := func(state string) {
			t.Helper()
			for _, who := range planners() {
				offered := map[string]bool{}
				for _, o := range offers() {
					offered[o.name] = strings.Contains(browsers[who].get(names[who].Replace(o.page)).body, names[who].Replace(o.control))
				}
				for _, o := range offers() {
					form := url.Values{}
					for key, values := range o.form {
						form.Set(key, names[who].Replace(values[0]))
					}
					call := apptest.Call{Do: names[who].Replace(o.do), As: tokens[who], Form: form}
					if strings.HasPrefix(o.do, "DELETE ") && !strings.Contains(o.do, "/repository/") {
						// What may be deleted is refused for this alone.
						call.Header = map[string]string{"If-Unmodified-Since": "Mon, 01 Jan 1990 00:00:00 GMT"}
					}
					if strings.HasPrefix(o.do, "GET ") {
						call.Form = nil
					}
					a := s.Send(t, call)
					if allowed := a.Status != 401 && a.Status != 403 && a.Status != 404; allowed != offered[o.name] {
						t.Errorf("%s, %s, %s: the page offers it: %t, the API answers %d: %s", state, who, o.name, offered[o.name], a.Status, a.Body)
					}
				}
			}
		}
		st.api("POST /projects/%d/archive", 201, nil)
		check("archived") // first: nothing comes of it
		st.api("POST /projects/%d/unarchive", 201, nil)
		check("active")
	})
}

// offerObjects makes what the offers name, some of it for each person, and gives
// the names.
func offerObjects(st *stage, tokens map[string]string) map[string]*strings.Replacer {
	st.t.Helper()
	objects := map[string][]string{}
	for _, who := range planners() {
		pipeline := st.pipeline("dev")
		job := st.take()
		st.write(job, 0, "x\n")
		st.end(job, "failed")
		var schedule struct{ ID int64 }
		st.api("POST /projects/%d/pipeline_schedules", 201, url.Values{"description": {"d"}, "ref": {"main"}, "cron": {"0 4 1 1 *"}}).JSON(st.t, &schedule)
		objects[who] = []string{"{project}", fmt.Sprint(st.project), "{role}", who, "{pipeline}", fmt.Sprint(pipeline), "{job}", fmt.Sprint(job.ID), "{schedule}", fmt.Sprint(schedule.ID)}
	}
	var note struct{ ID int64 }
	st.api("POST /projects/%d/issues", 201, url.Values{"title": {"T"}})
	st.api("POST /projects/%d/issues", 201, url.Values{"title": {"locked"}})
	st.api("PUT /projects/%d/issues/2", 200, url.Values{"discussion_locked": {"true"}})
	st.api("POST /projects/%d/issues/1/notes", 201, url.Values{"body": {"b"}}).JSON(st.t, &note)
	st.api("POST /projects/%d/repository/files/x", 201, url.Values{"branch": {"feature"}, "start_branch": {"dev"}, "content": {"x"}, "commit_message": {"m"}})
	st.api("POST /projects/%d/merge_requests", 201, url.Values{"title": {"T"}, "source_branch": {"feature"}, "target_branch": {"main"}})
	st.api("POST /projects/%d/protected_branches", 201, url.Values{"name": {"kept-*"}})
	st.api("POST /projects/%d/protected_tags", 201, url.Values{"name": {"held-*"}})
	names := map[string]*strings.Replacer{}
	for _, who := range planners() {
		issue := struct{ IID int64 }{1}
		if tokens[who] != "" {
			st.s.Check(st.t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues", st.project), As: tokens[who], Form: url.Values{"title": {"own"}}, Status: 201}).JSON(st.t, &issue)
		}
		for _, name := range []string{"free-" + who, "kept-" + who} {
			st.api("POST /projects/%d/repository/branches", 201, url.Values{"branch": {name}, "ref": {"dev"}})
		}
		for _, name := range []string{"free-" + who, "held-" + who} {
			st.api("POST /projects/%d/repository/tags", 201, url.Values{"tag_name": {name}, "ref": {"dev"}})
		}
		names[who] = strings.NewReplacer(append(objects[who], "{note}", fmt.Sprint(note.ID), "{issue}", fmt.Sprint(issue.IID))...)
	}
	st.idle()
	return names
}
