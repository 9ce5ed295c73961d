package servertest

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

func TestPushRuleLife(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		p := newPlace(t, s, "")
		at := fmt.Sprintf("/projects/%d/push_rule", p.id)
		s.Table(t, []apptest.Call{
			{Do: "GET " + at, As: p.alice, Status: 200, Want: `null`},
			{Do: "PUT " + at, As: p.alice, JSON: `{"member_check":true}`, Status: 404},
			{Do: "POST " + at, As: p.alice, JSON: `{"commit_message_regex":"(","branch_name_regex":"` + strings.Repeat("a", 512) + `","max_file_size":-1}`, Status: 400,
				Want: `{"message":{"commit_message_regex":["must be valid RE2 syntax"],"branch_name_regex":["is too long (maximum is 511 characters)"],"max_file_size":["must be greater than or equal to 0"]}}`},
			{Do: "POST " + at, As: p.alice, JSON: `{"branch_name_regex":"(.?.?.?.?.?){1000}z"}`, Status: 400, Want: `{"message":{"branch_name_regex":["has too many repetitions"]}}`},
			{Do: "POST " + at, As: p.alice, JSON: `{"commit_message_regex":"Fixes \\d+","max_file_size":5,"member_check":true}`, Status: 201,
				Want: fmt.Sprintf(`{"project_id":%d,"commit_message_regex":"Fixes \\d+","max_file_size":5,"member_check":true,"prevent_secrets":false,"branch_name_regex":"","created_at":"<any>"}`, p.id)},
			{Do: "POST " + at, As: p.alice, JSON: `{"max_file_size":5}`, Status: 422, Want: `{"message":"Project push rule exists"}`},
			{Do: "PUT " + at, As: p.alice, JSON: `{"commit_message_regex":"","prevent_secrets":true}`, Status: 200, Want: `{"commit_message_regex":"","max_file_size":5,"prevent_secrets":true}`},
			{Do: "PUT " + at, As: p.alice, JSON: `{"file_name_regex":"["}`, Status: 400},
			{Do: "GET " + at, As: p.alice, Status: 200, Want: `{"prevent_secrets":true,"file_name_regex":""}`},
			{Do: "DELETE " + at, As: p.alice, Status: 204},
			{Do: "DELETE " + at, As: p.alice, Status: 404},
			{Do: fmt.Sprintf("GET /projects/%d/audit_events", p.id), As: p.alice, Status: 200,
				Want: `[{"event_type":"push_rule_removed"},{"event_type":"push_rule_updated"},{"event_type":"push_rule_created"},{"event_type":"<any>"},{"event_type":"<any>"}]`},
		})
	})
}

// TestPushRules pushes what each rule refuses, and then what it accepts.
func TestPushRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		rule    string
		bad     func(c clone)
		refused string
		good    func(c clone)
		ref     string // default: topic
	}{
		{name: "message", rule: `{"commit_message_regex":"^Fixes \\d+"}`, refused: "Commit message does not follow the pattern '^Fixes \\d+'",
			bad: func(c clone) { c.commit("a", "1", "Nothing") }, good: func(c clone) { c.commit("a", "1", "Title\n\nFixes 7") }},
		{name: "forbidden message", rule: `{"commit_message_negative_regex":"(?i)wip"}`, refused: "Commit message contains the forbidden pattern '(?i)wip'",
			bad: func(c clone) { c.commit("a", "1", "WIP: x") }, good: func(c clone) { c.commit("a", "1", "Done") }},
		{name: "branch", rule: `{"branch_name_regex":"^(topic|fix/.+)$"}`, refused: "Branch name 'other' does not follow the pattern", ref: "other",
			bad: func(c clone) { c.commit("a", "1", "x") }, good: nil},
		{name: "author", rule: `{"author_email_regex":"@example\\.com$"}`, refused: "Author's commit email 'x@elsewhere.org' does not follow the pattern",
			bad: func(c clone) { c.commit("a", "1", "x", "--author", "X <x@elsewhere.org>") }, good: func(c clone) { c.commit("a", "1", "x") }},
		{name: "file name", rule: `{"file_name_regex":"\\.(exe|jar)$"}`, refused: `File name dir/x.exe was prohibited by the pattern '\.(exe|jar)$'.`,
			bad: func(c clone) { c.commit("dir/x.exe", "1", "x") }, good: func(c clone) { c.commit("dir/x.txt", "1", "x") }},
		{name: "file name of known content", rule: `{"file_name_regex":"\\.exe$"}`, refused: `File name x.exe was prohibited`,
			bad: func(c clone) { c.git("mv", "README.md", "x.exe"); c.git("commit", "-q", "-m", "x") }, good: func(c clone) { c.commit("y", "1", "x") }},
		{name: "size", rule: `{"max_file_size":1}`, refused: `File "big" is larger than the allowed size of 1 MiB.`,
			bad:  func(c clone) { c.commit("big", strings.Repeat("x", 1<<20+1), "x") },
			good: func(c clone) { c.commit("fits", strings.Repeat("x", 1<<20), "x") }},
		{name: "secret", rule: `{"prevent_secrets":true}`, refused: "File name home/.ssh/id_rsa was prohibited: such files usually hold secrets.",
			bad: func(c clone) { c.commit("home/.ssh/id_rsa", "1", "x") }, good: func(c clone) { c.commit("id_rsa.pub", "1", "x") }},
		{name: "hidden below", rule: `{"prevent_secrets":true}`, refused: "File name k.pem was prohibited",
			bad: func(c clone) {
				c.commit("k.pem", "1", "x")
				c.git("rm", "-q", "k.pem")
				c.git("commit", "-q", "-m", "gone again")
			}, good: func(c clone) { c.commit("a", "1", "x") }},
		{name: "member", rule: `{"member_check":true}`, refused: "Author 'ann@example.com' is not a member of team",
			bad: func(c clone) { c.commit("a", "1", "x") },
			good: func(c clone) {
				c.as("b", "Bob@example.org").commit("a", "1", "x", "--author", "a <alice@example.org>")
			}},
		{name: "committer", rule: `{"commit_committer_check":true}`, refused: "You cannot push commits for 'ann@example.com'.",
			bad: func(c clone) { c.commit("a", "1", "x") },
			good: func(c clone) {
				c.as("b", "bob@example.org").commit("a", "1", "x", "--author", "X <x@elsewhere.org>")
			}},
		{name: "committer of another", rule: `{"commit_committer_check":true}`, refused: "You cannot push commits for 'alice@example.org'.",
			bad: func(c clone) { c.as("a", "alice@example.org").commit("a", "1", "x") }},
		{name: "committer name", rule: `{"commit_committer_name_check":true}`, refused: "Your git username is inconsistent",
			bad: func(c clone) { c.commit("a", "1", "x") }, good: func(c clone) { c.as("bob", "b@example.org").commit("a", "1", "x") }},
		{name: "unsigned", rule: `{"reject_unsigned_commits":true}`, refused: "Commit must be signed", bad: func(c clone) { c.commit("a", "1", "x") }},
		{name: "sign-off", rule: `{"reject_non_dco_commits":true}`, refused: "Commit message must contain a DCO signoff",
			bad: func(c clone) { c.commit("a", "1", "x") }, good: func(c clone) { c.commit("a", "1", "x", "--signoff") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			apptest.Each(t, func(t *testing.T, s *apptest.Server) {
				p := newPlace(t, s, `,"initialize_with_readme":true`)
				s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/push_rule", p.id), As: p.alice, JSON: tt.rule, Status: 201})
				ref := tt.ref
				if ref == "" {
					ref = "topic"
				}
				c := newClone(t, s, p.bob, p.path)
				tt.bad(c)
				c.push(tt.refused, "HEAD:"+ref)
				if tt.good != nil {
					c.git("reset", "-q", "--hard", "origin/main")
					tt.good(c)
					c.push("", "HEAD:topic")
				}
			})
		})
	}
}

