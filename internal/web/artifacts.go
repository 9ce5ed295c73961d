package web

import (
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strconv"
	"strings"

	"svc/internal/ci"
	"svc/internal/project"
)

func (w *Web) artifactPages() {
	w.projectPage("GET jobs/artifacts/*", anyone, w.latestArtifacts)
	w.projectPage("GET jobs/{id}/artifacts/browse", anyone, w.browseArtifacts)
	w.projectPage("GET jobs/{id}/artifacts/browse/*", anyone, w.browseArtifacts)
	w.projectPage("GET jobs/{id}/artifacts/file/*", anyone, w.artifactFile)
	w.projectPage("GET jobs/{id}/artifacts/raw/*", anyone, w.rawArtifact)
	w.projectPage("GET jobs/{id}/artifacts/download", anyone, w.downloadArtifacts)
	w.projectPage("POST jobs/{id}/artifacts/keep", signedIn, w.keepArtifacts)
	w.projectPage("POST jobs/{id}/artifacts/delete", signedIn, w.deleteArtifacts)
}

// artifactsPage is a directory of the archive of a job.
type artifactsPage struct {
	ciHead
	*ci.ArtifactDir
	Path  string
	Steps []crumb
}

func (artifactsPage) view() string { return "project/artifacts" }
func (p artifactsPage) title() string {
	return fmt.Sprintf("Artifacts of %s (#%d) · %s", p.Job.Name, p.Job.ID, p.Project.FullName())
}

func (w *Web) browseArtifacts(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	h, err := w.ciHead(v, ref, "jobs")
	if err != nil {
		return err
	}
	p := artifactsPage{ciHead: h, Path: strings.Trim(v.rest(), "/")}
	p.Steps = steps(p.Path)
	if p.ArtifactDir, err = w.CI.ArtifactTree(v, v.actor, h.in(), id, p.Path); err != nil {
		return err
	}
	return v.show(p)
}

// artifactPage is a file of the archive of a job.
type artifactPage struct {
	ciHead
	ID       int64
	Path     string
	Steps    []crumb
	Size     int64
	Source   template.HTML
	Image    bool
	Binary   bool
	TooLarge bool
}

func (artifactPage) view() string    { return "project/artifact" }
func (p artifactPage) title() string { return p.Path + " · " + p.Project.FullName() }

// maxArtifact is the maximum size of a file in an archive that is shown on a
// page.
const maxArtifact = 128 << 10

func (w *Web) artifactFile(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	h, err := w.ciHead(v, ref, "jobs")
	if err != nil {
		return err
	}
	p := artifactPage{ciHead: h, ID: id, Path: strings.Trim(v.rest(), "/")}
	p.Steps = steps(p.Path)
	f, err := w.CI.ArtifactEntry(v, v.actor, h.in(), id, p.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	p.Size, p.Image = f.Size, imageKind(p.Path) != ""
	if p.TooLarge = f.Size > maxArtifact; p.TooLarge || p.Image {
		return v.show(p)
	}
	// The file may be larger than the archive says.
	b, err := io.ReadAll(io.LimitReader(f, maxArtifact))
	if err != nil {
		return err
	}
	if p.Binary = strings.ContainsRune(string(b), 0); !p.Binary {
		lines, err := w.highlighted(v, p.Path, strings.ToValidUTF8(string(b), "\uFFFD"), "")
		if err != nil {
			return err
		}
		p.Source = anchored(lines, excerpt{First: 1, Last: len(lines)})
	}
	return v.show(p)
}

// rawArtifact sends a file of an archive so that browsers never treat it as a
// page of this site: its content comes from a job.
func (w *Web) rawArtifact(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	f, err := w.CI.ArtifactEntry(v, v.actor, ref, id, strings.Trim(v.rest(), "/"))
	if err != nil {
		return err
	}
	defer f.Close()
	h := v.w.Header()
	foreignFile(h, f.Name, "private, max-age=60")
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	v.w.WriteHeader(http.StatusOK)
	if n, err := io.Copy(v.w, f); err != nil || n != f.Size {
		panic(http.ErrAbortHandler) // aborts the response, so that the client notices that the file is incomplete
	}
	return nil
}

func (w *Web) downloadArtifacts(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	f, err := w.CI.Archive(v, v.actor, ref, id)
	if err != nil {
		return err
	}
	defer f.Close()
	h := v.w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", disposition("attachment", f.Name))
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", f.ETag)
	http.ServeContent(v.w, v.r, "", f.ModTime, f)
	return nil
}

func (w *Web) keepArtifacts(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if _, err := w.CI.KeepArtifacts(v, v.actor, ref, id); err != nil {
		return err
	}
	return w.doneWith(v, ref, "The artifacts will be kept.", "jobs/%d", id)
}

func (w *Web) deleteArtifacts(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if err := w.CI.DeleteArtifacts(v, v.actor, ref, id); err != nil {
		return err
	}
	return w.doneWith(v, ref, "The artifacts were deleted.", "jobs/%d", id)
}
