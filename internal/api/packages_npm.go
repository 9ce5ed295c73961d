package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"svc/internal/bind"
	"svc/internal/errs"
	"svc/internal/packages"
	"svc/internal/project"
)

func (a *API) npmPackageRoutes() {
	a.tag("npm packages")
	const at = "/projects/{id}/packages/npm"
	forwarded := response(http.StatusFound, "The package is not found and requests are forwarded.", messageJSON{})
	audited := response(http.StatusTemporaryRedirect, "Requests are forwarded.", messageJSON{})
	handle(a, "GET "+at+"/{package_name*}", readPackages, a.npmMetadataOfProject, forwarded, badRange, summary("Get the metadata of an npm package of a project"))
	handle(a, "GET "+at+"/{package_name}/-/{file_name*}", readPackages, a.downloadNPM, badRange, summary("Download an npm package file"))
	handle(a, "PUT "+at+"/{package_name*}", writePackages, a.publishNPM, raw, summary("Publish, deprecate or unpublish an npm package"))
	handle(a, "DELETE "+at+"/{package_name*}", writePackages, a.unpublishNPM, raw, summary("Unpublish an npm package"))
	handle(a, "GET /groups/{id}/-/packages/npm/{package_name*}", readPackages, a.npmMetadataOfGroup, forwarded, summary("Get the metadata of an npm package of a group"))
	handle(a, "GET /packages/npm/{package_name*}", readPackages, a.npmMetadata, forwarded, summary("Get the metadata of an npm package"))
	for _, in := range []struct {
		path, kind string
		project    bool
	}{{at, "project", true}, {"/groups/{id}/-/packages/npm", "group", false}} {
		n := npmPlaceEndpoints{a, in.project}
		handle(a, "GET "+in.path+"/-/package/{package_name}/dist-tags", readPackages, n.listTags, summary("List npm package tags of a "+in.kind))
		handle(a, "PUT "+in.path+"/-/package/{package_name}/dist-tags/{tag}", writePackages, n.setTag, raw, summary("Create or update an npm package tag of a "+in.kind))
		handle(a, "DELETE "+in.path+"/-/package/{package_name}/dist-tags/{tag}", writePackages, n.deleteTag, summary("Delete an npm package tag of a "+in.kind))
		handle(a, "POST "+in.path+"/-/npm/v1/security/advisories/bulk", readPackages, n.audit, raw, audited, summary("Audit npm packages of a "+in.kind))
		handle(a, "POST "+in.path+"/-/npm/v1/security/audits/quick", readPackages, n.audit, raw, audited, summary("Audit npm packages of a "+in.kind+" (quick)"))
	}
	handle(a, "GET /packages/npm/-/package/{package_name}/dist-tags", readPackages, a.listNPMTags, summary("List npm package tags"))
	handle(a, "PUT /packages/npm/-/package/{package_name}/dist-tags/{tag}", writePackages, a.setNPMTag, raw, summary("Create or update an npm package tag"))
	handle(a, "DELETE /packages/npm/-/package/{package_name}/dist-tags/{tag}", writePackages, a.deleteNPMTag, summary("Delete an npm package tag"))
	handle(a, "POST /packages/npm/-/npm/v1/security/advisories/bulk", readPackages, a.auditNPM, raw, audited, summary("Audit npm packages"))
	handle(a, "POST /packages/npm/-/npm/v1/security/audits/quick", readPackages, a.auditNPM, raw, audited, summary("Audit npm packages (quick)"))
}

type npmNameParams struct {
	Name string `param:"package_name" doc:"Name of the package, with its scope."`
}

type npmProjectParams struct {
	projectParams
	npmNameParams
}

// npmMetadataOfProject: https://docs.gitlab.com/api/packages/npm/#metadata
func (a *API) npmMetadataOfProject(c *call, p npmProjectParams) (streamed, error) {
	if name, file, ok := strings.Cut(p.Name, "/-/"); ok { // a file of a scoped package whose slash is not encoded
		return a.openNPM(c, p.Project, name, file)
	}
	return a.writeNPM(c, packages.Place{Project: p.Project}, p.Name)
}

type npmGroupParams struct {
	inGroupParams
	npmNameParams
}

// npmMetadataOfGroup: https://docs.gitlab.com/api/packages/npm/#metadata
func (a *API) npmMetadataOfGroup(c *call, p npmGroupParams) (streamed, error) {
	return a.writeNPM(c, packages.Place{Group: p.Group}, p.Name)
}

