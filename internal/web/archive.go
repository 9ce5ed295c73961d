package web

import (
	"net/http"
	"strings"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) archivePages() {
	w.projectPage("GET archive/*", anyone, w.archive)
}

// archiveForms are the formats of archives, by file extension.
func archiveForms() []struct {
	Form  git.ArchiveFormat
	Media string
} {
	return []struct {
		Form  git.ArchiveFormat
		Media string
	}{
		{git.Zip, "application/zip"},
		{git.TarGz, "application/gzip"},
		{git.TarBz2, "application/x-bzip2"},
		{git.Tar, "application/x-tar"},
	}
}

// refOf is a revision of a project, for templates.
type refOf struct {
	Project *project.Project
	Ref     string
}

// archive sends the files of a revision: archive/main/engine-main.tar.gz.
func (w *Web) archive(v *visit, ref project.Ref) error {
	if err := v.acceptToken(); err != nil {
		return err
	}
	at := strings.LastIndexByte(v.rest(), '/')
	if at < 1 {
		return errs.NotFound("")
	}
	rev, name := v.rest()[:at], v.rest()[at+1:]
	for _, f := range archiveForms() {
		if !strings.HasSuffix(name, "."+string(f.Form)) {
			continue
		}
		found, err := w.Repos.Archive(v, v.actor, ref, repo.ArchiveOptions{Ref: rev, Path: v.param("path"), Format: f.Form})
		if err != nil {
			return err
		}
		h := v.w.Header()
		h.Set("Content-Type", f.Media)
		h.Set("Content-Disposition", disposition("attachment", found.Name+"."+string(f.Form)))
		h.Set("Cache-Control", "private, no-cache")
		out := &begun{ResponseWriter: v.w}
		if err := found.Write(v, out); err != nil {
			if !out.yes {
				h.Del("Content-Disposition")
				return err
			}
			panic(http.ErrAbortHandler) // aborts the response, so that the client notices that the archive is incomplete
		}
		return nil
	}
	return errs.NotFound("")
}

// begun records whether a part of the response was sent.
type begun struct {
	http.ResponseWriter
	yes bool
}

// Write implements io.Writer.
func (b *begun) Write(p []byte) (int, error) {
	b.yes = true
	return b.ResponseWriter.Write(p)
}
