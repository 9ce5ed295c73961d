package api_test

import (
	"maps"

	"svc/internal/project"
)

const terraformAt = "/projects/{id}/terraform/state/{name}"

// operateRows are the rows of Terraform states, feature flags, protected
// environments and freeze periods.
var operateRows = map[string]ciRow{
	"GET " + terraformAt:                           doneBy(project.Developer, "/terraform/state/none", "", 404),
	"POST " + terraformAt:                          doneBy(project.Maintainer, "/terraform/state/saved", `{"serial":1}`, 200),
	"DELETE " + terraformAt:                        doneBy(project.Maintainer, "/terraform/state/none", "", 404),
	"POST " + terraformAt + "/lock":                doneBy(project.Maintainer, "/terraform/state/locked/lock", `{"ID":"x"}`, 200),
	"DELETE " + terraformAt + "/lock":              doneBy(project.Maintainer, "/terraform/state/none/lock", "", 404),
	"GET " + terraformAt + "/versions/{serial}":    doneBy(project.Developer, "/terraform/state/none/versions/1", "", 404),
	"DELETE " + terraformAt + "/versions/{serial}": doneBy(project.Maintainer, "/terraform/state/none/versions/1", "", 404),

	"GET /projects/{id}/protected_environments":                 doneBy(project.Maintainer, "/protected_environments", "", 200),
	"GET /projects/{id}/protected_environments/{name}":          doneBy(project.Maintainer, "/protected_environments/none", "", 404),
	"POST /projects/{id}/protected_environments":                doneBy(project.Maintainer, "/protected_environments", `{"name":"x","deploy_access_levels":[{"access_level":40}]}`, 201),
	"PUT /projects/{id}/protected_environments/{name}":          doneBy(project.Maintainer, "/protected_environments/none", `{"required_approval_count":1}`, 404),
	"DELETE /projects/{id}/protected_environments/{name}":       doneBy(project.Maintainer, "/protected_environments/none", "", 404),
	"GET /groups/{id}/protected_environments":                   doneBy(project.Maintainer, "/protected_environments", "", 200),
	"GET /groups/{id}/protected_environments/{name}":            doneBy(project.Maintainer, "/protected_environments/none", "", 404),
	"POST /groups/{id}/protected_environments":                  doneBy(project.Maintainer, "/protected_environments", `{"name":"staging","deploy_access_levels":[{"access_level":40}]}`, 201),
	"PUT /groups/{id}/protected_environments/{name}":            doneBy(project.Maintainer, "/protected_environments/none", `{"required_approval_count":1}`, 404),
	"DELETE /groups/{id}/protected_environments/{name}":         doneBy(project.Maintainer, "/protected_environments/none", "", 404),
	"POST " + deploymentAt + "/approval":                        doneBy(project.Reporter, "/deployments/999999/approval", `{"status":"approved"}`, 404),
	"GET /projects/{id}/secure_files":                           doneBy(project.Developer, "/secure_files", "", 200),
	"POST /projects/{id}/secure_files":                          {path: "/secure_files?name=x", bad: true, ok: 400},
	"GET /projects/{id}/secure_files/{secure_file_id}":          doneBy(project.Developer, "/secure_files/999999", "", 404),
	"GET /projects/{id}/secure_files/{secure_file_id}/download": doneBy(project.Developer, "/secure_files/999999/download", "", 404),
	"DELETE /projects/{id}/secure_files/{secure_file_id}":       doneBy(project.Maintainer, "/secure_files/999999", "", 404),
	"GET /projects/{id}/remote_mirrors":                         doneBy(project.Maintainer, "/remote_mirrors", "", 200),
	"POST /projects/{id}/remote_mirrors":                        doneBy(project.Maintainer, "/remote_mirrors", `{"url":"https://git.example.org/a.git"}`, 201),
	"GET /projects/{id}/remote_mirrors/{mirror_id}":             doneBy(project.Maintainer, "/remote_mirrors/999999", "", 404),
	"GET /projects/{id}/remote_mirrors/{mirror_id}/public_key":  doneBy(project.Maintainer, "/remote_mirrors/999999/public_key", "", 404),
	"PUT /projects/{id}/remote_mirrors/{mirror_id}":             doneBy(project.Maintainer, "/remote_mirrors/999999", `{"enabled":false}`, 404),
	"POST /projects/{id}/remote_mirrors/{mirror_id}/sync":       doneBy(project.Maintainer, "/remote_mirrors/999999/sync", "", 404),
	"DELETE /projects/{id}/remote_mirrors/{mirror_id}":          doneBy(project.Maintainer, "/remote_mirrors/999999", "", 404),
	"GET /projects/{id}/mirror/pull":                            doneBy(project.Maintainer, "/mirror/pull", "", 404),
	"PUT /projects/{id}/mirror/pull":                            doneBy(project.Maintainer, "/mirror/pull", `{"url":"https://git.example.org/a.git"}`, 200),
	"POST /projects/{id}/mirror/pull":                           doneBy(project.Maintainer, "/mirror/pull", "", 404),
	"GET /projects/{id}/invitations":                            doneBy(project.Maintainer, "/invitations", "", 200),
	"POST /projects/{id}/invitations":                           doneBy(project.Maintainer, "/invitations", `{"email":"new@example.org","access_level":10}`, 201),
	"PUT /projects/{id}/invitations/{email}":                    doneBy(project.Maintainer, "/invitations/none@example.org", `{"access_level":10}`, 404),
	"DELETE /projects/{id}/invitations/{email}":                 doneBy(project.Maintainer, "/invitations/none@example.org", "", 404),
	"GET /groups/{id}/invitations":                              doneBy(project.Owner, "/invitations", "", 200),
	"POST /groups/{id}/invitations":                             doneBy(project.Owner, "/invitations", `{"email":"new@example.org","access_level":10}`, 201),
	"PUT /groups/{id}/invitations/{email}":                      doneBy(project.Owner, "/invitations/none@example.org", `{"access_level":10}`, 404),
	"DELETE /groups/{id}/invitations/{email}":                   doneBy(project.Owner, "/invitations/none@example.org", "", 404),

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

// attributeRows returns the rows of custom attributes, which are for administrators.
func attributeRows() map[string]ciRow {
	rows := map[string]ciRow{}
	for _, at := range []string{"/projects/{id}", "/groups/{id}"} {
		rows["GET "+at+"/custom_attributes"] = doneBy(project.Owner+1, "/custom_attributes", "", 200)
		rows["GET "+at+"/custom_attributes/{key}"] = doneBy(project.Owner+1, "/custom_attributes/k", "", 404)
		rows["PUT "+at+"/custom_attributes/{key}"] = doneBy(project.Owner+1, "/custom_attributes/x", `{"value":"1"}`, 200)
		rows["DELETE "+at+"/custom_attributes/{key}"] = doneBy(project.Owner+1, "/custom_attributes/none", "", 404)
	}
	return rows
}

// instanceRows are the rows of endpoints that belong to no project.
var instanceRows = map[string]role{
	"GET /broadcast_messages":                 openAPI("GET /broadcast_messages"),
	"GET /broadcast_messages/{message_id}":    {"GET /broadcast_messages/999999", "", 404, 404, 404, 404, 403},
	"POST /broadcast_messages":                admin("POST /broadcast_messages", `{"message":"x"}`, 201),
	"PUT /broadcast_messages/{message_id}":    admin("PUT /broadcast_messages/999999", `{"message":"x"}`, 404),
	"DELETE /broadcast_messages/{message_id}": admin("DELETE /broadcast_messages/999999", "", 404),
	"GET /templates/gitignores":               openAPI("GET /templates/gitignores"),
	"GET /templates/gitignores/{key}":         openAPI("GET /templates/gitignores/Go"),
	"GET /templates/dockerfiles":              openAPI("GET /templates/dockerfiles"),
	"GET /templates/dockerfiles/{key}":        openAPI("GET /templates/dockerfiles/Golang"),
	"GET /templates/licenses":                 openAPI("GET /templates/licenses"),
	"GET /templates/licenses/{key}":           openAPI("GET /templates/licenses/mit"),
}

var (
	operateRoles      = rowRoles(attributeRows(), rowRoles(operateRows, maps.Clone(instanceRows)))
	operatePlaceRoles = rowPlaceRoles(mergedRows(operateRows, attributeRows()))
)

func mergedRows(of ...map[string]ciRow) map[string]ciRow {
	all := map[string]ciRow{}
	for _, rows := range of {
		maps.Copy(all, rows)
	}
	return all
}
