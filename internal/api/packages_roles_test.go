package api_test

import (
	"maps"

	"svc/internal/project"
)

const (
	npmAt         = "/projects/{id}/packages/npm"
	packageRuleAt = "/projects/{id}/packages/protection/rules"
)

// packageRows are the rows of packages. Most use a package that does not exist.
var packageRows = map[string]ciRow{
	"GET /projects/{id}/packages":                                                 {path: "/packages", open: true, most: true, ok: 200},
	"GET /projects/{id}/packages/{package_id}":                                    {path: "/packages/999999", open: true, most: true, ok: 404},
	"DELETE /projects/{id}/packages/{package_id}":                                 doneBy(project.Maintainer, "/packages/999999", "", 404),
	"GET /projects/{id}/packages/{package_id}/package_files":                      {path: "/packages/999999/package_files", open: true, most: true, ok: 404},
	"DELETE /projects/{id}/packages/{package_id}/package_files/{package_file_id}": doneBy(project.Maintainer, "/packages/999999/package_files/1", "", 404),
	"GET /projects/{id}/packages/{package_id}/pipelines":                          {path: "/packages/999999/pipelines", open: true, most: true, ok: 404},
	"GET /groups/{id}/packages":                                                   {path: "/packages", open: true, ok: 200},

	"GET " + packageRuleAt:  doneBy(project.Maintainer, "/packages/protection/rules", "", 200),
	"POST " + packageRuleAt: doneBy(project.Maintainer, "/packages/protection/rules", `{"package_name_pattern":"p{n}","package_type":"npm","minimum_access_level_for_push":"owner"}`, 201),
	"PATCH " + packageRuleAt + "/{package_protection_rule_id}":  doneBy(project.Maintainer, "/packages/protection/rules/999999", `{"package_name_pattern":"p"}`, 404),
	"DELETE " + packageRuleAt + "/{package_protection_rule_id}": doneBy(project.Maintainer, "/packages/protection/rules/999999", "", 404),

	"PUT /projects/{id}/packages/generic/{package_name}/{package_version}/{file_name}": doneBy(project.Developer, "/packages/generic/p/1.0/f.txt", "", 201),
	"GET /projects/{id}/packages/generic/{package_name}/{package_version}/{file_name}": {path: "/packages/generic/none/1.0/f.txt", open: true, most: true, ok: 404},

	"GET " + npmAt + "/{package_name}":                                   {path: "/packages/npm/none", open: true, most: true, ok: 404},
	"GET " + npmAt + "/{package_name}/-/{file_name}":                     {path: "/packages/npm/none/-/none-1.0.0.tgz", open: true, most: true, ok: 404},
	"PUT " + npmAt + "/{package_name}":                                   doneBy(project.Developer, "/packages/npm/none", `{"name":"none","versions":{"1.0.0":{}}}`, 400),
	"DELETE " + npmAt + "/{package_name}":                                doneBy(project.Maintainer, "/packages/npm/none/-rev/1", "", 404),
	"GET " + npmAt + "/-/package/{package_name}/dist-tags":               {path: "/packages/npm/-/package/none/dist-tags", open: true, most: true, ok: 404},
	"PUT " + npmAt + "/-/package/{package_name}/dist-tags/{tag}":         doneBy(project.Developer, "/packages/npm/-/package/none/dist-tags/beta", `"1.0.0"`, 404),
	"DELETE " + npmAt + "/-/package/{package_name}/dist-tags/{tag}":      doneBy(project.Developer, "/packages/npm/-/package/none/dist-tags/beta", "", 404),
	"GET /groups/{id}/-/packages/npm/{package_name}":                     {path: "/-/packages/npm/none", open: true, ok: 404},
	"GET /groups/{id}/-/packages/npm/-/package/{package_name}/dist-tags": {path: "/-/packages/npm/-/package/none/dist-tags", open: true, ok: 404},
	"PUT /groups/{id}/-/packages/npm/-/package/{package_name}/dist-tags/{tag}": doneBy(project.NoAccess,
		"/-/packages/npm/-/package/none/dist-tags/beta", `"1.0.0"`, 404),
	"DELETE /groups/{id}/-/packages/npm/-/package/{package_name}/dist-tags/{tag}": doneBy(project.NoAccess,
		"/-/packages/npm/-/package/none/dist-tags/beta", "", 404),

	"POST /projects/{id}/packages/pypi":                                 doneBy(project.Developer, "/packages/pypi", `{}`, 400),
	"GET /projects/{id}/packages/pypi/simple":                           {path: "/packages/pypi/simple", open: true, most: true, ok: 200},
	"GET /projects/{id}/packages/pypi/simple/{package_name}":            {path: "/packages/pypi/simple/none/", open: true, most: true, ok: 404},
	"GET /projects/{id}/packages/pypi/files/{sha256}/{file_identifier}": {path: "/packages/pypi/files/00/none.whl", open: true, most: true, ok: 404},
	"GET /groups/{id}/-/packages/pypi/simple":                           {path: "/-/packages/pypi/simple", open: true, ok: 200},
	"GET /groups/{id}/-/packages/pypi/simple/{package_name}":            {path: "/-/packages/pypi/simple/none/", open: true, ok: 404},
	"GET /groups/{id}/-/packages/pypi/files/{sha256}/{file_identifier}": {path: "/-/packages/pypi/files/00/none.whl", open: true, ok: 404},
}

// auditRows are the endpoints of npm audit, which read data that is not stored here.
var auditRows = []string{"/npm/v1/security/advisories/bulk", "/npm/v1/security/audits/quick"}

var (
	packageRoles = func() map[string]role {
		const tags = "/packages/npm/-/package/@none%2Fx/dist-tags"
		rows := rowRoles(packageRows, map[string]role{
			"GET /packages/npm/{package_name}":                              {"GET /packages/npm/@none%2Fx", "", 404, 404, 404, 404, 403},
			"GET /packages/npm/-/package/{package_name}/dist-tags":          {"GET " + tags, "", 404, 404, 404, 404, 403},
			"PUT /packages/npm/-/package/{package_name}/dist-tags/{tag}":    {"PUT " + tags + "/beta", `"1.0.0"`, 401, 404, 404, 403, 403},
			"DELETE /packages/npm/-/package/{package_name}/dist-tags/{tag}": {"DELETE " + tags + "/beta", "", 401, 404, 404, 403, 403},
		})
		for _, path := range auditRows {
			for endpoint, at := range map[string]string{
				"/packages/npm/-": "/packages/npm/-", npmAt + "/-": "/projects/{project}/packages/npm/-", "/groups/{id}/-/packages/npm/-": "/groups/{group}/-/packages/npm/-",
			} {
				rows["POST "+endpoint+path] = role{"POST " + at + path, "", 404, 404, 404, 404, 403}
			}
		}
		return rows
	}()
	packagePlaceRoles = func() map[string]placeRole {
		rows := maps.Clone(rowPlaceRoles(packageRows))
		for _, path := range auditRows {
			rows["POST "+npmAt+"/-"+path] = placeRole{do: "POST {at}/packages/npm/-" + path, open: true, ok: 404}
			rows["POST /groups/{id}/-/packages/npm/-"+path] = placeRole{do: "POST {at}/-/packages/npm/-" + path, open: true, ok: 404}
		}
		return rows
	}()
)
