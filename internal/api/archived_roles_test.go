package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

// archivedWrites lists the endpoints below /projects/{id} that change something and
// are allowed in an archived project, each with the reason. All others are refused.
var archivedWrites = map[string]string{
	"DELETE /projects/{id}":                        lifecycle,
	"POST /projects/{id}/restore":                  lifecycle,
	"POST /projects/{id}/archive":                  lifecycle,
	"POST /projects/{id}/unarchive":                lifecycle,
	"PUT /projects/{id}/transfer":                  lifecycle,
	"PUT /projects/{id}":                           lifecycle,
	"POST /projects/{id}/repository_storage_moves": lifecycle,
	"POST /projects/{id}/housekeeping":             lifecycle,

	"POST /projects/{id}/members":                          membership,
	"PUT /projects/{id}/members/{user_id}":                 membership,
	"DELETE /projects/{id}/members/{user_id}":              membership,
	"POST /projects/{id}/share":                            membership,
	"DELETE /projects/{id}/share/{group_id}":               membership,
	"POST /projects/{id}/access_requests":                  membership,
	"PUT /projects/{id}/access_requests/{user_id}/approve": membership,
	"DELETE /projects/{id}/access_requests/{user_id}":      membership,
	"POST /projects/{id}/access_tokens":                    membership,
	"POST /projects/{id}/access_tokens/{token_id}/rotate":  membership,
	"POST /projects/{id}/access_tokens/self/rotate":        membership,
	"DELETE /projects/{id}/access_tokens/{token_id}":       membership,
	"POST /projects/{id}/deploy_tokens":                    membership,
	"DELETE /projects/{id}/deploy_tokens/{token_id}":       membership,
	"POST /projects/{id}/deploy_keys":                      membership,
	"PUT /projects/{id}/deploy_keys/{key_id}":              membership,
	"DELETE /projects/{id}/deploy_keys/{key_id}":           membership,
	"POST /projects/{id}/deploy_keys/{key_id}/enable":      membership,
	"POST /projects/{id}/protected_branches":               membership,
	"PATCH /projects/{id}/protected_branches/{name}":       membership,
	"DELETE /projects/{id}/protected_branches/{name}":      membership,
	"POST /projects/{id}/protected_tags":                   membership,
	"DELETE /projects/{id}/protected_tags/{name}":          membership,
	"POST /projects/{id}/invitations":                      membership,
	"PUT /projects/{id}/invitations/{email}":               membership,
	"DELETE /projects/{id}/invitations/{email}":            membership,
	"PUT /projects/{id}/custom_attributes/{key}":           lifecycle,
	"DELETE /projects/{id}/custom_attributes/{key}":        lifecycle,
	"POST /projects/{id}/push_rule":                        membership,
	"PUT /projects/{id}/push_rule":                         membership,
	"DELETE /projects/{id}/push_rule":                      membership,

	"POST /projects/{id}/fork":                                           elsewhere,
	"POST /projects/{id}/fork/{forked_from_id}":                          lifecycle,
	"DELETE /projects/{id}/fork":                                         lifecycle,
	"POST /projects/{id}/ci/lint":                                        elsewhere,
	"POST /projects/{id}/export":                                         elsewhere,
	"POST /projects/{id}/packages/npm/-/npm/v1/security/advisories/bulk": elsewhere,
	"POST /projects/{id}/packages/npm/-/npm/v1/security/audits/quick":    elsewhere,

	"POST /projects/{id}/star":                                           personal,
	"POST /projects/{id}/unstar":                                         personal,
	"PUT /projects/{id}/notification_settings":                           personal,
	"POST /projects/{id}/issues/{issue_iid}/subscribe":                   personal,
	"POST /projects/{id}/issues/{issue_iid}/unsubscribe":                 personal,
	"POST /projects/{id}/merge_requests/{merge_request_iid}/subscribe":   personal,
	"POST /projects/{id}/merge_requests/{merge_request_iid}/unsubscribe": personal,
	"POST /projects/{id}/issues/{issue_iid}/todo":                        personal,
	"POST /projects/{id}/merge_requests/{merge_request_iid}/todo":        personal,
	"POST /projects/{id}/labels/{name}/subscribe":                        personal,
	"POST /projects/{id}/labels/{name}/unsubscribe":                      personal,
}

// The reasons in archivedWrites.
const (
	lifecycle  = "an archived project can be configured, unarchived, transferred, moved and deleted"
	membership = "who may access an archived project, and how, can still be changed"
	elsewhere  = "it changes nothing in this project"
	personal   = "it changes what the caller sees, not the project"
)

