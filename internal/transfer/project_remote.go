package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"svc/internal/actor"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/secret"
	"svc/internal/transfer/archive"
	"svc/internal/transfer/remote"
)

// RemoteFile is where an export file is fetched from: a URL, or an object in S3.
type RemoteFile struct {
	URL    string        `json:"url,omitempty"`
	Object *blob.Foreign `json:"object,omitempty"`
}

// Upload is where the file of an export is sent to.
type Upload struct {
	URL    string `json:"url"`
	Method string `json:"method"` // PUT, also if empty, or POST
}

// maxRemoteFile is the maximum size of a file that is fetched.
//
// See https://docs.gitlab.com/api/project_import_export/#import-a-file-from-a-remote-object-storage.
const maxRemoteFile = 10 << 30

// RemoteImportWork fetches the file of a project import in the background, before
// ProjectImportWork.
type RemoteImportWork ImportWork

// Kind implements queue.Work.
func (RemoteImportWork) Kind() string { return "transfer_remote_import" }

// ProjectUploadWork is ProjectExportWork for an export whose file is also sent
// somewhere. It has its own kind, because nodes of older releases do not send files.
type ProjectUploadWork ExportWork

// Kind implements queue.Work.
func (ProjectUploadWork) Kind() string { return "transfer_project_upload" }

// fileSourcePlace and uploadPlace bind sealed values to their rows.
func fileSourcePlace(id int64) string { return fmt.Sprintf("project_file_imports.source %d", id) }
func uploadPlace(id int64) string     { return fmt.Sprintf("project_exports.upload %d", id) }

// checkFileURL returns the host of a URL that a user wants the server to request. Invalid
// if it is not a URL, or leads to the local network.
func (s *Service) checkFileURL(ctx context.Context, field, address string) (string, error) {
	u, err := remote.ParseFileURL(address)
	if refusal, ok := errs.As(err); ok {
		return "", errs.InvalidField(field, "%s", refusal.Text)
	}
	policy, err := s.policy(ctx)
	if err != nil {
		return "", err
	}
	if !policy.MayReach(u) {
		return "", errs.InvalidField(field, "is blocked: requests to the local network are not allowed")
	}
	return u.Host, nil
}

// checkUpload returns the host of an upload. Invalid.
func (s *Service) checkUpload(ctx context.Context, to *Upload) (string, error) {
	switch to.Method {
	case "":
		to.Method = http.MethodPut
	case http.MethodPut, http.MethodPost:
	default:
		return "", errs.InvalidField("upload[http_method]", "does not have a valid value")
	}
	return s.checkFileURL(ctx, "upload[url]", to.URL)
}

// sealUpload saves where the file of an export is sent to.
func (s *Service) sealUpload(ctx context.Context, tx *db.Tx, e *Export, to *Upload) error {
	text, err := json.Marshal(to)
	if err != nil {
		return err
	}
	e.upload = s.Keys.Seal(text, uploadPlace(e.ID))
	return saveUpload(ctx, tx, e)
}

// StartRemoteImport is StartProjectImport for a file that the server fetches in the
// background. The file is not requested before this returns: what is wrong with it is
// the error of the import. Secrets are stored encrypted, until the file is there or the
// import has ended. Invalid for a URL that requests may not reach.
func (s *Service) StartRemoteImport(ctx context.Context, by actor.Actor, n NewProjectImport, from RemoteFile) (*Import, *project.Project, error) {
	i, to, err := s.newProjectImport(ctx, by, n)
	if err != nil {
		return nil, nil, err
	}
	message := "Project import from S3 started"
	if from.Object != nil {
		err = from.Object.Check()
	} else {
		var host string
		host, err = s.checkFileURL(ctx, "url", from.URL)
		message = "Project import from " + host + " started"
	}
	if err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(from)
	if err != nil {
		return nil, nil, err
	}
	i.UserID, i.State, i.CreatedAt, i.file = &by.ID, Queued, s.Now(), "transfer/imports/"+secret.Token("")+".tar.gz"
	var p *project.Project
	err = s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		if err := insertImport(ctx, tx, i); err != nil {
			return err
		}
		i.source = s.Keys.Seal(text, fileSourcePlace(i.ID))
		if err := saveSource(ctx, tx, i); err != nil {
			return err
		}
		if p, err = s.beginProjectImport(ctx, tx, by, i, to, message); err != nil {
			return err
		}
		if err := admit(ctx, tx, by); err != nil {
			return err
		}
		return s.Queue.Add(ctx, tx, RemoteImportWork{i.ID}, queue.In(remoteLane), queue.Tries(maxTries+1))
	})
	if err != nil {
		return nil, nil, fmt.Errorf("start import: %w", err)
	}
	return i, p, nil
}

// RunRemoteImport fetches the file of an import.
func (s *Service) RunRemoteImport(ctx context.Context, w RemoteImportWork) error {
	i, err := findImport(ctx, s.DB, true, w.ImportID)
	if err != nil || i == nil || !i.Fetching() {
		return err
	}
	i.join()
	canceled := func(err error) error {
		if isNoRows(err) || err != nil && isNoRows(importGoing(ctx, s.DB, i)) {
			return errEnded
		}
		return err
	}
	return s.run(ctx, task{
		name: fmt.Sprintf("fetch the file of import %d", i.ID), tries: &i.tries,
		begin: func(ctx context.Context) error {
			err := startImport(ctx, s.DB, i)
			if err == nil {
				i.join()
			}
			return canceled(err)
		},
		do: func(ctx context.Context) error {
			err := s.fetch(ctx, i)
			if err != nil && isNoRows(attemptGoing(ctx, s.DB, i)) {
				return errEnded
			}
			return canceled(err)
		},
		fail: func(ctx context.Context, why string) error {
			if err := s.failImport(ctx, i, why); !isNoRows(err) {
				return err
			}
			return nil // it was canceled
		},
	})
}

