package api

import (
	"path"
	"strconv"
	"strings"

	"svc/internal/bind"
	"svc/internal/upload"
)

func (a *API) projectUploadRoutes() {
	a.tag("Project uploads")
	const at = "/projects/{id}/uploads"
	handle(a, "POST "+at, writeAPI, a.createUpload, files(upload.MaxSize), summary("Upload a file to a project"))
	handle(a, "GET "+at, readAPI, a.listUploads, summary("List uploads of a project"))
	handle(a, "GET "+at+"/{upload_id}", readAPI, a.downloadUpload, summary("Download an uploaded file by ID"))
	handle(a, "GET "+at+"/{secret}/{filename}", readAPI.orAnonymous(), a.downloadSecretUpload, summary("Download an uploaded file by secret and filename"))
	handle(a, "DELETE "+at+"/{upload_id}", writeAPI, a.deleteUpload, summary("Delete an uploaded file by ID"))
	handle(a, "DELETE "+at+"/{secret}/{filename}", writeAPI, a.deleteSecretUpload, summary("Delete an uploaded file by secret and filename"))
}

type uploadedJSON struct {
	ID       int64  `json:"id"`
	Alt      string `json:"alt"`
	URL      string `json:"url"`
	FullPath string `json:"full_path"`
	Markdown string `json:"markdown"`
}

func toUploaded(u *upload.Upload) uploadedJSON {
	name, mark := u.Name, ""
	if upload.IsMedia(u.Name) {
		name, mark = strings.TrimSuffix(u.Name, path.Ext(u.Name)), "!"
	}
	alt := strings.NewReplacer("[", "", "]", "", "\\", "").Replace(name)
	return uploadedJSON{
		ID: u.ID, Alt: alt, URL: u.Path(), FullPath: "/-/project/" + strconv.FormatInt(u.ProjectID, 10) + u.Path(),
		Markdown: mark + "[" + alt + "](" + u.Path() + ")",
	}
}

type createUploadParams struct {
	projectParams
	File *bind.Upload `param:"file,required"`
}

// createUpload: https://docs.gitlab.com/api/project_markdown_uploads/#upload-a-file
func (a *API) createUpload(c *call, p createUploadParams) (uploadedJSON, error) {
	u, err := a.Uploads.Add(c, c.actor, p.Project, p.File.Name, p.File.Size, p.File.Open())
	if err != nil {
		return uploadedJSON{}, err
	}
	return toUploaded(u), nil
}

type uploadRowJSON struct {
	ID           int64           `json:"id"`
	Size         int64           `json:"size"`
	Filename     string          `json:"filename"`
	CreatedAt    stamp           `json:"created_at"`
	UploadedByID *int64          `json:"uploaded_by_id"`
	UploadedBy   *userPublicJSON `json:"uploaded_by"`
}

type listUploadsParams struct {
	projectParams
	pageParams
}

// listUploads: https://docs.gitlab.com/api/project_markdown_uploads/#list-uploads
func (a *API) listUploads(c *call, p listUploadsParams) (page[uploadRowJSON], error) {
	list, err := a.Uploads.List(c, c.actor, p.Project, p.paging())
	if err != nil {
		return page[uploadRowJSON]{}, err
	}
	var ids []int64
	for _, u := range list.Items {
		if u.AuthorID != nil {
			ids = append(ids, *u.AuthorID)
		}
	}
	users, err := a.Users.FindAll(c, ids)
	if err != nil {
		return page[uploadRowJSON]{}, err
	}
	now := a.Now()
	return offsetPage(p.pageParams, list, func(u *upload.Upload) uploadRowJSON {
		row := uploadRowJSON{ID: u.ID, Size: u.Size, Filename: u.Name, CreatedAt: toStamp(u.CreatedAt), UploadedByID: u.AuthorID}
		if u.AuthorID != nil {
			row.UploadedBy = toUserOrNull(c.site, users[*u.AuthorID], now)
		}
		return row
	}), nil
}

type uploadedParams struct {
	projectParams
	Upload int64 `param:"upload_id"`
}

type secretUploadParams struct {
	projectParams
	Secret string `param:"secret"`
	Name   string `param:"filename" doc:"No effect: the secret identifies the upload."`
}

// downloadUpload: https://docs.gitlab.com/api/project_markdown_uploads/#download-an-uploaded-file-by-id
func (a *API) downloadUpload(c *call, p uploadedParams) (streamed, error) {
	return a.sendUpload(c, p.projectParams, p.Upload, "")
}

// downloadSecretUpload: https://docs.gitlab.com/api/project_markdown_uploads/#download-an-uploaded-file-by-secret-and-filename
func (a *API) downloadSecretUpload(c *call, p secretUploadParams) (streamed, error) {
	return a.sendUpload(c, p.projectParams, 0, p.Secret)
}

// sendUpload sends a file. The file is untrusted, so the browser must not render it
// as a page.
func (a *API) sendUpload(c *call, p projectParams, id int64, secret string) (streamed, error) {
	u, file, err := a.Uploads.Open(c, c.actor, p.Project, id, secret)
	if err != nil {
		return streamed{}, err
	}
	defer file.Close()
	return a.sendAttachment(c, u.Name, u.Size, file)
}

// deleteUpload: https://docs.gitlab.com/api/project_markdown_uploads/#delete-an-uploaded-file-by-id
func (a *API) deleteUpload(c *call, p uploadedParams) (none, error) {
	return none{}, a.Uploads.Delete(c, c.actor, p.Project, p.Upload, "")
}

// deleteSecretUpload: https://docs.gitlab.com/api/project_markdown_uploads/#delete-an-uploaded-file-by-secret-and-filename
func (a *API) deleteSecretUpload(c *call, p secretUploadParams) (none, error) {
	return none{}, a.Uploads.Delete(c, c.actor, p.Project, 0, p.Secret)
}
