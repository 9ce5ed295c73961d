package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestMergePages creates, reviews and merges a merge request on pages.
func TestMergePages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		eveID, _ := s.User(t, "eve")
		call := func(do string, form url.Values) {
			t.Helper()
			s.Check(t, apptest.Call{Do: do, As: ada, Form: form, Status: 201})
		}
		id := newProject(t, s, ada, "p", "public")
		r := s.Repository(t, id, gittest.Commit{Message: "Begin\n", Changes: change("a.txt", "one\ntwo\n", "b.txt", "b\n")})
		call("POST /projects/ada%2Fp/labels", url.Values{"name": {"bug"}, "color": {"#ff0000"}})
		call("POST /projects/ada%2Fp/milestones", url.Values{"title": {"1.0"}})
		call("POST /projects/ada%2Fp/issues", url.Values{"title": {"Mend the engine"}})
		call("POST /projects/ada%2Fp/members", url.Values{"user_id": {fmt.Sprint(eveID)}, "access_level": {"20"}})
		b, eve, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password), newBrowser(t, s)

		const at, branches = "/ada/p/-/merge_requests", "/ada/p/-/branches"
		b.get(at).want(200, "Create a merge request")
		guest.get(at).want(200, "No merge requests yet").not("merge_requests/new")
		b.submit(branches, branches, "name", "1-fix", "ref", "main").want(303)
		r.Commit(gittest.Commit{Branch: "1-fix", Message: "Fix it\n\nFor good.\n", Parents: []string{r.Tip("main")}, Changes: change("a.txt", "one\nTWO\n")})
		b.get(branches).want(200, "merge_request%5Bsource_branch%5D=1-fix")
		guest.get(branches).want(200).not("merge_requests/new")
		b.get("/ada/p/-/compare/main...1-fix").want(200, "merge_request%5Bsource_branch%5D=1-fix&amp;merge_request%5Btarget_branch%5D=main")

		// The form asks for the branches first, and then suggests a title and a
		// description.
		b.get(at+"/new").want(200, "Compare and continue", `value="main"`)
		b.get(at+"/new?source_branch=nothing").want(422, "does not exist")
		full := at + "/new?merge_request[source_branch]=1-fix"
		goal := regexp.MustCompile(`<option value="(\d+)">1.0</option>`).FindStringSubmatch(
			b.get(full).want(200, `value="Fix it"`, "For good.\n\nCloses #1", "1 commit, 1 changed file").body)[1]
		eve.get(full).want(403)
		branch := []string{"source_branch", "1-fix", "target_branch", "main"}
		b.submit(full, at, append(branch, "title", "")...).want(422, "can&#39;t be blank")
		b.submit(full, at, append(branch, "title", "x", "description", "**bold**", "preview", "1")...).want(200, "<strong>bold</strong>")
		b.submit(full, at, "source_branch", "main", "target_branch", "main", "title", "x").want(422, "same project/branch")
		b.submit(full, at, append(branch, "title", "Fix it", "description", "Closes #1\n\n- [x] done\n", "planned", "1", "labels", "bug", "milestone_id", goal,
			"assignee_ids", fmt.Sprint(eveID), "reviewer_ids", fmt.Sprint(eveID), "remove", "1")...).leads(at + "/1")
		b.submit(full, at, append(branch, "title", "Again")...).want(422, "already exists")
		one := at + "/1"
		guest.get("/ada/p/-/milestones/1").want(200, ">Fix it<", `href="/ada/p/-/merge_requests/1"`)
		guest.get("/ada/p/-/issues/1").want(200, "Related merge requests</b>", ">Fix it<")
		page := b.get(one).want(200, "Ready to merge", "1 of 1 task done", ">bug<", ">1.0<", `name="sha"`, `href="/ada/p/-/issues/1"`, "Closes", `name="remove" value="1" checked`, "Changes <span class=\"badge\">1</span>")
		if len(page.body) > 50<<10 {
			t.Errorf("the page has %d bytes", len(page.body))
		}
		b.submit(one, one+"/tasks", "task", "0 false").leads(one)
		b.get(one).want(200, "0 of 1 task done", `value="0 true"`)
		eve.submit(one, one+"/tasks", "task", "0 true").leads(one) // an assignee
		guest.get(one).want(200, "1 of 1 task done").not(`form="tasks"`)
		b.submit(one, one+"/tasks", "task", "7 true").leads(one)
		b.get(one).want(200, "The task list has been changed")
		guest.get(one).want(200, "Fix it", "Ask a user who can merge into main").not(`name="sha"`, `<form method="post"`)
		eve.get(one).want(200, "Ask a user who can merge").not(`action="` + one + `/merge"`)
		b.get(one+"/commits").want(200, "Fix it", r.Tip("1-fix")[:8])
		b.get(one+"/pipelines").want(200, "No pipelines")
		b.get(one+"/diffs").want(200, "1 changed file", ">TWO</td>", ">two</td>")

		// Comments on lines of the changes.
		version := regexp.MustCompile(`name="version" value="(\d+)"`).FindStringSubmatch(b.get(one+"/diffs").want(200, one+"/diff_notes").body)[1]
		guest.get(one + "/diffs").want(200).not("diff_notes")
		onLine := func(who *browser, side, line, note string) answer {
			return who.submit(one+"/diffs", one+"/diff_notes", "version", version, "path", "a.txt", "side", side, "line", line, "note", note)
		}
		here := one + "/diffs?diff_id=" + version
		for _, c := range [][3]string{{"new", "2", "Why so *loud*?"}, {"old", "2", "It was quiet."}, {"old", "1", "This stays."}} {
			if to := onLine(eve, c[0], c[1], c[2]).header.Get("Location"); !strings.HasPrefix(to, here+"&note=") {
				t.Errorf("%v leads to %s", c, to)
			}
		}
		onLine(b, "new", "99", "x").leads(here)
		b.get(here).want(200, "not part of the diff")
		onLine(b, "new", "2", "").leads(here)
		onLine(b, "new", "x", "x").want(422)
		rows := b.get(here).want(200, `>TWO</td></tr>`+"\n"+`<tr class="talkrow"><td colspan="3">`, "<em>loud</em>", "It was quiet.").body
		_, rows, _ = strings.Cut(rows, `class="df-list"`)
		if strings.Index(rows, "This stays.") > strings.Index(rows, "It was quiet.") || strings.Count(rows, "talkrow") != 3 {
			t.Errorf("threads stand elsewhere: %s", rows)
		}
		b.get(here+"&view=parallel").want(200, `<tr class="talkrow"><td colspan="4">`, "This stays.")
		thread := regexp.MustCompile(`/discussions/(\w+)/resolve`).FindStringSubmatch(b.get(one).want(200, `Thread · <span class="mono small">a.txt, line 2</span> · <span class="muted small">1 comment<`, "a.txt, old line 2", "a.txt, line 1", "/diffs?note=").body)[1]
		eve.submit(one, one+"/discussions/"+thread+"/resolve", "resolved", "1").want(403)
		b.submit(one, one+"/discussions/"+thread+"/resolve", "resolved", "1").want(303)
		b.get(here).want(200, "Resolved by ada")
		b.get(at + "/99").want(404)
		b.get(at + "/x").want(404)

		// The forms of single fields, and the edit form.
		for part, want := range map[string]string{"labels": `value="bug" checked`, "assignees": fmt.Sprintf(`value="%d" checked`, eveID), "reviewers": fmt.Sprintf(`value="%d" checked`, eveID), "milestone": "selected>1.0"} {
			b.get(one+"/edit/"+part).want(200, want)
			guest.get(one + "/edit/" + part).want(303)
		}
		b.get(one + "/edit/nothing").want(404)
		b.submit(one, one+"/edit/nothing").want(404)
		b.submit(one, one+"/edit/labels", "new_label", "urgent").leads(one)
		b.submit(one, one+"/edit/reviewers").leads(one)
		b.submit(one, one+"/edit/milestone", "milestone_id", "0").leads(one)
		b.get(one).want(200, "urgent", "removed review request").not(">1.0<")
		was := regexp.MustCompile(`name="was" value="(\w+)"`).FindStringSubmatch(b.get(one+"/edit").want(200, `value="main"`).body)[1]
		b.submit(one+"/edit", one, "title", "T", "description", "mine", "target_branch", "main", "was", "0").want(422, "in the meantime", ">mine</textarea>")
		b.submit(one+"/edit", one, "title", "T", "description", "d", "target_branch", "none", "was", was).want(422, "Target branch does not exist")
		b.submit(one+"/edit", one, "title", "Fix everything", "description", "Fixes #1", "target_branch", "main", "was", was).leads(one)

		// Draft and ready, closed and open, locked, subscribed.
		b.submit(one, one+"/turn", "event", "draft").leads(one)
		b.get(one).want(200, "Merge blocked: draft", "Draft: Fix everything", "Mark as ready").not(`name="sha"`)
		b.submit(one, one+"/merge", "sha", r.Tip("1-fix")).leads(one)
		b.get(one).want(200, "does not allow this")
		b.submit(one, one+"/turn", "event", "ready").leads(one)
		b.submit(one, one+"/turn", "event", "close").leads(one)
		b.get(one).want(200, "were not merged", `value="reopen"`)
		b.submit(one, one+"/notes", "note", "Go on", "event", "reopen").want(303)
		b.get(one).want(200, "Ready to merge", "Go on")
		b.submit(one, one+"/turn", "event", "explode").want(422)
		b.submit(one, one+"/turn", "event", "lock").leads(one)
		guest.get(one).want(200, "Locked")
		b.submit(one, one+"/subscribe").leads(one)
		b.get(one).want(200, ">Subscribe</button>")

		// Only a head that the user has seen is merged.
		b.submit(one, one+"/merge").want(422, "Reload the page")
		b.submit(one, one+"/merge", "sha", strings.Repeat("1", 40)).leads(one)
		b.get(one).want(200, "New commits were pushed")
		b.submit(one, one+"/cancel_auto_merge").leads(one)
		b.submit(one, one+"/merge", "sha", r.Tip("1-fix"), "chosen", "1", "squash", "1", "message", "Into main").leads(one)
		b.get(one).want(200, "The merge request was merged", "The changes were merged into main.", "ada</a> merged ", "Closed <a").not(`name="sha"`, "Mark as")
		b.get("/ada/p").want(200, "Into main")
		rest(t, s)
		b.get("/ada/p/-/issues/1").want(200, "Closed")

		// Lists.
		for query, found := range map[string]bool{
			"": false, "?state=merged": true, "?state=all": true, "?state=closed": false, "?state=all&author_username=ada": true, "?state=all&author_username=eve": false,
			"?state=all&assignee_username=eve": true, "?state=all&reviewer_username=None": true, "?state=all&reviewer_username=eve": false, "?state=all&label_name[]=urgent": true,
			"?state=all&label_name[]=none": false, "?state=all&draft=yes": false, "?state=all&draft=no": true, "?state=all&target_branch=main": true, "?state=all&source_branch=main": false,
			"?state=all&search=EVERYTHING": true, "?state=all&search=nothing": false, "?state=all&milestone_title=Any": false, "?state=merged&sort=merged_at_desc": true, "?state=all&sort=nonsense": true, "?state=all&page=7": false,
		} {
			if got := strings.Contains(b.get(at+query).want(200).body, "Fix everything"); got != found {
				t.Errorf("%s: found %v", query, got)
			}
		}
		b.get("/dashboard/merge_requests?scope=created_by_me&state=merged").want(200, "Fix everything", "ada/p!1")
		eve.get("/dashboard/merge_requests?state=merged").want(200, "Fix everything")
		eve.get("/dashboard/merge_requests?state=merged&scope=reviews_for_me").want(200, "No merge requests yet").not("Fix everything")
		b.submit(one, one+"/delete").leads(at)
		b.get(one).want(404)
	})
}

