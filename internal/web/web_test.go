package web

import (
	"io/fs"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/git"
	"svc/internal/lfs"
	"svc/internal/markup"
	"svc/internal/mirror"
	"svc/internal/project"
	"svc/internal/release"
	"svc/internal/repo"
	"svc/internal/signin"
	"svc/internal/user"
)

// contents are all pages, with data.
func contents() []content {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	u := &user.User{ID: 1, Username: "ada", Name: "Ada", Email: "ada@example.org", ConfirmedAt: &now, CreatedAt: now}
	u.WebsiteURL, u.PublicEmail = "https://example.org", "ada@example.org"
	p := &project.Project{ID: 1, Name: "P", Path: "p", FullPath: "g/p", Description: "d", Visibility: project.Public, DefaultBranch: "main",
		Topics: []string{"t"}, LastActivityAt: now, Namespace: project.Namespace{FullPath: "g", FullName: "G"}}
	g := &project.Namespace{ID: 1, Name: "G", FullPath: "g", FullName: "G", Visibility: project.Private, Description: "d"}
	h := head{Project: p, Parents: crumbs("g", "G"), Tab: "overview", SignedIn: true, HTTP: "http://example.org/g/p.git", SSH: "git@example.org:g/p.git"}
	commit := &git.Commit{ID: "0123456789", Title: "t", Author: git.Signature{Name: "Ada", When: now}, Committer: git.Signature{When: now}}
	h.Code, h.MayPush = true, true
	at := codeHead{head: h, Ref: "main", Path: "a/b", Steps: steps("a/b"), At: "0123456789"}
	bad := form{Errors: map[string][]string{"name": {"is wrong"}, "code": {"is wrong"}, "visibility": {"is wrong"}, "path": {"x"}}, Error: "no"}
	return []content{
		problemPage{Status: 404, Head: "h", Text: "t", Public: true}, problemPage{Status: 500},
		signInPage{Form: bad, Resend: true}, directoryPage{Form: bad, Label: "Corp"}, directoryPage{Form: bad, Linking: true, Confirm: true}, confirmPage{Form: bad, Action: "/x", Back: "/"}, codePage{Form: bad}, forgotPage(bad), resetPage{Form: bad}, pressPage{}, signUpPage{Form: bad},
		listPage{Projects: []*project.Project{p}}, listPage{Groups: []*project.Namespace{g}, OfGroups: true}, listPage{Filtered: true},
		listPage{Own: true, User: true}, listPage{Own: true, Starred: true}, listPage{Own: true, OfGroups: true}, listPage{},
		newProjectPage{Form: bad, Places: []*project.Namespace{g}}, newGroupPage{Form: bad, Places: []*project.Namespace{g}},
		profileView{User: u, Whole: true, Self: true, Projects: []*project.Project{p}}, profileView{User: u},
		groupView{groupHead: groupHead{Group: g, Tab: "projects", MayAdd: true, MayNest: true, MaySet: true, SignedIn: true}, Tree: []*treeNode{{Group: g, Children: []*treeNode{{Project: p}}}, {Project: p}}, Membership: project.MembershipState{MayLeave: true}},
		groupView{groupHead: groupHead{Group: g, Tab: "members"}, Members: []*project.Member{{User: u, Level: project.Owner, ExpiresAt: "2027-01-01"}}},
		groupView{groupHead: groupHead{Group: g}, Search: "x"},
		groupView{groupHead: groupHead{Group: g, Tab: "members"}}, groupView{groupHead: groupHead{Group: g, Tab: "projects"}},
		treePage{codeHead: at, Overview: true, Table: "<tr></tr>",
			Commit: commit, Languages: bars([]git.Language{{Name: "Go", Share: 100}}), Readme: "<p>x</p>", Pager: pager{"?page=1", "?page=3"}},
		treePage{codeHead: codeHead{head: h}, Overview: true, Mirror: &mirror.Mirror{URL: "https://example.org/a", Status: mirror.StatusFailed}}, treePage{codeHead: codeHead{head: h}, Overview: true}, treePage{codeHead: at, Overview: true, Hidden: true},
		blobPage{codeHead: at, File: &repo.File{FileBlob: repo.FileBlob{Size: 3}}, Commit: commit, Source: "x", Lines: 1, CRLF: true},
		blobPage{codeHead: at, File: &repo.File{FileBlob: repo.FileBlob{Size: 3}}, Commit: commit, Source: "<tr></tr>", Lines: 1, Blame: true},
		blobPage{codeHead: at, Commit: commit, File: &repo.File{}, Image: true}, blobPage{codeHead: at, Commit: commit, File: &repo.File{}, TooLarge: true},
		blobPage{codeHead: at, Commit: commit, File: &repo.File{}, Binary: true},
		blobPage{codeHead: at, Commit: commit, File: &repo.File{}, Binary: true, LFS: &lfs.Pointer{Size: 1 << 20}},
		commitsPage{codeHead: at, Days: days([]byline{{Commit: commit, By: u, CI: &ciStatus{Status: "failed", URL: "/x"}}, {Commit: commit}})}, commitsPage{codeHead: at, Search: "x"},
		commitPage{head: h, Commit: byline{Commit: commit, By: u, CI: &ciStatus{Status: "success", URL: "/x", Warning: true}}, Stats: &git.Stat{Added: 1}, Committer: "Bob", Branches: []string{"main"}, Tags: []string{"v1"}, MoreRefs: true,
			Signature: &repo.Signature{Status: repo.Verified}, Diff: diffView{Files: []diffFile{{Body: "<tr></tr>"}, {Why: "w", Cut: true}, {Why: "w", LFS: "1 MiB"}}, Pager: pager{After: "?page=2"}}},
		commitPage{head: h, Commit: byline{Commit: commit}}, commitPage{head: h, Commit: byline{Commit: commit}, Diff: diffView{Only: "x", Parallel: true}},
		branchesPage{head: h, MayAdd: true, Rows: []branchRow{{Branch: repo.Branch{Name: "x", Commit: commit, Protected: true, CanDelete: true}, Known: true}}}, branchesPage{head: h, State: "stale"},
		tagsPage{head: h, MayAdd: true, Tags: []tagRow{{Tag: repo.Tag{Name: "v1", Commit: commit, Message: "m", CanDelete: true}, Signed: &repo.Signature{}, Release: &release.Summary{Tag: "v1", Name: "V"}}, {Publishes: true}}}, tagsPage{head: h, One: true},
		comparePage{head: h, From: "a", To: "b", Done: true, Count: 60, Commits: days([]byline{{Commit: commit, By: u}})}, comparePage{head: h}, comparePage{head: h, Error: "x"}, comparePage{head: h, Done: true},
		contributorsPage{head: h, Contributors: []person{{Contributor: git.Contributor{Name: "x"}, Plot: "<svg></svg>"}, {By: u}}, Count: 60}, contributorsPage{head: h}, contributorsPage{head: h, Lines: &git.AuthorCount{Commits: 1}},
		contributorsPage{head: h, Lines: &git.AuthorCount{Done: true, Partial: true}, Contributors: []person{{Contributor: git.Contributor{Name: "x", Stat: git.Stat{Added: 1}}, Lined: true}}},
		editPage{codeHead: at, Action: "edit", Form: bad}, editPage{codeHead: at, Action: "new", Branch: true}, editPage{codeHead: at, Action: "delete", Branch: true, MayHere: true},
		pickPage{head: h, Commit: commit, Action: "revert", Branches: []string{"main"}, Form: bad}, pickPage{head: h, Commit: commit, Action: "cherry_pick"},
		profilePage{Form: bad, User: u, Emails: []string{u.Email}}, emailsPage{Form: bad, User: u, Emails: []user.Email{{Address: "x@example.org", CreatedAt: now}, {ConfirmedAt: &now}}},
		passwordPage{Form: bad}, passwordPage{Forced: true},
		twoFactorPage{}, twoFactorPage{Enabled: true}, twoFactorPage{QR: "<svg></svg>", Form: bad}, twoFactorPage{Codes: []string{"a-b"}},
		preferencesPage{Form: bad}, preferencesPage{}, statusPage{Form: bad, Set: true}, statusPage{},
		identitiesPage{Links: []signin.Link{{Name: "a", Label: "A", ExternUID: "1", Configured: true}, {Name: "b", Label: "B", Configured: true}, {Name: "c", ExternUID: "2"}}}, identitiesPage{},
		importStatusPage{head: h}, importStatusPage{head: h, Form: bad, CanManage: true, Import: &mirror.Import{Active: true, Phase: mirror.Receiving, Percent: 7}},
		importStatusPage{head: h, CanManage: true, Import: &mirror.Import{Phase: mirror.Ended, Branches: 1, Tags: 2, LFSFound: 3, LFSFetched: 1}},
		sessionsPage{Sessions: []sessionRow{{Browser: "x", Current: true}, {Phone: true}}},
		keysPage{Form: bad, Keys: []user.Key{{Title: "t", CreatedAt: now, LastUsedAt: &now, ExpiresAt: &now}}}, keysPage{},
		tokensPage{Form: bad, Made: &user.Token{Secret: "s"}, Tokens: []user.Token{{Name: "n", Scopes: []string{"api"}, LastUsedAt: &now, ExpiresAt: "2027-01-01"}}, Scopes: []scope{{"api", "t"}}}, tokensPage{},
	}
}

