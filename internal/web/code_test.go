package web_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

// newProject creates a project by the API.
func newProject(t *testing.T, s *apptest.Server, token, path, visibility string) int64 {
	t.Helper()
	made := s.Check(t, apptest.Call{Do: "POST /projects", As: token, Status: 201, Form: url.Values{"name": {path}, "path": {path}, "visibility": {visibility}}})
	var id int64
	if _, err := fmt.Sscanf(regexp.MustCompile(`"id":(\d+)`).FindString(string(made.Body)), `"id":%d`, &id); err != nil {
		t.Fatal(err)
	}
	return id
}

func change(pairs ...string) []gittest.Change {
	var list []gittest.Change
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, gittest.Change{Path: pairs[i], Content: pairs[i+1]})
	}
	return list
}

// Unusual files: names that pages must escape or spell out, and contents that are
// not plain text.
const (
	turned   = "evil\u202egnp.txt"
	twoLines = "new\nline.txt"
	noName   = "bad\xff"
	markup   = "<img src=x onerror=alert(1)>.txt"
)

// odd creates a project whose history has unusual names and contents.
func odd(t *testing.T, s *apptest.Server, token string) *gittest.Repo {
	t.Helper()
	id := newProject(t, s, token, "odd", "public")
	first := change("a.txt", "one\ntwo\nthree\nfour\n", "win.txt", "crlf\r\nlines\r\n", "mixed.txt", "a\r\nb\r\n", "open", "no newline", "bin", "a\x00b", "latin1.txt", "lat\xefn\n",
		turned, "x\n", twoLines, "y\n", noName, "z\n", markup, "m\n", "run.sh", "#!/bin/sh\n", "pic.png", "\x89PNG\x00", "empty", "", "bidi.go", "package x // \u202e\u2066\n")
	long := strings.Repeat("line\n", 1200)
	now := s.Clock.Now()
	r := s.Repository(t, id,
		gittest.Commit{Message: "Begin <script>alert(1)</script>\n", Seconds: now.Add(-400 * 24 * time.Hour).Unix(), Author: `"Eve" onclick="x" & co <eve@example.com>`, Changes: append(first, gittest.Change{Path: "long.txt", Content: long})},
		gittest.Commit{Message: "Change everything\n\nA body with <u>markup</u>\nand \u202etwo lines.\n", Author: "Ada <ada@example.org>", Seconds: now.Add(-48 * time.Hour).Unix(), Changes: append(
			change("b.txt", "one\nTWO\nthree\nfour\n", "win.txt", "crlf\r\nchanged\r\n", "mixed.txt", "a\r\nb\n", "open", "no newline\n", "bin", "a\x00c", "latin1.txt", "\xe9\n",
				"long.txt", strings.ReplaceAll(long, "line", "LINE"), "pic.png", "\x89PNG\x01\x00", turned, "X\n", twoLines, "Y\n", markup, "M\n"),
			gittest.Change{Path: "a.txt", Delete: true}, gittest.Change{Path: noName, Delete: true}, gittest.Change{Path: "run.sh", Content: "#!/bin/sh\n", Mode: "100755"},
			gittest.Change{Path: "sub", Content: strings.Repeat("1", 40), Mode: "160000"})},
	)
	var many []gittest.Change
	for i := range 1000 {
		many = append(many, gittest.Change{Path: fmt.Sprintf("many/f%04d", i), Content: "x\n"})
	}
	r.Commit(gittest.Commit{Branch: "many", Message: "Add a thousand files\n", Parents: []string{r.Tip("main")}, Seconds: now.Add(-time.Hour).Unix(), Changes: many})
	r.Git("branch", "stale", "main~1")
	r.Git("branch", "x\"><img/src=x>", "main")
	r.Git("branch", "dir/deep/topic", "main~1")
	r.Commit(gittest.Commit{Branch: "dir/deep/topic", Message: "Topic\n", Author: "Zed <zed@example.com>", Seconds: now.Add(-24 * time.Hour).Unix(), Changes: change("docs/t.md", "# T\n")})
	r.Git("tag", "light", "main")
	r.Git("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "tag", "-a", "v1.0", "-m", "The <i>first</i> release", "main")
	return r
}

func TestCodePages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "ada")
		r := odd(t, s, token)
		newProject(t, s, token, "empty", "public")
		b := newBrowser(t, s)
		base, second := "/ada/odd/-/", r.Tip("main")
		for _, page := range []string{"graphs", "graphs/dir/deep/topic"} { // shown before all commits are counted
			waittest.For(t, page, func() bool { return !strings.Contains(b.get(base+page).want(200).body, "Reading the history") })
		}
		for _, c := range []struct {
			path string
			want []string
			not  []string
		}{
			{"commits/main", []string{"Change everything", "Begin &lt;script&gt;", "and [U&#43;202E]two lines", `href="/ada"`, `<h2 class="day">`, "co"}, []string{"\u202e"}},
			{"commits/main/b.txt", []string{"Change everything", "Begin"}, []string{"Topic"}}, // the history before the file was renamed
			{"commits/main?search=EVERYTHING", []string{"Change everything"}, []string{"Begin"}},
			{"commits/main?author=eve@", []string{"Begin"}, []string{"Change everything"}},
			{"commits/main?search=nothing", []string{"No commits match your search"}, nil},
			{"commits/dir/deep/topic", []string{"Topic", "Begin"}, []string{"Change everything"}},
			{"commits/dir/deep/topic/docs", []string{"Topic"}, []string{"Begin"}},
			// Long files and directories are divided into pages.
			{"blob/main/long.txt", []string{`id="L1000"`, "Lines 1 to 1000 of 1200", "?page=2", "?all=1", "1200 lines"}, []string{`id="L1001"`, "data-copy=\"source"}},
			{"blob/main/long.txt?page=2&plain=1", []string{`id="L1001"`, `id="L1200"`, "?page=1&amp;plain=1", "?all=1&amp;plain=1"}, []string{`id="L1000"`, "page=3"}},
			{"blob/main/long.txt?all=1", []string{`id="L1"`, `id="L1200"`, "data-copy=\"source"}, []string{"page="}},
			{"blob/main/long.txt?page=99", []string{`id="L1001"`}, nil},
			{"blame/main/long.txt?page=3", []string{`id="L1001"`, `id="L1200"`, "Change everything", "?page=2"}, []string{`id="L1000"`}},
			{"tree/many/many", []string{"f0074", "?page=2", "Add a thousand files"}, []string{"f0075"}},
			{"tree/many/many?page=14&x=y", []string{"f0975", "f0999", "?page=13", "Add a thousand files"}, []string{"f0974", "x=y", "page=15"}},
			{"commit/" + second, []string{second, "A body with &lt;u&gt;markup"}, nil},
			{"commit/main", []string{
				"14 changed files", "Parent</dt>", ">" + second[:8] + "<", "a.txt → b.txt", "Renamed", "100644 → 100755", "Only the file mode changed.", "Submodule",
				"Subproject commit 1111", "Binary file. No diff", `alt="After"`, "The diff has 2401 lines", "No newline at end of file", "evil[U&#43;202E]gnp.txt", "new␊line.txt",
				"&lt;img src=x onerror=alert(1)&gt;.txt", "bad\uFFFD", "Deleted", "lat\uFFFDn", "committed by Cole Committer", "light", "v1.0", "x&#34;&gt;&lt;img/src=x&gt;",
				`<tr class="del"><td data-n="2"></td><td></td><td>two</td></tr>`, `<tr class="add"><td></td><td data-n="2"></td><td>TWO</td></tr>`,
				`<td>changed</td>`, "<td>b<mark>␍</mark></td>", // carriage returns are shown where they change
			}, []string{"\u202e", "<td>changed␍</td>", "LINE", "stale"}},
			{"commit/main?file=long.txt", []string{"One of 14 changed files", "LINE", "All files"}, []string{"a.txt"}},
			{"commit/main?view=parallel&file=b.txt", []string{`<td data-n="2"></td><td class="del">two</td><td data-n="2"></td><td class="add">TWO</td>`, `class="diff two"`}, nil},
			{"commit/main~1", []string{"none (root commit)", "Begin &lt;script&gt;", "co</b>"}, nil},
			{"commit/many", []string{"1000 changed files", "many/f0000", "many/f0049", `rel="next"`}, []string{"many/f0050"}},
			{"commit/many?page=20", []string{"many/f0999"}, []string{`rel="next"`}},
			{"commit/many?file=many/f0500", []string{"many/f0500"}, []string{"many/f0499"}},
			{"blame/main/b.txt", []string{`id="L1"`, "Begin &lt;script&gt;", "Change everything", `rowspan="2"`, "TWO"}, nil},
			{"blame/main/bin", []string{"Not a text file"}, nil},
			{"blob/main/win.txt", []string{"CRLF", `<span id="L2"><a href="#L2" data-n="2" aria-label="Line 2"></a>changed`, "/-/blob/" + second + "/win.txt", "/-/blame/main/win.txt", "/-/commits/main/win.txt"}, []string{"/-/edit/", "/-/delete/"}},
			{"blob/main/bidi.go", []string{"[U+202E][U+2066]"}, []string{"\u202e"}},
			{"blob/main/empty", []string{"Empty file", `href="/ada/odd/-/branches"`}, nil},
			{"blob/main/bin", []string{`href="/ada/odd/-/branches"`}, nil},
			{"blob/main/pic.png", []string{`href="/ada/odd/-/branches"`}, nil},
			{"blob/dir/deep/topic/docs/t.md", []string{"<h1", "dir/deep/topic", `href="/ada/odd/-/branches"`}, nil},
			{"tree/main", []string{"evil[U+202E]gnp.txt", "new␊line.txt", "&lt;img src=x", "/-/archive/main/odd.tar.bz2", "/-/commits/main"}, []string{"\u202e", "/-/new/"}},
			{"tree/dir/deep/topic/docs", []string{"t.md"}, nil},
			{"branches", []string{"Default", "Stale", "Merged", "1 behind · 1 ahead", "x&#34;&gt;&lt;img/src=x&gt;", "/-/compare/main...dir/deep/topic"}, []string{"New branch", "/-/branches/delete"}},
			{"branches?state=stale", []string{"stale"}, []string{"topic"}},
			{"branches?state=active", []string{"dir/deep/topic"}, []string{`tree/stale"`}},
			{"branches?search=TOP", []string{"dir/deep/topic"}, []string{`tree/stale"`}},
			{"branches?search=nothing", []string{"No branches match your filters"}, nil},
			{"tags", []string{"2 tags", "The &lt;i&gt;first&lt;/i&gt; release", "/-/archive/v1.0/odd.zip", "light"}, []string{"New tag"}},
			{"tags?search=v1", []string{"1 tag"}, []string{"/-/tree/light"}},
			{"compare", []string{`name="from"`, "Compare branches, tags or commits"}, nil},
			{"compare/main...dir/deep/topic", []string{"1 commit", "Topic", "docs/t.md", "1 changed file"}, []string{"b.txt"}},
			{"compare/main..dir/deep/topic", []string{"1 commit", "docs/t.md", "b.txt", "15 changed files"}, nil},
			{"compare/main...stale", []string{"Nothing to compare"}, nil},
			{"graphs", []string{"2 commits by 2 authors", `<svg class="plot"`, `href="/ada"`, "co</b>"}, nil},
			{"graphs/dir/deep/topic", []string{"2 commits by 2 authors", "Zed"}, []string{"Ada"}},
		} {
			p := b.get(base+c.path).want(200, c.want...).not(c.not...).not("<script>alert", "<img src=x", "<u>", "<i>first", `onclick="x`)
			if len(p.body) > 50<<10 && !strings.Contains(c.path, "long") {
				t.Errorf("%s has %d bytes", c.path, len(p.body))
			}
		}
		if got := b.cookie("diff_view"); got != "parallel" {
			t.Errorf("the form of comparisons is kept as %q", got)
		}
		b.get(base+"commit/main~1").want(200, `class="diff two"`)
		for path, status := range map[string]int{
			"commits/none": 404, "commit/none": 404, "commit/0000000000000000000000000000000000000000": 404, "blame/main/none": 404, "blame/main/docs": 404, "compare/x": 404,
			"compare/none...main": 422, "graphs/none": 404, "archive/main/odd.rar": 404, "archive/none/odd.zip": 404, "archive/odd.zip": 404, "commit/-x": 404, "compare/--all...main": 422,
		} {
			b.get(base + path).want(status)
		}
		b.get(base + "commits").leads("/ada/odd/-/commits/main")
		b.get(base + "compare?from=main&to=dir/deep/topic&straight=true").leads("/ada/odd/-/compare/main..dir/deep/topic")
		for _, form := range []string{"zip", "tar.gz", "tar.bz2", "tar"} {
			p := b.get(base + "archive/dir/deep/topic/odd." + form).want(200)
			if !strings.Contains(p.header.Get("Content-Disposition"), "odd-dir-deep-topic-") || p.body == "" {
				t.Errorf("%s: %v", form, p.header)
			}
		}
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fodd/statuses/" + second, As: token, Status: 201, Form: url.Values{"state": {"failed"}, "name": {"outside"}}})
		b.get(base+"commit/main").want(200, "/-/pipelines/", "st-failed")
		b.get(base+"commit/main~1").want(200).not("/-/pipelines/1", "st-failed")
		b.get("/ada/empty/-/commits").leads("/ada/empty")
		for path, want := range map[string]string{"branches": "No branches", "tags": "No tags", "graphs": "No contributors yet", "compare": "Compare branches"} {
			b.get("/ada/empty/-/"+path).want(200, want)
		}
		b.get("/ada/empty/-/tree/main").want(404)
	})
}