// npmMetadata: https://docs.gitlab.com/api/packages/npm/#metadata
func (a *API) npmMetadata(c *call, p npmNameParams) (streamed, error) {
	return a.writeNPM(c, packages.Place{}, p.Name)
}

// writeNPM streams the metadata of a package.
func (a *API) writeNPM(c *call, at packages.Place, name string) (streamed, error) {
	n, err := a.Packages.NPM(c, c.actor, at, name)
	if errs.Is(err, errs.KindNotFound) {
		settings, lost := a.Settings.Current(c)
		if lost != nil {
			return streamed{}, lost
		}
		if settings.NPMForwarding && c.r.URL.Query().Get("write") == "" {
			return a.redirect(c, http.StatusFound, "https://registry.npmjs.org/"+url.PathEscape(name))
		}
	}
	if err != nil {
		return streamed{}, err
	}
	return a.send(c, stream{media: "application/json", size: -1, write: func(w io.Writer) error { return a.encodeNPM(c, w, n) }})
}

// encodeNPM writes the metadata document of a package. The manifests of its versions
// are stored JSON objects, to which the fields _id and dist are added.
func (a *API) encodeNPM(c *call, w io.Writer, n *packages.NPMPackage) error {
	head, err := json.Marshal(map[string]any{"_id": n.Name, "_rev": n.Rev, "name": n.Name, "dist-tags": n.Tags})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, `%s,"versions":{`, head[:len(head)-1]); err != nil {
		return err
	}
	times := map[string]stamp{"created": toStamp(n.Created), "modified": toStamp(n.Modified)}
	comma := ""
	err = n.Each(c, func(v packages.NPMVersion) error {
		times[v.Version] = toStamp(v.CreatedAt)
		dist, err := json.Marshal(map[string]any{"_id": n.Name + "@" + v.Version, "dist": npmDistJSON{
			Shasum: v.SHA1, Integrity: v.Integrity,
			Tarball: fmt.Sprintf("%s%s/projects/%d/packages/npm/%s/-/%s", a.Site.URL, prefix, v.ProjectID, n.Name, v.File),
		}})
		if err != nil {
			return err
		}
		manifest := strings.TrimSuffix(v.Manifest, "}")
		if manifest != "{" {
			manifest += ","
		}
		_, err = fmt.Fprintf(w, "%s%q:%s%s", comma, v.Version, manifest, dist[1:])
		comma = ","
		return err
	})
	if err != nil {
		return err
	}
	tail, err := json.Marshal(times)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, `},"time":%s}`, tail)
	return err
}

type npmDistJSON struct {
	Shasum    string `json:"shasum"`
	Integrity string `json:"integrity,omitempty"`
	Tarball   string `json:"tarball"`
}

type npmFileParams struct {
	npmProjectParams
	File string `param:"file_name"`
}

// downloadNPM: https://docs.gitlab.com/api/packages/npm/#download-a-package
func (a *API) downloadNPM(c *call, p npmFileParams) (streamed, error) {
	return a.openNPM(c, p.Project, p.Name, p.File)
}

func (a *API) openNPM(c *call, ref project.Ref, name, file string) (streamed, error) {
	f, err := a.Packages.OpenNPM(c, c.actor, ref, name, file)
	if err != nil {
		return streamed{}, err
	}
	return a.sendPackage(c, f)
}

// publishNPM: https://docs.gitlab.com/api/packages/npm/#upload-a-package-file
func (a *API) publishNPM(c *call, p npmProjectParams) (packageDoneJSON, error) {
	if name, rev, ok := strings.Cut(p.Name, "/-rev/"); ok {
		return packageDoneJSON{"200 OK"}, a.Packages.UnpublishNPM(c, c.actor, p.Project, name, rev, bodyReader{c.r.Body})
	}
	_, err := a.Packages.PublishNPM(c, c.actor, p.Project, p.Name, bodyReader{c.r.Body})
	return packageDoneJSON{"200 OK"}, err
}

// unpublishNPM deletes a package, or the version that a file belongs to. It is an
// addition to the public API, for npm unpublish.
func (a *API) unpublishNPM(c *call, p npmProjectParams) (packageDoneJSON, error) {
	name, rev, ok := strings.Cut(p.Name, "/-rev/")
	if !ok {
		return packageDoneJSON{}, errs.NotFound("")
	}
	if name, file, ok := strings.Cut(name, "/-/"); ok {
		return packageDoneJSON{"200 OK"}, a.Packages.UnpublishNPMFile(c, c.actor, p.Project, name, file)
	}
	return packageDoneJSON{"200 OK"}, a.Packages.UnpublishNPM(c, c.actor, p.Project, name, rev, nil)
}

