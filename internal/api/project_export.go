package api

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"svc/internal/bind"
	"svc/internal/blob"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/transfer"
)

func (a *API) projectExportRoutes() {
	a.tag("Project import and export")
	handle(a, "POST /projects/{id}/export", writeAPI, a.startProjectExport, summary("Schedule a project export"))
	handle(a, "GET /projects/{id}/export", readAPI, a.getProjectExport, summary("Get the status of a project export"))
	handle(a, "GET /projects/{id}/export/download", readAPI, a.downloadProjectExport, summary("Download a project export"))
	handle(a, "POST /projects/import", writeAPI, a.importProject, filesWithin(a.Transfer.Limit), summary("Import a project file"))
	handle(a, "POST /projects/remote-import", writeAPI, a.importRemoteProject, summary("Import a project file from a URL"))
	handle(a, "POST /projects/remote-import-s3", writeAPI, a.importS3Project, summary("Import a project file from S3"))
}

type startProjectExportParams struct {
	projectParams
	Description *string              `param:"description" doc:"Description in the file, instead of that of the project."`
	Upload      *projectUploadParams `param:"upload" doc:"Where the file is sent to when it is complete."`
}

type projectUploadParams struct {
	URL    string `param:"url,required" doc:"URL that the file is sent to."`
	Method string `param:"http_method" enum:"PUT,POST" default:"PUT" doc:"HTTP method of the upload."`
}

// startProjectExport: https://docs.gitlab.com/api/project_import_export/#schedule-an-export
func (a *API) startProjectExport(c *call, p startProjectExportParams) (accepted, error) {
	var to *transfer.Upload
	if p.Upload != nil {
		to = &transfer.Upload{URL: p.Upload.URL, Method: p.Upload.Method}
	}
	_, err := a.Transfer.StartProjectExport(c, c.actor, p.Project, p.Description, to)
	return accepted{}, err
}

// projectExportJSON is the status of a project export. The fields of the public API
// are followed by additional fields.
type projectExportJSON struct {
	projectNameJSON
	ExportStatus string           `json:"export_status"` // none, queued, started, finished, failed or regeneration_in_progress
	Links        *exportLinksJSON `json:"_links,omitempty"`
	Message      *string          `json:"message"`  // why it failed
	Progress     int              `json:"progress"` // percent
	Error        *string          `json:"error"`
	StartedAt    *stamp           `json:"started_at"`
	FinishedAt   *stamp           `json:"finished_at"`
	ExpiresAt    *stamp           `json:"expires_at"` // of the downloadable file
	Size         *int64           `json:"size"`       // of the same file, in bytes
}

// getProjectExport: https://docs.gitlab.com/api/project_import_export/#export-status
func (a *API) getProjectExport(c *call, p projectParams) (projectExportJSON, error) {
	found, err := a.Transfer.ProjectExports(c, c.actor, p.Project)
	if err != nil {
		return projectExportJSON{}, err
	}
	state := toExportState(found)
	out := projectExportJSON{
		projectNameJSON: toProjectName(found.Project), ExportStatus: state.Status, Message: state.Error, Progress: state.Progress, Error: state.Error,
		StartedAt: state.StartedAt, FinishedAt: state.FinishedAt, ExpiresAt: state.ExpiresAt, Size: state.Size,
	}
	if found.Ready != nil {
		out.Links = &exportLinksJSON{
			API: fmt.Sprintf("%s%s/projects/%d/export/download", c.site.URL, prefix, found.Project.ID),
			Web: c.site.URL + (&url.URL{Path: "/" + found.Project.FullPath + "/-/download_export"}).EscapedPath(),
		}
	}
	return out, nil
}

// downloadProjectExport: https://docs.gitlab.com/api/project_import_export/#export-download
func (a *API) downloadProjectExport(c *call, p projectParams) (streamed, error) {
	found, file, err := a.Transfer.OpenProjectExport(c, c.actor, p.Project)
	if err != nil {
		return streamed{}, err
	}
	defer file.Close()
	return a.sendAttachment(c, found.FileName(), file.Size, file)
}

type importProjectParams struct {
	File *bind.Upload `param:"file,required" doc:"Export archive of the project."`
	newImportParams
}

