package api_test

import "svc/internal/project"

const terraformAt = "/projects/{id}/terraform/state/{name}"

// operateRows are the rows of Terraform states, feature flags, protected environments
// and freeze periods.
var operateRows = map[string]ciRow{
	"GET " + terraformAt:                           doneBy(project.Developer, "/terraform/state/none", "", 404),
	"POST " + terraformAt:                          doneBy(project.Maintainer, "/terraform/state/saved", `{"serial":1}`, 200),
	"DELETE " + terraformAt:                        doneBy(project.Maintainer, "/terraform/state/none", "", 404),
	"POST " + terraformAt + "/lock":                doneBy(project.Maintainer, "/terraform/state/locked/lock", `{"ID":"x"}`, 200),
	"DELETE " + terraformAt + "/lock":              doneBy(project.Maintainer, "/terraform/state/none/lock", "", 404),
	"GET " + terraformAt + "/versions/{serial}":    doneBy(project.Developer, "/terraform/state/none/versions/1", "", 404),
	"DELETE " + terraformAt + "/versions/{serial}": doneBy(project.Maintainer, "/terraform/state/none/versions/1", "", 404),

	"GET /projects/{id}/protected_environments":               doneBy(project.Maintainer, "/protected_environments", "", 200),
	"GET /projects/{id}/protected_environments/{name}":        doneBy(project.Maintainer, "/protected_environments/none", "", 404),
	"POST /projects/{id}/protected_environments":              doneBy(project.Maintainer, "/protected_environments", `{"name":"x","deploy_access_levels":[{"access_level":40}]}`, 201),
	"PUT /projects/{id}/protected_environments/{name}":        doneBy(project.Maintainer, "/protected_environments/none", `{"required_approval_count":1}`, 404),
	"DELETE /projects/{id}/protected_environments/{name}":     doneBy(project.Maintainer, "/protected_environments/none", "", 404),
	"GET /groups/{id}/protected_environments":                 doneBy(project.Maintainer, "/protected_environments", "", 200),
	"GET /groups/{id}/protected_environments/{name}":          doneBy(project.Maintainer, "/protected_environments/none", "", 404),
	"POST /groups/{id}/protected_environments":                doneBy(project.Maintainer, "/protected_environments", `{"name":"staging","deploy_access_levels":[{"access_level":40}]}`, 201),
	"PUT /groups/{id}/protected_environments/{name}":          doneBy(project.Maintainer, "/protected_environments/none", `{"required_approval_count":1}`, 404),
	"DELETE /groups/{id}/protected_environments/{name}":       doneBy(project.Maintainer, "/protected_environments/none", "", 404),
	"POST " + deploymentAt + "/approval":                      doneBy(project.Reporter, "/deployments/999999/approval", `{"status":"approved"}`, 404),
	"GET /projects/{id}/freeze_periods":                       doneBy(project.Reporter, "/freeze_periods", "", 200),
	"GET /projects/{id}/freeze_periods/{freeze_period_id}":    doneBy(project.Reporter, "/freeze_periods/999999", "", 404),
	"POST /projects/{id}/freeze_periods":                      doneBy(project.Maintainer, "/freeze_periods", `{"freeze_start":"0 23 * * 5","freeze_end":"0 7 * * 1"}`, 201),
	"PUT /projects/{id}/freeze_periods/{freeze_period_id}":    doneBy(project.Maintainer, "/freeze_periods/999999", `{"cron_timezone":"UTC"}`, 404),
	"DELETE /projects/{id}/freeze_periods/{freeze_period_id}": doneBy(project.Maintainer, "/freeze_periods/999999", "", 404),

	"GET /projects/{id}/feature_flags":                        doneBy(project.Developer, "/feature_flags", "", 200),
	"POST /projects/{id}/feature_flags":                       doneBy(project.Developer, "/feature_flags", `{"name":"made"}`, 201),
	"GET /projects/{id}/feature_flags/{feature_flag_name}":    doneBy(project.Developer, "/feature_flags/none", "", 404),
	"PUT /projects/{id}/feature_flags/{feature_flag_name}":    doneBy(project.Developer, "/feature_flags/none", `{"active":false}`, 404),
	"DELETE /projects/{id}/feature_flags/{feature_flag_name}": doneBy(project.Developer, "/feature_flags/none", "", 404),
	"GET /projects/{id}/feature_flags_user_lists":             doneBy(project.Developer, "/feature_flags_user_lists", "", 200),
	"POST /projects/{id}/feature_flags_user_lists":            doneBy(project.Developer, "/feature_flags_user_lists", `{"name":"made","user_xids":"a,b"}`, 201),
	"GET /projects/{id}/feature_flags_user_lists/{iid}":       doneBy(project.Developer, "/feature_flags_user_lists/999999", "", 404),
	"PUT /projects/{id}/feature_flags_user_lists/{iid}":       doneBy(project.Developer, "/feature_flags_user_lists/999999", `{"name":"x"}`, 404),
	"DELETE /projects/{id}/feature_flags_user_lists/{iid}":    doneBy(project.Developer, "/feature_flags_user_lists/999999", "", 404),
}

var (
	operateRoles      = rowRoles(operateRows, map[string]role{})
	operatePlaceRoles = rowPlaceRoles(operateRows)
)
