package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/app"
	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// BenchmarkEveryList compares the first page of every list of the API, for each
// documented filter and order, in an instance with 20,000 rows of each kind and in an
// instance with many: everything that a list contains belongs to one project, group,
// user, issue or merge request. BENCH_ROWS is the number in the large instance,
// 100,000 by default. The small instance has more rows than lists count for their
// totals. A list is read as an administrator and as a
// Maintainer of the project.
//
// The values of filters match all rows, or none. Lists with filters that match some
// rows are measured by BenchmarkLists.
func BenchmarkEveryList(b *testing.B) { compareSizes(b, everyListOn) }

func everyListOn(b *testing.B, t *table, on string, many int, newDatabase func() string) {
	short, long := newFullSite(b, newDatabase(), countedRows), newFullSite(b, newDatabase(), many)
	lists := short.documentedLists(b)
	for _, l := range lists {
		b.Run(strings.TrimPrefix(strings.ReplaceAll(l.path, "/", "_"), "_"), func(b *testing.B) {
			for b.Loop() {
				for _, query := range l.queries {
					for _, as := range []string{"administrator", "member"} {
						short.compareList(b, t, long, l.path, query, as, on)
					}
				}
			}
		})
	}
}

// countedRows is more than db.CountLimit.
const countedRows = 2 * db.CountLimit

// compareList compares a list with the same list of a larger site.
func (s *fullSite) compareList(b *testing.B, t *table, long *fullSite, path, query, as, on string) {
	b.Helper()
	x, y := s.reader(path, query, as), long.reader(path, query, as)
	if refused(x.status(b)) {
		return
	}
	f := figure{name: fmt.Sprintf("%s?%s as %s (%s)", path, query, as, on), limit: 1.5, unit: fmt.Sprintf("× at %d rows", countedRows)}
	if strings.Contains(query, "search=") || strings.Contains(query, "search_title=") || strings.HasPrefix(query, "query=") {
		f.limit = 3
	}
	// Most lists are far below the limit: those above are measured again, because
	// other processes disturb short measurements.
	for _, rounds := range []int{3, 9, 27} {
		var before, after []float64
		for range rounds {
			before, after = append(before, x.read(b)), append(after, y.read(b))
		}
		f.measured = median(after) / median(before)
		f.note = fmt.Sprintf("%.2f ms, %.2f ms in the large instance", median(before), median(after))
		if f.ok() || median(after) > 50 {
			break
		}
	}
	if !f.ok() {
		b.Logf("%s: %.3g %s: %s", f.name, f.measured, f.unit, f.note)
	}
	t.add(b, f)
}

// refused reports whether a caller may not read the list.
func refused(status int) bool {
	return slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}, status)
}

// listReader reads the first page of a list.
type listReader struct{ address, token string }

func (s *fullSite) reader(path, query, as string) listReader {
	token := rootToken
	if as == "member" {
		token = s.member
	}
	return listReader{"http://" + s.Addr() + "/api/v4" + s.replace(inPath.Replace(path)) + "?" + s.replace(query), token}
}

func (r listReader) get(b testing.TB) *http.Response {
	b.Helper()
	q, err := http.NewRequestWithContext(b.Context(), http.MethodGet, r.address, nil)
	check(b, err)
	q.Header.Set("PRIVATE-TOKEN", r.token)
	res, err := http.DefaultClient.Do(q)
	check(b, err)
	return res
}

func (r listReader) status(b testing.TB) int {
	b.Helper()
	res := r.get(b)
	defer res.Body.Close()
	_, err := io.Copy(io.Discard, res.Body)
	check(b, err)
	return res.StatusCode
}

// read returns the duration of a request in milliseconds.
func (r listReader) read(b testing.TB) float64 {
	b.Helper()
	start := time.Now()
	if status := r.status(b); status != http.StatusOK {
		b.Errorf("%s: status %d", r.address, status)
	}
	return time.Since(start).Seconds() * 1e3
}

// fullSite is a server with rows in every list.
type fullSite struct {
	*app.Server
	member string            // token of a Maintainer of the project
	values map[string]string // of placeholders
}