// rest waits until no background jobs are left.
func rest(t *testing.T, s *apptest.Server) {
	t.Helper()
	if err := s.Queue.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestMergeFromFork creates a merge request from a fork, rebases it, and shows its
// conflicts.
func TestMergeFromFork(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		_, eveToken := s.User(t, "eve")
		id := newProject(t, s, ada, "p", "public")
		r := s.Repository(t, id, gittest.Commit{Message: "Begin\n", Changes: change("a.txt", "one\n", ".gitlab-ci.yml", "job: {script: [date]}\n")})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/fork", As: eveToken, Status: 201})
		rest(t, s)
		b, eve := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password)
		const fork, at = "/eve/p/-/", "/ada/p/-/merge_requests"
		eve.submit(fork+"new/main", fork+"new/main", "path", "x.txt", "content", "x", "branch", "topic", "message", "Add x", "propose", "1").
			leads("/eve/p/-/merge_requests/new?merge_request%5Bsource_branch%5D=topic&merge_request%5Btarget_branch%5D=main")
		full := fork + "merge_requests/new?merge_request[source_branch]=topic"
		eve.get(full).want(200, "ada/p:main", `value="Add x"`)
		eve.get(full+"&change=1").want(200, "eve/p</option>", "ada/p</option>")
		eve.get(full).want(200, `name="allow_collaboration" value="1" checked`)
		eve.submit(full, fork+"merge_requests", "source_branch", "topic", "target_branch", "main", "target_project_id", fmt.Sprint(id), "title", "From a fork", "asks_collaboration", "1", "allow_collaboration", "1").leads(at + "/1")
		one := at + "/1"
		pushToFork(t, s, ada, eveToken)
		eve.get(one).want(200, "eve/p:topic", "Ask a user who can merge").not(`action="` + one + `/merge"`)
		b.get(one).want(200, `name="sha"`)
		b.get(one+"/diffs").want(200, "x.txt")

		// With the merge method "fast-forward", it must be rebased first.
		s.Check(t, apptest.Call{Do: "PUT /projects/ada%2Fp", As: ada, Form: url.Values{"merge_method": {"ff"}}, Status: 200})
		r.Commit(gittest.Commit{Branch: "main", Message: "Move on\n", Parents: []string{r.Tip("main")}, Changes: change("b.txt", "b\n")})
		s.User(t, "ivo")
		newBrowser(t, s).signIn("ivo", password).get(one).want(200, "Merge blocked: rebase required").not(one + "/rebase")
		b.get(one).want(200, "Merge blocked: rebase required").not(one + "/rebase") // the author no longer allows commits of other users
		eve.get(one).want(200, "Merge blocked: rebase required", one+"/rebase")
		eve.submit(one, one+"/rebase").leads(one)
		rest(t, s)
		eve.get(one).want(200, "Ready to merge")
		r.Commit(gittest.Commit{Branch: "main", Message: "Clash\n", Parents: []string{r.Tip("main")}, Changes: change("x.txt", "other\n")})
		b.get(one).want(200, "Merge blocked: merge conflicts", "git fetch origin merge-requests/1/head").not("mb-also")
		// All checks that fail are shown, not only the first one.
		s.Check(t, apptest.Call{Do: "PUT /projects/ada%2Fp/merge_requests/1", As: ada, Form: url.Values{"title": {"Draft: Fix everything"}}, Status: 200, Want: `{"detailed_merge_status":"draft_status"}`})
		b.get(one).want(200, "Merge blocked: draft", "Mark as ready", "<b>Merge conflicts</b>", "git fetch origin merge-requests/1/head")
		s.Check(t, apptest.Call{Do: "PUT /projects/ada%2Fp/merge_requests/1", As: ada, Form: url.Values{"title": {"Fix everything"}}, Status: 200, Want: `{"detailed_merge_status":"conflict"}`})

		// The list shows the conflict, also after the target branch has changed.
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/repository/files/late.txt", As: ada, Form: url.Values{"branch": {"main"}, "content": {"x"}, "commit_message": {"Late"}}, Status: 201})
		const list = "GET /projects/ada%2Fp/merge_requests?state=opened"
		s.Check(t, apptest.Call{Do: list, Status: 200, Want: `[{"merge_status":"cannot_be_merged_recheck","detailed_merge_status":"unchecked","has_conflicts":false}]`})
		newBrowser(t, s).get("/ada/p/-/merge_requests").want(200, ">Conflicts<")
		b.get("/ada/p/-/merge_requests").want(200, ">Conflicts<")
		rest(t, s)
		s.Check(t, apptest.Call{Do: list, Status: 200, Want: `[{"merge_status":"cannot_be_merged","has_conflicts":true}]`})

		// Users who cannot see the fork see the merge request, but no data of the
		// fork.
		s.Check(t, apptest.Call{Do: "PUT /projects/eve%2Fp", As: eveToken, Form: url.Values{"visibility": {"private"}}, Status: 200})
		newBrowser(t, s).get(one).want(200, "(another project):topic").not("eve/p")
	})
}