// send submits a form with a file, like a browser.
func (b *browser) form(at, action string, pairs ...string) answer {
	b.t.Helper()
	page := b.get(at).want(200)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("authenticity_token", page.token())
	if m := regexp.MustCompile(`name="last_commit_id" value="(\w*)"`).FindStringSubmatch(page.body); m != nil {
		_ = form.WriteField("last_commit_id", m[1])
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		_ = form.WriteField(pairs[i], pairs[i+1])
	}
	_ = form.Close()
	r, err := http.NewRequestWithContext(b.t.Context(), "POST", b.address(action), &body)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	return b.send(r)
}

// TestContributors shows the commits of each author, and the lines that they changed
// when these have been counted. After a push only new commits are counted.
func TestContributors(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "ada")
		id := newProject(t, s, token, "p", "public")
		b := newBrowser(t, s).signIn("ada", password)
		b.get("/ada/p/-/graphs").want(200, "No contributors yet")
		r := s.Repository(t, id,
			gittest.Commit{Message: "One\n", Author: "Eve <eve@x>", Changes: change("a.txt", "1\n2\n3\n")},
			gittest.Commit{Message: "Two\n", Author: "Bob <bob@x>", Changes: change("a.txt", "1\n2\n4\n")},
		)
		shows := func(texts ...string) {
			t.Helper()
			waittest.For(t, "the lines are counted", func() bool { return !strings.Contains(b.get("/ada/p/-/graphs").want(200).body, "so far") })
			page := b.get("/ada/p/-/graphs").want(200, texts...)
			if page.header.Get("Refresh") != "" {
				t.Error("the page is loaded again after the count")
			}
		}
		visitor := newBrowser(t, s)
		waittest.For(t, "the commits are counted", func() bool { return !strings.Contains(visitor.get("/ada/p/-/graphs").want(200).body, "so far") })
		visitor.get("/ada/p/-/graphs").want(200, "2 commits by 2 authors").not("+3<")
		shows("Eve", "+3<", "−0<", "Bob", "+1<", "−1<", "2 commits by 2 authors")
		r.Commit(gittest.Commit{Branch: "main", Message: "Three\n", Author: "Bob <bob@x>", Changes: change("b.txt", "5\n6\n")})
		shows("+3<", "−0<", "+3<", "−1<", "3 commits by 2 authors")
	})
}

