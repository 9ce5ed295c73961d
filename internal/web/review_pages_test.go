package web_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestReviewPages reviews a merge request on pages: draft notes are collected and
// published together, suggestions applied, changes requested and bypassed.
func TestReviewPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		eveID, _ := s.User(t, "eve")
		id := newProject(t, s, ada, "p", "public")
		r := s.Repository(t, id, gittest.Commit{Message: "Begin\n", Changes: change("a.txt", "one\ntwo\n")})
		r.Commit(gittest.Commit{Branch: "work", Message: "Work\n", Parents: []string{r.Tip("main")}, Changes: change("a.txt", "one\nTWO\n")})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/members", As: ada, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, eveID), Status: 201})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/merge_requests", As: ada, Status: 201,
			JSON: fmt.Sprintf(`{"source_branch":"work","target_branch":"main","title":"Work","reviewer_ids":[%d]}`, eveID)})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/protected_branches", As: ada, JSON: `{"name":"main","push_access_level":40,"merge_access_level":40}`, Status: 201})
		a, e, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password), newBrowser(t, s)
		const one = "/ada/p/-/merge_requests/1"

		e.get(one).want(200, "Start a review", "Your review", "Awaiting review").not("Finish review", "Pending")
		guest.get(one).want(200, "Awaiting review").not("Start a review", "Your review", "Request another review")
		a.submit(one, one+"/notes", "note", "What do you think?", "thread", "1").want(303)
		discussion := regexp.MustCompile(`/discussions/([0-9a-f]{40})"`).FindStringSubmatch(e.get(one).body)[1]
		e.submit(one, one+"/notes", "note", "In **general**", "review", "1").want(303)
		e.submit(one, one+"/notes", "note", "", "review", "1").want(422, "can&#39;t be blank", `name="review" value="1"`)
		e.submit(one, one+"/discussions/"+discussion, "note", "Well", "review", "1", "resolve", "1").want(303)
		page := e.get(one).want(200, "<strong>general</strong>", "Add to review", "Finish review", "2 pending comments", "The thread will be resolved.", "Review in progress")
		e.get(one+"/commits").want(200, "Finish review")
		a.get(one).want(200, "Review in progress").not("<strong>general", "Pending", "Finish review")
		draft := one + "/drafts/" + regexp.MustCompile(`id="draft_(\d+)"`).FindStringSubmatch(page.body)[1]
		a.get(draft + "/edit").want(404)
		e.get(draft+"/edit").want(200, "Edit pending comment")
		e.submit(draft+"/edit", draft, "note", "**bold**", "preview", "1").want(200, "<strong>bold</strong>")
		e.submit(draft+"/edit", draft, "note", " ").want(422, "can&#39;t be blank")
		e.submit(draft+"/edit", draft, "note", "Changed").want(303)
		e.submit(one, one+"/drafts/publish", "note", "In sum, no.", "state", "nonsense").want(422)
		e.submit(one, one+"/drafts/publish", "note", "In sum, no.", "state", "requested_changes").leads(one)
		a.get(one).want(200, "Changed", "In sum, no.", "Requested changes", "Merge blocked: changes requested", "Changes requested by eve", "Bypass", "Resolved by eve", "Request another review")
		e.get(one).want(200, "Merge blocked: changes requested").not("Finish review", "Bypass")
		e.submit(one, one+"/bypass").leads(one)
		e.get(one).want(200, "You don&#39;t have permission for this action on this merge request.")
		a.submit(one, one+"/bypass").leads(one)
		a.get(one).want(200, "The requested changes are bypassed.", "Ready to merge")
		a.submit(one, one+fmt.Sprintf("/reviewers/%d/request", eveID)).leads(one)
		a.get(one).want(200, "A review was requested.", "Awaiting review")

		// A review with an approval removes the request for changes.
		e.submit(one, one+"/drafts/publish", "state", "requested_changes").leads(one)
		a.get(one).want(200, "Merge blocked: changes requested").not(`value="requested_changes"`)
		head := regexp.MustCompile(`name="sha" value="([0-9a-f]{40})"`).FindStringSubmatch(e.get(one).want(200, `value="approved"`).body)[1]
		e.submit(one, one+"/drafts/publish", "state", "approved", "sha", strings.Repeat("0", 40), "note", "Stale").leads(one)
		a.get(one).want(200, "Merge blocked: changes requested").not("Stale")
		e.submit(one, one+"/notes", "note", "All good", "review", "1").want(303)
		e.submit(one, one+"/drafts/publish", "state", "approved", "sha", head).leads(one)
		e.get(one).want(200, "You approved the merge request.", "All good").not(`value="approved"`, "Pending")
		a.get(one).want(200, "Ready to merge", `title="Approved"`)
		a.submit(one, one+fmt.Sprintf("/reviewers/%d/request", eveID)).leads(one)

		// A single draft note is published, deleted; a review is discarded.
		for _, note := range []string{"First draft", "Second draft", "Third draft"} {
			e.submit(one, one+"/notes", "note", note, "review", "1").want(303)
		}
		ids := regexp.MustCompile(`id="draft_(\d+)"`).FindAllStringSubmatch(e.get(one).want(200, "3 pending comments").body, -1)
		e.submit(one, one+"/drafts/"+ids[0][1]+"/publish").leads(one)
		e.submit(one, one+"/drafts/"+ids[1][1]+"/delete").leads(one)
		e.get(one).want(200, "First draft", "Third draft", "1 pending comment").not("Second draft")
		e.submit(one, one+"/drafts/discard").leads(one)
		e.get(one).want(200, "Your pending comments were discarded.").not("Third draft")

		// On the page of changes, draft notes are below their lines.
		version := regexp.MustCompile(`name="version" value="(\d+)"`).FindStringSubmatch(e.get(one+"/diffs").want(200, "Start a review", "Add comment now", "Insert suggestion").body)[1]
		e.submit(one+"/diffs", one+"/diff_notes", "version", version, "path", "a.txt", "side", "new", "line", "9", "note", "Nowhere", "review", "1").want(303)
		e.submit(one+"/diffs", one+"/diff_notes", "version", version, "path", "a.txt", "side", "new", "line", "2", "note", "Why *capitals*?", "review", "1").want(303)
		e.get(one+"/diffs").want(200, "Why <em>capitals</em>?", "1 pending comment", "Add to review")
		e.get(one+"/diffs?fragment=1&file=a.txt").want(200, "Why <em>capitals</em>?", "data-reviewbars", "Finish review")
		e.get(one).want(200, "Why <em>capitals</em>?", "a.txt, line 2")
		a.get(one + "/diffs").want(200).not("<em>capitals")
		e.submit(one+"/diffs", one+"/drafts/publish", "state", "reviewed").leads(one)
		a.get(one+"/diffs").want(200, "Why <em>capitals</em>?")

		// A new issue continues the open threads.
		follow := "/ada/p/-/issues/new?merge_request_to_resolve_discussions_of=1"
		e.get(one).want(200, "open thread", "Resolve all with new issue", follow+"&amp;discussion_to_resolve=")
		guest.get(one).want(200, "open thread").not("Resolve all with new issue", "discussion_to_resolve")
		guest.get(follow).want(303)
		e.get(follow + "&discussion_to_resolve=x").want(404)
		e.get("/ada/p/-/issues/new?merge_request_to_resolve_discussions_of=x").want(404)
		e.get(follow).want(200, "Creating this issue resolves", "Follow-up from", "These threads of !1 should be addressed:", `name="merge_request_to_resolve_discussions_of" value="1"`)
		e.submit(follow, "/ada/p/-/issues", "title", "", "description", "x", "merge_request_to_resolve_discussions_of", "1").want(422, "Creating this issue resolves")
		e.submit(follow, "/ada/p/-/issues", "title", "Later", "description", "Do it", "merge_request_to_resolve_discussions_of", "1").want(303)
		e.get(one).want(200, "to continue").not("Resolve all with new issue")
		e.submit(one, one+"/notes", "note", "Done\n/label ~nothing\n/subscribe", "review", "1").want(303)
		e.submit(one, one+"/drafts/publish", "state", "reviewed").leads(one)
		e.get(one).want(200, "Labels were not found.")

		// Suggestions.
		var m struct {
			Refs struct {
				Base  string `json:"base_sha"`
				Start string `json:"start_sha"`
				Head  string `json:"head_sha"`
			} `json:"diff_refs"`
		}
		s.Check(t, apptest.Call{Do: "GET /projects/ada%2Fp/merge_requests/1", As: ada, Status: 200}).JSON(t, &m)
		for _, text := range []string{"Zwei", "Deux"} {
			s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/merge_requests/1/discussions", As: ada, Status: 201,
				JSON: fmt.Sprintf(`{"body":%q,"position":{"base_sha":%q,"start_sha":%q,"head_sha":%q,"position_type":"text","new_path":"a.txt","new_line":2}}`,
					"```suggestion\n<b>"+text+"\n```", m.Refs.Base, m.Refs.Start, m.Refs.Head)})
		}
		guest.get(one).want(200, "Suggested change", "&lt;b&gt;Zwei", "Removed: </span>TWO").not("Apply suggestion", "Add to batch")
		page = e.get(one).want(200, "Apply suggestion", "Add to batch", `id="batch"`)
		first := regexp.MustCompile(`name="ids" value="(\d+)"`).FindStringSubmatch(page.body)[1]
		e.submit(one, one+"/suggestions").leads(one)
		e.get(one).want(200, "Select suggestions to apply.")
		e.submit(one, one+"/suggestions", "ids", first, "message", "Use German").leads(one)
		e.get(one).want(200, "The suggestion was applied.", "Applied", "Not applicable", "The lines were changed after this suggestion was made.")
		if got := r.Git("log", "-1", "--format=%an: %s", "work"); strings.TrimSpace(got) != "eve: Use German" {
			t.Errorf("the commit is %q", got)
		}
		e.submit(one, one+"/suggestions", "ids", first).leads(one)
		e.get(one).want(200, "A suggestion has already been applied.")
	})
}