// pushToFork checks that users who can merge !1 can push to its source branch in a fork,
// and to no other branch, while the author allows it.
func pushToFork(t *testing.T, s *apptest.Server, ada, eve string) {
	t.Helper()
	bobID, bob := s.User(t, "bob")
	_, dan := s.User(t, "dan")
	s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/members", As: ada, Form: url.Values{"user_id": {fmt.Sprint(bobID)}, "access_level": {"30"}}, Status: 201})
	s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/protected_branches?name=main", As: ada, Status: 201}) // bob cannot merge into it
	file := func(name, as, branch, start, path string, status int) apptest.Call {
		return apptest.Call{Name: name, Do: "POST /projects/eve%2Fp/repository/files/" + path, As: as, Status: status,
			Form: url.Values{"branch": {branch}, "start_branch": {start}, "content": {"x"}, "commit_message": {"Help"}}}
	}
	s.Table(t, []apptest.Call{
		file("user who can merge", ada, "topic", "topic", "1.txt", 201), file("who may not", bob, "topic", "topic", "2.txt", 403), file("a stranger", dan, "topic", "topic", "2.txt", 403),
		file("another branch", ada, "main", "main", "2.txt", 403), file("a new branch", ada, "more", "topic", "2.txt", 403),
		{Name: "no branch is made", Do: "POST /projects/eve%2Fp/repository/branches?branch=more&ref=topic", As: ada, Status: 403},
		{Name: "nor deleted", Do: "DELETE /projects/eve%2Fp/repository/branches/topic", As: ada, Status: 403},
		{Name: "nor a tag", Do: "POST /projects/eve%2Fp/repository/tags?tag_name=v1&ref=topic", As: ada, Status: 403},
		{Name: "not for others to say", Do: "PUT /projects/ada%2Fp/merge_requests/1", As: ada, Form: url.Values{"allow_collaboration": {"false"}}, Status: 200, Want: `{"allow_collaboration":true}`},
		{Name: "closed", Do: "PUT /projects/ada%2Fp/merge_requests/1", As: ada, Form: url.Values{"state_event": {"close"}}, Status: 200},
		file("collaboration is not allowed", ada, "topic", "topic", "2.txt", 403),
		{Name: "open again", Do: "PUT /projects/ada%2Fp/merge_requests/1", As: ada, Form: url.Values{"state_event": {"reopen"}}, Status: 200},
		file("it does", ada, "topic", "topic", "2.txt", 201),
		{Name: "the author allows it no more", Do: "PUT /projects/ada%2Fp/merge_requests/1", As: eve, Form: url.Values{"allow_collaboration": {"false"}}, Status: 200, Want: `{"allow_collaboration":false}`},
		file("so it ends", ada, "topic", "topic", "3.txt", 403),
	})
}

