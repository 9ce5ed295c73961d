package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestPipelineVariableRoleBypass checks ci_pipeline_variables_minimum_override_role
// for all ways to set variables of a pipeline or job.
func TestPipelineVariableRoleBypass(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "test: {script: [x]}\nbyhand: {script: [x], when: manual}\n")
		upstream := b.newProject("up", `
downstream:
  variables: {COLOR: red}
  trigger: {project: alice/code}
child:
  variables: {COLOR: red}
  trigger: {include: child.yml}
`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/files/child.yml", upstream), As: b.owner, Status: 201,
			JSON: `{"branch":"main","commit_message":"child","content":"in_child: {script: [x]}\n"}`})
		actors := map[string]string{"owner": b.owner, "admin": root}
		levels := map[string]int{"developer": 30, "maintainer": 40, "owner": 50, "admin": 50}
		for _, name := range []string{"developer", "maintainer"} {
			u, token := s.User(t, name)
			actors[name] = token
			member(t, s, b.owner, b.project, u, levels[name])
			member(t, s, b.owner, upstream, u, 40)
		}
		for _, id := range []int64{b.project, upstream} {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: b.owner, JSON: `{"default_branch":"main"}`, Status: 200})
			s.Send(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d/protected_branches/main", id), As: b.owner})
		}
		for minimum, need := range map[string]int{"developer": 30, "maintainer": 40, "owner": 50, "no_one_allowed": 100} {
			for name, token := range actors {
				role := func(minimum string) {
					s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", b.project), As: b.owner, Status: 200,
						JSON: fmt.Sprintf(`{"ci_pipeline_variables_minimum_override_role":%q}`, minimum)})
				}
				role("developer")
				// A schedule whose variables were set when that was allowed.
				schedule := made(t, s, token, "POST "+b.at("/pipeline_schedules"), `{"description":"d","ref":"main","cron":"0 1 * * *"}`)
				s.Check(t, apptest.Call{Do: "POST " + b.at("/pipeline_schedules/%d/variables", schedule), As: token, JSON: `{"key":"COLOR","value":"red"}`, Status: 201})
				role(minimum)

				may := levels[name] >= need
				status := func(ok, refused int) int {
					if may {
						return ok
					}
					return refused
				}
				at := minimum + " for " + name
				check := func(what, do, body string, want int) apptest.Answer {
					t.Helper()
					return s.Check(t, apptest.Call{Name: at + ": " + what, Do: do, As: token, JSON: body, Status: want})
				}
				check("create a pipeline", "POST "+b.at("/pipeline"), `{"ref":"main","variables":[{"key":"COLOR","value":"red"}]}`, status(201, 400))
				var plain struct{ ID int64 }
				check("create a pipeline without variables", "POST "+b.at("/pipeline"), `{"ref":"main"}`, 201).JSON(t, &plain)

				var jobs []struct {
					ID   int64
					Name string
				}
				check("list jobs", "GET "+b.at("/pipelines/%d/jobs?scope[]=manual", plain.ID), "", 200).JSON(t, &jobs)
				if len(jobs) != 1 {
					t.Fatalf("%+v", jobs)
				}
				play := "POST " + b.at("/jobs/%d/play", jobs[0].ID)
				check("play a job", play, `{"job_variables_attributes":[{"key":"COLOR","value":"red"}]}`, status(200, 403))
				if !may {
					check("play a job without variables", play, "", 200)
				}

				check("add a schedule variable", "POST "+b.at("/pipeline_schedules/%d/variables", schedule), `{"key":"SHAPE","value":"round"}`, status(201, 403))
				check("change a schedule variable", "PUT "+b.at("/pipeline_schedules/%d/variables/COLOR", schedule), `{"value":"blue"}`, status(200, 403))
				check("run a schedule", "POST "+b.at("/pipeline_schedules/%d/play", schedule), "", 201)
				b.settled()
				var made struct {
					Status string
					Errors *string `json:"yaml_errors"`
				}
				check("the pipeline of the schedule", "GET "+b.at("/pipelines/latest?ref=main"), "", 200).JSON(t, &made)
				if failed := made.Errors != nil && strings.Contains(*made.Errors, "Insufficient permissions"); failed == may || failed != (made.Status == "failed") {
					t.Errorf("%s: pipeline of the schedule: %+v", at, made)
				}

				var up struct{ ID int64 }
				check("create an upstream pipeline", fmt.Sprintf("POST /projects/%d/pipeline", upstream), `{"ref":"main"}`, 201).JSON(t, &up)
				b.settled()
				var bridges []struct{ Name, Status string }
				check("bridges", fmt.Sprintf("GET /projects/%d/pipelines/%d/bridges", upstream, up.ID), "", 200).JSON(t, &bridges)
				for _, bridge := range bridges {
					if want := may || bridge.Name == "child"; (bridge.Status == "success") != want {
						t.Errorf("%s: %s is %s", at, bridge.Name, bridge.Status)
					}
				}
				if len(bridges) != 2 {
					t.Errorf("%s: %+v", at, bridges)
				}

				if levels[name] < 40 {
					continue // they cannot create trigger tokens
				}
				var trigger struct{ Token string }
				check("make a trigger token", "POST "+b.at("/triggers"), `{"description":"d"}`, 201).JSON(t, &trigger)
				s.Check(t, apptest.Call{Name: at + ": trigger", Do: "POST " + b.at("/trigger/pipeline"), Status: status(201, 400),
					JSON: fmt.Sprintf(`{"token":%q,"ref":"main","variables":{"COLOR":"red"}}`, trigger.Token)})
			}
		}
	})
}

// TestPipelineVariableRoleLowered checks that only Owners and administrators can
// change ci_pipeline_variables_minimum_override_role to or from a value that
// excludes Maintainers.
func TestPipelineVariableRoleLowered(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "test: {script: [x]}")
		maintainer, token := s.User(t, "maintainer")
		member(t, s, b.owner, b.project, maintainer, 40)
		developer, low := s.User(t, "developer")
		member(t, s, b.owner, b.project, developer, 30)
		values := []string{"developer", "maintainer", "owner", "no_one_allowed"}
		for i, from := range values {
			for k, to := range values {
				set := func(who, as, value string, status int) {
					t.Helper()
					s.Check(t, apptest.Call{Name: fmt.Sprintf("%s: %s to %s", who, from, to), Do: "PUT " + b.at(""), As: as, Status: status,
						JSON: fmt.Sprintf(`{"ci_pipeline_variables_minimum_override_role":%q}`, value)})
				}
				set("owner, before", b.owner, from, 200)
				set("developer", low, to, 403)
				status := 403
				if from == to || i < 2 && k < 2 {
					status = 200
				}
				set("maintainer", token, to, status)
				set("owner", b.owner, to, 200)
				set("owner, back", b.owner, from, 200)
				set("administrator", root, to, 200)
				s.Check(t, apptest.Call{Do: "PUT " + b.at(""), As: token, JSON: `{"build_timeout":1200}`, Status: 200})
			}
		}
	})
}
