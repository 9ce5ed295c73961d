package api_test

import "svc/internal/project"

const releaseAt = "/projects/{id}/releases/{tag_name}"

// releaseRows are the rows of releases. Most use one that does not exist;
// TestReleases has some.
var releaseRows = func() map[string]ciRow {
	read := func(path string, ok int) ciRow { return ciRow{path: path, open: true, code: true, ok: ok} }
	write := func(path, json string, ok int) ciRow {
		return ciRow{path: path, json: json, code: true, need: project.Developer, ok: ok}
	}
	const link = releaseAt + "/assets/links/{link_id}"
	return map[string]ciRow{
		"GET /projects/{id}/releases":                                seen("/releases", 200),
		"POST /projects/{id}/releases":                               write("/releases", `{"tag_name":"r{n}"}`, 422),
		"GET /projects/{id}/releases/permalink/latest":               read("/releases/permalink/latest", 404),
		"GET /projects/{id}/releases/permalink/latest/{suffix_path}": read("/releases/permalink/latest/x", 404),
		"GET " + releaseAt:                                           read("/releases/none", 404),
		"PUT " + releaseAt:                                           write("/releases/none", `{"name":"x"}`, 404),
		"DELETE " + releaseAt:                                        write("/releases/none", "", 404),
		"GET " + releaseAt + "/downloads/{direct_asset_path}":        read("/releases/none/downloads/x", 404),
		"GET " + releaseAt + "/assets/links":                         read("/releases/none/assets/links", 404),
		"POST " + releaseAt + "/assets/links":                        write("/releases/none/assets/links", `{"name":"x","url":"https://example.org/x"}`, 404),
		"GET " + link:                                                read("/releases/none/assets/links/1", 404),
		"PUT " + link:                                                write("/releases/none/assets/links/1", `{"name":"x"}`, 404),
		"DELETE " + link:                                             write("/releases/none/assets/links/1", "", 404),
		"POST /projects/{id}/catalog/publish":                        write("/catalog/publish", `{"version":"1.0.0"}`, 404),
		"GET /groups/{id}/releases":                                  seen("/releases", 200),
	}
}()

var (
	releaseRoles      = rowRoles(releaseRows, map[string]role{})
	releasePlaceRoles = rowPlaceRoles(releaseRows)
)
