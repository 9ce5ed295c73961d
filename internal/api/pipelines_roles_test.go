package api_test

import (
	"strings"

	"svc/internal/project"
)

// ciRow is an endpoint of pipelines or related objects, and the callers that can use
// it. Most rows use objects that do not exist, for which callers without access get
// another status.
type ciRow struct {
	path string // below the project or group
	json string
	code bool          // requires access to the repository
	most bool          // requires Reporter in a private project
	open bool          // also for anonymous callers
	free bool          // for all callers: the body decides
	bad  bool          // the request is invalid
	need project.Level // NoAccess: anyone who can see the project
	ok   int
}

// seen returns the row of a read that is allowed for all who can see the pipelines.
func seen(path string, ok int) ciRow { return ciRow{path: path, open: true, ok: ok} }

func doneBy(need project.Level, path, json string, ok int) ciRow {
	return ciRow{path: path, json: json, need: need, ok: ok}
}

const (
	pipelineAt    = "/projects/{id}/pipelines/{pipeline_id}"
	jobAt         = "/projects/{id}/jobs/{job_id}"
	scheduleAt    = "/projects/{id}/pipeline_schedules/{pipeline_schedule_id}"
	environmentAt = "/projects/{id}/environments/{environment_id}"
	deploymentAt  = "/projects/{id}/deployments/{deployment_id}"
	lockAt        = "/projects/{id}/resource_groups/{key}"
	triggerAt     = "/projects/{id}/triggers/{trigger_id}"
)