type importRemoteProjectParams struct {
	URL string `param:"url,required" doc:"URL of the export archive. The server must send its Content-Length, and application/gzip as Content-Type."`
	newImportParams
}

type importS3ProjectParams struct {
	Region    string `param:"region,required" doc:"AWS region of the bucket."`
	Bucket    string `param:"bucket_name,required" doc:"Bucket that has the export archive."`
	Key       string `param:"file_key,required" doc:"Key of the export archive in the bucket."`
	AccessKey string `param:"access_key_id,required" doc:"ID of the access key."`
	SecretKey string `param:"secret_access_key,required" doc:"Secret of the access key."`
	newImportParams
}

// newImportParams are the parameters of all imports of a project file.
type newImportParams struct {
	Path          string             `param:"path,required" doc:"Path of the new project."`
	Name          string             `param:"name" doc:"Name of the new project; the default is the path."`
	Namespace     string             `param:"namespace" doc:"ID or path of the namespace; the default is that of the current user."`
	NamespaceID   *int64             `param:"namespace_id"`
	NamespacePath string             `param:"namespace_path"`
	Overwrite     bool               `param:"overwrite" doc:"Not supported: an existing project is never replaced."`
	Override      *map[string]string `param:"override_params" doc:"Attributes instead of those in the file: description, visibility and settings."`
}

// place returns the namespace that was sent, or an empty reference. Invalid if more
// than one parameter has a namespace.
func (p *newImportParams) place() (project.Ref, error) {
	given := 0
	var ref project.Ref
	for _, text := range []string{p.Namespace, p.NamespacePath} {
		if text != "" {
			given++
			ref = project.Ref(text)
		}
	}
	if p.NamespaceID != nil {
		given++
		ref = project.RefTo(*p.NamespaceID)
	}
	if given > 1 {
		return "", errs.Invalid("namespace, namespace_id and namespace_path are mutually exclusive")
	}
	return ref, nil
}

// importProject: https://docs.gitlab.com/api/project_import_export/#import-a-file
func (a *API) importProject(c *call, p importProjectParams) (projectImportJSON, error) {
	n, err := a.newImport(c, &p.newImportParams)
	if err != nil {
		return projectImportJSON{}, err
	}
	n.Size, n.File = p.File.Size, p.File.Open()
	i, made, err := a.Transfer.StartProjectImport(c, c.actor, n)
	if err != nil {
		return projectImportJSON{}, err
	}
	return a.startedImport(c, i, made), nil
}

// importRemoteProject: https://docs.gitlab.com/api/project_import_export/#import-a-file-from-a-remote-object-storage
func (a *API) importRemoteProject(c *call, p importRemoteProjectParams) (projectImportJSON, error) {
	n, err := a.newImport(c, &p.newImportParams)
	if err != nil {
		return projectImportJSON{}, err
	}
	return a.remoteImport(c, n, transfer.RemoteFile{URL: p.URL})
}

// importS3Project: https://docs.gitlab.com/api/project_import_export/#import-a-file-from-aws-s3
func (a *API) importS3Project(c *call, p importS3ProjectParams) (projectImportJSON, error) {
	n, err := a.newImport(c, &p.newImportParams)
	if err != nil {
		return projectImportJSON{}, err
	}
	object := &blob.Foreign{Region: p.Region, Bucket: p.Bucket, Key: p.Key, AccessKey: p.AccessKey, SecretKey: p.SecretKey}
	return a.remoteImport(c, n, transfer.RemoteFile{Object: object})
}

func (a *API) remoteImport(c *call, n transfer.NewProjectImport, from transfer.RemoteFile) (projectImportJSON, error) {
	i, made, err := a.Transfer.StartRemoteImport(c, c.actor, n, from)
	if err != nil {
		return projectImportJSON{}, err
	}
	return a.startedImport(c, i, made), nil
}

