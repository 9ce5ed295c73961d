package bench

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"svc/internal/app"
	"svc/internal/db/dbtest"
)

// BenchmarkLists compares the first page of lists, with each filter and order, in an
// instance with a thousand issues, merge requests and comments and in an instance
// with many. BENCH_ROWS is the number in the large instance, 100,000 by default.
func BenchmarkLists(b *testing.B) { compareSizes(b, listsOn) }

// compareSizes runs benchmarks that compare instances of two sizes, on each database.
// many is the number of rows of the large instance: BENCH_ROWS, or 100,000.
func compareSizes(b *testing.B, run func(b *testing.B, t *table, on string, many int, newDatabase func() string)) {
	t := &table{}
	many := 100_000
	if text := os.Getenv("BENCH_ROWS"); text != "" {
		n, err := strconv.Atoi(text)
		check(b, err)
		many = n
	}
	b.Run("sqlite", func(b *testing.B) {
		run(b, t, "SQLite", many, func() string { return "" })
	})
	if os.Getenv("TEST_POSTGRES") != "" {
		b.Run("postgres", func(b *testing.B) {
			run(b, t, "PostgreSQL", many, func() string { return dbtest.Postgres(b).URL })
		})
	}
	t.finish(b)
}

// listSite is a server with issues, merge requests and comments.
type listSite struct {
	*app.Server
	project, small, milestone, author, worker int64
	member, other                             string // tokens of a developer and of a user who is not a member
	tenth                                     string // updated_at of the tenth issue, and of the tenth merge request
}

// listCase is a list that is measured.
type listCase struct {
	name, path string
	most       float64 // 1.5 if it is 0
	other      bool    // whether the request is by a user who is not a member
}

func listsOn(b *testing.B, t *table, on string, many int, newDatabase func() string) {
	short, long := newListSite(b, newDatabase(), fewRows), newListSite(b, newDatabase(), many)
	cases := long.cases()
	for i, c := range short.cases() {
		b.Run(strings.ReplaceAll(c.name, " ", "_"), func(b *testing.B) {
			f := figure{name: fmt.Sprintf("%s (%s)", c.name, on), limit: c.most, unit: fmt.Sprintf("× at %d rows", fewRows)}
			if f.limit == 0 {
				f.limit = 1.5
			}
			x, y := short.pages(b, c), long.pages(b, cases[i])
			for b.Loop() {
				x.compare(b, y, &f)
			}
			t.add(b, f)
		})
	}
}

// listPages reads one page repeatedly.
type listPages struct {
	token, address string
	lean           *lean // nil for pages with chunked responses
}

func (s *listSite) pages(b testing.TB, c listCase) *listPages {
	b.Helper()
	p := &listPages{token: s.member, address: "http://" + s.Addr() + "/api/v4/" + c.path}
	if c.other {
		p.token = s.other
	}
	if page, ok := strings.CutPrefix(c.path, "/"); ok {
		p.token, p.address = "", "http://"+s.Addr()+"/"+page
		return p
	}
	l, err := newLean(p.address, p.token)
	check(b, err)
	check(b, l.dial())
	b.Cleanup(func() { l.conn.Close() })
	p.lean = l
	return p
}

// read reads the page and returns the duration in milliseconds.
func (p *listPages) read(b testing.TB) float64 {
	b.Helper()
	start := time.Now()
	var err error
	if p.lean != nil {
		err = p.lean.send()
	} else {
		_, err = get(http.DefaultClient, p.address, p.token, io.Discard)
	}
	if err != nil {
		b.Fatalf("%s: %v", p.address, err)
	}
	return time.Since(start).Seconds() * 1e3
}

// compare reads both pages alternately and completes the figure. A page that exceeds
// its limit by far is read only a few times.
func (p *listPages) compare(b testing.TB, long *listPages, f *figure) {
	b.Helper()
	const rounds, reads, slow = 15, 4, 300
	var x, y []float64
	p.read(b)
	rest := rounds
	if long.read(b) > slow {
		rest = 1
	}
	for range rest {
		for range reads {
			x = append(x, p.read(b))
		}
		for range reads {
			y = append(y, long.read(b))
		}
	}
	f.measured = median(y) / median(x)
	f.note = fmt.Sprintf("%.2f ms, %.2f ms in the large instance", median(x), median(y))
}