// allContents are the pages of all files.
func allContents() []content {
	return slices.Concat(contents(), oauthContents(), ciContents(), settingsContents(), adminContents(), snippetContents(), mergeContents(), planContents(),
		notificationContents(), alertContents(), errorContents(), transferContents(), dailyContents(), inboxContents(), releaseContents(), operateContents(), packageContents())
}

// TestViews renders each page, with and without a session: every template runs and
// belongs to a page, and every icon exists.
func TestViews(t *testing.T) {
	t.Parallel()
	w := &Web{assets: loadAssets(), Deps: Deps{Now: func() time.Time { return time.Unix(1e9, 0) }, Site: Site{Name: "svc", Cookies: "svc"}}}
	w.views = w.parseViews()
	icons, err := static.ReadFile("static/icons.svg")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range allContents() {
		seen[c.view()] = true
		if p, ok := c.(treePage); ok { // rendered in two parts
			if p.Body, err = w.part("project/tree", "treebody", p); err != nil {
				t.Error(err)
			}
			c = p
		}
		for _, u := range []*user.User{nil, {ID: 2, Username: "eve", Name: "Eve"}} {
			v := &visit{web: w, w: httptest.NewRecorder(), r: httptest.NewRequest("GET", "/", nil), session: &user.Session{CSRF: "token"}}
			var b strings.Builder
			f := &frame{Site: &w.Site, Title: c.title(), User: u, Flash: &flash{"ok", "done"}, Page: c, visit: v, NoMail: true, SignUp: true, Unproven: u != nil}
			if err := w.views.get(c.view()).ExecuteTemplate(&b, "layout", f); err != nil {
				t.Errorf("%s: %v", c.view(), err)
				continue
			}
			html := b.String()
			for rest := html; ; {
				_, after, found := strings.Cut(rest, ".svg#")
				if !found {
					break
				}
				name, tail, _ := strings.Cut(after, `"`)
				if !strings.Contains(string(icons), `<symbol id="`+name+`"`) {
					t.Errorf("%s: there is no icon %q", c.view(), name)
				}
				rest = tail
			}
			for _, bad := range []string{" style=", "<script>", " onclick=", "ZgotmplZ", "/assets/\"", "<no value>", "\n\t"} {
				if strings.Contains(html, bad) {
					t.Errorf("%s: the page has %q", c.view(), bad)
				}
			}
			if forms, tokens := strings.Count(html, `method="post"`), strings.Count(html, `name="authenticity_token" value="`+v.csrf()+`"`); forms != tokens {
				t.Errorf("%s: %d forms, %d tokens", c.view(), forms, tokens)
			}
		}
	}
	files, err := fs.Glob(templates, "templates/*/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".html"); !seen[name] && !strings.HasPrefix(file, parts) {
			t.Errorf("no page of the test uses %s", file)
		}
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/":                             "/",
		"/g/p?a=b#c":                    "/g/p?a=b#c",
		"":                              "/",
		"g/p":                           "/",
		"//evil.example":                "/",
		"///evil.example":               "/",
		`/\evil.example`:                "/",
		`\\evil.example`:                "/",
		"/\t/evil.example":              "/",
		"/\n/evil.example":              "/",
		"https://evil.example":          "/",
		"https:evil.example":            "/",
		"javascript:alert(1)":           "/",
		"/%2f/evil.example":             "/%2f/evil.example", // a path on this host
		"http://svc@evil.example/":      "/",
		"/users/sign_in?return_to=//e.": "/users/sign_in?return_to=//e.",
	} {
		if got := local(path); got != want {
			t.Errorf("local(%q) is %q, want %q", path, got, want)
		}
	}
}