func TestEdit(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "ada")
		odd(t, s, token)
		newProject(t, s, token, "empty", "private")
		b := newBrowser(t, s).signIn("ada", password)
		raw := func(path, want string) {
			t.Helper()
			if got := b.get("/ada/odd/-/raw/" + path).want(200).body; got != want {
				t.Errorf("%s is %q, want %q", path, got, want)
			}
		}
		const at = "/ada/odd/-/"
		// Browsers submit CRLF line endings; the file keeps its own.
		b.get(at+"edit/main/b.txt").want(200, "one\nTWO\n", `value="main"`)
		b.form(at+"edit/main/b.txt", at+"edit/main/b.txt", "content", "one\r\n2\r\nend", "message", "Count <b>\r\n\r\nBetter.", "branch", "main", "path", "b.txt").leads(at + "blob/main/b.txt")
		b.get(at+"blob/main/b.txt").want(200, "Committed to main as", "Count &lt;b&gt;")
		raw("main/b.txt", "one\n2\nend")
		b.form(at+"edit/main/win.txt", at+"edit/main/win.txt", "content", "crlf\r\nmore\r\n", "branch", "main").leads(at + "blob/main/win.txt")
		raw("main/win.txt", "crlf\r\nmore\r\n")
		b.get(at+"commit/main").want(200, "Update win.txt", "<td>more</td>")

		// To a new branch, under a new name.
		b.form(at+"edit/main/b.txt", at+"edit/main/b.txt", "content", "one\n", "branch", "patch", "path", "dir/c.txt", "message", "Move").leads(at + "blob/patch/dir/c.txt")
		raw("patch/dir/c.txt", "one\n")
		b.get(at + "blob/patch/b.txt").want(404)
		raw("main/b.txt", "one\n2\nend")
		b.form(at+"edit/main/b.txt", at+"edit/main/b.txt", "content", "x", "branch", "patch").want(422, "already exists", ">\nx</textarea>")

		// Another commit changed the file first.
		last := regexp.MustCompile(`name="last_commit_id" value="(\w+)"`).FindStringSubmatch(b.get(at + "edit/main/b.txt").want(200).body)[1]
		b.form(at+"edit/main/b.txt", at+"edit/main/b.txt", "content", "quick\n", "branch", "main").leads(at + "blob/main/b.txt")
		page := b.get(at + "edit/main/b.txt")
		b.post(at+"edit/main/b.txt", url.Values{"authenticity_token": {page.token()}, "last_commit_id": {last}, "content": {"slow"}, "branch": {"main"}}).want(422, "has changed since you started editing", ">\nslow</textarea>")
		raw("main/b.txt", "quick\n")

		// From a tag, the change can only go to a new branch.
		b.get(at+"edit/v1.0/b.txt").want(200, "is not a branch", "ada-patch-1")
		b.form(at+"edit/v1.0/b.txt", at+"edit/v1.0/b.txt", "content", "tagged\n", "branch", "ada-patch-1").leads(at + "blob/ada-patch-1/b.txt")
		raw("ada-patch-1/b.txt", "tagged\n")

		b.form(at+"new/main/docs", at+"new/main/docs", "path", "docs/new <b>.md", "content", "# New\r\n", "branch", "main").leads(at + "blob/main/docs/new%20%3Cb%3E.md")
		raw("main/docs/new%20%3Cb%3E.md", "# New\n")
		b.get(at+"commit/main").want(200, "Add new &lt;b&gt;.md", "docs/new &lt;b&gt;.md")
		b.form(at+"new/main", at+"new/main", "path", "b.txt", "content", "x", "branch", "main").want(422, "already exists")
		for _, wrong := range []string{"", "../x", ".git/config", "a//b"} {
			b.form(at+"new/main", at+"new/main", "path", wrong, "content", "x", "branch", "main").want(422)
		}
		b.form(at+"new/main", at+"new/main", "path", "y", "content", "x", "branch", "not..good").want(422, "Branch name is invalid")

		b.form(at+"delete/main/b.txt", at+"delete/main/b.txt", "branch", "main").leads(at + "tree/main")
		b.get(at + "blob/main/b.txt").want(404)

		for path, why := range map[string]string{"bin": "not UTF-8 text", "latin1.txt": "not UTF-8 text"} {
			b.get(at+"edit/main/"+path).want(422, why)
		}
		b.get(at + "edit/main/none").want(404)
		b.get(at + "edit/none/b.txt").want(404)

		// The first file of a repository.
		b.get("/ada/empty").want(200, "/ada/empty/-/new/main")
		b.form("/ada/empty/-/new/main", "/ada/empty/-/new/main", "path", "README.md", "content", "# Hello\r\n", "branch", "main").leads("/ada/empty/-/blob/main/README.md")
		b.get("/ada/empty").want(200, "Hello")
	})
}

