package api

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"

	"svc/internal/bind"
	"svc/internal/ci"
	"svc/internal/packages"
	"svc/internal/project"
)

// Access rules for packages. They also allow deploy tokens and CI/CD jobs, and reads
// also allow anonymous callers.
var (
	readPackages  = readAPI.orAnonymous().orJob().orDeploy()
	writePackages = writeAPI.orJob().orDeploy()
)

func (a *API) packageRoutes() {
	a.tag("Packages")
	read := readAPI.orAnonymous().orJob()
	handle(a, "GET /projects/{id}/packages", read, a.listPackages, summary("List project packages"))
	handle(a, "GET /projects/{id}/packages/{package_id}", read, a.getPackage, summary("Get a project package"))
	handle(a, "DELETE /projects/{id}/packages/{package_id}", writeAPI.orJob(), a.deletePackage, summary("Delete a project package"))
	handle(a, "GET /projects/{id}/packages/{package_id}/package_files", read, a.listPackageFiles, summary("List package files"))
	handle(a, "DELETE /projects/{id}/packages/{package_id}/package_files/{package_file_id}", writeAPI.orJob(), a.deletePackageFile, summary("Delete a package file"))
	handle(a, "GET /projects/{id}/packages/{package_id}/pipelines", read, a.listPackagePipelines, summary("List package pipelines"))
	handle(a, "GET /groups/{id}/packages", readAPI.orAnonymous(), a.listGroupPackages, summary("List group packages"))
}

// packageFilterParams are the filters of all lists of packages.
type packageFilterParams struct {
	Type        string `param:"package_type" enum:"conan,maven,npm,pypi,composer,nuget,helm,terraform_module,generic,golang,debian,rpm,rubygems,ml_model" doc:"Package type. Packages of types other than generic, npm and pypi do not exist."`
	Name        string `param:"package_name" doc:"Text in the name."`
	Version     string `param:"package_version" doc:"Exact version."`
	Status      string `param:"status" enum:"default,hidden,processing,error,pending_destruction,deprecated" doc:"Status. Default is default."`
	Versionless bool   `param:"include_versionless" doc:"Include packages without a version. Every package has one."`
	Sort        string `param:"sort" default:"asc" enum:"asc,desc"`
}

func (p *packageFilterParams) filter(orderBy string) packages.Filter {
	return packages.Filter{
		Type: packages.Type(p.Type), Name: p.Name, Version: p.Version, Status: packages.Status(p.Status), OrderBy: orderBy, Desc: p.Sort == "desc",
	}
}

type listPackagesParams struct {
	projectParams
	packageFilterParams
	OrderBy string `param:"order_by" default:"created_at" enum:"created_at,name,version,type"`
	pageParams
}

// listPackages: https://docs.gitlab.com/api/packages/#for-a-project
func (a *API) listPackages(c *call, p listPackagesParams) (page[packageJSON], error) {
	in, list, err := a.Packages.List(c, c.actor, p.Project, p.filter(p.OrderBy), p.paging())
	if err != nil {
		return page[packageJSON]{}, err
	}
	deletes := a.Packages.Can(c.actor, in).Delete
	return offsetPage(p.pageParams, list, func(k *packages.Package) packageJSON { return a.toPackage(k, deletes) }), nil
}

type listGroupPackagesParams struct {
	inGroupParams
	packageFilterParams
	ExcludeSubgroups bool   `param:"exclude_subgroups"`
	OrderBy          string `param:"order_by" default:"created_at" enum:"created_at,name,version,type,project_path"`
	pageParams
}