// TestMergeMarkup uses markup in all texts that the pages of merge requests show.
func TestMergeMarkup(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		id := newProject(t, s, ada, "p", "public")
		const evil, label = `x"><img/src=x>`, `<script>alert(1)</script>`
		const title = label + "\u202e"
		r := s.Repository(t, id, gittest.Commit{Message: "Begin\n", Changes: change("a.txt", "one\n")})
		r.Git("branch", evil, "main")
		r.Commit(gittest.Commit{Branch: evil, Message: title + "\n", Parents: []string{r.Tip("main")}, Changes: change(markup, "<script>alert(2)</script>\n", turned, "x\n")})
		r.Git("branch", "t"+evil, "main")
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/merge_requests", As: ada, Status: 201, Form: url.Values{
			"source_branch": {evil}, "target_branch": {"t" + evil}, "title": {title}, "labels": {label}, "description": {label + "[x](javascript:alert(3))<img src=x onerror=alert(4)>"},
		}})
		b := newBrowser(t, s).signIn("ada", password)
		const at = "/ada/p/-/merge_requests"
		for _, path := range []string{
			at, at + "/1", at + "/1/commits", at + "/1/diffs", at + "/1/pipelines", at + "/1/edit", at + "/1/edit/labels", "/dashboard/merge_requests?scope=created_by_me", "/ada/p/-/branches",
			at + "/new?source_branch=" + url.QueryEscape(evil) + "&target_branch=" + url.QueryEscape("t"+evil), at + "?search=" + url.QueryEscape(title) + "&target_branch=" + url.QueryEscape(evil),
		} {
			page := b.get(path).want(200).not("<script>alert", "<img/src", "<img src=x", `href="javascript:`)
			if !strings.Contains(path, "edit") && !strings.Contains(path, "/diffs") && !strings.Contains(path, "search=") { // a field contains the text
				page.not("\u202e")
			}
		}
	})
}