func TestBranchesAndTags(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	_, token := s.User(t, "ada")
	odd(t, s, token)
	b := newBrowser(t, s).signIn("ada", password)
	const branches, tags = "/ada/odd/-/branches", "/ada/odd/-/tags"
	b.submit(branches, branches, "name", "a/<b>", "ref", "main").leads("/ada/odd/-/tree/a/%3Cb%3E")
	b.get(branches).want(200, "The branch a/&lt;b&gt; was created.", "a/&lt;b&gt;")
	b.submit(branches, branches, "name", "main", "ref", "main").want(422, "Branch already exists")
	b.submit(branches, branches, "name", "not..good", "ref", "main").want(422, "Branch name is invalid", `value="not..good"`)
	b.submit(branches, branches, "name", "x", "ref", "none").want(422, "Invalid reference name")
	b.submit(branches, branches+"/delete", "name", "a/<b>").leads(branches)
	b.submit(branches, branches+"/delete", "name", "a/<b>").want(404)
	b.submit(branches, branches+"/delete", "name", "main").want(403)
	b.submit(tags, tags, "name", "v2", "ref", "main", "message", "Second").leads(tags)
	b.submit(tags, tags, "name", "v3", "ref", "stale").leads(tags)
	b.get(tags).want(200, "4 tags", "Second")
	b.submit(tags, tags, "name", "v2", "ref", "main").want(422, "already exists")
	b.submit(tags, tags, "name", "v4", "ref", "none").want(422, "Target none is invalid")
	b.submit(tags, tags+"/delete", "name", "v2").leads(tags)
	b.get(tags).want(200, "3 tags").not("Second")
	b.submit(tags, tags+"/delete", "name", "v2").want(404)
}