// cases returns the lists with each filter and order.
func (s *listSite) cases() (list []listCase) {
	const search = 3
	add := func(name, path string, most float64) {
		list = append(list, listCase{name: name, path: path, most: most})
	}
	issues := fmt.Sprintf("projects/%d/issues?per_page=20", s.project)
	filters := []struct{ name, query string }{
		{"opened", "state=opened"}, {"closed", "state=closed"}, {"common label", "labels=common"}, {"rare label", "labels=rare"},
		{"medium label", "labels=medium"}, {"unknown label", "labels=unknown"}, {"two labels", "labels=common,rare"}, {"two common labels", "labels=common,usual"},
		{"no label", "labels=None"}, {"any label", "labels=Any"}, {"assignee", fmt.Sprintf("assignee_id=%d", s.worker)},
		{"rare assignee", fmt.Sprintf("assignee_id=%d", s.author)}, {"no assignee", "assignee_id=None"}, {"any assignee", "assignee_id=Any"},
		{"assignee name", "assignee_username=worker"}, {"unknown assignee", "assignee_username=unknown"},
		{"rare author", fmt.Sprintf("author_id=%d", s.author)}, {"author name", "author_username=root"}, {"rare author name", "author_username=writer"},
		{"unknown author", "author_username=unknown"}, {"milestone", "milestone=common"}, {"rare milestone", "milestone=rare"}, {"no milestone", "milestone=None"},
		{"any milestone", "milestone=Any"}, {"unknown milestone", "milestone=unknown"}, {"my reaction", "my_reaction_emoji=thumbsup"},
		{"created after", "created_after=2023-11-14T22:13:20Z"}, {"updated before", "updated_before=" + s.tenth},
		{"not label", "not[labels]=common"}, {"not author", "not[author_username]=root"}, {"not milestone", "not[milestone]=common"},
		{"not assignee", fmt.Sprintf("not[assignee_id]=%d", s.worker)}, {"label and assignee", fmt.Sprintf("labels=usual&assignee_id=%d", s.worker)},
		{"label and opened", "labels=medium&state=opened"}, {"several filters", fmt.Sprintf("labels=usual&milestone=common&state=opened&assignee_id=%d", s.worker)},
		{"label and author", "labels=usual&author_username=root"}, {"label, milestone and closed", "labels=common&milestone=common&state=closed"},
	}
	// A thousand candidates are read in another order; in the small instance there
	// are ten.
	candidates := map[string]float64{"label and opened": 12}
	for _, f := range filters {
		add("issues of a project, "+f.name, issues+"&"+f.query, candidates[f.name])
	}
	add("issues of a project, due this week", issues+"&due_date=week", 0)
	add("issues of a project, overdue", issues+"&due_date=overdue", 0)
	add("issues of a project, no due date", issues+"&due_date=0", 0)
	add("issues of a project, weight", issues+"&weight=3", 0)
	add("issues of a project, no weight", issues+"&weight=None", 0)
	add("issues of a project, confidential", issues+"&confidential=true", 0)
	add("issues of a project, type", issues+"&issue_type=incident", 0)
	list = append(list, listCase{name: "issues of a project, confidential, no member", path: issues + "&confidential=true", other: true})
	list = append(list, listCase{name: "issues of a project, no member", path: issues, other: true})
	for _, by := range []string{"created_at", "updated_at", "priority", "due_date", "relative_position", "label_priority", "milestone_due", "popularity", "weight", "title"} {
		for _, way := range []string{"asc", "desc"} {
			add("issues of a project by "+by+" "+way, issues+"&order_by="+by+"&sort="+way, 0)
		}
		add("issues of a project by "+by+", opened", issues+"&state=opened&order_by="+by, 0)
		add("issues of a project by "+by+", common label", issues+"&labels=common&order_by="+by, 0)
		add("issues of a project by "+by+", rare label", issues+"&labels=rare&order_by="+by, 0)
	}
	add("issues of a project, keyset", issues+"&pagination=keyset&order_by=created_at", 0)
	add("issue statistics of a project", fmt.Sprintf("projects/%d/issues_statistics", s.project), 0)
	add("issue statistics of a project, rare label", fmt.Sprintf("projects/%d/issues_statistics?labels=rare", s.project), 0)
	add("labels with counts", fmt.Sprintf("projects/%d/labels?with_counts=true", s.project), 0)
	for _, at := range []struct{ name, path string }{{"all issues", "issues?scope=all&per_page=20"}, {"issues of a group", "groups/g/issues?scope=all&per_page=20"}} {
		add(at.name, at.path, 0)
		for _, f := range []struct{ name, query string }{
			{"opened", "state=opened"}, {"common label", "labels=common"}, {"rare label", "labels=rare"}, {"unknown label", "labels=unknown"},
			{"rare assignee", fmt.Sprintf("assignee_id=%d", s.author)}, {"rare author", fmt.Sprintf("author_id=%d", s.author)}, {"milestone", "milestone=common"},
			{"rare milestone", "milestone=rare"}, {"by updated_at", "order_by=updated_at"}, {"by title", "order_by=title"}, {"by due_date", "order_by=due_date&sort=asc"},
			{"by popularity", "order_by=popularity"}, {"by weight", "order_by=weight"}, {"by relative_position", "order_by=relative_position"},
		} {
			add(at.name+", "+f.name, at.path+"&"+f.query, 0)
		}
	}
	add("issues assigned to me", "issues?scope=assigned_to_me&per_page=20", 0)
	add("issues created by me", "issues?scope=created_by_me&per_page=20", 0)
	add("issue statistics", "issues_statistics?scope=all", 0)
	add("issues of an empty group", "groups/empty/issues?per_page=20", 0)
	add("issue statistics of an empty group", "groups/empty/issues_statistics", 0)
	add("merge requests of an empty group", "groups/empty/merge_requests?per_page=20", 0)
	add("issues of a small project", fmt.Sprintf("projects/%d/issues?per_page=20", s.small), 0)

	requests := fmt.Sprintf("projects/%d/merge_requests?per_page=20", s.project)
	for _, f := range filters {
		add("merge requests of a project, "+f.name, requests+"&"+f.query, candidates[f.name])
	}
	for _, f := range []struct{ name, query string }{
		{"merged", "state=merged"}, {"drafts", "wip=yes"}, {"source branch", "source_branch=branch-7"}, {"target branch", "target_branch=main"},
		{"rare target branch", "target_branch=release"}, {"reviewer", fmt.Sprintf("reviewer_id=%d", s.worker)}, {"no reviewer", "reviewer_id=None"},
		{"rare reviewer", fmt.Sprintf("reviewer_id=%d", s.author)}, {"approved", "approved=yes"}, {"approved by", fmt.Sprintf("approved_by_ids[]=%d", s.author)},
		{"merge user", "merge_user_username=root"},
	} {
		add("merge requests of a project, "+f.name, requests+"&"+f.query, 0)
	}
	for _, by := range []string{"created_at", "updated_at", "merged_at", "title", "priority", "label_priority", "milestone_due", "popularity"} {
		for _, way := range []string{"asc", "desc"} {
			add("merge requests of a project by "+by+" "+way, requests+"&order_by="+by+"&sort="+way, 0)
		}
		add("merge requests of a project by "+by+", opened", requests+"&state=opened&order_by="+by, 0)
	}
	add("all merge requests", "merge_requests?scope=all&per_page=20", 0)
	add("all merge requests, rare label", "merge_requests?scope=all&labels=rare&per_page=20", 0)
	add("all merge requests by updated_at", "merge_requests?scope=all&per_page=20&order_by=updated_at", 0)
	add("all merge requests by title", "merge_requests?scope=all&per_page=20&order_by=title", 0)
	add("merge requests assigned to me", "merge_requests?scope=assigned_to_me&per_page=20", 0)
	add("merge requests to review", "merge_requests?scope=reviews_for_me&per_page=20", 0)

	for _, f := range []struct{ name, text string }{{"rare word", "needle"}, {"common word", "gear"}, {"two words", "train+needle"}, {"unknown word", "unfindable"}, {"two characters", "ge"}} {
		add("search issues of a project, "+f.name, issues+"&search="+f.text, search)
		add("search merge requests of a project, "+f.name, requests+"&search="+f.text, search)
		add("search milestones of a project, "+f.name, fmt.Sprintf("projects/%d/milestones?search=%s", s.project, f.text), search)
		for _, scope := range []string{"issues", "merge_requests", "notes", "milestones", "projects", "users", "snippet_titles"} {
			most := float64(search)
			if scope == "users" && f.name == "two characters" { // see below
				most = 200
			}
			add("search "+scope+", "+f.name, "search?scope="+scope+"&search="+f.text, most)
			if scope != "snippet_titles" {
				add("search "+scope+" of a group, "+f.name, "groups/g/search?scope="+scope+"&search="+f.text, search)
			}
		}
		add("search notes of a project, "+f.name, fmt.Sprintf("projects/%d/search?scope=notes&search=%s", s.project, f.text), search)
		add("projects by name, "+f.name, "projects?per_page=20&search="+f.text, search)
		users := float64(search)
		if f.name == "two characters" { // no user matches and there is no index: all users are read
			users = 200
		}
		add("users by name, "+f.name, "users?per_page=20&search="+f.text, users)
	}
	for _, at := range []struct {
		name, path string
		orders     []string
	}{
		{"packages of a project", fmt.Sprintf("projects/%d/packages?per_page=20", s.project), []string{"created_at", "name", "version", "type"}},
		{"packages of a group", "groups/g/packages?per_page=20", []string{"created_at", "name", "version", "type", "project_path"}},
	} {
		for _, by := range at.orders {
			most := 0.0
			if at.name == "packages of a group" && by != "created_at" { // its projects are examined one by one, and there are more of them
				most = 4
			}
			for _, way := range []string{"asc", "desc"} {
				add(at.name+" by "+by+" "+way, at.path+"&order_by="+by+"&sort="+way, most)
			}
		}
		for _, f := range []struct{ name, query string }{
			{"type", "package_type=npm"}, {"rare type", "package_type=pypi"}, {"unknown type", "package_type=maven"}, {"version", "package_version=1.7"},
			{"unknown version", "package_version=7"}, {"hidden", "status=hidden"}, {"type and version", "package_type=npm&package_version=1.9"},
		} {
			add(at.name+", "+f.name, at.path+"&"+f.query, 0)
		}
		for _, f := range []struct{ name, text string }{{"rare name", "needle"}, {"common name", "gear"}, {"unknown name", "unfindable"}} {
			add(at.name+", "+f.name, at.path+"&package_name="+f.text, search)
		}
	}
	for _, at := range []struct{ name, path string }{
		{"releases of a project", fmt.Sprintf("projects/%d/releases?per_page=20", s.project)}, {"releases of a group", "groups/g/releases?per_page=20"},
	} {
		for _, way := range []string{"asc", "desc"} {
			add(at.name+" "+way, at.path+"&sort="+way, 0)
		}
	}
	for _, way := range []string{"asc", "desc"} {
		add("releases of a project by created_at "+way, fmt.Sprintf("projects/%d/releases?per_page=20&order_by=created_at&sort=%s", s.project, way), 0)
	}
	add("releases of a project, updated before", fmt.Sprintf("projects/%d/releases?per_page=20&updated_before=2023-11-14T22:13:20.5Z", s.project), 0)
	add("releases of a project, updated after", fmt.Sprintf("projects/%d/releases?per_page=20&updated_after=2023-11-14T22:13:20.5Z", s.project), 0)
	add("page of issues", "/g/engine/-/issues", 0)
	add("page of issues, rare label", "/g/engine/-/issues?labels=rare", 0)
	add("page of merge requests", "/g/engine/-/merge_requests", 0)
	add("page of labels", "/g/engine/-/labels", 0)
	add("page of milestones", "/g/engine/-/milestones", 0)
	return list
}