// TestConflictPages resolves the conflicts of a merge request on pages.
func TestConflictPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		_, _ = s.User(t, "eve")
		id := newProject(t, s, ada, "p", "public")
		text := func(second, tenth string) string {
			return "1\n" + second + "\n3\n4\n5\n6\n7\n8\n9\n" + tenth + "\n11\n"
		}
		r := s.Repository(t, id, gittest.Commit{Message: "Begin\n", Changes: change("a.txt", text("2", "10"), "b.txt", "b\n", "c.bin", "\x00\x01")})
		r.Commit(gittest.Commit{Branch: "work", Message: "Work\n", Parents: []string{r.Tip("main")}, Changes: change("a.txt", text("two", "ten"), "b.txt", "work\n")})
		r.Commit(gittest.Commit{Branch: "gone", Message: "Gone\n", Parents: []string{r.Tip("main")}, Changes: change("c.bin", "\x00\x02", "b.txt", "gone\n")})
		r.Commit(gittest.Commit{Branch: "main", Message: "Main\n", Parents: []string{r.Tip("main")}, Changes: change("a.txt", text("<b>zwei</b>", "zehn"), "b.txt", "main\n", "c.bin", "\x00\x03")})
		for _, branch := range []string{"work", "gone"} {
			s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/merge_requests", As: ada, Status: 201, JSON: fmt.Sprintf(`{"source_branch":%q,"target_branch":"main","title":"Work"}`, branch)})
		}
		a, e, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password), newBrowser(t, s)
		const one, two = "/ada/p/-/merge_requests/1", "/ada/p/-/merge_requests/2"
		a.get(one).want(200, "Merge blocked: merge conflicts", one+"/conflicts")
		e.get(one).want(200, "Merge blocked: merge conflicts").not(one + "/conflicts")
		e.get(one + "/conflicts").want(403)
		guest.get(one + "/conflicts").want(303)
		a.get(two+"/conflicts").want(200, "The file is not UTF-8 text.", "A file cannot be resolved here.").not("Commit to source branch")

		page := a.get(one+"/conflicts").want(200, "a.txt", "b.txt", "&lt;b&gt;zwei&lt;/b&gt;", "Use ours", "Use theirs", "choice_0_1", "Edit inline")
		field := func(name string) string {
			return regexp.MustCompile(`name="` + name + `" value="([0-9a-f]{40})"`).FindStringSubmatch(page.body)[1]
		}
		at := []string{"head", field("head"), "target", field("target")}
		send := func(more ...string) answer {
			return a.submit(one+"/conflicts", one+"/conflicts", append(at, more...)...)
		}
		send("choice_0_0", "ours", "choice_0_1", "theirs").want(422, "Choose a side for each conflict in b.txt.", `value="theirs" required checked`)
		send("choice_0_0", "ours", "edit", "1").want(200, `name="text_1"`, "&lt;&lt;&lt;&lt;&lt;&lt;&lt; ", `value="ours" required checked`, "Choose sides")
		send("choice_0_0", "ours", "choice_0_1", "theirs", "mode_1", "edit", "text_1", "<<<<<<< x\r\n").want(422, "still has conflict markers")
		a.submit(one+"/conflicts", one+"/conflicts", "head", field("target"), "target", field("target"), "choice_0_0", "ours").want(422, "has new commits")
		send("choice_0_0", "ours", "choice_0_1", "theirs", "mode_1", "edit", "text_1", "both\r\n", "message", "Merge it").leads(one)
		a.get(one).want(200, "The conflicts were resolved.", "Ready to merge")
		if got := r.Git("show", "work:a.txt"); got+"\n" != text("two", "zehn") {
			t.Errorf("a.txt is %q", got)
		}
		if got := r.Git("show", "work:b.txt"); got != "both" {
			t.Errorf("b.txt is %q", got)
		}
		if got := strings.TrimSpace(r.Git("log", "-1", "--format=%an|%s|%P", "work")); got != "ada|Merge it|"+field("head")+" "+field("target") {
			t.Errorf("the commit is %q", got)
		}
		a.get(one + "/conflicts").leads(one)
	})
}

