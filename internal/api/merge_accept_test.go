package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/project"
	"svc/internal/waittest"
)

// becomes sends a call when all background jobs are done.
func becomes(t testing.TB, s *apptest.Server, c apptest.Call) {
	t.Helper()
	if err := s.Queue.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Check(t, c)
}

// proposed creates a branch with a commit and a merge request from it into main, and
// returns the path of the merge request.
func proposed(t testing.TB, s *apptest.Server, as string, id int64, branch, more string) string {
	t.Helper()
	commitTo(t, s, as, id, branch, branch+".txt", branch+"\n", "Add "+branch)
	return requested(t, s, as, id, branch, more)
}

func requested(t testing.TB, s *apptest.Server, as string, id int64, branch, more string) string {
	t.Helper()
	var m struct{ IID, ProjectID int64 }
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/merge_requests", id), As: as, Status: 201,
		JSON: fmt.Sprintf(`{"source_branch":%q,"target_branch":"main","title":"Take %[1]s"%s}`, branch, more)}).JSON(t, &m)
	return fmt.Sprintf("/projects/%d/merge_requests/%d", id, m.IID)
}

func TestMergeAccept(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		_, dan := s.User(t, "dan")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		enlist(t, s, id, bobID, project.Developer)
		at := fmt.Sprintf("/projects/%d", id)
		tip := func(branch string) (c struct {
			Commit struct {
				ID, Message string
				ParentIDs   []string `json:"parent_ids"`
			}
		}) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "GET " + at + "/repository/branches/" + branch, Status: 200}).JSON(t, &c)
			return c
		}
		s.Check(t, apptest.Call{Do: "POST " + at + "/protected_branches", As: alice, JSON: `{"name":"main","push_access_level":0,"merge_access_level":40}`, Status: 201})
		made(t, s, alice, "POST "+at+"/issues", `{"title":"bug"}`)
		made(t, s, alice, "POST "+at+"/issues", `{"title":"other"}`)
		one := proposed(t, s, bob, id, "one", `,"description":"Closes #1, see #2","remove_source_branch":true`)
		s.Table(t, []apptest.Call{
			{Name: "what it closes", Do: "GET " + one + "/closes_issues", Status: 200, Want: `[{"iid":1}]`},
			{Name: "and names", Do: "GET " + one + "/related_issues", Status: 200, Want: `[{"iid":1},{"iid":2}]`},
			{Name: "from the issue", Do: "GET " + at + "/issues/1/closed_by", Status: 200, Want: `[{"iid":1}]`},
			{Name: "from the other", Do: "GET " + at + "/issues/2/closed_by", Status: 200, Want: `[]`},
			{Name: "related", Do: "GET " + at + "/issues/2/related_merge_requests", Status: 200, Want: `[{"iid":1}]`},
			{Name: "counted", Do: "GET " + at + "/issues/1", Status: 200, Want: `{"merge_requests_count":1}`},
			{Name: "anonymous", Do: "PUT " + one + "/merge", Status: 401},
			{Name: "a stranger", Do: "PUT " + one + "/merge", As: dan, Status: 401},
			{Name: "who may not merge", Do: "PUT " + one + "/merge", As: bob, Status: 401, Want: `{"message":"401 Unauthorized"}`},
			{Name: "another head", Do: "PUT " + one + "/merge", As: alice, JSON: `{"sha":"0000000000000000000000000000000000000000"}`, Status: 409},
			{Name: "a draft", Do: "PUT " + one, As: bob, JSON: `{"title":"Draft: Take one"}`, Status: 200},
			{Name: "is not merged", Do: "PUT " + one + "/merge", As: alice, Status: 405, Want: `{"message":"405 Method Not Allowed"}`},
			{Name: "ready", Do: "PUT " + one, As: bob, JSON: `{"title":"Take one"}`, Status: 200},
			{Name: "where it would be", Do: "GET " + one + "/merge_ref", Status: 200, Want: `{"commit_id":"<any>"}`},
		})
		before, head := tip("main").Commit.ID, tip("one").Commit.ID
		s.Check(t, apptest.Call{Do: "PUT " + one + "/merge", As: alice, JSON: fmt.Sprintf(`{"sha":%q}`, head), Status: 200,
			Want: `{"state":"merged","merged_by":{"username":"alice"},"merge_user":{"username":"alice"},"merged_at":"<any>","merge_commit_sha":"<any>","squash_commit_sha":null,"detailed_merge_status":"not_open","merge_status":"can_be_merged"}`})
		after := tip("main").Commit
		if want := "Merge branch 'one' into 'main'\n\nTake one\n\nCloses #1\n\nSee merge request alice/code!1"; strings.TrimSpace(after.Message) != want {
			t.Errorf("message %q, want %q", after.Message, want)
		}
		if len(after.ParentIDs) != 2 || after.ParentIDs[0] != before || after.ParentIDs[1] != head {
			t.Errorf("parents %v, want %s %s", after.ParentIDs, before, head)
		}
		becomes(t, s, apptest.Call{Do: "GET " + at + "/issues/1", Status: 200, Want: `{"state":"closed","closed_by":{"username":"alice"}}`})
		becomes(t, s, apptest.Call{Do: "GET " + at + "/repository/branches/one", Status: 404})
		s.Table(t, []apptest.Call{
			{Name: "the other issue stays", Do: "GET " + at + "/issues/2", Status: 200, Want: `{"state":"opened"}`},
			{Name: "shown there", Do: "GET " + at + "/issues/1/notes?activity_filter=only_activity", Status: 200, Want: `[{"body":"closed via merge request !1"},{"body":"mentioned in merge request !1"}]`},
			{Name: "a second time", Do: "PUT " + one + "/merge", As: alice, Status: 405},
			{Name: "stays merged", Do: "PUT " + one, As: alice, JSON: `{"state_event":"reopen"}`, Status: 200, Want: `{"state":"merged"}`},
			{Name: "its commits", Do: "GET " + one + "/commits", Status: 200, Want: `[{"title":"Add one"}]`},
			{Name: "of the merge commit", Do: "GET " + at + "/repository/commits/" + after.ID + "/merge_requests", Status: 200, Want: `[{"iid":1}]`},
			{Name: "event", Do: "GET " + at + "/events?target_type=merge_request&action=merged", Status: 200, Want: `[{"action_name":"accepted","target_iid":1}]`},
		})

		two := proposed(t, s, bob, id, "two", `,"squash":true`)
		commitTo(t, s, bob, id, "two", "two.txt", "two again\n", "Again two")
		var done struct {
			Squash string `json:"squash_commit_sha"`
		}
		s.Check(t, apptest.Call{Do: "PUT " + two + "/merge", As: alice, JSON: `{"squash_commit_message":"All of two","merge_commit_message":"Merged two"}`, Status: 200, Want: `{"state":"merged","squash_commit_sha":"<any>","merge_commit_sha":"<any>"}`}).JSON(t, &done)
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/commits/" + done.Squash, Status: 200, Want: `{"title":"All of two","author_name":"bob","author_email":"bob@example.org","committer_name":"alice"}`})
		if got := tip("main").Commit; strings.TrimSpace(got.Message) != "Merged two" || got.ParentIDs[1] != done.Squash {
			t.Errorf("main is %+v", got)
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/branches/two", Status: 200})

		s.Check(t, apptest.Call{Do: "PUT " + at, As: alice, JSON: `{"merge_method":"ff"}`, Status: 200})
		three, four := proposed(t, s, bob, id, "three", ""), proposed(t, s, bob, id, "four", "")
		s.Check(t, apptest.Call{Do: "PUT " + three + "/merge", As: alice, Status: 200, Want: `{"state":"merged","merge_commit_sha":null}`})
		if got := tip("main").Commit.ID; got != tip("three").Commit.ID {
			t.Errorf("main is at %s, not at the head of three", got)
		}
		s.Table(t, []apptest.Call{
			{Name: "behind", Do: "GET " + four + "?include_diverged_commits_count=true", Status: 200, Want: `{"detailed_merge_status":"need_rebase","has_conflicts":false,"diverged_commits_count":1}`},
			{Name: "can not go forward", Do: "PUT " + four + "/merge", As: alice, Status: 422, Want: `{"message":"Branch cannot be merged"}`},
			{Name: "rebase as a stranger", Do: "PUT " + four + "/rebase", As: dan, Status: 403},
			{Name: "rebase", Do: "PUT " + four + "/rebase", As: bob, Status: 202, Want: `{"rebase_in_progress":true}`},
		})
		becomes(t, s, apptest.Call{Do: "GET " + four + "?include_rebase_in_progress=true", Status: 200, Want: `{"rebase_in_progress":false,"detailed_merge_status":"mergeable","merge_error":null}`})
		s.Check(t, apptest.Call{Do: "GET " + four + "/versions", Status: 200, Want: `[{"state":"collected"},{"state":"collected"}]`})
		s.Check(t, apptest.Call{Do: "PUT " + four + "/merge", As: alice, JSON: `{"should_remove_source_branch":true}`, Status: 200, Want: `{"state":"merged"}`})

		commitTo(t, s, bob, id, "left", "a.txt", "left\n", "Left")
		commitTo(t, s, bob, id, "right", "a.txt", "right\n", "Right\n\nFixes #2")
		left, right := requested(t, s, bob, id, "left", ""), requested(t, s, bob, id, "right", "")
		s.Check(t, apptest.Call{Do: "PUT " + left + "/merge", As: alice, Status: 200, Want: `{"state":"merged"}`})
		s.Table(t, []apptest.Call{
			{Name: "clash", Do: "GET " + right, Status: 200, Want: `{"detailed_merge_status":"conflict","merge_status":"cannot_be_merged","has_conflicts":true}`},
			{Name: "is not merged", Do: "PUT " + right + "/merge", As: alice, Status: 422},
			{Name: "nor tried", Do: "GET " + right + "/merge_ref", Status: 400},
			{Name: "nor rebased", Do: "PUT " + right + "/rebase", As: bob, Status: 202},
			{Name: "what it would close", Do: "GET " + right + "/closes_issues", Status: 200, Want: `[{"iid":2}]`},
			{Name: "the list knows", Do: "GET " + at + "/merge_requests?state=opened", Status: 200, Want: `[{"detailed_merge_status":"conflict"}]`},
		})
		becomes(t, s, apptest.Call{Do: "GET " + right + "?include_rebase_in_progress=true", Status: 200, Want: `{"rebase_in_progress":false,"merge_error":"Rebase failed: Rebase locally, resolve all conflicts, then push the branch."}`})

		// A merge request whose commits are pushed to the target branch becomes
		// merged.
		five := proposed(t, s, bob, id, "five", "")
		s.Check(t, apptest.Call{Do: "DELETE " + at + "/protected_branches/main", As: alice, Status: 204})
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository/branches?branch=six&ref=five", As: alice, Status: 201})
		six := proposed(t, s, alice, id, "six", "")
		s.Check(t, apptest.Call{Do: "PUT " + six + "/merge", As: alice, Status: 200})
		becomes(t, s, apptest.Call{Do: "GET " + five, Status: 200, Want: `{"state":"merged","merged_by":{"username":"alice"}}`})
		// The source branch is not removed if it is pushed to after the merge.
		seven := proposed(t, s, alice, id, "seven", "")
		becomes(t, s, apptest.Call{Do: "GET " + seven, Status: 200})
		if err := s.Queue.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "PUT " + seven + "/merge", As: alice, JSON: `{"should_remove_source_branch":true}`, Status: 200, Want: `{"state":"merged"}`})
		late := commitTo(t, s, alice, id, "seven", "late.txt", "late\n", "Late")
		if err := s.Queue.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		becomes(t, s, apptest.Call{Do: "GET " + at + "/repository/branches/seven", Status: 200, Want: fmt.Sprintf(`{"commit":{"id":%q}}`, late)})
		commitTo(t, s, alice, id, "main", "z.txt", "z\n", "Fixes #2")
		becomes(t, s, apptest.Call{Do: "GET " + at + "/issues/2", Status: 200, Want: `{"state":"closed"}`})
	})
}

