package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"svc/internal/app"
	"svc/internal/git/gittest"
	"svc/internal/user"
)

const (
	dailyIssues   = 10_000
	dailyMerges   = 1_000
	dailyLimit    = 20 // as a multiple of GET /version
	dailyRounds   = 9
	dailyVersions = 100 // requests for the version per round
	dailyReads    = 5   // requests for a page per round
)

// BenchmarkDaily compares the CPU time of the main pages, for a user who sends one
// request at a time, with that of the cheapest API request. CPU time does not depend
// on the load of the machine. The repository has 20,000 commits, the project 10,000
// issues.
func BenchmarkDaily(b *testing.B) {
	t := &table{}
	d := newDaily(b)
	version := d.reader(b, "/api/v4/version")
	for _, path := range d.pages() {
		b.Run(path.name, func(b *testing.B) {
			page := d.reader(b, path.at)
			page(b)
			page(b)
			var pages, versions, took []float64
			for b.Loop() {
				for range dailyRounds {
					versions = append(versions, spent(b, version, dailyVersions))
					pages = append(pages, spent(b, page, dailyReads))
					took = append(took, page(b))
				}
			}
			t.add(b, figure{
				name: path.name, measured: median(pages) / median(versions), limit: cmp.Or(beyond[path.name], dailyLimit), unit: "× GET /version",
				note: fmt.Sprintf("%.2f ms of processor time, %.2f ms; %.2f ms", median(pages), median(versions), median(took)),
			})
		})
	}
	t.finish(b)
}

// beyond are the limits of pages that exceed dailyLimit, which is the goal.
var beyond = map[string]float64{
	"issues, search=number 77": 30,
}

// BenchmarkContributors compares the first request of the contributors page, in a
// repository of 20,000 commits, with the git log that it needs.
func BenchmarkContributors(b *testing.B) {
	t := &table{}
	p := newPushed(b, gittest.Generate(b, gittest.Large))
	d := p.daily(b)
	counting := func() bool {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+p.addr+"/root/bench/-/graphs/main", nil)
		check(b, err)
		r.AddCookie(&http.Cookie{Name: "_svc_session", Value: d.cookie})
		res, err := p.client.Do(r)
		check(b, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		check(b, err)
		if res.StatusCode != http.StatusOK || !bytes.Contains(text, []byte("Commits over time")) {
			b.Fatalf("contributors: %s, %d bytes", res.Status, len(text))
		}
		return res.Header.Get("Refresh") != ""
	}
	// The changed lines are counted in the background after the first request.
	forget := func() {
		for counting() {
			if err := b.Context().Err(); err != nil {
				b.Fatal(err)
			}
		}
		p.repo.Forget()
		p.read(b, "repository/tree", 100)()
	}
	log := p.git(b, "log", "--no-merges", "--format=%at %an %ae", "main")
	duel{7, forget, log, func() { counting() }, 0}.figure(b, t, "contributors page", "git log", 1.2)
	t.finish(b)
}

// daily signs in to the server of a repository.
func (p *pushed) daily(b testing.TB) *daily {
	b.Helper()
	d := &daily{server: p.server}
	session, _, err := p.server.Users.SignIn(b.Context(), user.SignInRequest{Login: "root", Password: "correct horse battery", IP: "127.0.0.1"})
	check(b, err)
	d.cookie = session.Token
	return d
}

// spent returns the CPU time of a request, in milliseconds.
func spent(b testing.TB, send func(testing.TB) float64, times int) float64 {
	b.Helper()
	now := func() float64 {
		var u syscall.Rusage
		check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
	}
	start := now()
	for range times {
		send(b)
	}
	return (now() - start) / float64(times)
}

// daily is a server with a project, and the session of a user.
type daily struct {
	server   *app.Server
	cookie   string
	pipeline int64
	job      int64
	board    int64
	path     string // path of a file with a long history
}

