package api

import (
	"cmp"

	"svc/internal/transfer"
)

func (a *API) bulkImportRoutes() {
	a.tag("Group and project migration by direct transfer")
	const one = "/bulk_imports/{import_id}"
	handle(a, "POST /bulk_imports", writeAPI, a.startBulkImport, summary("Start a group or project migration"))
	handle(a, "GET /bulk_imports", readAPI, a.listBulkImports, summary("List group or project migrations"))
	handle(a, "GET /bulk_imports/entities", readAPI, a.listAllBulkEntities, summary("List entities of all group or project migrations"))
	handle(a, "GET "+one, readAPI, a.getBulkImport, summary("Get a group or project migration"))
	handle(a, "GET "+one+"/entities", readAPI, a.listBulkEntities, summary("List entities of a group or project migration"))
	handle(a, "GET "+one+"/entities/{entity_id}", readAPI, a.getBulkEntity, summary("Get an entity of a group or project migration"))
	handle(a, "GET "+one+"/entities/{entity_id}/failures", readAPI, a.listBulkFailures, summary("List failed import records of a migration entity"))
	handle(a, "POST "+one+"/cancel", writeAPI, a.cancelBulkImport, status(200), summary("Cancel a group or project migration"))
}

type bulkImportJSON struct {
	ID          int64  `json:"id"`
	Status      string `json:"status"`      // created, started, finished, failed or canceled
	SourceType  string `json:"source_type"` // always gitlab
	SourceURL   string `json:"source_url"`
	CreatedAt   stamp  `json:"created_at"`
	UpdatedAt   stamp  `json:"updated_at"`
	HasFailures bool   `json:"has_failures"`
}

func toBulkImport(b *transfer.BulkImport) bulkImportJSON {
	return bulkImportJSON{b.ID, string(b.State), "gitlab", b.SourceURL, toStamp(b.CreatedAt), toStamp(b.UpdatedAt), b.Failures}
}

type bulkSourceParams struct {
	URL   string `param:"url,required" doc:"URL of the source."`
	Token string `param:"access_token,required" doc:"Access token for the source, with the scopes read_api and read_repository."`
}

type bulkEntityParams struct {
	SourceType  string `param:"source_type,required" enum:"group_entity,project_entity"`
	SourcePath  string `param:"source_full_path,required" doc:"Full path of the group or project at the source."`
	Slug        string `param:"destination_slug" doc:"Path of the new group or project; the default is that of the source."`
	Name        string `param:"destination_name" doc:"Deprecated: use destination_slug."`
	Namespace   string `param:"destination_namespace" doc:"Full path of the destination; empty for a top-level group."`
	Projects    bool   `param:"migrate_projects" default:"true" doc:"Import the projects of the group too."`
	Memberships bool   `param:"migrate_memberships" default:"true" doc:"Import memberships too."`
}

type startBulkImportParams struct {
	Configuration bulkSourceParams   `param:"configuration,required"`
	Entities      []bulkEntityParams `param:"entities,required"`
}

// startBulkImport: https://docs.gitlab.com/api/bulk_imports/#start-a-new-group-or-project-migration
func (a *API) startBulkImport(c *call, p startBulkImportParams) (bulkImportJSON, error) {
	n := transfer.NewBulkImport{URL: p.Configuration.URL, Token: p.Configuration.Token}
	for _, e := range p.Entities {
		n.Entities = append(n.Entities, transfer.NewEntity{
			Project: e.SourceType == "project_entity", SourcePath: e.SourcePath, Slug: cmp.Or(e.Slug, e.Name), Namespace: e.Namespace, Projects: e.Projects, Members: e.Memberships,
		})
	}
	return presentAs(toBulkImport)(a.Transfer.StartBulkImport(c, c.actor, n))
}

type bulkFilterParams struct {
	Sort   string `param:"sort" enum:"asc,desc" default:"desc" doc:"Sort direction by creation."`
	Status string `param:"status" enum:"created,started,finished,timeout,failed,canceled"`
	pageParams
}

func (p *bulkFilterParams) filter() transfer.BulkFilter {
	return transfer.BulkFilter{State: transfer.State(p.Status), Ascending: p.Sort == "asc"}
}

type listBulkImportsParams struct{ bulkFilterParams }

// listBulkImports: https://docs.gitlab.com/api/bulk_imports/#list-all-group-or-project-migrations
func (a *API) listBulkImports(c *call, p listBulkImportsParams) (page[bulkImportJSON], error) {
	return offsetList(p.pageParams, toBulkImport)(a.Transfer.BulkImports(c, c.actor, p.filter(), p.paging()))
}

