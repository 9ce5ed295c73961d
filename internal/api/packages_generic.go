package api

import (
	"fmt"
	"net/http"

	"svc/internal/packages"
)

func (a *API) genericPackageRoutes() {
	a.tag("Generic packages")
	const at = "/projects/{id}/packages/generic/{package_name}/{package_version}/{file_name*}"
	handle(a, "PUT "+at, writePackages, a.publishGeneric, raw, status(http.StatusCreated),
		returns(packageDoneJSON{}, genericFileJSON{}), summary("Publish a generic package file"))
	handle(a, "GET "+at, readPackages, a.downloadGeneric, badRange, summary("Download a generic package file"))
}

// genericFileParams identify a file of a generic package.
type genericFileParams struct {
	projectParams
	Name    string `param:"package_name"`
	Version string `param:"package_version"`
	File    string `param:"file_name" doc:"Name of the file, which may have directories."`
	jobTokenParam
}

func (p *genericFileParams) file() packages.GenericFile {
	return packages.GenericFile{Name: p.Name, Version: p.Version, Path: p.File}
}

type publishGenericParams struct {
	genericFileParams
	Status string `param:"status" enum:"default,hidden" doc:"Status of the package."`
	Select string `param:"select" enum:"package_file" doc:"With package_file the response is the file."`
}

// publishGeneric: https://docs.gitlab.com/user/packages/generic_packages/#publish-a-single-file
func (a *API) publishGeneric(c *call, p publishGenericParams) (any, error) {
	_, f, err := a.Packages.PublishGeneric(c, c.actor, p.Project, p.file(), packages.Status(p.Status), bodyReader{c.r.Body})
	if err != nil {
		return nil, err
	}
	if p.Select != "package_file" {
		return packageDoneJSON{"201 Created"}, nil
	}
	return genericFileJSON{
		ID: f.ID, PackageID: f.PackageID, CreatedAt: toStamp(f.CreatedAt), UpdatedAt: toStamp(f.CreatedAt), Size: f.Size, FileStore: 1,
		FileMD5: f.MD5, FileSHA1: f.SHA1, FileSHA256: f.SHA256, FileName: f.Name,
		File: genericFileURLJSON{fmt.Sprintf("%s%s/projects/%d/packages/generic/%s/%s/%s", a.Site.URL, prefix, f.ProjectID, p.Name, p.Version, f.Name)},
	}, nil
}

// downloadGeneric: https://docs.gitlab.com/user/packages/generic_packages/#download-a-single-file
func (a *API) downloadGeneric(c *call, p genericFileParams) (streamed, error) {
	f, err := a.Packages.OpenGeneric(c, c.actor, p.Project, p.file())
	if err != nil {
		return streamed{}, err
	}
	return a.sendPackage(c, f)
}

// genericFileJSON is a file of a generic package.
type genericFileJSON struct {
	ID         int64              `json:"id"`
	PackageID  int64              `json:"package_id"`
	CreatedAt  stamp              `json:"created_at"`
	UpdatedAt  stamp              `json:"updated_at"`
	Size       int64              `json:"size"`
	FileStore  int64              `json:"file_store"`
	FileMD5    string             `json:"file_md5"`
	FileSHA1   string             `json:"file_sha1"`
	FileSHA256 string             `json:"file_sha256"`
	FileName   string             `json:"file_name"`
	File       genericFileURLJSON `json:"file"`
	// Package files are not replicated, so none is verified: state 0.
	VerificationRetryAt    *stamp  `json:"verification_retry_at"`
	VerifiedAt             *stamp  `json:"verified_at"`
	VerificationFailure    *string `json:"verification_failure"`
	VerificationRetryCount *int64  `json:"verification_retry_count"`
	VerificationChecksum   *string `json:"verification_checksum"`
	VerificationState      int64   `json:"verification_state"`
	VerificationStartedAt  *stamp  `json:"verification_started_at"`
	NewFilePath            *string `json:"new_file_path"`
}

type genericFileURLJSON struct {
	URL string `json:"url"`
}
