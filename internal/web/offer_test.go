package web_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// offer is a control of a page with the equivalent API call. {role} and the other
// names in braces are objects of the caller, so that a successful call does not
// change the objects of other callers.
type offer struct {
	name    string
	page    string
	control string // a text that the page has if it offers the control
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
		{"project settings", "/ada/p", `href="/ada/p/-/settings/general"`, "PUT /projects/{project}", url.Values{"description": {"d"}}},
		{"new merge request", "/ada/p/-/merge_requests", `/-/merge_requests/new"`, "POST /projects/{project}/merge_requests", url.Values{"title": {"T"}, "source_branch": {"new-{role}"}, "target_branch": {"main"}}},
		{"merge request of a branch", "/ada/p/-/branches?search=new-{role}", `merge_request%5Bsource_branch%5D=new-{role}"`, "POST /projects/{project}/merge_requests", url.Values{"title": {"T"}, "source_branch": {"new-{role}"}, "target_branch": {"dev"}}},
		{"variables for Owners", "/ada/p/-/settings/ci_cd", `<option value="owner"`, "PUT /projects/{project}", url.Values{overrideRole: {"owner"}}},
		{"variables for nobody", "/ada/p/-/settings/ci_cd", `<option value="no_one_allowed"`, "PUT /projects/{project}", url.Values{overrideRole: {"no_one_allowed"}}},
		{"variables for Developers", "/ada/p/-/settings/ci_cd", `<option value="developer"`, "PUT /projects/{project}", url.Values{overrideRole: {"developer"}}},
	}
}

const overrideRole = "ci_pipeline_variables_minimum_override_role"

// variableOffers depend on the permission to set variables. A manual job can be
// started once, so each round has its own jobs.
func variableOffers(round int) []offer {
	job := fmt.Sprintf("{manual%d}", round)
	return []offer{
		{"variables of a job", "/ada/p/-/jobs/" + job, `name="variable_key"`, "POST /projects/{project}/jobs/" + job + "/play", url.Values{"job_variables_attributes[][key]": {"K"}, "job_variables_attributes[][value]": {"v"}}},
		{"variables of a pipeline", "/ada/p/-/pipelines/new?ref=dev", `name="variable_key"`, "POST /projects/{project}/pipeline", url.Values{"ref": {"dev"}, "variables[][key]": {"K"}, "variables[][value]": {"v"}}},
		{"variables of a schedule", "/ada/p/-/pipeline_schedules/{own}/edit", `name="variable_key"`, "POST /projects/{project}/pipeline_schedules/{own}/variables", url.Values{"key": {"K"}, "value": {"v"}}},
	}
}

// memberOffers are those of the members page of a project in a group.
func memberOffers() []offer {
	return []offer{
		{"add a member", "/g/q/-/settings/members", `action="/g/q/-/settings/members"`, "POST /projects/{q}/members", url.Values{"user_id": {"{new}"}, "access_level": {"10"}}},
		{"change a member", "/g/q/-/settings/members", `action="/g/q/-/settings/members/{member}"`, "PUT /projects/{q}/members/{member}", url.Values{"access_level": {"10"}}},
		{"remove a member", "/g/q/-/settings/members", `/settings/members/{member}/delete"`, "DELETE /projects/{q}/members/{member}", nil},
		{"approve a request", "/g/q/-/settings/members", `/settings/requests/{asks}/approve"`, "PUT /projects/{q}/access_requests/{asks}/approve", nil},
		{"share", "/g/q/-/settings/members", `action="/g/q/-/settings/shares"`, "POST /projects/{q}/share", url.Values{"group_id": {"{group}"}, "group_access": {"10"}}},
	}
}

// TestPagesOfferWhatTheAPIAllows checks controls as every role, in a project that is
// archived and in one that is not: a page has a control if and only if the API
// allows the user to do the same.
func TestPagesOfferWhatTheAPIAllows(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newCIProject(t, s, "a:\n  script: [x]\nm:\n  script: [x]\n  when: manual\n  parallel: 4\n")
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
		check := func(state string, offers []offer) {
			t.Helper()
			for _, who := range planners() {
				offered := map[string]bool{}
				for _, o := range offers {
					offered[o.name] = strings.Contains(browsers[who].get(names[who].Replace(o.page)).body, names[who].Replace(o.control))
				}
				for _, o := range offers {
					form := url.Values{}
					for key, values := range o.form {
						form.Set(key, names[who].Replace(values[0]))
					}
					call := apptest.Call{Do: names[who].Replace(o.do), As: tokens[who], Form: form}
					if strings.HasPrefix(o.do, "DELETE ") && !strings.Contains(o.do, "/repository/") {
						// A permitted call fails with this header, so nothing is deleted.
						call.Header = map[string]string{"If-Unmodified-Since": "Mon, 01 Jan 1990 00:00:00 GMT"}
					}
					if strings.HasPrefix(o.do, "GET ") {
						call.Form = nil
					}
					a := s.Send(t, call)
					if allowed := a.Status != 401 && a.Status != 403 && a.Status != 404 && !strings.Contains(string(a.Body), "Insufficient permissions"); allowed != offered[o.name] {
						t.Errorf("%s, %s, %s: the page offers it: %t, the API answers %d: %s", state, who, o.name, offered[o.name], a.Status, a.Body)
					}
				}
			}
		}
		st.api("POST /projects/%d/archive", 201, nil)
		check("archived", offers()) // first, because no call changes anything
		check("archived", variableOffers(0))
		st.api("POST /projects/%d/unarchive", 201, nil)
		for i, role := range []string{"no_one_allowed", "owner", "maintainer", "developer"} {
			st.api("PUT /projects/%d", 200, url.Values{overrideRole: {role}})
			if role == "developer" {
				check("active", offers())
			}
			check("variables for "+role, variableOffers(i))
		}

		group, members := offerMembers(st, tokens)
		names = members
		for _, lock := range []string{"membership_lock", "share_with_group_lock"} {
			set := func(value string) {
				t.Helper()
				s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /groups/%d", group), As: apptest.RootToken, Form: url.Values{lock: {value}}, Status: 200})
			}
			set("true")
			check(lock, memberOffers())
			set("false")
		}
		check("no lock", memberOffers())
	})
}

