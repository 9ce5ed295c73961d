package api

import (
	"svc/internal/errs"
	"svc/internal/mirror"
	"svc/internal/project"
)

func (a *API) projectImportRoutes() {
	a.tag("Project import and export")
	handle(a, "GET /projects/{id}/import", readAPI, a.getProjectImport, summary("Get the status of a project import"))
}

// projectImportJSON is the status of the import of a project.
type projectImportJSON struct {
	projectNameJSON
	ImportStatus    string             `json:"import_status"` // none, scheduled, started, finished or failed
	ImportType      *string            `json:"import_type"`
	CorrelationID   *string            `json:"correlation_id"`
	FailedRelations []failedImportJSON `json:"failed_relations"`
	ImportError     *string            `json:"import_error"`
	Stats           *importStatsJSON   `json:"stats"`
	// Additions to the public API.
	Progress  *importProgressJSON `json:"progress"`   // while the import is under way
	PublicKey *string             `json:"public_key"` // SSH key of an import that is under way, for users who can cancel it
}

// failedImportJSON is an object that could not be imported from a file. Imports by
// URL have no failed objects.
type failedImportJSON struct {
	ID               int64  `json:"id"`
	CreatedAt        stamp  `json:"created_at"`
	ExceptionClass   string `json:"exception_class"`
	ExceptionMessage string `json:"exception_message"`
	Source           string `json:"source"`
	RelationName     string `json:"relation_name"`
	LineNumber       int64  `json:"line_number"`
}

// importStatsJSON is the number of objects by kind that were found at the source and
// that were imported.
type importStatsJSON struct {
	Fetched  importCountsJSON `json:"fetched"`
	Imported importCountsJSON `json:"imported"`
}

type importCountsJSON struct {
	Branch    int `json:"branch"`
	Tag       int `json:"tag"`
	LFSObject int `json:"lfs_object"`
}

type importProgressJSON struct {
	Phase   string `json:"phase"` // connecting, ssh_key, receiving, checking, lfs or saving
	Percent int    `json:"percent"`
	Bytes   int64  `json:"bytes"` // received
}

// getProjectImport: https://docs.gitlab.com/api/project_import_export/#import-status
func (a *API) getProjectImport(c *call, p projectParams) (projectImportJSON, error) {
	found, i, err := a.Mirrors.Get(c, c.actor, p.Project)
	if errs.Is(err, errs.KindNotFound) {
		if out, ok, failure := a.fileImport(c, p.Project); ok || failure != nil {
			return out, failure
		}
	}
	if err != nil {
		return projectImportJSON{}, err
	}
	out := toProjectImport(found, i)
	if a.Mirrors.CanManage(c.actor, found) {
		key, err := a.Mirrors.ImportKey(i)
		if err != nil {
			return projectImportJSON{}, err
		}
		out.PublicKey = textOrNull(key)
	}
	file, err := a.Transfer.FileImport(c, c.actor, found)
	if err != nil {
		return projectImportJSON{}, err
	}
	out.FailedRelations = failedRelations(file)
	return out, nil
}

func toProjectImport(p *project.Project, i *mirror.Import) projectImportJSON {
	out := projectImportJSON{
		projectNameJSON: toProjectName(p), ImportStatus: string(p.Import), ImportType: textOrNull(p.ImportType), ImportError: textOrNull(p.ImportError),
		FailedRelations: []failedImportJSON{},
	}
	if i == nil {
		return out
	}
	out.CorrelationID = &i.Run
	out.Stats = &importStatsJSON{Fetched: importCountsJSON{i.Branches, i.Tags, i.LFSFound}}
	if p.Import == project.ImportFinished {
		out.Stats.Imported = importCountsJSON{i.Branches, i.Tags, i.LFSFetched}
	}
	if i.Active {
		out.Progress = &importProgressJSON{string(i.Phase), i.Percent, i.Bytes}
	}
	return out
}
