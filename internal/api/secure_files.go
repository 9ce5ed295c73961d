package api

import (
	"svc/internal/bind"
	"svc/internal/securefile"
)

func (a *API) secureFileRoutes() {
	a.tag("Secure files")
	const all, one = "/projects/{id}/secure_files", "/projects/{id}/secure_files/{secure_file_id}"
	read, write := readAPI.orJob(), writeAPI.orJob()
	handle(a, "GET "+all, read, a.listSecureFiles, summary("List project secure files"))
	handle(a, "POST "+all, write, a.createSecureFile, files(securefile.MaxSize), summary("Create secure file"))
	handle(a, "GET "+one, read, a.getSecureFile, summary("Get a secure file"))
	handle(a, "GET "+one+"/download", read, a.downloadSecureFile, summary("Download secure file"))
	handle(a, "DELETE "+one, write, a.deleteSecureFile, summary("Remove secure file"))
}

type secureFileJSON struct {
	ID        int64   `json:"id"`
	Name      string  `json:"name"`
	Checksum  string  `json:"checksum"`
	Algorithm string  `json:"checksum_algorithm"`
	CreatedAt stamp   `json:"created_at"`
	ExpiresAt *stamp  `json:"expires_at" doc:"Always null: the content of files is not read."`
	Metadata  *string `json:"metadata" doc:"Always null: the content of files is not read."`
	Extension *string `json:"file_extension"`
}

func toSecureFile(f *securefile.File) secureFileJSON {
	return secureFileJSON{
		ID: f.ID, Name: f.Name, Checksum: f.SHA256, Algorithm: "sha256", CreatedAt: toStamp(f.CreatedAt), Extension: textOrNull(f.Extension()),
	}
}

type listSecureFilesParams struct {
	projectParams
	pageParams
}

// listSecureFiles: https://docs.gitlab.com/api/secure_files/#list-project-secure-files
func (a *API) listSecureFiles(c *call, p listSecureFilesParams) (page[secureFileJSON], error) {
	return offsetList(p.pageParams, toSecureFile)(a.SecureFiles.List(c, c.actor, p.Project, p.paging()))
}

type createSecureFileParams struct {
	projectParams
	Name string       `param:"name,required" doc:"Name of the file, unique in the project."`
	File *bind.Upload `param:"file,required" doc:"The file, at most 5 MB."`
}

// createSecureFile: https://docs.gitlab.com/api/secure_files/#create-secure-file
func (a *API) createSecureFile(c *call, p createSecureFileParams) (secureFileJSON, error) {
	return presentAs(toSecureFile)(a.SecureFiles.Create(c, c.actor, p.Project, p.Name, p.File.Size, p.File.Open()))
}

type secureFileParams struct {
	projectParams
	ID int64 `param:"secure_file_id"`
}

// getSecureFile: https://docs.gitlab.com/api/secure_files/#show-secure-file-details
func (a *API) getSecureFile(c *call, p secureFileParams) (secureFileJSON, error) {
	return presentAs(toSecureFile)(a.SecureFiles.Get(c, c.actor, p.Project, p.ID))
}

// downloadSecureFile: https://docs.gitlab.com/api/secure_files/#download-secure-file
func (a *API) downloadSecureFile(c *call, p secureFileParams) (streamed, error) {
	f, content, err := a.SecureFiles.Open(c, c.actor, p.Project, p.ID)
	if err != nil {
		return streamed{}, err
	}
	defer content.Close()
	return a.sendAttachment(c, f.Name, f.Size, content)
}

// deleteSecureFile: https://docs.gitlab.com/api/secure_files/#remove-secure-file
func (a *API) deleteSecureFile(c *call, p secureFileParams) (none, error) {
	return none{}, a.SecureFiles.Delete(c, c.actor, p.Project, p.ID)
}
