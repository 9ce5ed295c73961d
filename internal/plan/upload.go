package plan

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"time"

	"svc/internal/actor"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Upload is a file that texts of a project link to. Who knows its secret and
// sees the project reads it.
type Upload struct {
	ID        int64
	ProjectID int64
	Secret    string
	Name      string
	Size      int64
	AuthorID  *int64
	CreatedAt time.Time
}

// Path is where texts of the project link to. A name may have what ends a link
// in Markdown or a path in an address.
func (u *Upload) Path() string { return "/uploads/" + u.Secret + "/" + url.PathEscape(u.Name) }

// key is where the file is in the store.
func (u *Upload) key() string { return uploadKey(u.ProjectID, u.Secret) }

func uploadKey(projectID int64, secret string) string {
	return fmt.Sprintf("uploads/%d/%s/%s", projectID, secret[:2], secret)
}

// MaxUpload is the largest file, in bytes.
const MaxUpload = 100 << 20

// AddUpload keeps a file for a project: everyone may who has signed in and sees
// it, whatever text of it they are about to write. NotFound; Forbidden;
// TooLarge.
func (s *Service) AddUpload(ctx context.Context, by actor.Actor, ref project.Ref, name string, size int64, content io.Reader) (*Upload, error) {
	in, err := s.Projects.Require(ctx, by, ref, project.NoAccess)
	if err != nil {
		return nil, err
	}
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	if err := in.Change(by, project.WholePart, project.NoAccess); err != nil {
		return nil, err
	}
	if size > MaxUpload {
		return nil, errs.TooLarge("The file is larger than %d bytes.", MaxUpload)
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	u := &Upload{ProjectID: in.ID, Secret: hex.EncodeToString(id[:]), Name: name, Size: size, AuthorID: &by.ID, CreatedAt: s.Now()}
	// The file goes first: a row promises that it is there.
	if _, err := s.Blobs.Put(ctx, u.key(), content, blob.Options{Size: size}); err != nil {
		return nil, fmt.Errorf("store upload: %w", err)
	}
	if err := insertUpload(ctx, s.DB, u); err != nil {
		return nil, fmt.Errorf("add upload: %w", err)
	}
	return u, nil
}

// Uploads lists the files of a project, the newest first; Maintainers only.
func (s *Service) Uploads(ctx context.Context, by actor.Actor, ref project.Ref, p db.Paging) (db.Page[*Upload], error) {
	in, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return db.Page[*Upload]{}, err
	}
	page, err := listUploads(ctx, s.DB, in.ID, p)
	if err != nil {
		return page, fmt.Errorf("list uploads: %w", err)
	}
	return page, nil
}

// OpenUpload returns a file by its secret to those who see the project, and by
// its id to Maintainers; NotFound.
func (s *Service) OpenUpload(ctx context.Context, by actor.Actor, ref project.Ref, id int64, secret string) (*Upload, *blob.Object, error) {
	level := project.NoAccess
	if secret == "" {
		level = project.Maintainer
	}
	in, err := s.Projects.Require(ctx, by, ref, level)
	if err != nil {
		return nil, nil, err
	}
	u, err := findUpload(ctx, s.DB, in.ID, id, secret)
	if err != nil {
		return nil, nil, db.NotFound(err, "File")
	}
	file, err := s.Blobs.Get(ctx, u.key())
	if err != nil {
		return nil, nil, fmt.Errorf("open upload %d: %w", u.ID, err)
	}
	return u, file, nil
}

// DeleteUpload removes a file by its id, or by its secret; Maintainers only.
// NotFound.
func (s *Service) DeleteUpload(ctx context.Context, by actor.Actor, ref project.Ref, id int64, secret string) error {
	in, err := s.Projects.RequireChange(ctx, by, ref, project.WholePart, project.Maintainer)
	if err != nil {
		return err
	}
	u, err := findUpload(ctx, s.DB, in.ID, id, secret)
	if err != nil {
		return db.NotFound(err, "File")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := deleteUpload(ctx, tx, u.ID); err != nil {
			return err
		}
		return s.Queue.Add(ctx, tx, dropUploads{Keys: []string{u.key()}})
	})
	if err != nil {
		return fmt.Errorf("delete upload %d: %w", u.ID, err)
	}
	return nil
}

// dropUploads removes files whose rows are gone.
type dropUploads struct {
	Keys []string `json:"keys"`
}

// Kind implements queue.Work.
func (dropUploads) Kind() string { return "plan_drop_uploads" }

func (s *Service) dropUploads(ctx context.Context, w dropUploads) error {
	for _, key := range w.Keys {
		if err := s.Blobs.Delete(ctx, key); err != nil {
			return fmt.Errorf("drop upload: %w", err)
		}
	}
	return nil
}

// ProjectsDeleted adds background jobs that remove the uploads of deleted
// projects, and deletes rows without a foreign key to the project.
func (s *Service) ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	const batch = 500
	for _, p := range gone {
		if err := deleteProjectSubscriptions(ctx, tx, p.ID); err != nil {
			return err
		}
		secrets, err := findSecrets(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		for len(secrets) > 0 {
			part := secrets[:min(batch, len(secrets))]
			secrets = secrets[len(part):]
			var w dropUploads
			for _, secret := range part {
				w.Keys = append(w.Keys, uploadKey(p.ID, secret))
			}
			if err := s.Queue.Add(ctx, tx, w); err != nil {
				return err
			}
		}
	}
	return nil
}
