package api

import (
	"fmt"
	"net/url"

	"svc/internal/bind"
	"svc/internal/transfer"
	"svc/internal/transfer/archive"
)

func (a *API) groupImportExportRoutes() {
	a.tag("Group import and export")
	handle(a, "POST /groups/{id}/export", writeAPI, a.startGroupExport, summary("Schedule a group export"))
	handle(a, "GET /groups/{id}/export", readAPI, a.getGroupExport, summary("Get the status of a group export"))
	handle(a, "GET /groups/{id}/export/download", readAPI, a.downloadGroupExport, summary("Download a group export"))
	handle(a, "POST /groups/import", writeAPI, a.importGroup, filesWithin(a.Transfer.Limit), summary("Import a group"))
	handle(a, "GET /group_imports", readAPI, a.listGroupImports, summary("List group imports of the current user"))
	handle(a, "GET /group_imports/{import_id}", readAPI, a.getGroupImport, summary("Get the status of a group import"))
}

// startGroupExport: https://docs.gitlab.com/api/group_import_export/#create-a-group-export
func (a *API) startGroupExport(c *call, p inGroupParams) (accepted, error) {
	_, err := a.Transfer.StartExport(c, c.actor, p.Group)
	return accepted{}, err
}

// groupExportJSON has the fields of a project export in the public API, followed by
// additional fields.
type groupExportJSON struct {
	ID                int64            `json:"id"`
	Description       string           `json:"description"`
	Name              string           `json:"name"`
	NameWithNamespace string           `json:"name_with_namespace"`
	Path              string           `json:"path"`
	PathWithNamespace string           `json:"path_with_namespace"`
	CreatedAt         stamp            `json:"created_at"`
	ExportStatus      string           `json:"export_status"` // none, queued, started, finished, failed or regeneration_in_progress
	Progress          int              `json:"progress"`      // percent
	Error             *string          `json:"error"`
	StartedAt         *stamp           `json:"started_at"`
	FinishedAt        *stamp           `json:"finished_at"`
	ExpiresAt         *stamp           `json:"expires_at"` // of the downloadable file
	Size              *int64           `json:"size"`       // of the same file, in bytes
	Links             *exportLinksJSON `json:"_links,omitempty"`
}

type exportLinksJSON struct {
	API string `json:"api_url"`
	Web string `json:"web_url"`
}

// getGroupExport returns the status of a group export, in the format of
// https://docs.gitlab.com/api/project_import_export/#export-status
func (a *API) getGroupExport(c *call, p inGroupParams) (groupExportJSON, error) {
	found, err := a.Transfer.Exports(c, c.actor, p.Group)
	if err != nil {
		return groupExportJSON{}, err
	}
	return toGroupExport(c.site, found), nil
}

func toGroupExport(site *Site, found *transfer.Exports) groupExportJSON {
	g := found.Group
	state := toExportState(found)
	out := groupExportJSON{
		ID: g.ID, Description: g.Description, Name: g.Name, NameWithNamespace: g.FullName, Path: g.Path, PathWithNamespace: g.FullPath,
		CreatedAt: toStamp(g.CreatedAt), ExportStatus: state.Status, Progress: state.Progress, Error: state.Error,
		StartedAt: state.StartedAt, FinishedAt: state.FinishedAt, ExpiresAt: state.ExpiresAt, Size: state.Size,
	}
	if found.Ready != nil {
		out.Links = &exportLinksJSON{
			API: fmt.Sprintf("%s%s/groups/%d/export/download", site.URL, prefix, g.ID),
			Web: site.URL + (&url.URL{Path: "/groups/" + g.FullPath + "/-/download_export"}).EscapedPath(),
		}
	}
	return out
}

// downloadGroupExport: https://docs.gitlab.com/api/group_import_export/#download-a-group-export
func (a *API) downloadGroupExport(c *call, p inGroupParams) (streamed, error) {
	found, file, err := a.Transfer.OpenExport(c, c.actor, p.Group)
	if err != nil {
		return streamed{}, err
	}
	defer file.Close()
	return a.sendAttachment(c, found.FileName(), file.Size, file)
}