// newImport returns the fields of an import without its file.
func (a *API) newImport(c *call, p *newImportParams) (transfer.NewProjectImport, error) {
	n := transfer.NewProjectImport{Name: p.Name, Path: p.Path}
	if p.Overwrite {
		return n, errs.InvalidField("overwrite", "is not supported. Delete the project first, or choose another path")
	}
	if p.Override != nil {
		n.Overrides = *p.Override
	}
	ref, err := p.place()
	if err != nil || ref == "" {
		return n, err
	}
	into, err := a.Projects.Namespace(c, c.actor, ref)
	if err != nil {
		return n, err
	}
	n.NamespaceID = &into.ID
	return n, nil
}

// startedImport returns the response to the start of an import.
func (a *API) startedImport(c *call, i *transfer.Import, made *project.Project) projectImportJSON {
	c.w.Header().Set("Location", fmt.Sprintf("%s%s/projects/%d/import", c.site.URL, prefix, made.ID))
	out := toFileImport(i)
	out.projectNameJSON = toProjectName(made)
	return out
}

// fileImport returns the import of a project from a file. The project is hidden
// until the import has finished. ok is false if no such import is visible to the
// actor.
func (a *API) fileImport(c *call, ref project.Ref) (out projectImportJSON, ok bool, err error) {
	id, err := strconv.ParseInt(string(ref), 10, 64)
	if err != nil {
		return out, false, nil
	}
	i, err := a.Transfer.ProjectImportOf(c, c.actor, id)
	if errs.KindOf(err) != 0 { // the caller returns its own error
		return out, false, nil
	}
	if err != nil {
		return out, false, err
	}
	return toFileImport(i), true, nil
}

func toFileImport(i *transfer.Import) projectImportJSON {
	kind := project.FromFile
	out := projectImportJSON{
		projectNameJSON: projectNameJSON{ID: i.ProjectID(), Name: i.Name, NameWithNamespace: i.Name, Path: i.Path, PathWithNamespace: i.Path, CreatedAt: toStamp(i.CreatedAt)},
		ImportStatus:    string(project.ImportScheduled), ImportType: &kind, ImportError: textOrNull(i.Error), FailedRelations: failedRelations(i),
	}
	switch i.State {
	case transfer.Started:
		out.ImportStatus = string(project.ImportStarted)
	case transfer.Finished:
		out.ImportStatus = string(project.ImportFinished)
	case transfer.Failed:
		out.ImportStatus = string(project.ImportFailed)
	}
	if i.Going() {
		out.Progress = &importProgressJSON{Phase: importPhase(i), Percent: i.Percent(), Bytes: i.Done}
	}
	return out
}

// importPhase returns what the import is doing.
func importPhase(i *transfer.Import) string {
	if i.Fetching() && i.State == transfer.Started {
		return "fetching"
	}
	return string(i.State)
}

// failedRelations returns the objects that could not be imported.
func failedRelations(i *transfer.Import) []failedImportJSON {
	list := []failedImportJSON{}
	if i == nil || i.FinishedAt == nil {
		return list
	}
	for n, m := range i.Report.Missing {
		name, err := json.Marshal(m.Name)
		if err != nil {
			continue
		}
		list = append(list, failedImportJSON{
			ID: int64(n + 1), CreatedAt: toStamp(*i.FinishedAt), ExceptionClass: "Unmapped", ExceptionMessage: fmt.Sprintf("%s: %s", name, m.Why),
			Source: "import", RelationName: m.Thing,
		})
	}
	return list
}

// exportState is the status of an export of a group or project.
type exportState struct {
	Status                           string
	Progress                         int
	Error                            *string
	StartedAt, FinishedAt, ExpiresAt *stamp
	Size                             *int64
}

func toExportState(found *transfer.Exports) exportState {
	out := exportState{Status: "none"}
	if last := found.Last; last != nil {
		started := toStamp(last.CreatedAt)
		out.Status, out.Progress, out.Error = string(last.State), last.Percent(), textOrNull(last.Error)
		out.StartedAt, out.FinishedAt = &started, toStampOrNull(last.FinishedAt)
		if last.Going() && found.Ready != nil {
			out.Status = "regeneration_in_progress"
		}
	}
	if ready := found.Ready; ready != nil {
		out.ExpiresAt, out.Size = toStampOrNull(ready.ExpiresAt), &ready.Size
	}
	return out
}