// listGroupPackages: https://docs.gitlab.com/api/packages/#for-a-group
func (a *API) listGroupPackages(c *call, p listGroupPackagesParams) (page[groupPackageJSON], error) {
	f := p.filter(p.OrderBy)
	f.ExcludeSubgroups = p.ExcludeSubgroups
	_, list, err := a.Packages.ListGroup(c, c.actor, p.Group, f, p.paging())
	if err != nil {
		return page[groupPackageJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(k *packages.Package) groupPackageJSON {
		return groupPackageJSON{packageJSON: a.toPackage(k, false), ProjectID: k.ProjectID, ProjectPath: k.ProjectPath}
	}), nil
}

type packageParams struct {
	projectParams
	Package int64 `param:"package_id"`
}

// getPackage: https://docs.gitlab.com/api/packages/#get-a-project-package
func (a *API) getPackage(c *call, p packageParams) (packageDetailJSON, error) {
	in, k, err := a.Packages.Get(c, c.actor, p.Project, p.Package)
	if err != nil {
		return packageDetailJSON{}, err
	}
	versions, err := a.Packages.Versions(c, c.actor, in, k)
	if err != nil {
		return packageDetailJSON{}, err
	}
	return packageDetailJSON{
		packageJSON: a.toPackage(k, a.Packages.Can(c.actor, in).Delete),
		Versions:    mapped(versions, func(v *packages.Package) packageVersionJSON { return a.toPackageVersion(in, v) }),
	}, nil
}

// deletePackage: https://docs.gitlab.com/api/packages/#delete-a-project-package
func (a *API) deletePackage(c *call, p packageParams) (none, error) {
	return none{}, a.Packages.Delete(c, c.actor, p.Project, p.Package)
}

type listPackageFilesParams struct {
	packageParams
	OrderBy string `param:"order_by" default:"id" enum:"id,created_at,file_name"`
	Sort    string `param:"sort" default:"asc" enum:"asc,desc"`
	pageParams
}

// listPackageFiles: https://docs.gitlab.com/api/packages/#list-package-files
func (a *API) listPackageFiles(c *call, p listPackageFilesParams) (page[packageFileJSON], error) {
	k, list, err := a.Packages.Files(c, c.actor, p.Project, p.Package, packages.FileFilter{OrderBy: p.OrderBy, Desc: p.Sort == "desc"}, p.paging())
	if err != nil {
		return page[packageFileJSON]{}, err
	}
	pipelines := mapped(k.Pipelines, func(l *ci.Pipeline) pipelineJSON { return a.toPipeline(k.ProjectPath, l) })
	return offsetPage(p.pageParams, list, func(f *packages.File) packageFileJSON {
		shown := toPackageFile(f)
		shown.Pipelines = pipelines
		return shown
	}), nil
}

type packageFileParams struct {
	packageParams
	File int64 `param:"package_file_id"`
}

// deletePackageFile: https://docs.gitlab.com/api/packages/#delete-a-package-file
func (a *API) deletePackageFile(c *call, p packageFileParams) (none, error) {
	return none{}, a.Packages.DeleteFile(c, c.actor, p.Project, p.Package, p.File)
}

type listPackagePipelinesParams struct {
	packageParams
	keysetParams
}

// listPackagePipelines: https://docs.gitlab.com/api/packages/#list-package-pipelines
func (a *API) listPackagePipelines(c *call, p listPackagePipelinesParams) (page[pipelineJSON], error) {
	k := keyset{object: "Pipeline", columns: []string{"id"}, allowed: true}
	paging, err := p.paging(k)
	if err != nil {
		return page[pipelineJSON]{}, err
	}
	in, list, err := a.Packages.Pipelines(c, c.actor, p.Project, p.Package, paging)
	if err != nil {
		return page[pipelineJSON]{}, err
	}
	return keysetPage(p.keysetParams, k, list, func(l *ci.Pipeline) pipelineJSON { return a.toPipeline(in.FullPath, l) }), nil
}

// packageJSON is a package.
type packageJSON struct {
	ID               int64            `json:"id"`
	Name             string           `json:"name"`
	Version          string           `json:"version"`
	PackageType      string           `json:"package_type"`
	Status           string           `json:"status"`
	Links            packageLinksJSON `json:"_links"`
	CreatedAt        stamp            `json:"created_at"`
	LastDownloadedAt *stamp           `json:"last_downloaded_at"`
	CreatorID        *int64           `json:"creator_id"`
	Tags             []packageTagJSON `json:"tags"`
	Pipeline         *pipelineJSON    `json:"pipeline,omitempty"`
	Pipelines        []pipelineJSON   `json:"pipelines"` // deprecated
}

// groupPackageJSON is a package of a project of a group.
type groupPackageJSON struct {
	packageJSON
	ProjectID   int64  `json:"project_id"`
	ProjectPath string `json:"project_path"`
}

// packageDetailJSON is a single package with its other versions.
type packageDetailJSON struct {
	packageJSON
	Versions []packageVersionJSON `json:"versions"`
}

type packageVersionJSON struct {
	ID        int64            `json:"id"`
	Version   string           `json:"version"`
	CreatedAt stamp            `json:"created_at"`
	Tags      []packageTagJSON `json:"tags"`
	Pipeline  *pipelineJSON    `json:"pipeline,omitempty"`
}

type packageLinksJSON struct {
	WebPath       string `json:"web_path"`
	DeleteAPIPath string `json:"delete_api_path,omitempty"`
}

type packageTagJSON struct {
	ID        int64  `json:"id"`
	PackageID int64  `json:"package_id"`
	Name      string `json:"name"`
	CreatedAt stamp  `json:"created_at"`
	UpdatedAt stamp  `json:"updated_at"`
}

func toPackageTag(t packages.Tag) packageTagJSON {
	return packageTagJSON{t.ID, t.PackageID, t.Name, toStamp(t.CreatedAt), toStamp(t.UpdatedAt)}
}

func (a *API) toPackage(k *packages.Package, deletes bool) packageJSON {
	out := packageJSON{
		ID: k.ID, Name: k.Name, Version: k.Version, PackageType: string(k.Type), Status: string(k.Status), CreatedAt: toStamp(k.CreatedAt),
		LastDownloadedAt: toStampOrNull(k.LastDownloadedAt), CreatorID: k.CreatorID,
		Links: packageLinksJSON{WebPath: fmt.Sprintf("/%s/-/packages/%d", k.ProjectPath, k.ID)},
		Tags:  mapped(k.Tags, toPackageTag), Pipelines: mapped(k.Pipelines, func(l *ci.Pipeline) pipelineJSON { return a.toPipeline(k.ProjectPath, l) }),
	}
	if deletes {
		out.Links.DeleteAPIPath = fmt.Sprintf("%s%s/projects/%d/packages/%d", a.Site.URL, prefix, k.ProjectID, k.ID)
	}
	if len(out.Pipelines) > 0 {
		out.Pipeline = &out.Pipelines[0]
	}
	return out
}

func (a *API) toPackageVersion(in *project.Project, k *packages.Package) packageVersionJSON {
	out := packageVersionJSON{ID: k.ID, Version: k.Version, CreatedAt: toStamp(k.CreatedAt), Tags: mapped(k.Tags, toPackageTag)}
	if len(k.Pipelines) > 0 {
		last := a.toPipeline(in.FullPath, k.Pipelines[0])
		out.Pipeline = &last
	}
	return out
}

// packageFileJSON is a file of a package.
type packageFileJSON struct {
	ID         int64          `json:"id"`
	PackageID  int64          `json:"package_id"`
	CreatedAt  stamp          `json:"created_at"`
	FileName   string         `json:"file_name"`
	Size       int64          `json:"size"`
	FileMD5    string         `json:"file_md5"`
	FileSHA1   string         `json:"file_sha1"`
	FileSHA256 string         `json:"file_sha256"`
	Pipelines  []pipelineJSON `json:"pipelines"`
}

func toPackageFile(f *packages.File) packageFileJSON {
	return packageFileJSON{
		ID: f.ID, PackageID: f.PackageID, CreatedAt: toStamp(f.CreatedAt), FileName: f.Name, Size: f.Size,
		FileMD5: f.MD5, FileSHA1: f.SHA1, FileSHA256: f.SHA256, Pipelines: []pipelineJSON{},
	}
}

// sendPackage sends a file of a package, or the requested range of it.
func (a *API) sendPackage(c *call, f *packages.Content) (streamed, error) {
	defer f.Close()
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(f.File.Name)}))
	h.Set("ETag", `"`+f.File.SHA256+`"`)
	h.Set("X-Checksum-Sha256", f.File.SHA256)
	h["Cache-Control"] = revalidate
	http.ServeContent(c.w, c.r, "", f.File.CreatedAt, f)
	return streamed{}, nil
}

// bodyReader reads a raw request body and returns read errors as errors of the
// client.
type bodyReader struct{ r io.Reader }

// Read implements io.Reader.
func (b bodyReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && err != io.EOF {
		err = bind.BodyError(err)
	}
	return n, err
}

// redirect sends a client to another URL.
func (a *API) redirect(c *call, code int, to string) (streamed, error) {
	c.w.Header().Set("Location", to)
	a.writeJSON(c.w, c.r, code, messageJSON{fmt.Sprintf("%d %s", code, http.StatusText(code))})
	return streamed{}, nil
}

// packageDoneJSON is the response to a change of packages, in the format that
// clients expect.
type packageDoneJSON struct {
	Message string `json:"message"`
}