// TestMergeRoles visits the pages as every role, and submits their forms as users
// without permission.
func TestMergeRoles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		c := newRoleBrowsers(t, s)
		root := func(do string, form url.Values) {
			t.Helper()
			s.Check(t, apptest.Call{Do: do, As: apptest.RootToken, Form: form, Status: 201})
		}
		root("POST /projects/g%2Fp/repository/branches", url.Values{"branch": {"topic"}, "ref": {"main"}})
		root("POST /projects/g%2Fp/repository/files/x.txt", url.Values{"branch": {"topic"}, "content": {"x"}, "commit_message": {"Add x"}})
		root("POST /projects/g%2Fp/merge_requests", url.Values{"source_branch": {"topic"}, "target_branch": {"main"}, "title": {"A secret plan"}})
		const at = "/g/p/-/merge_requests"
		one := at + "/1"
		// nobody, blocked, outsider, guest, reporter, developer, maintainer, owner, root
		c.check(t, []string{at, one, one + "/commits", one + "/pipelines", one + "/diffs"}, 404, 404, 404, 404, 200, 200, 200, 200, 200)
		c.check(t, []string{one + "/edit", one + "/edit/labels", one + "/edit/reviewers"}, 303, 303, 404, 404, 403, 200, 200, 200, 200)
		c.check(t, []string{at + "/new?source_branch=topic", at + "/new"}, 303, 303, 404, 403, 403, 200, 200, 200, 200)
		c.check(t, []string{"/groups/g/-/merge_requests"}, 200, 200, 200, 200, 200, 200, 200, 200, 200)
		c.check(t, []string{"/dashboard/merge_requests"}, 303, 303, 200, 200, 200, 200, 200, 200, 200)
		for _, role := range roles {
			page := c.as[role].get("/groups/g/-/merge_requests")
			sees := role != "nobody" && role != "blocked" && role != "outsider" && role != "guest"
			if strings.Contains(page.body, "A secret plan") != sees {
				t.Errorf("%s sees the request in the list of the group: %v", role, !sees)
			}
		}
		// Each button, as the roles without permission; anonymous visitors are
		// redirected to the sign-in page.
		sha := regexp.MustCompile(`name="sha" value="(\w+)"`).FindStringSubmatch(c.as["maintainer"].get(one).want(200).body)[1]
		for _, press := range []struct {
			action string
			form   []string
			guest  int
			reads  int // of a Reporter
			writes int // of a Developer; 0 if they have permission
		}{
			{at, []string{"source_branch", "topic", "target_branch", "main", "title", "x"}, 403, 403, 422},
			{one, []string{"title", "x"}, 404, 403, 422},
			{one + "/merge", []string{"sha", sha}, 404, 303, 303}, // main is protected: the page shows the refusal
			{one + "/rebase", nil, 404, 303, 0},
			{one + "/cancel_auto_merge", nil, 404, 303, 303},
			{one + "/turn", []string{"event", "close"}, 404, 403, 0},
			{one + "/turn", []string{"event", "reopen"}, 404, 403, 0},
			{one + "/edit/labels", nil, 404, 403, 0},
			{one + "/delete", nil, 404, 403, 403},
			{one + "/subscribe", []string{"want", "1"}, 404, 303, 0},
			{one + "/notes", []string{"note", "x"}, 404, 303, 0},
			{one + "/diff_notes", []string{"path", "x.txt", "line", "1", "note", "x"}, 404, 303, 0},
			{one + "/blocks", []string{"merge_request", "!1"}, 404, 403, 0}, // refused on the page: the merge request itself
			{one + "/blocks", []string{"merge_request", "!77"}, 404, 303, 0},
			{one + "/blocks/1/delete", nil, 404, 403, 404},
			{one + "/viewed", []string{"viewed", "1 47ddfe38b8c66c0f9d98b9d802f220c84b4b30d4"}, 404, 303, 0},
		} {
			for role, want := range map[string]int{"outsider": 404, "guest": press.guest, "reporter": press.reads, "developer": press.writes} {
				got := c.press(t, role, press.action, press.form...)
				if want == 0 {
					want = 303
				}
				if got.status != want {
					t.Errorf("POST %s as %s: status %d, want %d: %s", press.action, role, got.status, want, got.header.Get("Location"))
				}
			}
		}
		c.as["developer"].get(one).want(200, "A secret plan", "Ask a user who can merge").not(`action="` + one + `/merge"`)
		c.as["maintainer"].submit(one, one+"/merge", "sha", sha).leads(one)
		c.as["reporter"].get(one).want(200, "The changes were merged into main.")
	})
}