type bulkImportParams struct {
	Import int64 `param:"import_id"`
}

// getBulkImport: https://docs.gitlab.com/api/bulk_imports/#get-group-or-project-migration-details
func (a *API) getBulkImport(c *call, p bulkImportParams) (bulkImportJSON, error) {
	return presentAs(toBulkImport)(a.Transfer.BulkImport(c, c.actor, p.Import))
}

// cancelBulkImport: https://docs.gitlab.com/api/bulk_imports/#cancel-a-migration
func (a *API) cancelBulkImport(c *call, p bulkImportParams) (bulkImportJSON, error) {
	return presentAs(toBulkImport)(a.Transfer.CancelBulkImport(c, c.actor, p.Import))
}

type bulkEntityJSON struct {
	ID                   int64                   `json:"id"`
	BulkImportID         int64                   `json:"bulk_import_id"`
	Status               string                  `json:"status"`      // created, started, finished, failed or canceled
	EntityType           string                  `json:"entity_type"` // group or project
	SourceFullPath       string                  `json:"source_full_path"`
	DestinationFullPath  string                  `json:"destination_full_path"`
	DestinationName      string                  `json:"destination_name"` // deprecated: destination_slug
	DestinationSlug      string                  `json:"destination_slug"`
	DestinationNamespace string                  `json:"destination_namespace"`
	ParentID             *int64                  `json:"parent_id"`
	NamespaceID          *int64                  `json:"namespace_id"`
	ProjectID            *int64                  `json:"project_id"`
	CreatedAt            stamp                   `json:"created_at"`
	UpdatedAt            stamp                   `json:"updated_at"`
	Failures             []bulkEntityFailureJSON `json:"failures"`
	MigrateProjects      bool                    `json:"migrate_projects"`
	MigrateMemberships   bool                    `json:"migrate_memberships"`
	HasFailures          bool                    `json:"has_failures"`
	Stats                map[string]bulkStatJSON `json:"stats"` // by relation
	// Additions to the public API.
	Phase         string `json:"phase"`          // the current step, or importing
	Progress      int    `json:"progress"`       // percent
	FailuresCount int64  `json:"failures_count"` // all failures; Failures has only the first ones
}

// The maximum number of failures in the representation of an entity, in a list and
// as a single entity. listBulkFailures lists all stored failures.
const (
	failuresInList = 20
	failuresOfOne  = 100
)

type bulkStatJSON struct {
	Source   int64 `json:"source"`
	Fetched  int64 `json:"fetched"`
	Imported int64 `json:"imported"`
}

// bulkEntityFailureJSON is a failure of an entity. Fields of the public API that svc
// does not record are empty.
type bulkEntityFailureJSON struct {
	Relation         string `json:"relation"`
	Step             string `json:"step"` // deprecated: pipeline_step
	ExceptionMessage string `json:"exception_message"`
	ExceptionClass   string `json:"exception_class"`
	CorrelationID    string `json:"correlation_id_value"`
	CreatedAt        stamp  `json:"created_at"`
	PipelineClass    string `json:"pipeline_class"`
	PipelineStep     string `json:"pipeline_step"`
	SourceURL        string `json:"source_url"`
	SourceTitle      string `json:"source_title"`
}

// bulkFailureClass is the exception class of all failures.
const bulkFailureClass = "NotImported"

func toBulkEntity(source string, e *transfer.Entity, failures []*transfer.Failure) bulkEntityJSON {
	out := bulkEntityJSON{
		ID: e.ID, BulkImportID: e.ImportID, Status: string(e.State), EntityType: "group", SourceFullPath: e.SourcePath, DestinationFullPath: e.Destination(),
		DestinationName: e.Slug, DestinationSlug: e.Slug, DestinationNamespace: e.Namespace, ParentID: e.ParentID, NamespaceID: e.GroupID, ProjectID: e.ProjectID,
		CreatedAt: toStamp(e.CreatedAt), UpdatedAt: toStamp(e.UpdatedAt), MigrateProjects: e.Projects, MigrateMemberships: e.Members, HasFailures: e.Failures > 0,
		Stats: map[string]bulkStatJSON{}, Phase: e.Phase, Progress: e.Percent(), FailuresCount: e.Failures,
		Failures: mapped(failures, func(f *transfer.Failure) bulkEntityFailureJSON {
			return bulkEntityFailureJSON{
				Relation: f.Relation, Step: "loader", ExceptionMessage: f.Message, ExceptionClass: bulkFailureClass, CreatedAt: toStamp(f.CreatedAt), PipelineStep: "loader",
				SourceURL: sourceURL(source, f), SourceTitle: f.Title,
			}
		}),
	}
	if e.Project {
		out.EntityType = "project"
	}
	for relation, n := range e.Stats {
		out.Stats[relation] = bulkStatJSON(n)
	}
	return out
}