// reader returns a function that reads a page completely and returns the duration in
// milliseconds.
func (d *daily) reader(b testing.TB, path string) func(testing.TB) float64 {
	b.Helper()
	transport := &http.Transport{DisableCompression: true}
	b.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return func(b testing.TB) float64 {
		b.Helper()
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+d.server.Addr()+path, nil)
		check(b, err)
		r.AddCookie(&http.Cookie{Name: "_svc_session", Value: d.cookie})
		start := time.Now()
		res, err := client.Do(r)
		check(b, err)
		_, err = io.Copy(io.Discard, res.Body)
		check(b, err)
		took := time.Since(start).Seconds() * 1e3
		check(b, res.Body.Close())
		if res.StatusCode != http.StatusOK {
			b.Fatalf("%s: %s", path, res.Status)
		}
		return took
	}
}

type dailyPage struct{ name, at string }

func (d *daily) pages() []dailyPage {
	const at = "/root/bench"
	list := []dailyPage{
		{"project page", at},
		{"files", at + "/-/tree/main"},
		{"blob", at + "/-/blob/main/" + d.path},
		{"commits", at + "/-/commits/main"},
		{"commits of a file", at + "/-/commits/main/" + d.path},
		{"commit", at + "/-/commit/main"},
		{"blame", at + "/-/blame/main/" + d.path},
		{"branches", at + "/-/branches"},
		{"file finder", at + "/-/find_file/main"},
		{"search of the file finder", at + "/-/find_file/main?search=a1"},
		{"issues", at + "/-/issues"},
	}
	for _, filter := range []string{
		"state=closed", "state=all", "author_username=root", "assignee_username=root", "assignee_username=None", "label_name[]=label-3", "label_name[]=None",
		"label_name[]=rare", "milestone_title=m1", "milestone_title=None", "weight=3", "confidential=yes", "my_reaction_emoji=Any", "search=number 77",
		"sort=updated_desc", "sort=priority", "sort=due_date", "sort=popularity", "sort=title_asc", "page=400",
	} {
		name, value, _ := strings.Cut(filter, "=")
		list = append(list, dailyPage{"issues, " + filter, at + "/-/issues?" + url.Values{name: {value}}.Encode()})
	}
	return append(list,
		dailyPage{"issue", at + "/-/issues/1"},
		dailyPage{"new issue", at + "/-/issues/new"},
		dailyPage{"board", fmt.Sprintf("%s/-/boards/%d", at, d.board)},
		dailyPage{"completion of issues", at + "/-/autocomplete_sources/issues?search=number"},
		dailyPage{"completion of issues, a rare word", at + "/-/autocomplete_sources/issues?search=9876"},
		dailyPage{"completion of members", at + "/-/autocomplete_sources/members?search=r"},
		dailyPage{"merge requests", at + "/-/merge_requests"},
		dailyPage{"merge request", at + "/-/merge_requests/1"},
		dailyPage{"changes of a merge request", at + "/-/merge_requests/1/diffs"},
		dailyPage{"commits of a merge request", at + "/-/merge_requests/1/commits"},
		dailyPage{"pipelines", at + "/-/pipelines"},
		dailyPage{"pipeline", fmt.Sprintf("%s/-/pipelines/%d", at, d.pipeline)},
		dailyPage{"job", fmt.Sprintf("%s/-/jobs/%d", at, d.job)},
		dailyPage{"dashboard", "/"},
		dailyPage{"own issues", "/dashboard/issues"},
		dailyPage{"own merge requests", "/dashboard/merge_requests"},
		dailyPage{"to-do list", "/dashboard/todos"},
	)
}