// fetch stores the file of an import and adds the job that imports it.
func (s *Service) fetch(ctx context.Context, i *Import) error {
	if _, err := s.as(ctx, i.UserID); err != nil {
		return err
	}
	text, err := s.Keys.Open(i.source, fileSourcePlace(i.ID))
	if err != nil {
		return err
	}
	var from RemoteFile
	if err := json.Unmarshal(text, &from); err != nil {
		return err
	}
	policy, err := s.policy(ctx)
	if err != nil {
		return err
	}
	within, t := remote.NewTransfer(ctx, policy, s.Limits.Stall)
	defer t.Close()
	size, err := s.fetchFile(within, i, t, from)
	if err != nil {
		if storing, ok := errors.AsType[*storeError](err); ok && ctx.Err() == nil && within.Err() == nil {
			return storing.cause
		}
		return t.Failure(ctx, within, err)
	}
	i.Total = 2 * size
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := endFetch(ctx, tx, i); err != nil {
			return err
		}
		return s.Queue.Add(ctx, tx, i.work(), queue.In(lane), queue.Tries(maxTries+1))
	})
	if isNoRows(err) && isNoRows(importGoing(ctx, s.DB, i)) { // canceled: no one else knows that there is a file
		return errors.Join(err, s.Blobs.Delete(context.WithoutCancel(ctx), i.file))
	}
	return err
}

// storeError is an error of the object storage, not of the server that sends the file.
type storeError struct{ cause error }

// Error implements error.
func (e *storeError) Error() string { return e.cause.Error() }

// fetchFile stores the file of an import and returns its size.
func (s *Service) fetchFile(ctx context.Context, i *Import, t *remote.Transfer, from RemoteFile) (size int64, err error) {
	most, err := s.Limit(ctx)
	if err != nil {
		return 0, err
	}
	if most == 0 || most > maxRemoteFile {
		most = maxRemoteFile
	}
	var body io.ReadCloser
	if from.Object != nil {
		object := *from.Object
		object.Endpoint = s.S3Endpoint
		body, size, err = blob.OpenForeign(ctx, object, t.Client())
	} else {
		body, size, err = t.Get(ctx, from.URL)
	}
	if err != nil {
		return 0, err
	}
	defer body.Close()
	if size == 0 {
		return 0, errs.Invalid("The file is empty.")
	}
	if size > most {
		return 0, tooLarge(most)
	}
	i.Total = size
	total := size // size is the result, and may be written while progress is saved
	m := s.measure(ctx, func(ctx context.Context, done int64) error {
		if err := attemptGoing(ctx, s.DB, i); isNoRows(err) {
			body.Close() // it was canceled
			return nil
		}
		return saveProgress(ctx, s.DB, tablesOf(true).imports, i.ID, done, total)
	})
	defer m.close()
	// An error of the body is the fault of the server, one of the storage is not.
	var read error
	within := archive.Bounded(t.Body(body, size), func(n int64) error {
		m.done.Store(n)
		if n > total {
			return errs.Invalid("The file is larger than its Content-Length.")
		}
		return nil
	})
	got, err := s.Blobs.Put(ctx, i.file, &noting{within, &read}, blob.Options{ContentType: "application/gzip"})
	switch {
	case read != nil:
		return 0, read
	case err != nil:
		return 0, &storeError{err}
	case got < size:
		return 0, io.ErrUnexpectedEOF
	}
	return size, nil
}

// noting notes the error of a reader.
type noting struct {
	from io.Reader
	err  *error
}

// Read implements io.Reader.
func (n *noting) Read(p []byte) (int, error) {
	read, err := n.from.Read(p)
	if err != nil && err != io.EOF {
		*n.err = err
	}
	return read, err
}

// RunProjectUpload is RunProjectExport for an export whose file is also sent somewhere.
func (s *Service) RunProjectUpload(ctx context.Context, w ProjectUploadWork) error {
	return s.runExport(ctx, true, w.ExportID)
}

// written reports whether an earlier attempt has written the file of an export, so that
// it only remains to be sent.
func (s *Service) written(ctx context.Context, e *Export) (bool, error) {
	if e.upload == "" || e.Size == 0 {
		return false, nil
	}
	info, err := s.Blobs.Stat(ctx, e.key())
	if errs.Is(err, errs.KindNotFound) {
		return false, nil
	}
	return err == nil && info.Size == e.Size, err
}

// send sends the file of an export.
func (s *Service) send(ctx context.Context, e *Export) error {
	if err := saveSize(ctx, s.DB, e); err != nil {
		return err
	}
	text, err := s.Keys.Open(e.upload, uploadPlace(e.ID))
	if err != nil {
		return err
	}
	var to Upload
	if err := json.Unmarshal(text, &to); err != nil {
		return err
	}
	policy, err := s.policy(ctx)
	if err != nil {
		return err
	}
	file, err := s.Blobs.Get(ctx, e.key())
	if err != nil {
		return fmt.Errorf("open export %d: %w", e.ID, err)
	}
	defer file.Close()
	within, t := remote.NewTransfer(ctx, policy, s.Limits.Stall)
	defer t.Close()
	var read error
	err = t.Send(within, to.Method, to.URL, file.Size, &noting{file, &read})
	if read != nil && ctx.Err() == nil && within.Err() == nil {
		return fmt.Errorf("read export %d: %w", e.ID, read)
	}
	if err == nil {
		return nil
	}
	failure, ok := errors.AsType[*remote.Failure](t.Failure(ctx, within, err))
	if !ok {
		return err
	}
	shown := *failure
	shown.Text = "The file could not be uploaded. " + shown.Text
	return &shown
}