// TestMergeRace merges two merge requests with many concurrent requests: each is
// merged once, and no merged commit is lost.
func TestMergeRace(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := code(t, s, alice, "code", "")
		const requests, callers = 3, 3
		var paths []string
		for i := range requests {
			paths = append(paths, proposed(t, s, alice, id, fmt.Sprintf("b%d", i), `,"squash":true`))
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		merged := map[string]int{}
		for range callers {
			for _, path := range paths {
				all.Go(func() {
					a := s.Send(t, apptest.Call{Do: "PUT " + path + "/merge", As: alice})
					mu.Lock()
					defer mu.Unlock()
					switch a.Status {
					case 200:
						merged[path]++
					case 405, 409: // another request is merging it, or has merged it
					default:
						t.Errorf("%s: %d %s", path, a.Status, a.Body)
					}
				})
			}
		}
		all.Wait()
		var commits []struct{ Title string }
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/repository/commits?per_page=100", id), As: alice, Status: 200}).JSON(t, &commits)
		found := map[string]int{}
		for _, c := range commits {
			found[c.Title]++
		}
		for i, path := range paths {
			if merged[path] != 1 || found[fmt.Sprintf("Take b%d", i)] != 1 || found[fmt.Sprintf("Merge branch 'b%d' into 'main'", i)] != 1 {
				t.Errorf("%s: merged %d times; commits %v", path, merged[path], found)
			}
			s.Check(t, apptest.Call{Do: "GET " + path, As: alice, Status: 200, Want: `{"state":"merged"}`})
		}
	})
}

