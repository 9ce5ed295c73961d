package api_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// jobEndpoints are the endpoints that accept job tokens.
var jobEndpoints = []string{
	"GET /job", "GET /job/allowed_agents", "GET /projects/{id}",
	"GET /projects/{id}/jobs/{job_id}/artifacts", "GET /projects/{id}/jobs/{job_id}/artifacts/{artifact_path}",
	"GET /projects/{id}/jobs/artifacts/{ref_name}/download", "GET /projects/{id}/jobs/artifacts/{ref_name}/raw/{artifact_path}",
	"GET /projects/{id}/secure_files", "POST /projects/{id}/secure_files", "GET /projects/{id}/secure_files/{secure_file_id}",
	"GET /projects/{id}/secure_files/{secure_file_id}/download", "DELETE /projects/{id}/secure_files/{secure_file_id}",
	"GET " + terraformAt, "POST " + terraformAt, "DELETE " + terraformAt, "POST " + terraformAt + "/lock", "DELETE " + terraformAt + "/lock",
	"GET " + terraformAt + "/versions/{serial}", "DELETE " + terraformAt + "/versions/{serial}",
}

// jobPackages reports whether an endpoint of packages accepts job tokens: all but
// the lists of groups and the protection rules do.
func jobPackages(endpoint string) bool {
	_, ok := packageRoles[endpoint]
	return ok && endpoint != "GET /groups/{id}/packages" && !strings.Contains(endpoint, "/protection/")
}

// TestJobTokenMatrix sends the token of a running job to all endpoints: those that
// do not accept job tokens return 401.
func TestJobTokenMatrix(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		b.pipeline(b.project)
		j := b.run()
		var doc struct {
			Paths map[string]map[string]json.RawMessage
		}
		s.Check(t, apptest.Call{Do: "GET /openapi.json", Status: 200}).JSON(t, &doc)
		n := 0
		for path, item := range doc.Paths {
			path = strings.TrimPrefix(path, "/api/v4")
			for method := range item {
				endpoint := strings.ToUpper(method) + " " + path
				row, runner := runnerRoles[endpoint]
				runner = runner && row.nobody == 403 // an endpoint for runners
				_, release := releaseRows[endpoint]
				release = release && strings.HasPrefix(path, "/projects/")
				if method == "parameters" || release || slices.Contains(open, endpoint) || slices.Contains(jobEndpoints, endpoint) || jobPackages(endpoint) || runner || strings.HasSuffix(path, "/trigger/pipeline") {
					continue
				}
				n++
				got := s.Send(t, apptest.Call{Do: paramPattern.ReplaceAllString(endpoint, "1"), Header: map[string]string{"JOB-TOKEN": j.Token}})
				if got.Status != 401 {
					t.Errorf("%s with a job token: %d %s", endpoint, got.Status, got.Body)
				}
			}
		}
		if n < 200 {
			t.Errorf("only %d endpoints were asked", n)
		}
	})
}

