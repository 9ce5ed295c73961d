package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// change returns a commit with a message.
func change(message string, files ...string) gittest.Commit {
	c := writeFiles(files...)
	c.Message = message
	return c
}

// changelogHistory creates a project with releases, release candidates, reverts and
// trailers.
func changelogHistory(t *testing.T, s *apptest.Server, token string) (at string, r *gittest.Repo, ids map[string]string) {
	t.Helper()
	at, r = newCode(t, s, token, "code")
	ids = map[string]string{}
	add := func(name, message string) {
		ids[name] = r.Commit(change(message, name, name))
	}
	add("old", "Before all\n\nChangelog: added\n")
	r.Git("tag", "v1.0.0", "main")
	add("fix", "Fix a thing\n\nLong text.\n\nChangelog: fixed\nIssue: #7\n")
	r.Git("tag", "-m", "a candidate", "v1.1.0-rc1", "main")
	add("plain", "No trailer")
	add("add one", "Add one\n\nChangelog: added\n")
	add("add two", "Add two\n\nChangelog: added\n")
	add("bad", "A mistake\n\nChangelog: added\n")
	add("undo", "Revert \"A mistake\"\n\nThis reverts commit "+ids["bad"]+".\n")
	add("lower", "Lower case\n\nchangelog: added\n")
	add("other", "Other trailer\n\nNote: security\n")
	r.Git("tag", "nightly", "main")
	r.Git("tag", "v9.9.9", ids["fix"])
	s.Repository(t, idOf(at)) // records the default branch
	return at, r, ids
}

func idOf(at string) int64 {
	var id int64
	_, _ = fmt.Sscanf(at, "/projects/%d", &id)
	return id
}

func TestChangelog(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		at, r, ids := changelogHistory(t, s, alice)
		link := func(name string) string { return s.URL + "/alice/code/-/commit/" + ids[name] }
		get := func(query string) string {
			t.Helper()
			var got struct{ Notes string }
			s.Check(t, apptest.Call{Do: "GET " + at + "/repository/changelog?" + query, Status: 200}).JSON(t, &got)
			return got.Notes
		}
		want := "## 1.1.0 (2024-02-03)\n\n" +
			"### added (2 changes)\n\n- [Add two](" + link("add two") + ")\n- [Add one](" + link("add one") + ")\n\n" +
			"### fixed (1 change)\n\n- [Fix a thing](" + link("fix") + ")\n\n"
		date := "&date=2024-02-03T23:30:00Z"
		if diff := cmp.Diff(want, get("version=1.1.0"+date)); diff != "" {
			t.Error(diff)
		}
		for query, want := range map[string]string{
			"version=1.1.0" + date + "&from=" + ids["old"] + "&to=main":        want,
			"version=1.1.0" + date + "&from=v1.0.0&to=" + ids["other"]:         want,
			"version=v1.1.0" + date + "&from=" + ids["add one"]:                "## v1.1.0 (2024-02-03)\n\n### added (1 change)\n\n- [Add two](" + link("add two") + ")\n\n",
			"version=1.1.0" + date + "&trailer=Note":                           "## 1.1.0 (2024-02-03)\n\n### security (1 change)\n\n- [Other trailer](" + link("other") + ")\n\n",
			"version=1.1.0" + date + "&trailer=changelog":                      "## 1.1.0 (2024-02-03)\n\n### added (1 change)\n\n- [Lower case](" + link("lower") + ")\n\n",
			"version=1.1.0" + date + "&trailer=None":                           "## 1.1.0 (2024-02-03)\n\nNo changes.\n\n",
			"version=1.1.0-rc2" + date + "&to=" + ids["fix"]:                   "## 1.1.0-rc2 (2024-02-03)\n\n### fixed (1 change)\n\n- [Fix a thing](" + link("fix") + ")\n\n",
			"version=10.0.0&date=2024-02-03T23:30:00-02:00&to=" + ids["plain"]: "## 10.0.0 (2024-02-04)\n\nNo changes.\n\n", // since 9.9.9
		} {
			if diff := cmp.Diff(want, get(query)); diff != "" {
				t.Errorf("%s: %s", query, diff)
			}
		}
		// The default date is the current date of the server.
		s.Clock.Move(400 * 24 * time.Hour)
		days := []string{s.Clock.Now().Format(time.DateOnly)}
		got := get("version=1.1.0")
		days = append(days, s.Clock.Now().Format(time.DateOnly)) // midnight may have passed
		if !strings.HasPrefix(got, "## 1.1.0 ("+days[0]+")") && !strings.HasPrefix(got, "## 1.1.0 ("+days[1]+")") {
			t.Errorf("now: %.40s, want one of %s", got, days)
		}
		failed := func(text string) string { return `{"message":"Failed to generate the changelog: ` + text + `"}` }
		s.Table(t, []apptest.Call{
			{Do: "GET " + at + "/repository/changelog", Status: 400, Want: `{"error":"version is missing"}`},
			{Do: "GET " + at + "/repository/changelog?version=one", Status: 400, Want: `{"error":"version is invalid"}`},
			{Do: "GET " + at + "/repository/changelog?version=1.1.0&date=never", Status: 400, Want: `{"error":"date is invalid"}`},
			{Do: "GET " + at + "/repository/changelog?version=1.0.0", Status: 422, Want: failed("The commit start range is unspecified, and no previous tag could be found to use instead")},
			{Do: "GET " + at + "/repository/changelog?version=1.1.0&from=none", Status: 422, Want: failed("the start of the range could not be found")},
			{Do: "GET " + at + "/repository/changelog?version=1.1.0&to=none", Status: 422, Want: failed("the end of the range could not be found")},
			{Do: "GET " + at + "/repository/changelog?version=1.1.0&config_file_ref=none", Status: 422},
		})
		// A revert with its own trailer is listed.
		ids["again"] = r.Commit(change("Take back two\n\nThis reverts commit "+ids["add two"]+".\n\nChangelog: removed\n", "again", "again"))
		got = get("version=1.1.0" + date + "&from=" + ids["add one"])
		if want := "## 1.1.0 (2024-02-03)\n\n### removed (1 change)\n\n- [Take back two](" + link("again") + ")\n\n"; got != want {
			t.Errorf("reverted: %q", got)
		}
	})
}