// TestContextCommitPage adds a commit for context and removes it.
func TestContextCommitPage(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.User(t, "eve")
		id := newProject(t, s, ada, "p", "public")
		r := s.Repository(t, id, gittest.Commit{Message: "Merged before\n", Changes: change("a.txt", "one\n")})
		before := r.Tip("main")
		r.Commit(gittest.Commit{Branch: "use", Message: "Add\n", Parents: []string{before}, Changes: change("b.txt", "x\n")})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/merge_requests", id), As: ada, JSON: `{"source_branch":"use","target_branch":"main","title":"Use"}`, Status: 201})
		const at, add, remove = "/ada/p/-/merge_requests/1/commits", "/ada/p/-/merge_requests/1/context_commits", "/ada/p/-/merge_requests/1/context_commits/delete"
		b, eve := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password)
		b.get(at).want(200, "Context commits").not("Merged before")
		eve.get(at).want(200).not("Context commits")
		b.submit(at, add, "commits", "main").leads(at)
		b.get(at).want(200, "One or more context commits").not("Merged before")
		b.submit(at, add, "commits", " "+before[:8]+",\n").leads(at)
		b.get(at).want(200, "The context commits were added.", "Merged before", remove)
		eve.get(at).want(200, "Merged before").not(remove)
		eve.submit(at, remove, "commit", before).want(403)
		eve.get(at).want(200, "Merged before")
		b.submit(at, remove, "commit", before).leads(at)
		b.get(at).want(200, "The context commit was removed.").not("Merged before")
	})
}