// TestMarkdown renders texts that try to run a script.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	at := spot{project: "g/p", ref: "feature/x", dir: "docs"}
	for source, want := range map[string]string{
		"# A head":                             `<h1 id="user-content-a-head">A head</h1>`,
		"[a](other.md#b)":                      `href="/g/p/-/blob/feature/x/docs/other.md#user-content-b"`,
		"[a](/top.md)":                         `href="/g/p/-/blob/feature/x/top.md"`,
		"[a](../../../etc)":                    `href="/g/p/-/blob/feature/x/etc"`,
		"![a](b%20c.png)":                      `src="/g/p/-/raw/feature/x/docs/b%20c.png"`,
		"[a](#b)":                              `href="#user-content-b"`,
		"[a](https://example.org)":             `rel="nofollow noreferrer"`,
		"```go\nfunc f() {}\n```":              `<span class="k">func</span>`,
		"<script>alert(1)</script>":            "",
		"<img src=x onerror=alert(1)>":         `<img src="x">`,
		"[a](javascript:alert(1))":             "a",
		"<a href=javascript:alert(1)>":         "",
		"<iframe src=//e></iframe>":            "",
		"<p style='position:fixed'>x":          "<p>x",
		"<form action=//e><input></form>":      "",
		"<svg><script>alert(1)</script></svg>": "",
		"<div class='skip card'>x</div>":       "x",
		"[a](data:text/html,x)":                "a",
	} {
		html, err := testWeb().renderText(t.Context(), "README.md", source, at)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(html), want) {
			t.Errorf("%q becomes %q, want %q in it", source, html, want)
		}
		for _, bad := range []string{"<script", "javascript:", "onerror", "<iframe", "<form", "style=", "data:", "skip card"} {
			if strings.Contains(string(html), bad) {
				t.Errorf("%q becomes %q", source, html)
			}
		}
	}
	html, err := testWeb().renderText(t.Context(), "README.txt", "<b>&", at)
	if err != nil || html != "<pre>&lt;b&gt;&amp;</pre>" {
		t.Errorf("plain text becomes %q, %v", html, err)
	}
}

