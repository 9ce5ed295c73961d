package api_test

import (
	"slices"
	"strings"

	"svc/internal/project"
)

// runnersOwn returns the row of an endpoint for runners: user tokens give no access.
func runnersOwn(do, body string) role { return role{do, body, 403, 403, 403, 403, 403} }

// lacks returns the row of a read, allowed for all who can see the project, of an
// object that does not exist.
func lacks(do string) role { return role{do, "", 404, 404, 404, 404, 403} }

// runnerRoles are the rows of runners, logs, artifacts, job tokens and agents.
var runnerRoles = map[string]role{
	"POST /user/runners":                                   admin("POST /user/runners", `{"runner_type":"instance_type"}`, 201),
	"GET /runners":                                         ownRead("GET /runners"),
	"GET /runners/all":                                     adminRead("GET /runners/all"),
	"GET /runners/{id}":                                    ownRead("GET /runners/{runner}"),
	"PUT /runners/{id}":                                    admin("PUT /runners/{runner}", `{"description":"x"}`, 200),
	"DELETE /runners/{id}":                                 admin("DELETE /runners/{runner}", "", 204),
	"GET /runners/{id}/jobs":                               adminRead("GET /runners/{runner}/jobs"),
	"GET /runners/{id}/managers":                           ownRead("GET /runners/{runner}/managers"),
	"POST /runners/{id}/reset_authentication_token":        admin("POST /runners/{runner}/reset_authentication_token", "", 201),
	"POST /runners/reset_registration_token":               admin("POST /runners/reset_registration_token", "", 201),
	"GET /projects/{id}/runners":                           adminRead("GET /projects/{project}/runners"),
	"POST /projects/{id}/runners":                          admin("POST /projects/{project}/runners", `{"runner_id":99999}`, 404),
	"DELETE /projects/{id}/runners/{runner_id}":            admin("DELETE /projects/{project}/runners/99999", "", 404),
	"POST /projects/{id}/runners/reset_registration_token": admin("POST /projects/{project}/runners/reset_registration_token", "", 201),
	"GET /groups/{id}/runners":                             adminRead("GET /groups/{group}/runners"),
	"POST /groups/{id}/runners/reset_registration_token":   admin("POST /groups/{group}/runners/reset_registration_token", "", 201),

	"POST /runners":                            runnersOwn("POST /runners", `{"token":"x"}`),
	"POST /runners/verify":                     runnersOwn("POST /runners/verify", `{"token":"x"}`),
	"DELETE /runners":                          runnersOwn("DELETE /runners?token=x", ""),
	"DELETE /runners/managers":                 runnersOwn("DELETE /runners/managers?token=x&system_id=y", ""),
	"POST /runners/reset_authentication_token": runnersOwn("POST /runners/reset_authentication_token", `{"token":"x"}`),
	"POST /jobs/request":                       runnersOwn("POST /jobs/request", `{"token":"x"}`),
	"PUT /jobs/{id}":                           runnersOwn("PUT /jobs/99999", `{"token":"x","state":"success"}`),
	"PATCH /jobs/{id}/trace":                   runnersOwn("PATCH /jobs/99999/trace", ""),
	"POST /jobs/{id}/artifacts":                runnersOwn("POST /jobs/99999/artifacts", ""),
	"GET /jobs/{id}/artifacts":                 runnersOwn("GET /jobs/99999/artifacts", ""),

	"GET /projects/{id}/jobs/{job_id}/trace":                                   lacks("GET /projects/{project}/jobs/99999/trace"),
	"GET /projects/{id}/jobs/{job_id}/artifacts":                               lacks("GET /projects/{project}/jobs/99999/artifacts"),
	"GET /projects/{id}/jobs/{job_id}/artifacts/{artifact_path}":               lacks("GET /projects/{project}/jobs/99999/artifacts/a"),
	"GET /projects/{id}/jobs/artifacts/{ref_name}/download":                    lacks("GET /projects/{project}/jobs/artifacts/main/download?job=x"),
	"GET /projects/{id}/jobs/artifacts/{ref_name}/raw/{artifact_path}":         lacks("GET /projects/{project}/jobs/artifacts/main/raw/a?job=x"),
	"DELETE /projects/{id}/jobs/{job_id}/artifacts":                            admin("DELETE /projects/{project}/jobs/99999/artifacts", "", 404),
	"DELETE /projects/{id}/artifacts":                                          admin("DELETE /projects/{project}/artifacts", "", 202),
	"GET /projects/{id}/pipelines/{pipeline_id}/test_report":                   lacks("GET /projects/{project}/pipelines/99999/test_report"),
	"GET /projects/{id}/pipelines/{pipeline_id}/test_report_summary":           lacks("GET /projects/{project}/pipelines/99999/test_report_summary"),
	"GET /projects/{id}/job_token_scope":                                       adminRead("GET /projects/{project}/job_token_scope"),
	"PATCH /projects/{id}/job_token_scope":                                     admin("PATCH /projects/{project}/job_token_scope", `{"enabled":false}`, 204),
	"GET /projects/{id}/job_token_scope/allowlist":                             adminRead("GET /projects/{project}/job_token_scope/allowlist"),
	"POST /projects/{id}/job_token_scope/allowlist":                            admin("POST /projects/{project}/job_token_scope/allowlist", `{"target_project_id":{project}}`, 201),
	"DELETE /projects/{id}/job_token_scope/allowlist/{target_project_id}":      admin("DELETE /projects/{project}/job_token_scope/allowlist/99999", "", 404),
	"GET /projects/{id}/job_token_scope/groups_allowlist":                      adminRead("GET /projects/{project}/job_token_scope/groups_allowlist"),
	"POST /projects/{id}/job_token_scope/groups_allowlist":                     admin("POST /projects/{project}/job_token_scope/groups_allowlist", `{"target_group_id":{group}}`, 201),
	"DELETE /projects/{id}/job_token_scope/groups_allowlist/{target_group_id}": admin("DELETE /projects/{project}/job_token_scope/groups_allowlist/99999", "", 404),
	"GET /projects/{id}/cluster_agents":                                        adminRead("GET /projects/{project}/cluster_agents"),
	"POST /projects/{id}/cluster_agents":                                       admin("POST /projects/{project}/cluster_agents", `{"name":"a"}`, 201),
	"GET /projects/{id}/cluster_agents/{agent_id}":                             {"GET /projects/{project}/cluster_agents/99999", "", 401, 403, 404, 404, 403},
	"DELETE /projects/{id}/cluster_agents/{agent_id}":                          admin("DELETE /projects/{project}/cluster_agents/99999", "", 404),
	"GET /job/allowed_agents":                                                  {"GET /job/allowed_agents", "", 401, 404, 404, 404, 403},
}

