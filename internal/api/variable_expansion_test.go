package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/ci"
	"svc/internal/project"
)

// expansionBomb declares variables, each of which contains the previous one 50
// times: $V8 expands to 50^8 copies of the first.
func expansionBomb(first string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{V0: %q", first)
	for i := range 8 {
		fmt.Fprintf(&b, ", V%d: %q", i+1, strings.Repeat(fmt.Sprintf("$V%d", i), 50))
	}
	return b.String() + "}"
}

// TestExponentialVariableExpansion checks that a job request does not make the
// server expand variables billions of times.
func TestExponentialVariableExpansion(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, `
tokens:
  variables: `+expansionBomb("")+`
  id_tokens: {VT: {aud: "a$V8"}}
  script: [x]
secrets:
  variables: `+expansionBomb("")+`
  id_tokens: {VT: {aud: v}}
  secrets: {DB: {vault: a/b@ops, token: "$V8$VT"}}
  script: [x]
`)
		b.variable("VAULT_SERVER_URL", "https://vault.example.com/$V8")
		b.pipeline(b.project)
		for range 2 {
			if j := b.run(); j.JobInfo.Name != "tokens" && j.JobInfo.Name != "secrets" {
				t.Errorf("job %s", j.JobInfo.Name)
			}
		}
	})
}

// TestVariableExpansionLimit checks that a job whose variables become too long fails
// with a reason in its log. In a configuration file they are an error.
func TestVariableExpansionLimit(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, `
tokens:
  id_tokens: {VT: {aud: "a$V8"}}
  script: [x]
`)
		b.variable("V0", "x")
		for i := range 8 {
			b.variable(fmt.Sprintf("V%d", i+1), strings.Repeat(fmt.Sprintf("$V%d", i), 50))
		}
		id := b.pipeline(b.project)
		b.take(b.runner, 204, "")
		var jobs []struct {
			ID             int64
			Status, Reason string
			FailureReason  string `json:"failure_reason"`
		}
		s.Check(t, apptest.Call{Do: "GET " + b.at("/pipelines/%d/jobs", id), As: b.owner, Status: 200}).JSON(t, &jobs)
		if len(jobs) != 1 || jobs[0].Status != "failed" || jobs[0].FailureReason != "data_integrity_failure" {
			t.Fatalf("%+v", jobs)
		}
		log := s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d/trace", jobs[0].ID), As: b.owner, Status: 200})
		if !strings.Contains(string(log.Body), "The variables of the job cannot be expanded") {
			t.Errorf("log: %s", log.Body)
		}

		content := "job:\n  variables: " + expansionBomb("x") + "\n  environment: $V8\n  script: [x]\n"
		a := s.Check(t, apptest.Call{Do: "POST " + b.at("/ci/lint"), As: b.owner, JSON: fmt.Sprintf(`{"content":%q,"dry_run":true}`, content), Status: 200})
		if !strings.Contains(string(a.Body), "variable expansion exceeds a limit") {
			t.Errorf("lint: %s", a.Body)
		}
		other := b.newProject("bomb", content)
		_, _, err := s.CI.CreatePipeline(t.Context(), actorOf(t, s, b.owner), project.RefTo(other), ci.NewPipeline{Ref: "main"})
		if err == nil || !strings.Contains(err.Error(), "variable expansion exceeds a limit") {
			t.Errorf("pipeline: %v", err)
		}
	})
}

// variable creates a variable of the project.
func (b *bench) variable(key, value string) {
	b.t.Helper()
	b.s.Check(b.t, apptest.Call{Do: "POST " + b.at("/variables"), As: b.owner, JSON: fmt.Sprintf(`{"key":%q,"value":%q}`, key, value), Status: 201})
}