func TestJobToken(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, withArtifacts)
		other := b.newProject("other", withArtifacts)
		g := group(t, s, b.owner, "g", "")
		b.pipeline(other)
		theirs := b.run()
		b.upload(theirs, "artifact_type=archive&artifact_format=zip", zipped(t, map[string]string{"a": "A"}), 201)
		b.update(theirs, 200, `{"state":"success"}`)
		b.pipeline(b.project)
		j := b.run()
		b.upload(j, "artifact_type=archive&artifact_format=zip", zipped(t, map[string]string{"a": "A"}), 201)
		token := map[string]string{"JOB-TOKEN": j.Token}
		own, away := b.at("/jobs/%d/artifacts", j.ID), fmt.Sprintf("/projects/%d/jobs/%d/artifacts", other, theirs.ID)
		scope := fmt.Sprintf("/projects/%d/job_token_scope", other)
		s.Table(t, []apptest.Call{
			{Name: "the job", Do: "GET /job", Header: token, Status: 200, Want: fmt.Sprintf(`{"id":%d,"name":"build","status":"running","user":{"username":"alice"},"pipeline":{"ref":"main"}}`, j.ID)},
			{Name: "in the query", Do: "GET /job?job_token=" + j.Token, Status: 200},
			{Name: "as a bearer", Do: "GET /job", Header: map[string]string{"Authorization": "Bearer " + j.Token}, Status: 200},
			{Name: "with another token", Do: "GET /job", As: b.owner, Status: 404},
			{Name: "with none", Do: "GET /job", Status: 401},
			{Name: "with a wrong one", Do: "GET /job", Header: map[string]string{"JOB-TOKEN": "svccbt-wrong"}, Status: 401},
			{Name: "its project", Do: "GET " + b.at(""), Header: token, Status: 200},
			{Name: "another project of its user", Do: fmt.Sprintf("GET /projects/%d", other), Header: token, Status: 401},
			{Name: "nothing else", Do: "GET /user", Header: token, Status: 401},
			{Name: "its artifacts", Do: "GET " + own, Header: token, Status: 200},
			{Name: "one file", Do: "GET " + own + "/a?job_token=" + j.Token, Status: 200},
			{Name: "those of others", Do: "GET " + away, Header: token, Status: 404},
			{Name: "those of others, as a runner", Do: fmt.Sprintf("GET /jobs/%d/artifacts", theirs.ID), Header: token, Status: 403},
			{Name: "who comes in", Do: "GET " + scope, As: b.owner, Status: 200, Want: `{"inbound_enabled":true,"outbound_enabled":false}`},
			{Name: "itself", Do: "GET " + scope + "/allowlist", As: b.owner, Status: 200, Want: fmt.Sprintf(`[{"id":%d}]`, other)},
			{Name: "not itself", Do: "POST " + scope + "/allowlist", As: b.owner, JSON: fmt.Sprintf(`{"target_project_id":%d}`, other), Status: 400},
			{Name: "let it in", Do: "POST " + scope + "/allowlist", As: b.owner, JSON: fmt.Sprintf(`{"target_project_id":%d}`, b.project), Status: 201,
				Want: fmt.Sprintf(`{"source_project_id":%d,"target_project_id":%d}`, other, b.project)},
			{Name: "once", Do: "POST " + scope + "/allowlist", As: b.owner, JSON: fmt.Sprintf(`{"target_project_id":%d}`, b.project), Status: 400},
			{Name: "now it comes in", Do: "GET " + away, Header: token, Status: 200},
			{Name: "as a runner too", Do: fmt.Sprintf("GET /jobs/%d/artifacts", theirs.ID), Header: token, Status: 200},
			{Name: "keep it out", Do: fmt.Sprintf("DELETE %s/allowlist/%d", scope, b.project), As: b.owner, Status: 204},
			{Name: "out again", Do: "GET " + away, Header: token, Status: 404},
			{Name: "a group", Do: "POST " + scope + "/groups_allowlist", As: b.owner, JSON: fmt.Sprintf(`{"target_group_id":%d}`, g), Status: 201},
			{Name: "it is listed", Do: "GET " + scope + "/groups_allowlist", As: b.owner, Status: 200, Want: fmt.Sprintf(`[{"id":%d}]`, g)},
			{Name: "not its group", Do: "GET " + away, Header: token, Status: 404},
			{Name: "all come in", Do: "PATCH " + scope, As: b.owner, JSON: `{"enabled":false}`, Status: 204},
			{Name: "indeed", Do: "GET " + away, Header: token, Status: 200},
			{Name: "but it stays at home", Do: "PUT " + b.at(""), As: b.owner, JSON: `{"ci_job_token_scope_enabled":true}`, Status: 200},
			{Name: "then not", Do: "GET " + away, Header: token, Status: 404},
		})
		b.update(j, 200, `{"state":"success"}`)
		s.Table(t, []apptest.Call{
			{Name: "after the end", Do: "GET /job", Header: token, Status: 401},
			{Name: "its artifacts, after the end", Do: "GET " + own, Header: token, Status: 401},
		})
		if strings.Contains(s.Log(), j.Token) {
			t.Error("the token is in the log")
		}
	})
}

func TestJobTokenOpensRepository(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		other := b.newProject("other", "a: {script: [x]}")
		b.pipeline(b.project)
		j := b.run()
		dir := t.TempDir()
		git := func(args ...string) (string, error) {
			c := exec.CommandContext(t.Context(), "git", args...)
			c.Dir = dir
			c.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir)
			out, err := c.CombinedOutput()
			return string(out), err
		}
		// These are the git commands of the public runner.
		if out, err := git("init", "-q", "w"); err != nil {
			t.Fatal(out, err)
		}
		fetch := append([]string{"-C", "w", "fetch", "-q", "--depth", "20", j.GitInfo.RepoURL}, j.GitInfo.Refspecs...)
		if out, err := git(fetch...); err != nil {
			t.Fatalf("fetch: %v %s", err, out)
		}
		if out, err := git("-C", "w", "checkout", "-q", j.GitInfo.SHA); err != nil {
			t.Fatalf("checkout: %v %s", err, out)
		}
		if _, err := os.Stat(filepath.Join(dir, "w", "go.sum")); err != nil {
			t.Error(err)
		}
		if out, err := git("-C", "w", "push", j.GitInfo.RepoURL, "HEAD:refs/heads/new"); err == nil {
			t.Errorf("a job pushed: %s", out)
		}
		away := strings.Replace(j.GitInfo.RepoURL, "/code.git", "/other.git", 1)
		if out, err := git("ls-remote", away); err == nil {
			t.Errorf("a job read another project: %s", out)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/job_token_scope/allowlist", other), As: b.owner, JSON: fmt.Sprintf(`{"target_project_id":%d}`, b.project), Status: 201})
		if out, err := git("ls-remote", away); err != nil {
			t.Errorf("a job that is let in: %v %s", err, out)
		}
		b.update(j, 200, `{"state":"success"}`)
		if out, err := git("ls-remote", j.GitInfo.RepoURL); err == nil {
			t.Errorf("a token after its job: %s", out)
		}
	})
}