// TestPickPages reverts and cherry-picks commits on pages.
func TestPickPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		_, _ = s.User(t, "eve")
		id := newProject(t, s, ada, "p", "public")
		r := s.Repository(t, id, gittest.Commit{Message: "Begin\n", Changes: change("a.txt", "1\n")})
		r.Git("branch", "stable", "main")
		r.Commit(gittest.Commit{Branch: "work", Message: "Work\n", Parents: []string{r.Tip("main")}, Changes: change("a.txt", "2\n")})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/merge_requests", As: ada, Status: 201, JSON: `{"source_branch":"work","target_branch":"main","title":"Work"}`})
		s.Check(t, apptest.Call{Do: "PUT /projects/ada%2Fp/merge_requests/1/merge", As: ada, Status: 200})
		a, e, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password), newBrowser(t, s)
		merged := "/ada/p/-/commit/" + r.Tip("main")
		const one = "/ada/p/-/merge_requests/1"
		a.get(one).want(200, merged+"/revert?branch=main", merged+"/cherry_pick")
		e.get(one).want(200).not("/revert", "/cherry_pick")
		a.get(merged).want(200, merged+"/revert", merged+"/cherry_pick")
		guest.get(merged).want(200).not("/revert")
		e.get(merged + "/revert").want(403)
		a.get(merged+"/revert").want(200, "Start a merge request with these changes", `value="main"`)

		a.submit(merged+"/revert", merged+"/revert", "branch", "nothing").want(422, "The branch does not exist.")
		a.submit(merged+"/revert", merged+"/revert", "branch", "main", "propose", "1").want(303)
		name := "revert-" + r.Tip("main")[:8]
		if got := r.Git("show", name+":a.txt"); got != "1" {
			t.Errorf("a.txt is %q", got)
		}
		a.get("/ada/p/-/merge_requests/new?merge_request[source_branch]="+name+"&merge_request[target_branch]=main").want(200, "Revert &#34;Merge branch")
		a.submit(merged+"/revert", merged+"/revert", "branch", "main", "propose", "1").want(422, "already exists")
		a.submit(merged+"/cherry_pick", merged+"/cherry_pick", "branch", "stable", "message", "Pick it").want(303)
		if got := strings.TrimSpace(r.Git("log", "-1", "--format=%s", "stable")); got != "Pick it" {
			t.Errorf("stable is at %q", got)
		}
		a.submit(merged+"/cherry_pick", merged+"/cherry_pick", "branch", "stable").want(422, "may already have been cherry-picked")
	})
}