// runnerScope reports whether a token that only has a runner scope gives access to
// an endpoint.
func runnerScope(do, as string) bool {
	scope := strings.TrimPrefix(as, "only ")
	if scope == "create_runner" {
		return do == "POST /user/runners"
	}
	if scope != "manage_runner" || strings.Contains(do, "reset_registration_token") {
		return false
	}
	return slices.ContainsFunc([]string{"GET /runners", "PUT /runners/", "DELETE /runners/{", "POST /runners/{", "GET /projects/{project}/runners",
		"POST /projects/{project}/runners", "DELETE /projects/{project}/runners", "GET /groups/{group}/runners"},
		func(start string) bool { return strings.HasPrefix(do, start) })
}

// runnerPlaceRoles are the rows of the same endpoints for members.
var runnerPlaceRoles = map[string]placeRole{
	"GET /projects/{id}/runners":                                               {do: "GET {at}/runners", need: project.Maintainer, ok: 200},
	"POST /projects/{id}/runners":                                              {do: "POST {at}/runners", json: `{"runner_id":99999}`, need: project.Maintainer, ok: 404},
	"DELETE /projects/{id}/runners/{runner_id}":                                {do: "DELETE {at}/runners/99999", need: project.Maintainer, ok: 404},
	"POST /projects/{id}/runners/reset_registration_token":                     {do: "POST {at}/runners/reset_registration_token", need: project.Maintainer, ok: 201},
	"GET /groups/{id}/runners":                                                 {do: "GET {at}/runners", need: project.Owner, ok: 200},
	"POST /groups/{id}/runners/reset_registration_token":                       {do: "POST {at}/runners/reset_registration_token", need: project.Owner, ok: 201},
	"GET /projects/{id}/jobs/{job_id}/trace":                                   {do: "GET {at}/jobs/99999/trace", open: true, ok: 404},
	"GET /projects/{id}/jobs/{job_id}/artifacts":                               {do: "GET {at}/jobs/99999/artifacts", open: true, ok: 404},
	"GET /projects/{id}/jobs/{job_id}/artifacts/{artifact_path}":               {do: "GET {at}/jobs/99999/artifacts/a", open: true, ok: 404},
	"GET /projects/{id}/jobs/artifacts/{ref_name}/download":                    {do: "GET {at}/jobs/artifacts/main/download?job=x", open: true, ok: 404},
	"GET /projects/{id}/jobs/artifacts/{ref_name}/raw/{artifact_path}":         {do: "GET {at}/jobs/artifacts/main/raw/a?job=x", open: true, ok: 404},
	"DELETE /projects/{id}/jobs/{job_id}/artifacts":                            {do: "DELETE {at}/jobs/99999/artifacts", need: project.Maintainer, ok: 404},
	"DELETE /projects/{id}/artifacts":                                          {do: "DELETE {at}/artifacts", need: project.Maintainer, ok: 202},
	"GET /projects/{id}/pipelines/{pipeline_id}/test_report":                   {do: "GET {at}/pipelines/99999/test_report", open: true, ok: 404},
	"GET /projects/{id}/pipelines/{pipeline_id}/test_report_summary":           {do: "GET {at}/pipelines/99999/test_report_summary", open: true, ok: 404},
	"GET /projects/{id}/job_token_scope":                                       {do: "GET {at}/job_token_scope", need: project.Maintainer, ok: 200},
	"PATCH /projects/{id}/job_token_scope":                                     {do: "PATCH {at}/job_token_scope", json: `{"enabled":false}`, need: project.Maintainer, ok: 204},
	"GET /projects/{id}/job_token_scope/allowlist":                             {do: "GET {at}/job_token_scope/allowlist", need: project.Maintainer, ok: 200},
	"POST /projects/{id}/job_token_scope/allowlist":                            {do: "POST {at}/job_token_scope/allowlist", json: `{"target_project_id":99999}`, need: project.Maintainer, ok: 404},
	"DELETE /projects/{id}/job_token_scope/allowlist/{target_project_id}":      {do: "DELETE {at}/job_token_scope/allowlist/99999", need: project.Maintainer, ok: 404},
	"GET /projects/{id}/job_token_scope/groups_allowlist":                      {do: "GET {at}/job_token_scope/groups_allowlist", need: project.Maintainer, ok: 200},
	"POST /projects/{id}/job_token_scope/groups_allowlist":                     {do: "POST {at}/job_token_scope/groups_allowlist", json: `{"target_group_id":{dest}}`, need: project.Maintainer, ok: 201},
	"DELETE /projects/{id}/job_token_scope/groups_allowlist/{target_group_id}": {do: "DELETE {at}/job_token_scope/groups_allowlist/99999", need: project.Maintainer, ok: 404},
	"GET /projects/{id}/cluster_agents":                                        {do: "GET {at}/cluster_agents", need: project.Developer, ok: 200},
	"POST /projects/{id}/cluster_agents":                                       {do: "POST {at}/cluster_agents", json: `{"name":"a"}`, need: project.Maintainer, ok: 201},
	"GET /projects/{id}/cluster_agents/{agent_id}":                             {do: "GET {at}/cluster_agents/99999", need: project.Developer, ok: 404},
	"DELETE /projects/{id}/cluster_agents/{agent_id}":                          {do: "DELETE {at}/cluster_agents/99999", need: project.Maintainer, ok: 404},
}