// TestPushRuleScope checks that push rules apply to new commits only, to each change of a push
// separately, and to commits through the API and merges too.
func TestPushRuleScope(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		p := newPlace(t, s, `,"initialize_with_readme":true`)
		at := fmt.Sprintf("/projects/%d", p.id)
		c := newClone(t, s, p.bob, p.path)
		c.commit("old", "1", "Bad from before")
		c.push("", "HEAD:before")
		s.Check(t, apptest.Call{Do: "POST " + at + "/push_rule", As: p.alice, JSON: `{"commit_message_regex":"^Good","deny_delete_tag":true}`, Status: 201})
		c.push("", "HEAD:refs/heads/again") // no new commits
		c.commit("new", "1", "Good")
		c.git("branch", "good")
		c.commit("newer", "1", "Bad")
		c.push("Commit message does not follow the pattern", "good", "HEAD:bad")
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/branches?search=^", As: p.bob, Status: 200,
			Want: `[{"name":"again"},{"name":"before"},{"name":"good"},{"name":"main"}]`})
		c.push("", "good:refs/tags/v1")
		c.push("You cannot delete a tag", "--delete", "refs/tags/v1")
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/repository/files/x", As: p.bob, JSON: `{"branch":"good","commit_message":"Bad","content":"x"}`, Status: 403,
				Want: `{"message":"403 Forbidden - Commit message does not follow the pattern '^Good'"}`},
			{Do: "POST " + at + "/repository/files/x", As: p.bob, JSON: `{"branch":"good","commit_message":"Good","content":"x"}`, Status: 201},
			{Do: "POST " + at + "/merge_requests", As: p.alice, JSON: `{"source_branch":"good","target_branch":"main","title":"M"}`, Status: 201},
			{Name: "a merge with a bad message", Do: "PUT " + at + "/merge_requests/1/merge", As: p.alice, JSON: `{"merge_commit_message":"Bad"}`, Status: 403},
			{Name: "a merge with a good message", Do: "PUT " + at + "/merge_requests/1/merge", As: p.alice, JSON: `{"merge_commit_message":"Good"}`, Status: 200, Want: `{"state":"merged"}`},
			{Name: "an address that tells nothing", Do: fmt.Sprintf("PUT /users/%d", p.bobID), As: apptest.RootToken, JSON: `{"commit_email":"_private"}`, Status: 200},
			{Name: "one's own", Do: "PUT " + at + "/push_rule", As: p.alice, JSON: `{"commit_committer_check":true,"member_check":true}`, Status: 200},
			{Do: "POST " + at + "/repository/files/y", As: p.bob, JSON: `{"branch":"good","commit_message":"Good","content":"x"}`, Status: 201},
			{Name: "is in commits", Do: "GET " + at + "/repository/commits/good", As: p.bob, Status: 200,
				Want: fmt.Sprintf(`{"author_email":"%d-bob@users.noreply.127.0.0.1","committer_email":"%[1]d-bob@users.noreply.127.0.0.1"}`, p.bobID)},
		})
	})
}
