package api

import (
	"strconv"

	"svc/internal/project"
)

func (a *API) namespaceRoutes() {
	a.tag("Namespaces")
	handle(a, "GET /namespaces", readAPI, a.listNamespaces, summary("List namespaces"))
	handle(a, "GET /namespaces/{id}", readAPI, a.getNamespace, summary("Get a namespace"))
	handle(a, "GET /namespaces/{id}/exists", readAPI, a.namespaceExists, summary("Verify namespace availability"))
	a.tag("Users")
	handle(a, "GET /users/{id}/memberships", readAPI, a.listMemberships, summary("List memberships of a user"))
}

type listNamespacesParams struct {
	Search       string `param:"search" max:"1024" doc:"Text in the name or path."`
	OwnedOnly    bool   `param:"owned_only"`
	TopLevelOnly bool   `param:"top_level_only"`
	pageParams
}

// listNamespaces: https://docs.gitlab.com/api/namespaces/#list-all-namespaces
func (a *API) listNamespaces(c *call, p listNamespacesParams) (page[namespaceJSON], error) {
	f := project.NamespaceFilter{Search: p.Search, OwnedOnly: p.OwnedOnly, TopLevelOnly: p.TopLevelOnly}
	list, err := a.Projects.Namespaces(c, c.actor, f, p.paging())
	if err != nil {
		return page[namespaceJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(n *project.Namespace) namespaceJSON { return toNamespace(c.site, n) }), nil
}

type namespaceParams struct {
	Namespace project.Ref `param:"id" doc:"Namespace ID or full path."`
}

// getNamespace: https://docs.gitlab.com/api/namespaces/#get-details-on-a-namespace
func (a *API) getNamespace(c *call, p namespaceParams) (namespaceJSON, error) {
	n, err := a.Projects.Namespace(c, c.actor, p.Namespace)
	if err != nil {
		return namespaceJSON{}, err
	}
	return toNamespace(c.site, n), nil
}

type namespaceExistsParams struct {
	Path     string `param:"id" doc:"Path of the namespace."`
	ParentID *int64 `param:"parent_id" doc:"ID of the parent group. Default is the top level."`
}

type namespaceExistsJSON struct {
	Exists   bool     `json:"exists"`
	Suggests []string `json:"suggests"`
}

// namespaceExists: https://docs.gitlab.com/api/namespaces/#verify-namespace-availability
func (a *API) namespaceExists(c *call, p namespaceExistsParams) (namespaceExistsJSON, error) {
	there, suggests, err := a.Projects.NamespaceExists(c, c.actor, p.Path, p.ParentID)
	return namespaceExistsJSON{there, suggests}, err
}

type namespaceJSON struct {
	ID        int64   `json:"id"`
	Name      string  `json:"name"`
	Path      string  `json:"path"`
	Kind      string  `json:"kind"`
	FullPath  string  `json:"full_path"`
	ParentID  *int64  `json:"parent_id"`
	AvatarURL *string `json:"avatar_url"`
	WebURL    string  `json:"web_url"`
	// There are no subscriptions.
	Plan        string `json:"plan"`
	Trial       bool   `json:"trial"`
	TrialEndsOn *day   `json:"trial_ends_on"`
}

func toNamespace(site *Site, n *project.Namespace) namespaceJSON {
	return namespaceJSON{
		ID: n.ID, Name: n.Name, Path: n.Path, Kind: string(n.Kind), FullPath: n.FullPath, ParentID: n.ParentID,
		AvatarURL: namespacePicture(site, n), WebURL: namespaceURL(site, n), Plan: "default",
	}
}

type membershipsParams struct {
	userParams
	Type string `param:"type" enum:"Project,Namespace"`
	pageParams
}

type membershipJSON struct {
	SourceID    int64  `json:"source_id"`
	SourceName  string `json:"source_name"`
	SourceType  string `json:"source_type"`
	AccessLevel string `json:"access_level"`
}

// listMemberships: https://docs.gitlab.com/api/users/#list-projects-and-groups-that-a-user-is-a-member-of
func (a *API) listMemberships(c *call, p membershipsParams) (page[membershipJSON], error) {
	list, err := a.Projects.Memberships(c, c.actor, p.ID, p.Type, p.paging())
	if err != nil {
		return page[membershipJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(m project.Membership) membershipJSON {
		out := membershipJSON{m.Source, m.Name, "Namespace", strconv.FormatInt(int64(m.Level), 10)}
		if m.Project {
			out.SourceType = "Project"
		}
		return out
	}), nil
}
