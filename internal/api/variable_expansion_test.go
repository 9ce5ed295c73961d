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

// TestVariablesOfRunner checks that variables are expanded by each other before a runner
// gets them, because it expands each only once.
func TestVariablesOfRunner(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, `
job:
  variables:
    BUILD_ROOT_DIR: '${CI_BUILDS_DIR}'
    OUT_PATH: '${BUILD_ROOT_DIR}/out'
    PACKAGE_PATH: '${OUT_PATH}/pkg'
    NAME: $CI_PROJECT_NAME
    DOLLARS: $$HOME $NAME
    LITERAL: {value: $NAME, expand: false}
    OF_LITERAL: a $LITERAL
    OF_MASKED: x-$TOKEN
  script: [x]
`)
		s.Check(t, apptest.Call{Do: "POST " + b.at("/variables"), As: b.owner, JSON: `{"key":"TOKEN","value":"s3cretvalue","masked":true}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST " + b.at("/variables"), As: b.owner, JSON: `{"key":"KEY_FILE","value":"content","variable_type":"file"}`, Status: 201})
		b.variable("OF_FILE", "$KEY_FILE")
		b.pipeline(b.project)
		j := b.run()
		for key, want := range map[string]string{
			"BUILD_ROOT_DIR": "${CI_BUILDS_DIR}", "OUT_PATH": "${CI_BUILDS_DIR}/out", "PACKAGE_PATH": "${CI_BUILDS_DIR}/out/pkg",
			"NAME": "code", "DOLLARS": "$$HOME code", "LITERAL": "$NAME", "OF_LITERAL": "a $LITERAL", "OF_MASKED": "x-s3cretvalue", "TOKEN": "s3cretvalue",
			"KEY_FILE": "content", "OF_FILE": "$KEY_FILE",
		} {
			if got := j.variable(key); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
		for _, v := range j.Variables {
			if v.Key == "TOKEN" && !v.Masked {
				t.Error("the token is not masked")
			}
		}
		b.update(j, 200, `{"state":"success"}`)
		// A cycle leaves all variables as they are.
		b.variable("A", "$B")
		b.variable("B", "$A")
		b.pipeline(b.project)
		if j := b.run(); j.variable("A") != "$B" || j.variable("PACKAGE_PATH") != "${OUT_PATH}/pkg" {
			t.Errorf("with a cycle: %q, %q", j.variable("A"), j.variable("PACKAGE_PATH"))
		}
	})
}

// TestUserOfPlayedJob checks that the variables with the user are those of the user who
// started or retried the job.
func TestUserOfPlayedJob(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "auto: {script: [x]}\nhand: {script: [x], when: manual}\n")
		bobID, bob := s.User(t, "bob")
		member(t, s, w.owner, w.project, bobID, 40)
		p := w.push("main", "go", map[string]string{"x": "y"})
		s.Check(t, apptest.Call{Do: w.at("POST", "/jobs/%d/play", w.job(p, "hand")), As: bob, Status: 200})
		w.pick()
		see := func(job, login string, id int64) {
			t.Helper()
			j := w.held[job]
			if got := j.variable("GITLAB_USER_LOGIN"); got != login {
				t.Errorf("%s: GITLAB_USER_LOGIN is %q, want %q", job, got, login)
			}
			if got := j.variable("GITLAB_USER_ID"); id != 0 && got != fmt.Sprint(id) {
				t.Errorf("%s: GITLAB_USER_ID is %s, want %d", job, got, id)
			}
		}
		see("auto", "alice", 0)
		see("hand", "bob", bobID)
		w.end("failed", "", "auto")
		s.Check(t, apptest.Call{Do: w.at("POST", "/jobs/%d/retry", w.job(p, "auto")), As: bob, Status: 201})
		w.pick()
		see("auto", "bob", bobID)
	})
}

// TestScopedVariablesInRules checks that the rules of a job with an environment see the
// variables of the environment.
func TestScopedVariablesInRules(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, `
live: {script: [x], environment: production, resource_group: $GROUP, rules: [{if: '$DEPLOY == "yes"'}]}
named: {script: [x], environment: {name: $WHERE, deployment_tier: $TIER}, variables: {WHERE: production}, rules: [{if: '$DEPLOY == "yes" && $CI_ENVIRONMENT_NAME == "production"'}]}
review: {script: [x], environment: review, rules: [{if: '$DEPLOY == "yes"'}]}
plain: {script: [x], rules: [{if: '$DEPLOY == "yes"'}]}
`)
		for key, value := range map[string]string{"DEPLOY": "yes", "GROUP": "one", "TIER": "staging"} {
			s.Check(t, apptest.Call{Do: "POST " + w.bench.at("/variables"), As: w.owner, Status: 201,
				JSON: fmt.Sprintf(`{"key":%q,"value":%q,"environment_scope":"prod*"}`, key, value)})
		}
		p := w.push("main", "go", map[string]string{"x": "y"})
		w.see(p, "pending | live:pending named:pending")
		s.Check(t, apptest.Call{Do: w.at("GET", "/resource_groups"), As: w.owner, Status: 200, Want: `[{"key":"one"}]`})
		s.Check(t, apptest.Call{Do: w.at("GET", "/environments"), As: w.owner, Status: 200, Want: `[{"name":"production"}]`})
	})
}