// TestFileTable draws entries of every kind, with names that are markup.
func TestFileTable(t *testing.T) {
	t.Parallel()
	w := &Web{assets: loadAssets()}
	html := string(w.fileTable(spot{project: "g/p", ref: "a/b"}, &repo.View{
		Entries: []git.Entry{{Name: "<u>", Path: "<u>", Type: git.TypeTree}, {Name: "a b", Path: "a b&amp", Type: git.TypeBlob}, {Name: "c", Path: "c", Type: git.TypeCommit}},
		Last:    map[string]*git.Commit{"a b": {Title: `"<u>`, Committer: git.Signature{When: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}}},
	}))
	for _, want := range []string{
		`href="/g/p/-/tree/a/b/%3Cu%3E"`, "&lt;u&gt;</span>", `href="/g/p/-/blob/a/b/a%20b&amp;amp"`, `title="&#34;&lt;u&gt;"`, `datetime="2026-03-04T05:06:07Z"`, "4 Mar 2026",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the table lacks %q: %s", want, html)
		}
	}
	if strings.Contains(html, "<u>") || strings.Count(html, "<tr") != 3 || strings.Count(html, "href=\"/g") != 2 {
		t.Errorf("the table: %s", html)
	}
}

func TestHighlight(t *testing.T) {
	t.Parallel()
	lines, err := testWeb().highlighted(t.Context(), "x.go", "package x\n\n// <script>\n", "")
	if err != nil || len(lines) != 3 {
		t.Fatal(lines, err)
	}
	html := anchored(lines, excerpt{First: 2, Last: 3})
	want := `<span id="L2"><a href="#L2" data-n="2" aria-label="Line 2"></a>` + "\n" +
		`</span><span id="L3"><a href="#L3" data-n="3" aria-label="Line 3"></a><span class="c">// &lt;script&gt;</span>` + "\n</span>"
	if string(html) != want {
		t.Errorf("%s", html)
	}
	// Lexers whose comments include the line break still return two lines.
	for _, name := range []string{"Makefile", "x.yml", "x.sh", "x.md"} {
		lines, err := testWeb().highlighted(t.Context(), name, "# a\n# b\n\nc: d\n", "")
		if err != nil || len(lines) != 4 || strings.Contains(strings.Join(lines, ""), "\n") {
			t.Errorf("%s: %q, %v", name, lines, err)
		}
	}
}