// TestMergeForks creates merge requests from forks, and checks that others cannot
// see private code.
func TestMergeForks(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		danID, dan := s.User(t, "dan")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		var fork struct{ ID int64 }
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/fork", id), As: bob, JSON: `{"visibility":"private"}`, Status: 201}).JSON(t, &fork)
		becomes(t, s, apptest.Call{Do: fmt.Sprintf("GET /projects/%d", fork.ID), As: bob, Status: 200, Want: `{"import_status":"finished"}`})
		secret := commitTo(t, s, bob, fork.ID, "secret", "s.txt", "secret\n", "A secret title")
		commitTo(t, s, bob, fork.ID, "work", "w.txt", "work\n", "Add work")
		strange := code(t, s, bob, "strange", "")
		at := fmt.Sprintf("/projects/%d", id)
		s.Table(t, []apptest.Call{
			{Name: "into a project of elsewhere", Do: fmt.Sprintf("POST /projects/%d/merge_requests", strange), As: bob, JSON: fmt.Sprintf(`{"source_branch":"main","target_branch":"main","title":"x","target_project_id":%d}`, id), Status: 422,
				Want: `{"message":["Source project is not a fork of the target project"]}`},
			{Name: "from a fork that one does not see", Do: fmt.Sprintf("POST /projects/%d/merge_requests", fork.ID), As: dan, JSON: fmt.Sprintf(`{"source_branch":"work","target_branch":"main","title":"x","target_project_id":%d}`, id), Status: 404},
			{Name: "into a project that one does not see", Do: fmt.Sprintf("POST /projects/%d/merge_requests", id), As: alice, JSON: fmt.Sprintf(`{"source_branch":"main","target_branch":"work","title":"x","target_project_id":%d}`, fork.ID), Status: 404},
			{Name: "from the fork", Do: fmt.Sprintf("POST /projects/%d/merge_requests", fork.ID), As: bob, JSON: fmt.Sprintf(`{"source_branch":"work","target_branch":"main","title":"Work","target_project_id":%d,"labels":"bug","assignee_id":%d,"allow_collaboration":true}`, id, danID), Status: 201,
				Want: fmt.Sprintf(`{"iid":1,"project_id":%d,"source_project_id":%d,"labels":[],"assignees":[],"allow_collaboration":true,"user":{"can_merge":false},"detailed_merge_status":"mergeable"}`, id, fork.ID)},
			{Name: "all users see the diff", Do: "GET " + at + "/merge_requests/1/diffs", Status: 200, Want: `[{"new_path":"w.txt"}]`},
			{Name: "but nothing else of the fork", Do: "GET " + at + "/repository/commits/" + secret, Status: 404},
			{Name: "nor its path", Do: "GET " + at + "/merge_requests/1", Status: 200, Not: []string{"bob/code"}},
			{Name: "nor in lists of commits", Do: "GET " + at + "/repository/commits?all=true", Status: 200, Want: `[{"title":"first"}]`},
			{Name: "not by its author", Do: "PUT " + at + "/merge_requests/1/merge", As: bob, Status: 401},
		})
		more := commitTo(t, s, bob, fork.ID, "work", "w.txt", "work and more\n", "More work")
		s.Table(t, []apptest.Call{
			{Name: "a push to the fork", Do: "GET " + at + "/merge_requests/1", Status: 200, Want: fmt.Sprintf(`{"sha":%q}`, more)},
			{Name: "its commits", Do: "GET " + at + "/merge_requests/1/commits", Status: 200, Want: `[{"title":"More work"},{"title":"Add work"}]`},
			{Name: "notified", Do: fmt.Sprintf("GET %s/merge_requests/1/versions", at), Status: 200, Want: `[{"state":"collected"},{"state":"collected"}]`},
			{Name: "merge", Do: "PUT " + at + "/merge_requests/1/merge", As: alice, JSON: `{"should_remove_source_branch":true}`, Status: 200, Want: `{"state":"merged"}`},
			{Name: "there", Do: "GET " + at + "/repository/files/w.txt/raw?ref=main", Status: 200},
			{Name: "another user's branch stays", Do: fmt.Sprintf("GET /projects/%d/repository/branches/work", fork.ID), As: bob, Status: 200},
		})
		// The merge requests of a deleted fork remain.
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/merge_requests", fork.ID), As: bob, JSON: fmt.Sprintf(`{"source_branch":"secret","target_branch":"main","title":"Secret","target_project_id":%d}`, id), Status: 201})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d", fork.ID), As: bob, Status: 202})
		s.Table(t, []apptest.Call{
			{Name: "what a fork had proposed", Do: "GET " + at + "/merge_requests/2/commits", Status: 200, Want: `[{"title":"A secret title"}]`},
			{Name: "can not be merged", Do: "GET " + at + "/merge_requests/2", Status: 200, Want: `{"detailed_merge_status":"commits_status"}`},
			{Name: "for members only", Do: "PUT " + at, As: alice, JSON: `{"merge_requests_access_level":"private"}`, Status: 200},
			{Name: "so others know nothing", Do: "GET " + at + "/merge_requests/2", As: dan, Status: 404},
			{Do: "GET /merge_requests?scope=all", As: dan, Status: 200, Want: `[]`},
			{Do: "GET " + at + "/events?target_type=merge_request", As: dan, Status: 200, Want: `[]`},
			{Do: "GET " + at + "/repository/commits/" + secret + "/merge_requests", As: dan, Status: 404},
			{Name: "an author who goes", Do: fmt.Sprintf("DELETE /users/%d?hard_delete=true", bobID), As: root, Status: 204},
		})
		// A hard deletion of a user deletes their merge requests.
		becomes(t, s, apptest.Call{Do: "GET " + at + "/merge_requests", As: alice, Status: 200, Want: `[]`})
		s.Check(t, apptest.Call{Do: "GET " + at + "/events?target_type=merge_request", As: alice, Status: 200, Want: `[]`})
	})
}