// offerObjects creates the objects of the offers, some for each role, and returns
// their names.
func offerObjects(st *ciProject, tokens map[string]string) map[string]*strings.Replacer {
	st.t.Helper()
	objects := map[string][]string{}
	for _, who := range planners() {
		pipeline := st.pipeline("dev")
		job := st.take()
		st.write(job, 0, "x\n")
		st.end(job, "failed")
		var schedule struct{ ID int64 }
		st.api("POST /projects/%d/pipeline_schedules", 201, url.Values{"description": {"d"}, "ref": {"main"}, "cron": {"0 4 1 1 *"}}).JSON(st.t, &schedule)
		var jobs []struct{ ID int64 }
		st.api(fmt.Sprintf("GET /projects/%%d/pipelines/%d/jobs?scope[]=manual", pipeline), 200, nil).JSON(st.t, &jobs)
		own := schedule.ID
		if slices.Contains([]string{"developer", "maintainer", "owner", "root"}, who) {
			st.s.Check(st.t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/pipeline_schedules", st.project), As: tokens[who], Status: 201,
				Form: url.Values{"description": {"own"}, "ref": {"dev"}, "cron": {"0 4 1 1 *"}}}).JSON(st.t, &schedule)
			own, schedule.ID = schedule.ID, own
		}
		objects[who] = []string{"{manual0}", fmt.Sprint(jobs[0].ID), "{manual1}", fmt.Sprint(jobs[1].ID), "{manual2}", fmt.Sprint(jobs[2].ID), "{manual3}", fmt.Sprint(jobs[3].ID), "{own}", fmt.Sprint(own),
			"{project}", fmt.Sprint(st.project), "{role}", who, "{pipeline}", fmt.Sprint(pipeline), "{job}", fmt.Sprint(job.ID), "{schedule}", fmt.Sprint(schedule.ID)}
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
		for _, name := range []string{"free-" + who, "kept-" + who, "new-" + who} {
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

// offerMembers creates a project in a group with members for each role to change.
func offerMembers(st *ciProject, tokens map[string]string) (group int64, names map[string]*strings.Replacer) {
	st.t.Helper()
	root := func(do string, form url.Values, out any) {
		st.t.Helper()
		st.s.Check(st.t, apptest.Call{Do: do, As: apptest.RootToken, Form: form, Status: 201}).JSON(st.t, out)
	}
	var g, q, other, skip struct{ ID int64 }
	root("POST /groups", url.Values{"name": {"G"}, "path": {"g"}, "visibility": {"public"}}, &g)
	root("POST /projects", url.Values{"name": {"Q"}, "path": {"q"}, "namespace_id": {fmt.Sprint(g.ID)}, "visibility": {"public"}}, &q)
	at := fmt.Sprintf("POST /projects/%d/", q.ID)
	for who, level := range map[string]string{"guest": "10", "developer": "30", "maintainer": "40", "owner": "50"} {
		var u []struct{ ID int64 }
		st.s.Check(st.t, apptest.Call{Do: "GET /users?username=" + who, As: apptest.RootToken, Status: 200}).JSON(st.t, &u)
		root(at+"members", url.Values{"user_id": {fmt.Sprint(u[0].ID)}, "access_level": {level}}, &skip)
	}
	names = map[string]*strings.Replacer{}
	for _, who := range planners() {
		fresh, _ := st.s.User(st.t, "fresh-"+who)
		member, _ := st.s.User(st.t, "member-"+who)
		asks, token := st.s.User(st.t, "asks-"+who)
		root(at+"members", url.Values{"user_id": {fmt.Sprint(member)}, "access_level": {"10"}}, &skip)
		st.s.Check(st.t, apptest.Call{Do: at + "access_requests", As: token, Status: 201})
		root("POST /groups", url.Values{"name": {"Other"}, "path": {"other-" + who}, "visibility": {"public"}}, &other)
		names[who] = strings.NewReplacer("{q}", fmt.Sprint(q.ID), "{new}", fmt.Sprint(fresh), "{member}", fmt.Sprint(member), "{asks}", fmt.Sprint(asks), "{group}", fmt.Sprint(other.ID))
	}
	return g.ID, names
}