// TestChangelogConfig reads the configuration from the repository.
func TestChangelogConfig(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		at, r, ids := changelogHistory(t, s, alice)
		r.Git("tag", "release-1_0_5", ids["add one"])
		config := "date_format: '%-d %B %Y'\ncategories:\n  fixed: Repairs\n  added: News\ntag_regex: '^release-(?P<major>\\d+)_(?P<minor>\\d+)_(?P<patch>\\d+)$'\n" +
			"template: |\n  {% each categories %}\n  * {{ title }}: {{ count }}\n  {% each entries %}\n    {{ title }}{% if commit.trailers.Issue %} for {{ commit.trailers.Issue }}{% end %} {{ commit.reference }}\n  {% end %}\n  {% end %}\n"
		get := func(query string) string {
			t.Helper()
			var got struct{ Notes string }
			s.Check(t, apptest.Call{Do: "GET " + at + "/repository/changelog?date=2024-02-03&" + query, Status: 200}).JSON(t, &got)
			return got.Notes
		}
		entry := func(name, title string) string { return "  " + title + " alice/code@" + ids[name] + "\n" }
		all := "## 1.1.0 (3 February 2024)\n\n* Repairs: 1\n" + entry("fix", "Fix a thing for #7") + "* News: 2\n" + entry("add two", "Add two") + entry("add one", "Add one") + "\n"
		since := "## 1.1.0 (3 February 2024)\n\n* News: 1\n" + entry("add two", "Add two") + "\n"
		r.Commit(change("Configure elsewhere", "doc/log.yml", config))
		if got := get("version=1.1.0&from=v1.0.0&config_file=doc/log.yml"); got != all {
			t.Error(cmp.Diff(all, got))
		}
		r.Commit(change("Configure as others do", ".gitlab/changelog_config.yml", config))
		if got := get("version=1.1.0"); got != since {
			t.Error(cmp.Diff(since, got))
		}
		r.Git("branch", "before", "main~1")
		if got := get("version=1.1.0&config_file_ref=before"); !strings.Contains(got, "### added (2 changes)") {
			t.Errorf("another ref: %s", got)
		}
		r.Commit(change("Configure", ".svc/changelog_config.yml", "categories: {added: Ours}\n"))
		if got := get("version=1.1.0"); !strings.HasPrefix(got, "## 1.1.0 (2024-02-03)\n\n### Ours (2 changes)") {
			t.Errorf("our own: %s", got)
		}
		for text, want := range map[string]string{
			"template: '{% if'": "the template cannot be parsed: line 1: {% is not closed by %}",
			"categories: 7":     "categories has to name a title for each category",
			"tag_regex: '(?<'":  "the tag_regex is invalid: ",
			"a: b: c":           "the configuration cannot be read: ",
			"template: '{% each categories %}" + strings.Repeat("{% each entries %}", 40) + "'": "statements are nested more than",
			"# " + strings.Repeat("x", 1<<20): "is larger than",
		} {
			r.Commit(change("Break it", ".svc/changelog_config.yml", text))
			got := s.Check(t, apptest.Call{Do: "GET " + at + "/repository/changelog?version=1.1.0", Status: 422})
			if !strings.Contains(string(got.Body), "Failed to generate the changelog: ") || !strings.Contains(string(got.Body), want) {
				t.Errorf("%.60s: %s", text, got.Body)
			}
		}
	})
}