// TestUnlinkedFork checks that the merge requests between a project and its former
// fork are closed, cannot be reopened and give no access to the fork.
func TestUnlinkedFork(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		_, carol := s.User(t, "carol")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		fork := func(as string, from int64) int64 {
			t.Helper()
			var made struct{ ID int64 }
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/fork", from), As: as, Status: 201}).JSON(t, &made)
			becomes(t, s, apptest.Call{Do: fmt.Sprintf("GET /projects/%d", made.ID), As: as, Status: 200, Want: `{"import_status":"finished"}`})
			return made.ID
		}
		bobFork := fork(bob, id)
		carolFork := fork(carol, bobFork)
		request := func(as string, from, into int64, branch string) string {
			t.Helper()
			commitTo(t, s, as, from, branch, branch+".txt", branch+"\n", "Add "+branch)
			var m struct{ IID int64 }
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/merge_requests", from), As: as, Status: 201,
				JSON: fmt.Sprintf(`{"source_branch":%q,"target_branch":"main","title":"x","target_project_id":%d,"allow_collaboration":true}`, branch, into)}).JSON(t, &m)
			return fmt.Sprintf("/projects/%d/merge_requests/%d", into, m.IID)
		}
		up, across, below, own := request(bob, bobFork, id, "work"), request(carol, carolFork, id, "across"), request(carol, carolFork, bobFork, "below"), request(alice, id, id, "own")
		push := func(name string, status int) apptest.Call {
			return apptest.Call{Name: name, Do: fmt.Sprintf("POST /projects/%d/repository/commits", bobFork), As: alice, Status: status,
				JSON: fmt.Sprintf(`{"branch":"work","commit_message":"Change","actions":[{"action":"create","file_path":%q,"content":"x"}]}`, name)}
		}
		s.Table(t, []apptest.Call{
			push("upstream", 201),
			{Name: "a merge request that is closed before", Do: "PUT " + across, As: carol, JSON: `{"state_event":"close"}`, Status: 200},
			{Name: "and reopened", Do: "PUT " + across, As: carol, JSON: `{"state_event":"reopen"}`, Status: 200},
			{Name: "unlink", Do: fmt.Sprintf("DELETE /projects/%d/fork", bobFork), As: bob, Status: 204},
			push("former upstream", 403),
		})
		becomes(t, s, apptest.Call{Do: "GET " + up, As: bob, Status: 200, Want: `{"state":"closed","closed_by":{"username":"bob"}}`})
		s.Table(t, []apptest.Call{
			{Name: "of a fork of the fork", Do: "GET " + across, As: bob, Status: 200, Want: `{"state":"closed"}`},
			{Name: "in the new network", Do: "GET " + below, As: bob, Status: 200, Want: `{"state":"opened"}`},
			{Name: "in the project", Do: "GET " + own, As: bob, Status: 200, Want: `{"state":"opened"}`},
			{Name: "reopen", Do: "PUT " + up, As: bob, JSON: `{"state_event":"reopen"}`, Status: 409},
			{Name: "still closed", Do: "GET " + up, As: bob, Status: 200, Want: `{"state":"closed"}`},
			push("nor later", 403),
			{Name: "once", Do: fmt.Sprintf("DELETE /projects/%d/fork", bobFork), As: bob, Status: 204},
		})
	})
}