// inPath replaces the parameters of documented paths with placeholders.
var inPath = strings.NewReplacer(
	"/projects/{id}/boards/{board_id}", "/projects/{project}/boards/{board}",
	"/projects/{id}/hooks/{hook_id}", "/projects/{project}/hooks/{hook}",
	"/projects/{id}/milestones/{milestone_id}", "/projects/{project}/milestones/{milestone}",
	"/groups/{id}/boards/{board_id}", "/groups/{group}/boards/{group_board}",
	"/groups/{id}/hooks/{hook_id}", "/groups/{group}/hooks/{group_hook}",
	"/groups/{id}/milestones/{milestone_id}", "/groups/{group}/milestones/{group_milestone}",
	"/groups/{id}/service_accounts/{user_id}", "/groups/{group}/service_accounts/{service_account}",
	"/projects/{id}", "/projects/{project}", "/groups/{id}", "/groups/{group}", "/users/{id}", "/users/{worker}", "/users/{user_id}", "/users/{worker}",
	"/runners/{id}", "/runners/{runner}", "/snippets/{id}", "/snippets/{personal_snippet}",
	"/issues/{issue_iid}/notes/{note_id}", "/issues/1/notes/{issue_note}",
	"/issues/{issue_iid}/discussions/{discussion_id}", "/issues/1/discussions/{issue_discussion}",
	"/issues/{issue_iid}", "/issues/1",
	"/merge_requests/{merge_request_iid}/notes/{note_id}", "/merge_requests/1/notes/{merge_request_note}",
	"/merge_requests/{merge_request_iid}/discussions/{discussion_id}", "/merge_requests/1/discussions/{merge_request_discussion}",
	"/merge_requests/{merge_request_iid}", "/merge_requests/1",
	"/snippets/{snippet_id}/notes/{note_id}", "/snippets/{snippet}/notes/{snippet_note}",
	"/snippets/{snippet_id}/discussions/{discussion_id}", "/snippets/{snippet}/discussions/{snippet_discussion}",
	"/snippets/{snippet_id}", "/snippets/{snippet}",
	"/commits/{sha}/discussions/{discussion_id}", "/commits/{sha}/discussions/{commit_discussion}",
	"/{tag_name}", "/v1", "/{package_id}", "/{package}", "/{pipeline_id}", "/{pipeline}", "/{pipeline_schedule_id}", "/{schedule}",
	"/{alert_iid}", "/1", "/{deployment_id}", "/{deployment}", "/resource_groups/{key}", "/resource_groups/gear",
	"/{import_id}", "/{import}", "/{entity_id}", "/{entity}",
)

// documentedList is a list of the API's description.
type documentedList struct {
	path    string
	queries []string // the first is empty
}

// unmeasured are lists that do not read rows of the database that can be many, and
// lists that need another kind of caller.
var unmeasured = map[string]string{
	"/projects/{id}/repository/tree":                                    "reads git; measured by BenchmarkGit",
	"/projects/{id}/repository/commits":                                 "reads git; measured by BenchmarkGit",
	"/projects/{id}/repository/branches":                                "reads git; measured by BenchmarkBranches",
	"/projects/{id}/repository/tags":                                    "reads git; measured by BenchmarkBranches",
	"/projects/{id}/repository/contributors":                            "reads git",
	"/projects/{id}/repository/commits/{sha}/refs":                      "reads git",
	"/projects/{id}/repository/files/{file_path}/blame":                 "reads git",
	"/projects/{id}/merge_requests/{merge_request_iid}/commits":         "reads git",
	"/projects/{id}/merge_requests/{merge_request_iid}/diffs":           "reads git",
	"/projects/{id}/merge_requests/{merge_request_iid}/context_commits": "reads git",
	"/projects/{id}/templates/{type}":                                   "reads files of the program",
	"/projects/{id}/deployments/{deployment_id}/merge_requests":         "reads git",
	"/projects/{id}/merge_requests/{merge_request_iid}/blocks":          "at most ten",
	"/projects/{id}/wikis":                                              "reads git",
	"/groups/{id}/wikis":                                                "reads git",
	"/groups/{id}/-/search":                                             "another path of /groups/{id}/search",
	"/projects/{id}/-/search":                                           "another path of /projects/{id}/search",
	"/projects/{id}/services":                                           "another path of /projects/{id}/integrations",
	"/projects/{id}/integrations":                                       "at most one of each kind",
	"/groups/{id}/integrations":                                         "at most one of each kind",
	"/projects/{id}/merge_requests/{merge_request_iid}/approval_rules":  "at most a hundred",
	"/templates/dockerfiles":                                            "reads files of the program",
	"/templates/gitignores":                                             "reads files of the program",
	"/templates/gitlab_ci_ymls":                                         "reads files of the program",
	"/templates/licenses":                                               "reads files of the program",
}