func TestClusterAgents(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		g := group(t, s, alice, "g", "")
		b := &bench{t: t, s: s, owner: alice, runner: newRunner(t, s, root, `{"runner_type":"instance_type"}`)}
		b.project = newProject(t, s, alice, "app", fmt.Sprintf(`,"namespace_id":%d`, g))
		s.Repository(t, b.project, gittest.Commit{Changes: file(".gitlab-ci.yml", "a: {script: [x], environment: {name: review/1}}")})
		config := newProject(t, s, alice, "agents", fmt.Sprintf(`,"namespace_id":%d`, g))
		grant := func(name, text string) gittest.Commit {
			return gittest.Commit{Changes: file(".svc/agents/"+name+"/config.yaml", text)}
		}
		s.Repository(t, config,
			grant("by-project", "ci_access: {projects: [{id: g/app}]}"), grant("by-group", "ci_access: {groups: [{id: G}]}"),
			grant("by-environment", "ci_access: {groups: [{id: g, environments: ['review/*']}]}"), grant("elsewhere", "ci_access: {groups: [{id: g, environments: [production]}]}"),
			grant("for-others", "ci_access: {projects: [{id: g/others}]}"), grant("broken", "ci_access: ["))
		at := fmt.Sprintf("/projects/%d/cluster_agents", config)
		ids := map[string]int64{}
		for _, name := range []string{"by-project", "by-group", "by-environment", "elsewhere", "for-others", "broken", "without"} {
			ids[name] = made(t, s, alice, "POST "+at, fmt.Sprintf(`{"name":%q}`, name))
		}
		own := made(t, s, alice, "POST "+b.at("/cluster_agents"), `{"name":"own"}`)
		s.Table(t, []apptest.Call{
			{Name: "no name", Do: "POST " + at, As: alice, JSON: `{}`, Status: 400, Want: `{"error":"name is missing"}`},
			{Name: "a bad one", Do: "POST " + at, As: alice, JSON: `{"name":"-A"}`, Status: 400},
			{Name: "taken", Do: "POST " + at, As: alice, JSON: `{"name":"broken"}`, Status: 400},
			{Do: fmt.Sprintf("GET %s/%d", at, ids["broken"]), As: alice, Status: 200, Want: fmt.Sprintf(`{"name":"broken","config_project":{"id":%d,"path_with_namespace":"g/agents"},"created_by_user_id":%d}`, config, aliceID)},
			{Name: "of another project", Do: fmt.Sprintf("GET %s/%d", b.at("/cluster_agents"), ids["broken"]), As: alice, Status: 404},
		})
		b.pipeline(b.project)
		j := b.run()
		s.Check(t, apptest.Call{Do: "GET /job/allowed_agents", Header: map[string]string{"JOB-TOKEN": j.Token}, Status: 200, Want: fmt.Sprintf(`{
			"allowed_agents":[{"id":%d},{"id":%d},{"id":%d},{"id":%d,"config_project":{"id":%d,"name":"app","name_with_namespace":"G / app","description":null}}],
			"job":{"id":%d},"project":{"id":%d,"groups":[{"id":%d}]},"user":{"id":%d,"username":"alice","state":"active"}}`,
			ids["by-project"], ids["by-group"], ids["by-environment"], own, b.project, j.ID, b.project, g, aliceID)})
		s.Table(t, []apptest.Call{
			{Name: "delete", Do: fmt.Sprintf("DELETE %s/%d", at, ids["by-group"]), As: alice, Status: 204},
			{Name: "once", Do: fmt.Sprintf("DELETE %s/%d", at, ids["by-group"]), As: alice, Status: 404},
			{Name: "the rest", Do: "GET " + at + "?per_page=2", As: alice, Status: 200, Want: `[{"name":"by-project"},{"name":"by-environment"}]`, WantHeader: map[string]string{"X-Total": "6"}},
		})
	})
}