// TestArchivedProjectWrites sends every request that changes a project to an
// archived one, as an Owner and as an administrator, and checks that it is refused
// and nothing changes.
func TestArchivedProjectWrites(t *testing.T) {
	t.Parallel()
	rows := placeRows(t)
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		requireRows(t, s, rows)
		st := newPlaceFixture(t, s)
		at := st.build(t, project.Private)
		fillRepository(t, s, at.project)
		there := fillProject(t, st, at.project)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/archive", at.project), As: st.tokens["owner"], Status: 201})
		for endpoint := range archivedWrites {
			if _, ok := rows[endpoint]; !ok {
				t.Errorf("%s is an exception, but there is no such endpoint", endpoint)
			}
		}
		before := contents(t, s)
		for _, endpoint := range slices.Sorted(maps.Keys(rows)) {
			if archivedWrites[endpoint] != "" || strings.HasPrefix(endpoint, "GET ") || !strings.Contains(endpoint, " /projects/{id}") {
				continue
			}
			r := rows[endpoint]
			r.do, r.json = there.Replace(r.do), there.Replace(r.json)
			for _, caller := range []string{"owner", "admin"} {
				var got apptest.Answer
				if strings.HasSuffix(endpoint, "/uploads") || strings.HasSuffix(endpoint, "/attachments") || strings.HasSuffix(endpoint, "/secure_files") || strings.HasSuffix(endpoint, "/metric_images") {
					got = sendFile(t, s, strings.Replace(r.do, "{at}", fmt.Sprintf("/projects/%d", at.project), 1), st.tokens[caller])
				} else {
					got = st.send(t, endpoint, r, caller, at)
				}
				if got.Status != 403 || !strings.Contains(string(got.Body), "The project is archived") {
					t.Errorf("%s of an archived project as %s: status %d, want 403 with the reason: %s", endpoint, caller, got.Status, got.Body)
				}
			}
		}
		after := contents(t, s)
		for table, sum := range before {
			if after[table] != sum {
				t.Errorf("table %s was changed", table)
			}
		}
	})
}

// fillProject creates the objects that the rows refer to, and returns a replacer
// with their IDs. A request for an object that does not exist would be refused
// before the project is checked.
func fillProject(t *testing.T, st *placeFixture, id int64) *strings.Replacer {
	t.Helper()
	at := fmt.Sprintf("/projects/%d", id)
	post := func(path, body, field string) string {
		var made map[string]any
		st.s.Check(t, apptest.Call{Do: "POST " + at + path, JSON: body, As: st.tokens["owner"], Status: 201}).JSON(t, &made)
		if n, ok := made[field].(float64); ok {
			return fmt.Sprint(int64(n))
		}
		return fmt.Sprint(made[field])
	}
	note := func(on string) (discussion, note string) {
		var made struct {
			ID    string
			Notes []struct{ ID int64 }
		}
		st.s.Check(t, apptest.Call{Do: "POST " + at + on + "/discussions", JSON: `{"body":"x"}`, As: st.tokens["owner"], Status: 201}).JSON(t, &made)
		return made.ID, fmt.Sprint(made.Notes[0].ID)
	}
	post("/repository/branches", `{"branch":"side","ref":"v1.0.0"}`, "name")
	post("/repository/files/new", `{"branch":"side","content":"x","commit_message":"x"}`, "branch")
	pairs := []string{`"token":"wrong"`, `"token":"` + post("/triggers", `{"description":"x"}`, "token") + `"`}
	for _, one := range []struct{ row, at string }{
		{"/issues/99", "/issues/" + post("/issues", `{"title":"x"}`, "iid")},
		{"/merge_requests/99", "/merge_requests/" + post("/merge_requests", `{"title":"x","source_branch":"side","target_branch":"main"}`, "iid")},
		{"/repository/commits/main", "/repository/commits/main"},
		{"/snippets/999999", "/snippets/" + post("/snippets", `{"title":"x","file_name":"x","content":"x","visibility":"private"}`, "id")},
	} {
		discussion, n := note(one.at)
		pairs = append(pairs, one.row+"/discussions/x/notes/1", one.at+"/discussions/"+discussion+"/notes/"+n,
			one.row+"/discussions/x", one.at+"/discussions/"+discussion, one.row+"/notes/1", one.at+"/notes/"+n, one.row, one.at)
	}
	return strings.NewReplacer(pairs...)
}

// sendFile sends a form with a file.
func sendFile(t *testing.T, s *apptest.Server, do, token string) apptest.Answer {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "x.txt")
	if err == nil {
		_, err = part.Write([]byte("x"))
	}
	if err := errors.Join(err, form.Close()); err != nil {
		t.Fatal(err)
	}
	method, path, _ := strings.Cut(do, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/api/v4"+path, &body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Private-Token", token)
	return s.Exchange(t, r)
}

// contents returns a checksum of each table with data of projects, by table name.
func contents(t *testing.T, s *apptest.Server) map[string]uint64 {
	t.Helper()
	sums := map[string]uint64{}
	for _, table := range []string{
		"projects", "members", "badges", "boards", "ci_variables", "cluster_agents", "commit_comments", "commit_statuses",
		"deploy_key_projects", "deploy_keys", "deploy_tokens", "deployments", "environments", "error_keys", "error_settings", "alert_integrations",
		"alert_settings", "issues", "issue_links", "job_artifacts", "job_token_allowlist", "job_token_settings", "jobs", "labels", "merge_requests",
		"milestones", "notes", "packages", "package_files", "package_tags", "package_protection_rules", "pages_domains", "pages_projects", "pages_sites", "pipeline_schedules", "pipeline_triggers", "pipelines",
		"protected_refs", "push_rules", "pushes", "resource_groups", "runner_projects", "runners", "runner_registration_tokens", "snippets",
		"uploads", "wiki_pages", "audit_events",
	} {
		sums[table] = sumTable(t.Context(), t, s, table)
	}
	return sums
}

func sumTable(ctx context.Context, t *testing.T, s *apptest.Server, table string) uint64 {
	t.Helper()
	found, err := s.DB.SQL().QueryContext(ctx, "SELECT * FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = found.Close() }()
	columns, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var sum uint64
	for found.Next() {
		row := make([]any, len(columns))
		for i := range row {
			row[i] = new(any)
		}
		if err := found.Scan(row...); err != nil {
			t.Fatal(err)
		}
		h := fnv.New64a()
		for _, value := range row {
			_, _ = fmt.Fprint(h, *value.(*any), "\x00")
		}
		sum += h.Sum64() // independent of the order of rows
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return sum
}