// unvaried are parameters that change how a page is cut or presented, and those that
// need values that are not in the instance.
var unvaried = []string{"page", "per_page", "pagination", "cursor", "page_token", "with_content", "range", "num_context_lines"}

// texts are values of text and number parameters: one that matches rows, and one that
// does not.
var texts = map[string][]string{
	"search": {"gear", "unfindable"}, "search_title": {"gear", "unfindable"}, "query": {"gear", "unfindable"}, "name": {"gear", "unfindable"},
	"title": {"gear", "unfindable"}, "username": {"worker", "unfindable"}, "public_email": {"worker@example.org"}, "user_id": {"{worker}", "1"},
	"author_id": {"1", "{worker}"}, "author_username": {"root", "worker", "unfindable"}, "assignee_id": {"{worker}", "1", "None", "Any"},
	"assignee_username": {"worker", "unfindable"}, "reviewer_id": {"{worker}", "1", "None", "Any"}, "reviewer_username": {"worker", "unfindable"},
	"merge_user_id": {"1", "{worker}"}, "merge_user_username": {"root", "worker"}, "approver_ids": {"{worker}", "None", "Any"},
	"approved_by_ids": {"{worker}", "None", "Any"}, "approved_by_usernames": {"worker"}, "labels": {"gear", "rare", "None", "Any"},
	"milestone": {"gear", "None", "Any", "unfindable"}, "milestone_id": {"Any", "None", "Upcoming", "Started"}, "my_reaction_emoji": {"thumbsup", "None", "Any"},
	"iids": {"1"}, "weight": {"3", "None", "Any"}, "topic": {"gear", "unfindable"}, "topic_id": {"{topic}"}, "with_programming_language": {"Go"},
	"repository_storage": {"default", "other"}, "id_after": {"{project}"}, "id_before": {"{project}"}, "tag_list": {"gear", "unfindable"},
	"version_prefix": {"1", "9"}, "source_branch": {"main", "other"}, "target_branch": {"main", "other"}, "source_project_id": {"{project}", "1"},
	"ref": {"main", "other"}, "sha": {"{sha}", strings.Repeat("0", 40)}, "status": {"200", "500"}, "environment": {"gear", "unfindable"}, "entity_type": {"User", "Project"},
	"entity_id": {"{project}"}, "project_id": {"{project}"}, "group_id": {"{group}"}, "stage": {"test", "unfindable"}, "pipeline_id": {"{pipeline}"},
	"system_id": {"gear", "unfindable"}, "monitoring_tool": {"gear", "unfindable"}, "package_name": {"gear", "unfindable"}, "package_version": {"1.7", "unfindable"},
	"skip_users": {"1"}, "user_ids": {"{worker}"}, "skip_groups": {"1"}, "regex": {"gear", "unfindable"}, "order_by": {"created_at"},
	"saml_provider_id": {"1"}, "in": {"title"}, "deployment_id": {"{deployment}"}, "custom_attributes": {"gear", "unfindable"},
}

// pairs are the parameters that another one requires.
var pairs = map[string]string{
	"/users extern_uid": "extern_uid=uid%3Dworker&provider=ldapmain", "/users provider": "extern_uid=unfindable&provider=ldapmain",
	"/audit_events entity_id": "entity_type=Project&entity_id={project}",
}

// required are the parameters without which a list is refused.
var required = map[string]string{
	"/search": "scope=projects&search=gear", "/groups/{id}/search": "scope=issues&search=gear", "/projects/{id}/search": "scope=issues&search=gear",
}

// elsewhere are values of the parameter scope that only the search in a project has, or
// that need the index of code.
var elsewhere = []string{"scope=commits", "scope=blobs", "scope=wiki_blobs"}

