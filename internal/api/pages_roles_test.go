package api_test

import "svc/internal/project"

// pagesRows are the rows of Pages sites and their domains. Most use a domain that
// does not exist.
var pagesRows = map[string]ciRow{
	"GET /projects/{id}/pages":                         doneBy(project.Maintainer, "/pages", "", 200),
	"PATCH /projects/{id}/pages":                       doneBy(project.Maintainer, "/pages", `{"pages_https_only":false}`, 200),
	"DELETE /projects/{id}/pages":                      doneBy(project.Maintainer, "/pages", "", 204),
	"GET /projects/{id}/pages/domains":                 doneBy(project.Maintainer, "/pages/domains", "", 200),
	"POST /projects/{id}/pages/domains":                doneBy(project.Maintainer, "/pages/domains", `{"domain":"d{n}.example.org"}`, 201),
	"GET /projects/{id}/pages/domains/{domain}":        doneBy(project.Maintainer, "/pages/domains/none.example.org", "", 404),
	"PUT /projects/{id}/pages/domains/{domain}":        doneBy(project.Maintainer, "/pages/domains/none.example.org", `{"auto_ssl_enabled":true}`, 404),
	"DELETE /projects/{id}/pages/domains/{domain}":     doneBy(project.Maintainer, "/pages/domains/none.example.org", "", 404),
	"PUT /projects/{id}/pages/domains/{domain}/verify": doneBy(project.Maintainer, "/pages/domains/none.example.org/verify", "", 404),
}

var (
	pagesRoles = rowRoles(pagesRows, map[string]role{
		"GET /pages/domains": adminRead("GET /pages/domains"),
		// By default, sites are visible to members only.
		"GET /projects/{id}/pages_access": {"GET /projects/{project}/pages_access", "", 404, 404, 200, 200, 403},
	})
	pagesPlaceRoles = func() map[string]placeRole {
		rows := rowPlaceRoles(pagesRows)
		rows["GET /projects/{id}/pages_access"] = placeRole{
			do: "GET {at}/pages_access", open: true, ok: 200, also: map[string]int{"nobody": 404, "outsider": 404, "external": 404},
		}
		return rows
	}()
)
