package api

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"

	"svc/internal/bind"
	"svc/internal/errs"
	"svc/internal/packages"
	"svc/internal/packages/pypi"
	"svc/internal/project"
)

func (a *API) pypiPackageRoutes() {
	a.tag("PyPI packages")
	forwarded := response(http.StatusFound, "The package is not found and requests are forwarded.", messageJSON{})
	handle(a, "POST /projects/{id}/packages/pypi", writePackages, a.publishPyPI, filesWithin(a.maxPyPI), summary("Publish a PyPI package"))
	for _, in := range []struct {
		path, kind string
		project    bool
	}{{"/projects/{id}/packages/pypi", "project", true}, {"/groups/{id}/-/packages/pypi", "group", false}} {
		e := pypiEndpoints{a, in.project}
		handle(a, "GET "+in.path+"/simple", readPackages, e.index, summary("Get the simple index of PyPI packages of a "+in.kind))
		handle(a, "GET "+in.path+"/simple/{package_name*}", readPackages, e.files, forwarded, summary("Get the files of a PyPI package of a "+in.kind))
		handle(a, "GET "+in.path+"/files/{sha256}/{file_identifier*}", readPackages, e.download, badRange, summary("Download a PyPI package file of a "+in.kind))
	}
}

// maxPyPI returns the limit of an upload in bytes. It is called before the body is
// read and also checks the permission to publish, so that a request without it is
// rejected before its body is sent.
func (a *API) maxPyPI(ctx context.Context) (int64, error) {
	if c, ok := ctx.(*call); ok {
		ref, _ := c.pathParam("id")
		if err := a.Packages.MayPublish(c, c.actor, project.Ref(ref)); err != nil {
			return 0, err
		}
	}
	settings, err := a.Settings.Current(ctx)
	return int64(settings.MaxPyPIMegabytes) << 20, err
}

type publishPyPIParams struct {
	projectParams
	Content        *bind.Upload `param:"content,required" doc:"The distribution."`
	Name           string       `param:"name,required"`
	Version        string       `param:"version,required"`
	RequiresPython string       `param:"requires_python"`
	Summary        string       `param:"summary"`
	SHA256         string       `param:"sha256_digest"`
	MD5            string       `param:"md5_digest"`
}

// publishPyPI: https://docs.gitlab.com/api/packages/pypi/#upload-a-package
func (a *API) publishPyPI(c *call, p publishPyPIParams) (packageDoneJSON, error) {
	_, err := a.Packages.PublishPyPI(c, c.actor, p.Project, packages.PyPIUpload{
		Name: p.Name, Version: p.Version, Filename: p.Content.Name, RequiresPython: p.RequiresPython, Summary: p.Summary,
		SHA256: p.SHA256, MD5: p.MD5, Content: p.Content.Open(),
	})
	return packageDoneJSON{"201 Created"}, err
}

// pypiEndpoints serves the packages of projects or of groups.
type pypiEndpoints struct {
	api     *API
	project bool
}

func (e pypiEndpoints) at(ref project.Ref) packages.Place {
	if e.project {
		return packages.Place{Project: ref}
	}
	return packages.Place{Group: ref}
}

// root returns the URL of the PyPI endpoints of a project or group.
func (e pypiEndpoints) root(ref project.Ref) string {
	if e.project {
		return e.api.Site.URL + prefix + "/projects/" + url.PathEscape(string(ref)) + "/packages/pypi"
	}
	return e.api.Site.URL + prefix + "/groups/" + url.PathEscape(string(ref)) + "/-/packages/pypi"
}

// index: https://docs.gitlab.com/api/packages/pypi/#project-level-simple-api-index
func (e pypiEndpoints) index(c *call, p placeParams) (streamed, error) {
	each, err := e.api.Packages.PyPIIndex(c, c.actor, e.at(p.Ref))
	if err != nil {
		return streamed{}, err
	}
	return e.api.sendSimple(c, "Simple index", func(link func(string, ...any) error) error {
		return each(func(name string) error {
			return link(`<a href="%s/simple/%s/">%s</a><br>`, e.root(p.Ref), url.PathEscape(name), html.EscapeString(name))
		})
	})
}

type pypiNameParams struct {
	placeParams
	Name string `param:"package_name"`
}

// files: https://docs.gitlab.com/api/packages/pypi/#project-level-simple-api-entry-point
func (e pypiEndpoints) files(c *call, p pypiNameParams) (streamed, error) {
	name := strings.TrimSuffix(p.Name, "/")
	if name == "" { // the index with a trailing slash
		return e.index(c, p.placeParams)
	}
	each, err := e.api.Packages.PyPIFiles(c, c.actor, e.at(p.Ref), name)
	if errs.Is(err, errs.KindNotFound) && pypi.CheckName(name) == nil {
		settings, lost := e.api.Settings.Current(c)
		if lost != nil {
			return streamed{}, lost
		}
		if settings.PyPIForwarding {
			return e.api.redirect(c, http.StatusFound, "https://pypi.org/simple/"+url.PathEscape(name)+"/")
		}
	}
	if err != nil {
		return streamed{}, err
	}
	return e.api.sendSimple(c, "Links for "+name, func(link func(string, ...any) error) error {
		return each(func(f packages.PyPIFile) error {
			requires := ""
			if f.RequiresPython != "" {
				requires = ` data-requires-python="` + html.EscapeString(f.RequiresPython) + `"`
			}
			return link(`<a href="%s%s/projects/%d/packages/pypi/files/%s/%s#sha256=%s"%s>%s</a><br>`,
				e.api.Site.URL, prefix, f.ProjectID, f.SHA256, url.PathEscape(f.Name), f.SHA256, requires, html.EscapeString(f.Name))
		})
	})
}

// sendSimple streams a page of the simple repository API.
func (a *API) sendSimple(c *call, title string, links func(link func(string, ...any) error) error) (streamed, error) {
	return a.send(c, stream{media: "text/html; charset=utf-8", size: -1, write: func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "<!DOCTYPE html>\n<html>\n<head>\n<meta name=\"pypi:repository-version\" content=\"1.0\">\n<title>%s</title>\n</head>\n<body>\n<h1>%[1]s</h1>\n", html.EscapeString(title))
		if err != nil {
			return err
		}
		err = links(func(format string, args ...any) error {
			_, err := fmt.Fprintf(w, format+"\n", args...)
			return err
		})
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, "</body>\n</html>\n")
		return err
	}})
}

type pypiFileParams struct {
	placeParams
	SHA256 string `param:"sha256"`
	File   string `param:"file_identifier" doc:"Name of the file."`
}

// download: https://docs.gitlab.com/api/packages/pypi/#download-a-package-file-from-a-project
func (e pypiEndpoints) download(c *call, p pypiFileParams) (streamed, error) {
	f, err := e.api.Packages.OpenPyPI(c, c.actor, e.at(p.Ref), p.SHA256, p.File)
	if err != nil {
		return streamed{}, err
	}
	return e.api.sendPackage(c, f)
}