// TestMergeDependencyPage shows a blocked merge request to users who see the one
// that blocks it, and to those who do not.
func TestMergeDependencyPage(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.User(t, "eve")
		open := func(name, visibility string) (ids []int64) {
			id := newProject(t, s, ada, name, visibility)
			r := s.Repository(t, id, gittest.Commit{Message: "Begin\n", Changes: change("a.txt", "one\n")})
			for _, branch := range []string{"lib", "use"} {
				r.Commit(gittest.Commit{Branch: branch, Message: "Add\n", Parents: []string{r.Tip("main")}, Changes: change(branch, "x\n")})
				var m struct{ ID int64 }
				s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/merge_requests", id), As: ada, JSON: fmt.Sprintf(`{"source_branch":%q,"target_branch":"main","title":"Take %[1]s"}`, branch), Status: 201}).JSON(t, &m)
				ids = append(ids, m.ID)
			}
			return ids
		}
		public, private := open("p", "public"), open("secret", "private")
		for _, id := range []int64{public[0], private[0]} {
			s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/merge_requests/2/blocks", As: ada, JSON: fmt.Sprintf(`{"blocking_merge_request_id":%d}`, id), Status: 201})
		}
		const at = "/ada/p/-/merge_requests/2"
		b := newBrowser(t, s).signIn("ada", password)
		b.get(at).want(200, "Merge blocked: dependencies", "2 merge requests must be merged", `href="/ada/p/-/merge_requests/1"`, "ada/secret!1", "Set to auto-merge").not("that you cannot see")
		eve := newBrowser(t, s).signIn("eve", password)
		eve.get(at).want(200, "Merge blocked: dependencies", "!1", "a merge request that you cannot see").not("ada/secret", "Set to auto-merge", "Add a dependency", at+"/blocks")
		eve.get("/ada/p/-/merge_requests/1").want(200, "Blocks</span>", `href="`+at+`"`)

		// Each is removed with its button, then added by another kind of reference.
		remove := regexp.MustCompile(`action="(` + at + `/blocks/\d+/delete)"`)
		add := func(reference, flash string) {
			t.Helper()
			b.submit(at, at+"/blocks", "merge_request", reference).leads(at)
			b.get(at).want(200, flash)
		}
		for _, c := range []struct{ reference, name string }{
			{"1", "!1"}, {"!1", "!1"}, {"ada/p!1", "!1"}, {s.URL + "/ada/p/-/merge_requests/1/diffs#note_1", "!1"}, {"ada/secret!2", "ada/secret!2"},
		} {
			for _, one := range remove.FindAllStringSubmatch(b.get(at).body, -1) {
				eve.submit("/", one[1]).want(403)
				b.submit(at, one[1]).leads(at)
				b.get(at).want(200, "The dependency was removed.")
				b.submit(at, one[1]).want(404)
			}
			b.get(at).want(200, "Add a dependency").not("Depends on</span>", "Merge blocked: dependencies")
			add(c.reference, "The dependency was added.")
			b.get(at).want(200, "Depends on</span>", `<span class="muted small">`+c.name+`</span>`, "Merge blocked: dependencies")
			add(c.reference, "The merge request has this dependency already.")
		}
		add("!77", "The merge request does not exist, or you don&#39;t have access to it.")
		add("nothing", "Enter a merge request reference such as !5 or group/project!5.")
		add("!2", "A merge request cannot depend on itself")
		eve.submit("/", at+"/blocks", "merge_request", "!1").want(403)
		// The section exists while it is empty, so that the script can fill it.
		newBrowser(t, s).get("/ada/p/-/merge_requests/1").want(200, `<div data-part="dependencies" data-poll></div>`)
		s.Check(t, apptest.Call{Do: "PUT /projects/ada%2Fp/merge_requests/1", As: ada, JSON: `{"state_event":"close"}`, Status: 200})
		b.get("/ada/p/-/merge_requests/1").want(200).not("Add a dependency")
		eve.submit("/", "/ada/secret/-/merge_requests/1/blocks", "merge_request", "ada/p!1").want(404)
	})
}