// TestTargetOfMerge checks that the target branch cannot change during a merge, and
// that a merge request shows the branch it was merged into.
func TestTargetOfMerge(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		alice, token := s.User(t, "alice")
		id := code(t, s, token, "code", "")
		m := proposed(t, s, token, id, "work", "")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/branches?branch=release&ref=main", id), As: token, Status: 201})
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + m, As: token, Status: 200}).JSON(t, &made)
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE merge_requests SET merging_at = ? WHERE id = ?`, s.Clock.Now(), made.ID); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Name: "during the merge", Do: "PUT " + m, As: token, JSON: `{"target_branch":"release"}`, Status: 409},
			{Name: "other fields", Do: "PUT " + m, As: token, JSON: `{"title":"Take it","target_branch":"main"}`, Status: 200, Want: `{"title":"Take it","target_branch":"main"}`},
			{Name: "unchanged", Do: "GET " + m, As: token, Status: 200, Want: `{"target_branch":"main"}`},
		})
		// The claim has expired, but the branch has moved.
		s.Clock.Move(11 * time.Minute)
		s.Check(t, apptest.Call{Do: "PUT " + m, As: token, JSON: `{"target_branch":"release"}`, Status: 200, Want: `{"target_branch":"release"}`})
		r := s.Repository(t, id)
		old, head := r.Tip("refs/heads/main"), r.Tip("refs/heads/work")
		r.Git("update-ref", "refs/heads/main", head)
		what := fmt.Sprintf(`{"Changes":[{"Ref":"refs/heads/main","Old":%q,"New":%q}],"About":"{\"merge_request_id\":%d,\"branch\":\"main\",\"head\":\"%[2]s\",\"merge\":\"%[2]s\"}"}`, old, head, made.ID)
		if _, err := s.DB.ExecContext(t.Context(), `INSERT INTO pushes (project_id, actor, push, created_at) VALUES (?, ?, ?, ?)`, id, fmt.Sprintf(`{"ID":%d,"Username":"alice"}`, alice), what, s.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		if err := s.Repos.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET " + m, As: token, Status: 200, Want: `{"state":"merged","target_branch":"main"}`})
	})
}

// TestHeadMovedUnseen moves a source branch after the head of a merge request was read
// and before it is saved: a push is recorded that does not find the merge request.
func TestHeadMovedUnseen(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		alice, token := s.User(t, "alice")
		id := code(t, s, token, "code", "")
		commitTo(t, s, token, id, "work", "work.txt", "work\n", "Work")
		r := s.Repository(t, id)
		moved := func(content string, save func()) string {
			t.Helper()
			if err := s.Queue.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Queue.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			save()
			head := r.Commit(gittest.Commit{Branch: "work", Message: content, Changes: []gittest.Change{{Path: "work.txt", Content: content}}})
			return head
		}
		start := func() {
			t.Helper()
			if err := s.Queue.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var m string
		head := moved("created", func() { m = requested(t, s, token, id, "work", "") })
		start()
		becomes(t, s, apptest.Call{Do: "GET " + m, As: token, Status: 200, Want: fmt.Sprintf(`{"sha":%q,"detailed_merge_status":"mergeable"}`, head)})

		s.Check(t, apptest.Call{Do: "PUT " + m, As: token, JSON: `{"state_event":"close"}`, Status: 200})
		later := moved("reopened", func() {
			s.Check(t, apptest.Call{Do: "PUT " + m, As: token, JSON: `{"state_event":"reopen"}`, Status: 200})
		})
		// While the push is in progress, it may still be recorded.
		if _, err := s.DB.ExecContext(t.Context(), `INSERT INTO pushes (project_id, actor, push, created_at) VALUES (?, ?, ?, ?)`, id, fmt.Sprintf(`{"ID":%d,"Username":"alice"}`, alice),
			fmt.Sprintf(`{"Changes":[{"Ref":"refs/heads/work","Old":%q,"New":%q}]}`, head, later), s.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		start()
		becomes(t, s, apptest.Call{Do: "GET " + m, As: token, Status: 200, Want: fmt.Sprintf(`{"sha":%q}`, head)})
		if _, err := s.DB.ExecContext(t.Context(), `DELETE FROM pushes`); err != nil {
			t.Fatal(err)
		}
		s.Clock.Move(time.Minute)
		waittest.For(t, "the new head", func() bool {
			var now struct{ SHA string }
			s.Check(t, apptest.Call{Do: "GET " + m, As: token, Status: 200}).JSON(t, &now)
			return now.SHA == later
		})
	})
}