// TestChangelogAuthors checks that authors are credited if they are not members of
// the project, or are members of a group in the configuration.
func TestChangelogAuthors(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, _ := s.User(t, "bob")
		memberID, _ := s.User(t, "member")
		at, r := newCode(t, s, alice, "code", writeFiles("x", "x"))
		crew := group(t, s, alice, "crew", `,"visibility":"private"`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", crew), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, memberID), Status: 201})
		s.Check(t, apptest.Call{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, memberID), Status: 201})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/emails", bobID), As: root, JSON: `{"email":"bob@elsewhere.example","skip_confirmation":true}`, Status: 201})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/emails", bobID), As: root, JSON: `{"email":"claimed@elsewhere.example"}`, Status: 201})
		start := r.Tip("refs/heads/main")
		for i, author := range []string{"B <BOB@example.org>", "B <bob@elsewhere.example>", "B <claimed@elsewhere.example>", "Alice <alice@example.org>", "M <member@example.org>", "X <unknown@example.org>"} {
			c := change(fmt.Sprintf("Change %d\n\nChangelog: added\n", i), "x", fmt.Sprint(i))
			c.Author = author
			r.Commit(c)
		}
		credits := func(as, config string) []string {
			t.Helper()
			r.Commit(change("Configure", ".svc/changelog_config.yml", config+"template: \"{% each categories %}{% each entries %}{{ title }}{% if author.credit %} by {{ author.reference }}{% end %}{% if author.contributor %} from outside{% end %}\\n\\n{% end %}{% end %}\"\n"))
			var got struct{ Notes string }
			s.Check(t, apptest.Call{Do: "GET " + at + "/repository/changelog?version=1.0.0&from=" + start, As: as, Status: 200}).JSON(t, &got)
			_, list, _ := strings.Cut(strings.TrimSpace(got.Notes), "\n\n")
			return strings.Split(list, "\n")
		}
		usual := []string{"Change 5", "Change 4", "Change 3", "Change 2", "Change 1 by @bob from outside", "Change 0 by @bob from outside"}
		if diff := cmp.Diff(usual, credits(alice, "")); diff != "" {
			t.Error(diff)
		}
		grouped := []string{"Change 5", "Change 4 by @member", "Change 3 by @alice", "Change 2", "Change 1 by @bob from outside", "Change 0 by @bob from outside"}
		if diff := cmp.Diff(grouped, credits(alice, "include_groups: [crew, none]\n")); diff != "" {
			t.Error(diff)
		}
		// A caller who cannot see the group does not learn who its members are.
		if diff := cmp.Diff(usual, credits("", "include_groups: [crew]\n")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestCommitChangelog(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		at, r, ids := changelogHistory(t, s, alice)
		post := func(body string) {
			t.Helper()
			if got := s.Check(t, apptest.Call{Do: "POST " + at + "/repository/changelog", As: alice, JSON: body, Status: 200}); string(got.Body) != "{}" {
				t.Errorf("answer %s", got.Body)
			}
		}
		show := func(what string) string { return r.Git("show", "-s", "--format="+what, "main") }
		before := r.Tip("refs/heads/main")
		post(`{"version":"1.1.0","date":"2024-02-03"}`)
		first := "## 1.1.0 (2024-02-03)\n\n### added (2 changes)\n\n- [Add two](" + s.URL + "/alice/code/-/commit/" + ids["add two"] + ")"
		if got := r.Git("show", "main:CHANGELOG.md"); !strings.HasPrefix(got, first) {
			t.Errorf("first: %s", got)
		}
		if got := show("%s|%an|%ae|%cn|%P"); got != "Add changelog for version 1.1.0|alice|alice@example.org|alice|"+before {
			t.Errorf("the commit: %s", got)
		}
		tip := r.Tip("refs/heads/main")
		post(`{"version":"1.1.0","date":"2024-02-04"}`)
		if got := r.Tip("refs/heads/main"); got != tip {
			t.Error("the same section was added again")
		}
		post(`{"version":"2.0.0","date":"2024-05-06","from":"v1.0.0","message":"Release notes\n\nFor two.","trailer":"Note"}`)
		if got := r.Git("show", "main:CHANGELOG.md"); !strings.HasPrefix(got, "## 2.0.0 (2024-05-06)\n\n### security (1 change)\n\n- [Other trailer](") || !strings.Contains(got, ")\n\n"+first[:20]) {
			t.Errorf("second: %s", got)
		}
		if got := show("%B"); got != "Release notes\n\nFor two." {
			t.Errorf("message %q", got)
		}
		r.Git("branch", "stable", ids["fix"])
		post(`{"version":"1.0.1","date":"2024-01-01","branch":"stable","file":"docs/NEWS.md"}`)
		if got := r.Git("show", "stable:docs/NEWS.md"); got != "## 1.0.1 (2024-01-01)\n\n### fixed (1 change)\n\n- [Fix a thing]("+s.URL+"/alice/code/-/commit/"+ids["fix"]+")" {
			t.Errorf("another branch: %s", got)
		}
		r.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "link", Mode: "120000", Content: "/etc/passwd"}, {Path: "dir/file", Content: "x"}}})
		tip = r.Tip("refs/heads/main")
		failed := func(body, text string) apptest.Call {
			return apptest.Call{Name: body, Do: "POST " + at + "/repository/changelog", As: alice, JSON: body, Status: 422, Want: `{"message":"Failed to generate the changelog: ` + text + `"}`}
		}
		s.Table(t, []apptest.Call{
			failed(`{"version":"3.0.0","branch":"none"}`, "the branch none could not be found"),
			failed(`{"version":"3.0.0","branch":"v1.0.0"}`, "the branch v1.0.0 could not be found"),
			failed(`{"version":"0.1.0"}`, "The commit start range is unspecified, and no previous tag could be found to use instead"),
			failed(`{"version":"3.0.0","file":"../up"}`, "../up is not a valid file name"),
			failed(`{"version":"3.0.0","file":"/"}`, " is not a valid file name"),
			failed(`{"version":"3.0.0","file":".git/config"}`, ".git/config is not a valid file name"),
			failed(`{"version":"3.0.0","file":"dir"}`, "dir is not a file"),
			failed(`{"version":"3.0.0","file":"link"}`, "link is not a file"),
			failed(`{"version":"3.0.0","file":"fix/below"}`, "fix/below is not a valid file name"),
			{Do: "POST " + at + "/repository/changelog", As: alice, Status: 400, Want: `{"error":"version is missing"}`},
			{Do: "POST " + at + "/repository/changelog", As: alice, JSON: `{"version":"3.0.0","file":" "}`, Status: 400, Want: `{"error":"file is empty"}`},
			{Do: "POST " + at + "/repository/changelog", As: alice, JSON: `{"version":"x","date":"y"}`, Status: 400, Want: `{"error":"version is invalid, date is invalid"}`},
		})
		if got := r.Tip("refs/heads/main"); got != tip {
			t.Error("what failed has left a commit")
		}
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository/changelog", As: alice, Form: url.Values{"version": {"3.0.0"}, "from": {"v1.0.0"}}, Status: 200, Want: `{}`})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCommitChangelogAtOnce adds sections concurrently and checks that none is lost.
func TestCommitChangelogAtOnce(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		at, r, _ := changelogHistory(t, s, alice)
		versions := []string{"2.0.0", "3.0.0", "4.0.0"}
		var all sync.WaitGroup
		for _, v := range versions {
			all.Go(func() {
				s.Check(t, apptest.Call{Do: "POST " + at + "/repository/changelog", As: alice, JSON: `{"version":"` + v + `","from":"v1.0.0"}`, Status: 200})
			})
		}
		all.Wait()
		text := r.Git("show", "main:CHANGELOG.md")
		for i, v := range versions {
			if strings.Count(text, "## "+v+" (") != 1 || i > 0 && strings.Index(text, "## "+v) > strings.Index(text, "## "+versions[i-1]) {
				t.Errorf("%s is not in its place:\n%s", v, text)
			}
		}
	})
}

// TestChangelogMany requests a changelog of more commits than allowed.
func TestChangelogMany(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		at, r := newCode(t, s, alice, "code", writeFiles("x", "x"))
		r.Git("tag", "v1.0.0", "main")
		var stream strings.Builder
		for i := range 15_001 {
			message := "Small\n\nChangelog: added\n"
			fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter C <c@example.com> %d +0000\ndata %d\n%s", 1700000200+i, len(message), message)
			if i == 0 {
				fmt.Fprintf(&stream, "from %s\n", r.Tip("refs/heads/main"))
			}
			stream.WriteString("\n")
		}
		r.Import(strings.NewReader(stream.String()))
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/changelog?version=1.1.0", Status: 422,
			Want: `{"message":"Failed to generate the changelog: the range has more than 15000 commits"}`})
		got := s.Check(t, apptest.Call{Do: "GET " + at + "/repository/changelog?version=1.1.0&to=main~1", Status: 200})
		if !strings.Contains(string(got.Body), "### added (15000 changes)") {
			t.Errorf("%.200s", got.Body)
		}
	})
}