// TestLineCount checks that no page of a file is too large, and that all have the
// same number of lines.
func TestLineCount(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		name  string
		lines []string
		want  int
	}{
		{"short lines", slices.Repeat([]string{"x"}, 5000), maxLines},
		{"long lines", slices.Repeat([]string{long}, 5000), maxLines / 8},
		{"long lines on one page", append(slices.Repeat([]string{"x"}, 4000), slices.Repeat([]string{long}, 200)...), maxLines / 8},
		{"one line", []string{strings.Repeat(long, 500)}, leastLines},
	} {
		if got := lineCount(c.lines, maxLines, 80); got != c.want && !(c.want == leastLines && got <= c.want) {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func FuzzRenderText(f *testing.F) {
	f.Add("# a\n<b onclick=x>[c](d)")
	f.Fuzz(func(t *testing.T, source string) {
		html, err := testWeb().renderText(t.Context(), "x.md", source, spot{project: "g/p", ref: "main"})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(html), "<script") {
			t.Errorf("%q becomes %q", source, html)
		}
	})
}

func TestQR(t *testing.T) {
	t.Parallel()
	svg, err := drawQR("otpauth://totp/svc:ada@example.org?secret=JBSWY3DPEHPK3PXP&issuer=svc")
	if err != nil {
		t.Fatal(err)
	}
	// The corner squares are seven modules wide, behind a margin of four.
	if !strings.Contains(string(svg), "M4 4h7v1h-7z") || strings.Contains(string(svg), "style") {
		t.Errorf("not a code: %.200s", svg)
	}
}

func TestBrowserOf(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0":                                         "Firefox on Linux",
		"Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120 Safari/537.36 Edg/120":          "Edge on Windows",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605 (KHTML, like Gecko) Mobile Safari/604.1": "Safari on iPhone",
		"": "Unknown browser",
	} {
		if got, _ := browserOf(agent); got != want {
			t.Errorf("%q is %q, want %q", agent, got, want)
		}
	}
}

// testWeb returns a Web that can render texts.
func testWeb() *Web { return &Web{Deps: Deps{Markup: markup.New(markup.Deps{})}} }