// newListSite creates a server with a number of issues, merge requests, comments and
// users, and a hundredth of that number of projects, milestones and snippets, but at
// least some pages.
func newListSite(b testing.TB, databaseURL string, rows int) *listSite {
	b.Helper()
	s := &listSite{Server: serve(b, databaseURL)}
	s.member, s.other = newToken(b, s.Server, "worker"), newToken(b, s.Server, "stranger")
	newToken(b, s.Server, "writer")
	p := newSite(b, s.Addr())
	var made struct{ ID int64 }
	check(b, p.post("groups", `{"name":"empty","path":"empty","visibility":"public"}`, &made))
	check(b, p.post("groups", `{"name":"g","path":"g","visibility":"public"}`, &made))
	group := made.ID
	check(b, p.post("projects", fmt.Sprintf(`{"name":"small","visibility":"public","namespace_id":%d}`, group), &made))
	s.small = made.ID
	check(b, p.post("projects", fmt.Sprintf(`{"name":"engine","visibility":"public","namespace_id":%d}`, group), &made))
	s.project = made.ID
	check(b, s.DB.QueryRowContext(b.Context(), `SELECT id FROM users WHERE username = 'writer'`).Scan(&s.author))
	check(b, s.DB.QueryRowContext(b.Context(), `SELECT id FROM users WHERE username = 'worker'`).Scan(&s.worker))
	check(b, p.post(fmt.Sprintf("projects/%d/members", s.project), fmt.Sprintf(`{"user_id":%d,"access_level":30}`, s.worker), &made))
	for i, name := range []string{"common", "usual", "medium", "rare"} {
		check(b, p.post(fmt.Sprintf("projects/%d/labels", s.project), fmt.Sprintf(`{"name":%q,"color":"#428bca","priority":%d}`, name, 4-i), &made))
	}
	for _, name := range []string{"common", "rare"} {
		check(b, p.post(fmt.Sprintf("projects/%d/milestones", s.project), fmt.Sprintf(`{"title":%q,"due_date":"2030-01-01"}`, name), &made))
	}
	s.milestone = made.ID
	fillLists(b, s, group, rows)
	s.setTenth(b)
	return s
}