type importGroupParams struct {
	Name     string       `param:"name,required" doc:"Name of the new group."`
	Path     string       `param:"path,required"`
	ParentID *int64       `param:"parent_id" doc:"ID of the parent group; none for a top-level group."`
	File     *bind.Upload `param:"file,required" doc:"Export archive of the group."`
}

// importGroup: https://docs.gitlab.com/api/group_import_export/#create-a-group-import
func (a *API) importGroup(c *call, p importGroupParams) (accepted, error) {
	made, err := a.Transfer.StartImport(c, c.actor, transfer.NewImport{Name: p.Name, Path: p.Path, ParentID: p.ParentID, Size: p.File.Size, File: p.File.Open()})
	if err != nil {
		return accepted{}, err
	}
	c.w.Header().Set("Location", fmt.Sprintf("%s%s/group_imports/%d", c.site.URL, prefix, made.ID))
	return accepted{}, nil
}

type groupImportJSON struct {
	ID         int64            `json:"id"`
	Name       string           `json:"name"`
	Path       string           `json:"path"`
	ParentID   *int64           `json:"parent_id"`
	GroupID    *int64           `json:"group_id"` // null until the import has finished
	Status     string           `json:"status"`   // uploading, queued, started, finished or failed
	Progress   int              `json:"progress"` // percent
	Error      *string          `json:"error"`
	CreatedAt  stamp            `json:"created_at"`
	FinishedAt *stamp           `json:"finished_at"`
	Imported   importedJSON     `json:"imported"`       // contents of the file
	Unmapped   []unmappedJSON   `json:"unmapped"`       // objects that could not be imported, up to 1000
	Totals     map[string]int64 `json:"unmapped_total"` // their number by type
	WebURL     string           `json:"web_url"`
}

type importedJSON struct {
	Groups     int64 `json:"groups"`
	Avatars    int64 `json:"avatars"`
	Labels     int64 `json:"labels"`
	Milestones int64 `json:"milestones"`
	Boards     int64 `json:"boards"`
	Badges     int64 `json:"badges"`
	Members    int64 `json:"members"`
	Wikis      int64 `json:"wikis"`
}

func toImported(t archive.Totals) importedJSON {
	return importedJSON{t.Groups, t.Avatars, t.Labels, t.Milestones, t.Boards, t.Badges, t.Members, t.Wikis}
}

type unmappedJSON struct {
	Thing  string `json:"thing"` // member or board
	Group  string `json:"group"` // its path below the imported group
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

func toGroupImport(site *Site, i *transfer.Import) groupImportJSON {
	out := groupImportJSON{
		ID: i.ID, Name: i.Name, Path: i.Path, ParentID: i.ParentID, GroupID: i.OwnerID, Status: string(i.State), Progress: i.Percent(),
		Error: textOrNull(i.Error), CreatedAt: toStamp(i.CreatedAt), FinishedAt: toStampOrNull(i.FinishedAt),
		Imported: toImported(i.Report.Imported), Totals: i.Report.Lost, WebURL: fmt.Sprintf("%s/-/group_imports/%d", site.URL, i.ID),
		Unmapped: mapped(i.Report.Missing, func(m transfer.Missing) unmappedJSON { return unmappedJSON{m.Thing, m.Group, m.Name, m.Why} }),
	}
	if out.Totals == nil {
		out.Totals = map[string]int64{}
	}
	return out
}

type listGroupImportsParams struct{ pageParams }

// listGroupImports lists the group imports of the current user. It is an addition to
// the public API.
func (a *API) listGroupImports(c *call, p listGroupImportsParams) (page[groupImportJSON], error) {
	list, err := a.Transfer.Imports(c, c.actor, p.paging())
	if err != nil {
		return page[groupImportJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(i *transfer.Import) groupImportJSON { return toGroupImport(c.site, i) }), nil
}

type groupImportParams struct {
	Import int64 `param:"import_id"`
}

func (a *API) getGroupImport(c *call, p groupImportParams) (groupImportJSON, error) {
	i, err := a.Transfer.Import(c, c.actor, p.Import)
	if err != nil {
		return groupImportJSON{}, err
	}
	return toGroupImport(c.site, i), nil
}