// documentedLists returns the lists of the API with the queries to measure.
func (s *fullSite) documentedLists(b testing.TB) (list []documentedList) {
	b.Helper()
	var d description
	d.read(b, s)
	for path := range unmeasured {
		if _, ok := d.Paths[path]; !ok {
			b.Errorf("%s is not in the description of the API", path)
		}
	}
	for path, methods := range d.Paths {
		get, ok := methods["get"]
		if !ok || unmeasured[path] != "" {
			continue
		}
		names := map[string]bool{}
		for i, p := range get.Parameters {
			get.Parameters[i] = d.parameter(p)
			names[get.Parameters[i].Name] = true
		}
		answer := d.schema(get.Responses["200"].Content["application/json"].Schema)
		if answer.Type != "array" && !names["per_page"] {
			continue
		}
		l := documentedList{path: path, queries: []string{required[path]}}
		for _, p := range get.Parameters {
			if p.In != "query" || slices.Contains(unvaried, p.Name) {
				continue
			}
			for _, q := range d.queriesOf(b, path, p) {
				if slices.Contains(elsewhere, q) && strings.HasSuffix(path, "/search") {
					continue
				}
				// The last of two values of a parameter counts.
				l.queries = append(l.queries, strings.TrimPrefix(required[path]+"&"+q, "&"))
			}
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(x, y documentedList) int { return strings.Compare(x.path, y.path) })
	return list
}

// description is the part of the API's description that is read.
type description struct {
	Paths map[string]map[string]struct {
		Parameters []parameter
		Responses  map[string]struct {
			Content map[string]struct{ Schema schema }
		}
	}
	Components struct {
		Schemas    map[string]schema
		Parameters map[string]parameter
	}
}

type parameter struct {
	Ref, Name, In string
	Schema        schema
}

type schema struct {
	Ref        string
	Type       any
	Format     string
	Enum       []any
	Items      *schema
	Properties map[string]schema
}

func (d *description) read(b testing.TB, s *fullSite) {
	b.Helper()
	res := listReader{"http://" + s.Addr() + "/api/v4/openapi.json", rootToken}.get(b)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	check(b, err)
	check(b, json.Unmarshal([]byte(strings.ReplaceAll(string(text), `"$ref"`, `"ref"`)), d))
}

func (d *description) parameter(p parameter) parameter {
	if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
		return d.Components.Parameters[name]
	}
	return p
}

func (d *description) schema(s schema) schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return d.Components.Schemas[name]
	}
	return s
}

// queriesOf returns a query for each value of a parameter.
func (d *description) queriesOf(b testing.TB, path string, p parameter) (list []string) {
	b.Helper()
	if q, ok := pairs[path+" "+p.Name]; ok {
		return []string{q}
	}
	if p.Name == "not" {
		return nil // measured by BenchmarkLists
	}
	name, s := p.Name, d.schema(p.Schema)
	if s.Type == "array" {
		s = d.schema(*s.Items)
		name = strings.TrimSuffix(name, "[]") + "[]"
	}
	if s.Type == "object" {
		name += "[gear]"
	}
	var values []string
	switch {
	case len(s.Enum) > 0:
		for _, v := range s.Enum {
			values = append(values, fmt.Sprint(v))
		}
	case s.Type == "boolean":
		values = []string{"true", "false"}
	case s.Format == "date-time":
		values = []string{"2023-11-14T22:13:30Z", "2010-01-01T00:00:00Z", "2040-01-01T00:00:00Z"}
	case s.Format == "date":
		values = []string{"2023-11-15", "2010-01-01", "2040-01-01"}
	default:
		values = texts[p.Name]
		if values == nil {
			b.Errorf("%s: there is no value for parameter %s", path, p.Name)
		}
	}
	for _, v := range values {
		q := url.QueryEscape(name) + "=" + v
		if p.Name == "order_by" {
			list = append(list, q+"&sort=asc", q+"&sort=desc")
			continue
		}
		list = append(list, q)
	}
	return list
}

// newFullSite creates a server with a number of rows in every list.
func newFullSite(b testing.TB, databaseURL string, rows int) *fullSite {
	b.Helper()
	s := &fullSite{Server: serve(b, databaseURL), values: map[string]string{}}
	s.member = newToken(b, s.Server, "worker")
	s.create(b)
	check(b, s.Queue.Idle(b.Context()))
	s.copyAll(b, rows)
	return s
}

// TestEveryList checks that each documented list is measured and has rows for the
// administrator.
func TestEveryList(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { everyListAnswers(t, "") })
	if os.Getenv("TEST_POSTGRES") != "" {
		t.Run("postgres", func(t *testing.T) { everyListAnswers(t, dbtest.Postgres(t).URL) })
	}
}

func everyListAnswers(t *testing.T, databaseURL string) {
	t.Helper()
	s := newFullSite(t, databaseURL, 100)
	for _, l := range s.documentedLists(t) {
		for i, query := range l.queries {
			res := s.reader(l.path, query, "administrator").get(t)
			text, err := io.ReadAll(res.Body)
			check(t, err)
			check(t, res.Body.Close())
			if res.StatusCode != http.StatusOK {
				t.Errorf("GET %s?%s: %s: %s", l.path, query, res.Status, text)
			}
			if i == 0 && len(text) < 10 {
				t.Errorf("%s has no rows: %s", l.path, text)
			}
		}
	}
}