var ciRows = map[string]ciRow{
	"GET /projects/{id}/pipelines":        seen("/pipelines", 200),
	"GET /projects/{id}/pipelines/latest": seen("/pipelines/latest", 404),
	"GET " + pipelineAt:                   seen("/pipelines/999999", 404),
	"GET " + pipelineAt + "/variables":    doneBy(project.Developer, "/pipelines/999999/variables", "", 404),
	"POST /projects/{id}/pipeline":        {path: "/pipeline", json: `{"ref":"main"}`, code: true, need: project.Developer, ok: 400},
	"POST " + pipelineAt + "/retry":       doneBy(project.Developer, "/pipelines/999999/retry", "", 404),
	"POST " + pipelineAt + "/cancel":      doneBy(project.Developer, "/pipelines/999999/cancel", "", 404),
	"PUT " + pipelineAt + "/metadata":     doneBy(project.Developer, "/pipelines/999999/metadata", `{"name":"x"}`, 404),
	"DELETE " + pipelineAt:                doneBy(project.Owner, "/pipelines/999999", "", 404),
	"GET " + pipelineAt + "/jobs":         seen("/pipelines/999999/jobs", 404),
	"GET " + pipelineAt + "/bridges":      seen("/pipelines/999999/bridges", 404),

	"GET /projects/{id}/jobs":           seen("/jobs", 200),
	"GET " + jobAt:                      seen("/jobs/999999", 404),
	"POST " + jobAt + "/cancel":         doneBy(project.Developer, "/jobs/999999/cancel", "", 404),
	"POST " + jobAt + "/retry":          doneBy(project.Developer, "/jobs/999999/retry", "", 404),
	"POST " + jobAt + "/erase":          doneBy(project.Developer, "/jobs/999999/erase", "", 404),
	"POST " + jobAt + "/play":           doneBy(project.Developer, "/jobs/999999/play", "", 404),
	"POST " + jobAt + "/unschedule":     doneBy(project.Developer, "/jobs/999999/unschedule", "", 404),
	"POST " + jobAt + "/artifacts/keep": doneBy(project.Developer, "/jobs/999999/artifacts/keep", "", 404),

	"GET /projects/{id}/ci/lint":  {path: "/ci/lint", open: true, code: true, ok: 200},
	"POST /projects/{id}/ci/lint": {path: "/ci/lint", json: `{"content":"a: {script: [x]}"}`, code: true, need: project.Developer, ok: 200},

	"GET /projects/{id}/variables":          doneBy(project.Maintainer, "/variables", "", 200),
	"GET /projects/{id}/variables/{key}":    doneBy(project.Maintainer, "/variables/X", "", 404),
	"POST /projects/{id}/variables":         doneBy(project.Maintainer, "/variables", `{"key":"X","value":"1"}`, 201),
	"PUT /projects/{id}/variables/{key}":    doneBy(project.Maintainer, "/variables/NONE", `{"value":"1"}`, 404),
	"DELETE /projects/{id}/variables/{key}": doneBy(project.Maintainer, "/variables/NONE", "", 404),
	"GET /groups/{id}/variables":            doneBy(project.Owner, "/variables", "", 200),
	"GET /groups/{id}/variables/{key}":      doneBy(project.Owner, "/variables/X", "", 404),
	"POST /groups/{id}/variables":           doneBy(project.Owner, "/variables", `{"key":"X","value":"1"}`, 201),
	"PUT /groups/{id}/variables/{key}":      doneBy(project.Owner, "/variables/NONE", `{"value":"1"}`, 404),
	"DELETE /groups/{id}/variables/{key}":   doneBy(project.Owner, "/variables/NONE", "", 404),

	"GET /projects/{id}/triggers":                    doneBy(project.Maintainer, "/triggers", "", 200),
	"POST /projects/{id}/triggers":                   doneBy(project.Maintainer, "/triggers", `{"description":"x"}`, 201),
	"GET " + triggerAt:                               doneBy(project.Maintainer, "/triggers/999999", "", 404),
	"PUT " + triggerAt:                               doneBy(project.Maintainer, "/triggers/999999", "", 404),
	"DELETE " + triggerAt:                            doneBy(project.Maintainer, "/triggers/999999", "", 404),
	"POST /projects/{id}/trigger/pipeline":           {path: "/trigger/pipeline", json: `{"token":"wrong","ref":"main"}`, free: true, ok: 404},
	"POST /projects/{id}/ref/{ref}/trigger/pipeline": {path: "/ref/main/trigger/pipeline", json: `{"token":"wrong"}`, free: true, ok: 404},
	"GET /projects/{id}/pipeline_schedules":          seen("/pipeline_schedules", 200),
	"POST /projects/{id}/pipeline_schedules":         {path: "/pipeline_schedules", json: `{"description":"x","ref":"main","cron":"0 1 * * *"}`, code: true, need: project.Developer, ok: 201},
	"GET " + scheduleAt:                              seen("/pipeline_schedules/999999", 404),
	"GET " + scheduleAt + "/pipelines":               seen("/pipeline_schedules/999999/pipelines", 404),
	"PUT " + scheduleAt:                              doneBy(project.Developer, "/pipeline_schedules/999999", "", 404),
	"DELETE " + scheduleAt:                           doneBy(project.Developer, "/pipeline_schedules/999999", "", 404),
	"POST " + scheduleAt + "/take_ownership":         doneBy(project.Maintainer, "/pipeline_schedules/999999/take_ownership", "", 404),
	"POST " + scheduleAt + "/play":                   doneBy(project.Developer, "/pipeline_schedules/999999/play", "", 404),
	"POST " + scheduleAt + "/variables":              doneBy(project.Developer, "/pipeline_schedules/999999/variables", `{"key":"X","value":"1"}`, 404),
	"PUT " + scheduleAt + "/variables/{key}":         doneBy(project.Developer, "/pipeline_schedules/999999/variables/X", `{"value":"1"}`, 404),
	"DELETE " + scheduleAt + "/variables/{key}":      doneBy(project.Developer, "/pipeline_schedules/999999/variables/X", "", 404),

	"GET /projects/{id}/environments":             seen("/environments", 200),
	"POST /projects/{id}/environments":            doneBy(project.Developer, "/environments", `{"name":"x"}`, 201),
	"GET " + environmentAt:                        seen("/environments/999999", 404),
	"PUT " + environmentAt:                        doneBy(project.Developer, "/environments/999999", "", 404),
	"DELETE " + environmentAt:                     doneBy(project.Developer, "/environments/999999", "", 404),
	"POST /projects/{id}/environments/stop_stale": doneBy(project.Maintainer, "/environments/stop_stale", `{"before":"2000-01-01T00:00:00Z"}`, 400),
	"POST " + environmentAt + "/stop":             doneBy(project.Developer, "/environments/999999/stop", "", 404),

	"GET /projects/{id}/deployments": seen("/deployments", 200),
	"POST /projects/{id}/deployments": {path: "/deployments", code: true, need: project.Developer, ok: 400,
		json: `{"environment":"x","sha":"0123456789","ref":"main","tag":false,"status":"success"}`},
	"GET " + deploymentAt:                     seen("/deployments/999999", 404),
	"GET " + deploymentAt + "/merge_requests": seen("/deployments/999999/merge_requests", 404),
	"PUT " + deploymentAt:                     doneBy(project.Developer, "/deployments/999999", `{"status":"success"}`, 404),
	"DELETE " + deploymentAt:                  doneBy(project.Maintainer, "/deployments/999999", "", 404),

	"GET /projects/{id}/resource_groups": doneBy(project.Reporter, "/resource_groups", "", 200),
	"GET " + lockAt:                      doneBy(project.Reporter, "/resource_groups/x", "", 404),
	"GET " + lockAt + "/upcoming_jobs":   doneBy(project.Reporter, "/resource_groups/x/upcoming_jobs", "", 404),
	"GET " + lockAt + "/current_job":     doneBy(project.Reporter, "/resource_groups/x/current_job", "", 404),
	"PUT " + lockAt:                      doneBy(project.Developer, "/resource_groups/x", `{"process_mode":"unordered"}`, 404),
}

var (
	ciRoles      = rowRoles(ciRows, map[string]role{"GET /job": {"GET /job", "", 401, 404, 404, 404, 403}})
	ciPlaceRoles = rowPlaceRoles(ciRows)
)

// rowRoles returns the rows for the callers of TestRoles, and those in rows.
func rowRoles(of map[string]ciRow, rows map[string]role) map[string]role {
	for endpoint, r := range of {
		if r.free {
			continue
		}
		method, path, _ := strings.Cut(endpoint, " ")
		place := " /projects/{project}"
		switch {
		case strings.HasPrefix(path, "/groups/"):
			place = " /groups/{group}"
		case r.code:
			place = " /projects/{code}"
		}
		rows[endpoint] = publicRole(method, place+r.path, r.json, r.open, r.need, r.ok)
	}
	return rows
}

// rowPlaceRoles returns the rows for the callers of TestPlaceRoles.
func rowPlaceRoles(of map[string]ciRow) map[string]placeRole {
	rows := map[string]placeRole{}
	for endpoint, r := range of {
		method, _, _ := strings.Cut(endpoint, " ")
		row := placeRole{do: method + " {at}" + r.path, json: r.json, open: r.open || r.free, need: r.need, ok: r.ok, code: r.code, most: r.most, bad: r.bad}
		if r.free {
			row.also = map[string]int{"blocked": r.ok}
		}
		rows[endpoint] = row
	}
	return rows
}