// sourceURL returns the URL of the failed object on the source instance, or an empty
// string if it is not known.
func sourceURL(source string, f *transfer.Failure) string {
	if f.Path == "" || source == "" {
		return ""
	}
	return source + f.Path
}

func (a *API) bulkEntities(c *call, id int64, p bulkFilterParams) (page[bulkEntityJSON], error) {
	list, err := a.Transfer.BulkEntities(c, c.actor, id, p.filter(), p.paging())
	if err != nil {
		return page[bulkEntityJSON]{}, err
	}
	failures, err := a.Transfer.BulkFailures(c, list.Items, failuresInList)
	if err != nil {
		return page[bulkEntityJSON]{}, err
	}
	source := ""
	if id != 0 {
		b, err := a.Transfer.BulkImport(c, c.actor, id)
		if err != nil {
			return page[bulkEntityJSON]{}, err
		}
		source = b.SourceURL
	}
	return offsetPage(p.pageParams, list, func(e *transfer.Entity) bulkEntityJSON { return toBulkEntity(source, e, failures[e.ID]) }), nil
}

type listAllBulkEntitiesParams struct{ bulkFilterParams }

// listAllBulkEntities: https://docs.gitlab.com/api/bulk_imports/#list-all-group-or-project-migrations-entities
func (a *API) listAllBulkEntities(c *call, p listAllBulkEntitiesParams) (page[bulkEntityJSON], error) {
	return a.bulkEntities(c, 0, p.bulkFilterParams)
}

type listBulkEntitiesParams struct {
	bulkImportParams
	bulkFilterParams
}

// listBulkEntities: https://docs.gitlab.com/api/bulk_imports/#list-group-or-project-migration-entities
func (a *API) listBulkEntities(c *call, p listBulkEntitiesParams) (page[bulkEntityJSON], error) {
	if p.Import == 0 {
		p.Import = -1 // no import has this ID
	}
	return a.bulkEntities(c, p.Import, p.bulkFilterParams)
}

type bulkOneEntityParams struct {
	bulkImportParams
	Entity int64 `param:"entity_id"`
}

// getBulkEntity: https://docs.gitlab.com/api/bulk_imports/#get-group-or-project-migration-entity-details
func (a *API) getBulkEntity(c *call, p bulkOneEntityParams) (bulkEntityJSON, error) {
	b, err := a.Transfer.BulkImport(c, c.actor, p.Import)
	if err != nil {
		return bulkEntityJSON{}, err
	}
	e, err := a.Transfer.BulkEntity(c, c.actor, p.Import, p.Entity)
	if err != nil {
		return bulkEntityJSON{}, err
	}
	failures, err := a.Transfer.BulkFailures(c, []*transfer.Entity{e}, failuresOfOne)
	if err != nil {
		return bulkEntityJSON{}, err
	}
	return toBulkEntity(b.SourceURL, e, failures[e.ID]), nil
}

type bulkFailureJSON struct {
	Relation         string `json:"relation"`
	ExceptionMessage string `json:"exception_message"`
	ExceptionClass   string `json:"exception_class"`
	CorrelationID    string `json:"correlation_id_value"`
	SourceURL        string `json:"source_url"`
	SourceTitle      string `json:"source_title"`
}

type listBulkFailuresParams struct {
	bulkOneEntityParams
	pageParams
}

// listBulkFailures: https://docs.gitlab.com/api/bulk_imports/#get-list-of-failed-import-records-for-group-or-project-migration-entity
func (a *API) listBulkFailures(c *call, p listBulkFailuresParams) (page[bulkFailureJSON], error) {
	b, err := a.Transfer.BulkImport(c, c.actor, p.Import)
	if err != nil {
		return page[bulkFailureJSON]{}, err
	}
	return offsetList(p.pageParams, func(f *transfer.Failure) bulkFailureJSON {
		return bulkFailureJSON{Relation: f.Relation, ExceptionMessage: f.Message, ExceptionClass: bulkFailureClass, SourceURL: sourceURL(b.SourceURL, f), SourceTitle: f.Title}
	})(a.Transfer.BulkEntityFailures(c, c.actor, p.Import, p.Entity, p.paging()))
}