// newDaily creates the project.
func newDaily(b testing.TB) *daily {
	b.Helper()
	p := newPushed(b, gittest.Generate(b, gittest.Large))
	d := p.daily(b)
	at := fmt.Sprintf("projects/%d/", p.project)
	var made struct {
		ID  int64
		IID int64
	}
	for i := range 10 {
		check(b, p.post(at+"labels", fmt.Sprintf(`{"name":"label-%d","color":"#428bca"}`, i), &made))
	}
	check(b, p.post(at+"labels", `{"name":"rare","color":"#428bca"}`, &made))
	check(b, p.post(at+"milestones", `{"title":"m1"}`, &made))
	check(b, p.post(at+"issues", fmt.Sprintf(`{"title":"Issue number 1","description":"A *text* with a list:\n\n- [ ] one\n- [x] two\n","assignee_ids":[1],"labels":"rare,label-1","milestone_id":%d}`, made.ID), &made))
	for range 20 {
		check(b, p.post(at+"issues/1/notes", `{"body":"A comment on #1 with **some** text and `+"`code`"+`."}`, &made))
	}
	check(b, p.post(at+"boards", `{"name":"Work"}`, &made))
	d.board = made.ID
	for i := range 3 {
		var label struct{ ID int64 }
		check(b, p.post(at+"labels", fmt.Sprintf(`{"name":"list-%d","color":"#428bca"}`, i), &label))
		check(b, p.post(fmt.Sprintf("%sboards/%d/lists", at, d.board), fmt.Sprintf(`{"label_id":%d}`, label.ID), &struct{}{}))
	}
	// A branch with a CI/CD configuration and some changes.
	check(b, p.post(at+"repository/commits", `{"branch":"work","start_branch":"main","commit_message":"Work","actions":[
		{"action":"create","file_path":".gitlab-ci.yml","content":"a: {script: [x]}\nb: {script: [x]}\nc: {stage: deploy, script: [x]}\n"},
		{"action":"create","file_path":"work/one.go","content":"package work\n\nfunc One() int {\n\treturn 1\n}\n"},
		{"action":"create","file_path":"work/two.go","content":"package work\n\nfunc Two() int {\n\treturn 2\n}\n"}]}`, &struct{}{}))
	check(b, p.post(at+"merge_requests", `{"title":"Work","source_branch":"work","target_branch":"main","assignee_id":1}`, &made))
	awaitQueue(b, p.server, 1)
	check(b, p.server.Queue.Idle(b.Context()))
	fillDaily(b, d)
	q := p.server.DB
	check(b, q.QueryRowContext(b.Context(), `SELECT max(p.id) FROM pipelines p`).Scan(&d.pipeline))
	check(b, q.QueryRowContext(b.Context(), `SELECT max(j.id) FROM jobs j`).Scan(&d.job))
	d.path = p.longFile(b)
	return d
}

// longFile returns a file that many commits have changed.
func (p *pushed) longFile(b testing.TB) string {
	b.Helper()
	var list []struct{ Path, Type string }
	var text bytes.Buffer
	_, err := get(p.client, p.address("repository/tree?recursive=true&per_page=100"), rootToken, &text)
	check(b, err)
	check(b, json.Unmarshal(text.Bytes(), &list))
	for _, e := range list {
		if e.Type == "blob" {
			return e.Path
		}
	}
	b.Fatal("the repository has no files")
	return ""
}

