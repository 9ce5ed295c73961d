package api

import (
	"io"
	"mime"
	"net/http"
	"path"

	"svc/internal/ci/artifact"
	"svc/internal/project"
)

func (a *API) jobArtifactRoutes() {
	a.tag("Job artifacts")
	open := readAPI.orAnonymous().orJob()
	handle(a, "GET /projects/{id}/jobs/{job_id}/artifacts", open, a.downloadArtifacts, badRange, summary("Download job artifacts by job ID"))
	handle(a, "GET /projects/{id}/jobs/{job_id}/artifacts/{artifact_path*}", open, a.downloadArtifactFile, summary("Download a single artifact file by job ID"))
	handle(a, "GET /projects/{id}/jobs/artifacts/{ref_name}/download", open, a.downloadArtifactsAt, badRange, summary("Download job artifacts by reference name"))
	handle(a, "GET /projects/{id}/jobs/artifacts/{ref_name}/raw/{artifact_path*}", open, a.downloadArtifactFileAt, summary("Download a single artifact file by reference name"))
	handle(a, "DELETE /projects/{id}/jobs/{job_id}/artifacts", writeAPI, a.deleteArtifacts, summary("Delete job artifacts"))
	handle(a, "DELETE /projects/{id}/artifacts", writeAPI, a.deleteAllArtifacts, summary("Delete all job artifacts in a project"))
}

// sendFile sends a stored archive, or the requested range of it.
func (a *API) sendFile(c *call, f *artifact.Content) (streamed, error) {
	defer f.Close()
	h := c.w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	h.Set("ETag", f.ETag)
	h["Cache-Control"] = revalidate
	http.ServeContent(c.w, c.r, "", f.ModTime, f)
	return streamed{}, nil
}

type downloadArtifactsParams struct {
	jobOfParams
	jobTokenParam
}

// jobTokenParam documents that the job token is accepted in the query.
type jobTokenParam struct {
	JobToken string `param:"job_token" secret:"true" doc:"CI/CD job token."`
}

// downloadArtifacts: https://docs.gitlab.com/api/job_artifacts/#get-job-artifacts
func (a *API) downloadArtifacts(c *call, p downloadArtifactsParams) (streamed, error) {
	f, err := a.CI.Archive(c, c.actor, p.Project, p.JobID)
	if err != nil {
		return streamed{}, err
	}
	return a.sendFile(c, f)
}

type artifactFileParams struct {
	jobOfParams
	Path string `param:"artifact_path" doc:"Path of the file in the artifacts archive."`
	jobTokenParam
}

// downloadArtifactFile: https://docs.gitlab.com/api/job_artifacts/#download-a-single-artifact-file-by-job-id
func (a *API) downloadArtifactFile(c *call, p artifactFileParams) (streamed, error) {
	f, err := a.CI.ArtifactEntry(c, c.actor, p.Project, p.JobID, p.Path)
	if err != nil {
		return streamed{}, err
	}
	return a.sendEntry(c, f)
}

// sendEntry sends a file of an archive as an attachment. The file is untrusted, so
// the browser must not render it.
func (a *API) sendEntry(c *call, f *artifact.Entry) (streamed, error) {
	defer f.Close()
	return a.sendAttachment(c, f.Name, f.Size, f)
}

// sendAttachment sends an untrusted file as an attachment.
func (a *API) sendAttachment(c *call, name string, size int64, content io.Reader) (streamed, error) {
	media := mime.TypeByExtension(path.Ext(name))
	if media == "" || !knownMedia(media) {
		media = "application/octet-stream"
	}
	return a.send(c, stream{
		media: media, size: size, name: mime.FormatMediaType("attachment", map[string]string{"filename": name}),
		write: func(w io.Writer) error {
			_, err := io.Copy(w, content)
			return err
		},
	})
}

// knownMedia reports whether a media type is known to have no active content.
func knownMedia(media string) bool {
	name, _, err := mime.ParseMediaType(media)
	if err != nil {
		return false
	}
	switch name {
	case "text/plain", "application/json", "image/png", "image/jpeg", "image/gif", "application/pdf", "text/css", "text/csv", "application/zip", "application/gzip":
		return true
	}
	return false
}

type artifactsAtParams struct {
	Project project.Ref `param:"id" doc:"Project ID or full path."`
	Ref     string      `param:"ref_name" doc:"Branch or tag."`
	Job     string      `param:"job,required" doc:"Name of the job."`
	jobTokenParam
}

// downloadArtifactsAt: https://docs.gitlab.com/api/job_artifacts/#download-job-artifacts-from-latest-successful-pipeline
func (a *API) downloadArtifactsAt(c *call, p artifactsAtParams) (streamed, error) {
	f, err := a.CI.ArchiveAt(c, c.actor, p.Project, p.Ref, p.Job)
	if err != nil {
		return streamed{}, err
	}
	return a.sendFile(c, f)
}

type artifactFileAtParams struct {
	artifactsAtParams
	Path string `param:"artifact_path" doc:"Path of the file in the artifacts archive."`
}

// downloadArtifactFileAt: https://docs.gitlab.com/api/job_artifacts/#download-a-single-artifact-file-from-specific-tag-or-branch
func (a *API) downloadArtifactFileAt(c *call, p artifactFileAtParams) (streamed, error) {
	f, err := a.CI.ArtifactEntryAt(c, c.actor, p.Project, p.Ref, p.Job, p.Path)
	if err != nil {
		return streamed{}, err
	}
	return a.sendEntry(c, f)
}

// deleteArtifacts: https://docs.gitlab.com/api/job_artifacts/#delete-job-artifacts
func (a *API) deleteArtifacts(c *call, p jobOfParams) (none, error) {
	return none{}, a.CI.DeleteArtifacts(c, c.actor, p.Project, p.JobID)
}

// deleteAllArtifacts: https://docs.gitlab.com/api/job_artifacts/#delete-project-artifacts
func (a *API) deleteAllArtifacts(c *call, p projectParams) (accepted, error) {
	return accepted{}, a.CI.DeleteAllArtifacts(c, c.actor, p.Project)
}