func (s *listSite) setTenth(b testing.TB) {
	b.Helper()
	var at int64
	check(b, s.DB.QueryRowContext(b.Context(), `SELECT updated_at FROM issues ORDER BY updated_at, id LIMIT 1 OFFSET 9`).Scan(&at))
	s.tenth = time.UnixMicro(at).UTC().Format(time.RFC3339Nano)
}

func fillLists(b testing.TB, s *listSite, group int64, rows int) {
	b.Helper()
	fillUsers(b, s.DB, rows)
	var list []statement
	for _, kind := range []string{"issue", "merge_request"} {
		columns, values := "due_date, weight, confidential, type", `CASE WHEN n % 3 = 0 THEN '2030-01-0' || (1 + n % 9) END, CASE WHEN n % 3 = 1 THEN n % 7 END, n % 97 = 0, CASE WHEN n % 89 = 0 OR n <= 20 THEN 'incident' ELSE 'issue' END`
		closed := `'closed'`
		if kind == "merge_request" {
			columns = "source_project_id, source_branch, target_branch, head_sha, draft, merged_at, merged_by_id"
			values = `CAST(? AS BIGINT), 'branch-' || n, CASE WHEN n <= 20 THEN 'release' ELSE 'main' END, '', n % 50 = 0, CASE WHEN n % 2 = 0 THEN 1700000000000000 + n END, CASE WHEN n % 2 = 0 THEN 1 END`
			closed = `CASE WHEN n % 2 = 0 THEN 'merged' ELSE 'closed' END`
		}
		args := []any{rows, s.project, s.author}
		if kind == "merge_request" {
			args = append(args, s.project)
		}
		rare := `CASE WHEN n <= 10 THEN 'needle ' ELSE '' END`
		list = append(list,
			// Multiplication by a number modulo a prime is a permutation.
			statement{series + `INSERT INTO ` + kind + `s (project_id, iid, state, author_id, milestone_id, created_at, updated_at, title, description, upvotes, ` + columns + `)
				SELECT CAST(? AS BIGINT), n, CASE WHEN n % 3 = 2 THEN 'opened' ELSE ` + closed + ` END, CASE WHEN n <= 10 THEN CAST(? AS BIGINT) ELSE 1 END,
					(SELECT m.id FROM milestones m WHERE m.title = CASE WHEN n <= 10 THEN 'rare' WHEN n % 3 = 2 THEN 'common' ELSE '' END),
					1700000000000000 + n, 1700000000000000 + n * 7919 % 1000003, 'Title ' || (n * 7919 % 1000003), ` + rare + ` || 'Make part ' || n || ' of the gear train turn', n % 11, ` + values + `
				FROM series`, args},
			statement{`INSERT INTO ` + kind + `_labels (` + kind + `_id, label_id)
				SELECT i.id, l.id FROM ` + kind + `s i JOIN labels l ON l.project_id = i.project_id WHERE i.project_id = ? AND
					(l.name = 'common' AND i.iid % 2 = 0 OR l.name = 'usual' AND i.iid % 5 = 0 OR l.name = 'medium' AND (i.iid % 100 = 5 OR i.iid <= 20) OR l.name = 'rare' AND i.iid <= 10)`, []any{s.project}},
			statement{`INSERT INTO ` + kind + `_assignees (` + kind + `_id, user_id)
				SELECT i.id, CASE WHEN i.iid <= 10 THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END FROM ` + kind + `s i WHERE i.project_id = ? AND i.iid % 4 <> 0`,
				[]any{s.author, s.worker, s.project}},
			statement{`INSERT INTO notes (project_id, noteable_type, noteable_id, noteable_iid, discussion_id, author_id, created_at, updated_at, body)
				SELECT i.project_id, ?, i.id, i.iid, 'd' || i.id, 1, i.created_at, i.created_at, CASE WHEN i.iid <= 10 THEN 'needle ' ELSE '' END || 'The gear train of part ' || i.iid || ' turns'
				FROM ` + kind + `s i`, []any{map[string]string{"issue": "Issue", "merge_request": "MergeRequest"}[kind]}})
	}
	list = append(list,
		statement{`INSERT INTO merge_request_reviewers (merge_request_id, user_id)
			SELECT i.id, CASE WHEN i.iid <= 10 THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END FROM merge_requests i WHERE i.iid % 3 <> 0`, []any{s.author, s.worker}},
		statement{`INSERT INTO approvals (merge_request_id, user_id, head_sha, created_at) SELECT i.id, CAST(? AS BIGINT), '', 0 FROM merge_requests i WHERE i.iid <= 10`, []any{s.author}},
		statement{series + `INSERT INTO milestones (project_id, iid, title, description, created_at, updated_at)
			SELECT CAST(? AS BIGINT), 100 + n, 'Milestone ' || n, CASE WHEN n <= 5 THEN 'needle ' ELSE '' END || 'gear train ' || n, 0, 0 FROM series`, []any{max(rows/100, 100), s.project}},
		statement{series + `INSERT INTO projects (namespace_id, path, name, full_path, description, visibility, last_activity_at, created_at, updated_at)
			SELECT CAST(? AS BIGINT), 'p' || n, 'Gear train ' || (n * 7919 % 1000003), 'g/p' || n, CASE WHEN n <= 5 THEN 'needle' ELSE '' END, 'public', n, n, n FROM series`, []any{max(rows/100, 100), group}},
		// With files, because snippets without files are removed as unfinished.
		statement{series + `INSERT INTO snippets (author_id, visibility, title, files, created_at, updated_at)
			SELECT 1, 'public', CASE WHEN n <= 5 THEN 'needle ' ELSE '' END || 'gear train ' || n, '["a.txt"]', n, n FROM series`, []any{max(rows/100, 100)}},
		statement{series + `INSERT INTO packages (project_id, type, name, lookup, version, status, metadata, creator_id, created_at, updated_at)
			SELECT CAST(? AS BIGINT), CASE WHEN n <= 20 THEN 'pypi' WHEN n % 3 = 0 THEN 'npm' ELSE 'generic' END, CASE WHEN n <= 10 THEN 'needle-' ELSE '' END || 'gear-' || (n * 7919 % 1000003),
				CASE WHEN n <= 10 THEN 'needle-' ELSE '' END || 'gear-' || (n * 7919 % 1000003), '1.' || (n % 50), CASE WHEN n > 20 AND n <= 50 THEN 'hidden' ELSE 'default' END, '{}', 1,
				1700000000000000 + n, 1700000000000000 + n FROM series`, []any{rows, s.project}},
		// One in each of the other projects of the group.
		statement{`INSERT INTO packages (project_id, type, name, lookup, version, status, metadata, creator_id, created_at, updated_at)
			SELECT p.id, 'generic', 'spring-' || p.id, 'spring-' || p.id, '2.' || (p.id % 50), 'default', '{}', 1, 1700000000000000 + p.id, 1700000000000000 + p.id
			FROM projects p WHERE p.namespace_id = ? AND p.id <> ?`, []any{group, s.project}},
		statement{series + `INSERT INTO releases (project_id, tag, name, sha, author_id, created_at, updated_at, released_at)
			SELECT CAST(? AS BIGINT), 'v' || n, 'Release ' || n, '', 1, 1700000000000000 + n, 1700000000000000 + n * 7919 % 1000003, 1700000000000000 + n * 104729 % 1299709 FROM series`, []any{rows, s.project}},
	)
	fill(b, s.DB, list)
}

func TestFillLists(t *testing.T) {
	t.Parallel()
	s := newListSite(t, "", 200)
	for _, c := range s.cases() {
		s.pages(t, c).read(t)
	}
	if n := count(t, s.Server, `SELECT count(*) FROM issues`); n != 200 {
		t.Errorf("%d issues", n)
	}
}
