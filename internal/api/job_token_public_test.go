package api_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestJobTokenInPublicProject checks that in a public project whose allowlist does
// not contain the project of a job, the job token has the rights of an anonymous
// user, regardless of the role of its user.
func TestJobTokenInPublicProject(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		lib := b.newProject("lib", "open: {script: [x], artifacts: {paths: [x]}}\nclosed: {script: [x], artifacts: {access: developer, paths: [x]}}\n")
		at := fmt.Sprintf("/projects/%d", lib)
		put := func(body string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "PUT " + at, As: b.owner, JSON: body, Status: 200})
		}
		put(`{"visibility":"public"}`)
		b.pipeline(lib)
		ids := map[string]int64{}
		for range 2 {
			made := b.run()
			ids[made.JobInfo.Name] = made.ID
			b.upload(made, "artifact_type=archive&artifact_format=zip", zipped(t, map[string]string{"x": "x"}), 201)
			b.update(made, 200, `{"state":"success"}`)
		}
		b.settled()
		b.pipeline(b.project)
		j := b.run()
		token := map[string]string{"JOB-TOKEN": j.Token}
		check := func(name, do string, status int) {
			t.Helper()
			s.Check(t, apptest.Call{Name: name, Do: do, Header: token, Status: status})
		}
		artifacts := func(name string, open, closed int) {
			t.Helper()
			runner := func(status int) int { // runner endpoints return 403 for every refusal
				if status == 200 {
					return 200
				}
				return 403
			}
			check(name+": open artifacts", fmt.Sprintf("GET %s/jobs/%d/artifacts", at, ids["open"]), open)
			check(name+": open artifacts of a ref", "GET "+at+"/jobs/artifacts/main/download?job=open", open)
			check(name+": open artifacts for a runner", fmt.Sprintf("GET /jobs/%d/artifacts", ids["open"]), runner(open))
			check(name+": closed artifacts", fmt.Sprintf("GET %s/jobs/%d/artifacts", at, ids["closed"]), closed)
			check(name+": closed artifacts of a ref", "GET "+at+"/jobs/artifacts/main/download?job=closed", closed)
			check(name+": closed artifacts for a runner", fmt.Sprintf("GET /jobs/%d/artifacts", ids["closed"]), runner(closed))
		}
		trigger := func(name string, status int) {
			t.Helper()
			s.Check(t, apptest.Call{Name: name + ": trigger", Do: "POST " + at + "/trigger/pipeline", Status: status,
				JSON: fmt.Sprintf(`{"token":%q,"ref":"main","variables":{"A":"b"}}`, j.Token)})
		}
		remote := strings.Replace(j.GitInfo.RepoURL, "/code.git", "/lib.git", 1)
		dir := t.TempDir()
		fetch := func(name string, want bool) {
			t.Helper()
			c := exec.CommandContext(t.Context(), "git", "ls-remote", remote)
			c.Dir = dir
			c.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir)
			if out, err := c.CombinedOutput(); (err == nil) != want {
				t.Errorf("%s: fetch: %v %s", name, err, out)
			}
		}

		artifacts("not listed", 200, 403)
		trigger("not listed", 404)
		fetch("not listed", true)
		put(`{"builds_access_level":"private"}`)
		artifacts("builds for members", 403, 403)
		put(`{"repository_access_level":"private","merge_requests_access_level":"private"}`)
		fetch("code for members", false)
		put(`{"builds_access_level":"enabled","repository_access_level":"enabled","visibility":"internal"}`)
		artifacts("internal", 404, 404)
		trigger("internal", 404)
		fetch("internal", false)
		put(`{"visibility":"public"}`)

		s.Check(t, apptest.Call{Do: "POST " + at + "/job_token_scope/allowlist", As: b.owner, JSON: fmt.Sprintf(`{"target_project_id":%d}`, b.project), Status: 201})
		artifacts("listed", 200, 200)
		trigger("listed", 201)
		fetch("listed", true)
	})
}