// fillDaily copies the issue, the merge request and the pipeline.
func fillDaily(b testing.TB, d *daily) {
	b.Helper()
	fill(b, d.server.DB, []statement{
		{series + `INSERT INTO issues (project_id, iid, state, confidential, author_id, milestone_id, created_at, updated_at, title, weight, due_date, notes, upvotes, description)
			SELECT i.project_id, i.iid + n, CASE WHEN n % 4 = 0 THEN 'closed' ELSE 'opened' END, n % 100 = 0, i.author_id, CASE WHEN n % 3 = 0 THEN i.milestone_id END,
				i.created_at + n, i.updated_at + n * 7919 % 10007, 'Issue number ' || (n + 1), CASE WHEN n % 5 = 0 THEN n % 10 END, CASE WHEN n % 6 = 0 THEN '2030-01-01' END,
				n % 7, n % 11, 'Text ' || n
			FROM issues i CROSS JOIN series WHERE i.iid = 1`, []any{dailyIssues - 1}},
		{`INSERT INTO issue_labels (issue_id, label_id) SELECT i.id, l.id FROM issues i JOIN labels l ON l.name = 'label-' || (i.iid % 10) WHERE i.iid % 13 > 2 AND i.iid > 1`, nil},
		{`INSERT INTO issue_assignees (issue_id, user_id) SELECT i.id, 1 FROM issues i WHERE i.iid % 9 = 0`, nil},
		{series + `INSERT INTO merge_requests (project_id, iid, state, author_id, created_at, updated_at, source_project_id, source_branch, target_branch, title, head_sha,
				merge_check, checked_source, checked_target)
			SELECT m.project_id, m.iid + n, CASE WHEN n % 3 = 0 THEN 'opened' ELSE 'merged' END, m.author_id, m.created_at + n, m.updated_at + n, m.source_project_id, 'work-' || n,
				m.target_branch, 'Merge request ' || (n + 1), m.head_sha, m.merge_check, m.checked_source, m.checked_target
			FROM merge_requests m CROSS JOIN series WHERE m.iid = 1`, []any{dailyMerges - 1}},
		{`INSERT INTO merge_request_assignees (merge_request_id, user_id) SELECT m.id, 1 FROM merge_requests m WHERE m.iid % 9 = 0`, nil},
		{`INSERT INTO todos (user_id, author_id, project_id, target_type, issue_id, action, state, created_at, updated_at)
			SELECT 1, 1, i.project_id, 'Issue', i.id, 'assigned', 'pending', i.created_at, i.created_at FROM issues i WHERE i.iid % 9 = 0 AND i.iid > 1`, nil},
	})
	fillJobs(b, d.server.DB, 300, 10)
	spreadStates(b, d.server.DB)
}

const (
	searchFiles  = 100_000
	searchIssues = 100_000
	// searchLimit is the maximum CPU time, in milliseconds, of a search during
	// typing.
	searchLimit = 100
)

// BenchmarkSearch measures the searches during typing: the file finder with 100,000
// files, and the completion with 100,000 issues.
func BenchmarkSearch(b *testing.B) {
	t := &table{}
	var files []gittest.Change
	for i := range searchFiles {
		files = append(files, gittest.Change{Path: fmt.Sprintf("part%d/area%d/some_file_name_%d.go", i%50, i%1000, i), Content: "x"})
	}
	g := gittest.New(b)
	g.Commit(gittest.Commit{Changes: files})
	p := newPushed(b, g)
	d := p.daily(b)
	check(b, p.post(fmt.Sprintf("projects/%d/issues", p.project), `{"title":"Issue number 1"}`, &struct{}{}))
	fill(b, p.server.DB, []statement{
		{series + `INSERT INTO issues (project_id, iid, author_id, created_at, updated_at, title)
			SELECT i.project_id, i.iid + n, i.author_id, i.created_at + n, i.updated_at + n, 'Issue number ' || (n + 1) FROM issues i CROSS JOIN series WHERE i.iid = 1`, []any{searchIssues - 1}},
	})
	const at = "/root/bench/-/"
	for _, c := range []dailyPage{
		{"finder, a part of a name", at + "find_file/main?format=json&search=name_99"},
		{"finder, several words", at + "find_file/main?format=json&search=part7+area17+name"},
		{"finder, scattered letters", at + "find_file/main?format=json&search=pasfn9"},
		{"finder, nothing found", at + "find_file/main?format=json&search=zzzzzz"},
		{"completion of issues, newest", at + "autocomplete_sources/issues"},
		{"completion of issues, a word", at + "autocomplete_sources/issues?search=number"},
		{"completion of issues, a number", at + "autocomplete_sources/issues?search=9876"},
		{"completion of issues, nothing found", at + "autocomplete_sources/issues?search=zzzzzz"},
	} {
		b.Run(c.name, func(b *testing.B) {
			page := d.reader(b, c.at)
			page(b)
			var took []float64
			for b.Loop() {
				for range dailyRounds {
					took = append(took, spent(b, page, 1))
				}
			}
			t.add(b, figure{name: c.name, measured: median(took), limit: searchLimit, unit: "ms of processor time"})
		})
	}
	t.finish(b)
}