// npmPlaceEndpoints serves the tags of packages of projects or of groups.
type npmPlaceEndpoints struct {
	api     *API
	project bool
}

func (n npmPlaceEndpoints) at(ref project.Ref) packages.Place {
	if n.project {
		return packages.Place{Project: ref}
	}
	return packages.Place{Group: ref}
}

type npmPlaceParams struct {
	placeParams
	npmNameParams
}

// listTags: https://docs.gitlab.com/api/packages/npm/#list-tags
func (n npmPlaceEndpoints) listTags(c *call, p npmPlaceParams) (map[string]string, error) {
	return n.api.npmTags(c, n.at(p.Ref), p.Name)
}

type npmPlaceTagParams struct {
	npmPlaceParams
	Tag string `param:"tag"`
}

// setTag: https://docs.gitlab.com/api/packages/npm/#create-or-update-a-tag
func (n npmPlaceEndpoints) setTag(c *call, p npmPlaceTagParams) (none, error) {
	return n.api.putNPMTag(c, n.at(p.Ref), p.Name, p.Tag)
}

// deleteTag: https://docs.gitlab.com/api/packages/npm/#delete-a-tag
func (n npmPlaceEndpoints) deleteTag(c *call, p npmPlaceTagParams) (none, error) {
	return none{}, n.api.Packages.RemoveTag(c, c.actor, n.at(p.Ref), p.Name, p.Tag)
}

// audit redirects a request of npm audit to the npm registry, because svc does not
// store known vulnerabilities. NotFound if forwarding is disabled.
func (n npmPlaceEndpoints) audit(c *call, _ placeParams) (streamed, error) {
	return n.api.forwardAudit(c)
}

// listNPMTags: https://docs.gitlab.com/api/packages/npm/#list-tags
func (a *API) listNPMTags(c *call, p npmNameParams) (map[string]string, error) {
	return a.npmTags(c, packages.Place{}, p.Name)
}

type npmTagParams struct {
	npmNameParams
	Tag string `param:"tag"`
}

// setNPMTag: https://docs.gitlab.com/api/packages/npm/#create-or-update-a-tag
func (a *API) setNPMTag(c *call, p npmTagParams) (none, error) {
	return a.putNPMTag(c, packages.Place{}, p.Name, p.Tag)
}

// deleteNPMTag: https://docs.gitlab.com/api/packages/npm/#delete-a-tag
func (a *API) deleteNPMTag(c *call, p npmTagParams) (none, error) {
	return none{}, a.Packages.RemoveTag(c, c.actor, packages.Place{}, p.Name, p.Tag)
}

// auditNPM redirects a request of npm audit to the npm registry, because svc does
// not store known vulnerabilities. NotFound if forwarding is disabled.
func (a *API) auditNPM(c *call, _ struct{}) (streamed, error) { return a.forwardAudit(c) }

func (a *API) npmTags(c *call, at packages.Place, name string) (map[string]string, error) {
	n, err := a.Packages.NPM(c, c.actor, at, name)
	if err != nil {
		return nil, err
	}
	return n.Tags, nil
}

// maxTagBody is the maximum size of the body of a tag in bytes. The body is a
// version, as a JSON string or as plain text.
const maxTagBody = 1 << 10

func (a *API) putNPMTag(c *call, at packages.Place, name, tag string) (none, error) {
	text, err := bind.ReadWhole(c.r, c.w, maxTagBody)
	if err != nil {
		return none{}, err
	}
	version := strings.TrimSpace(text)
	if strings.HasPrefix(version, `"`) && json.Unmarshal([]byte(version), &version) != nil {
		return none{}, bind.Invalid("version is invalid")
	}
	if version == "" {
		return none{}, bind.Invalid("version is missing")
	}
	return none{}, a.Packages.SetTag(c, c.actor, at, name, tag, version)
}

func (a *API) forwardAudit(c *call) (streamed, error) {
	settings, err := a.Settings.Current(c)
	if err != nil {
		return streamed{}, err
	}
	if !settings.NPMForwarding {
		return streamed{}, errs.NotFound("Audit")
	}
	_, at, _ := strings.Cut(c.r.URL.Path, "/packages/npm/-/")
	return a.redirect(c, http.StatusTemporaryRedirect, "https://registry.npmjs.org/-/"+at)
}
