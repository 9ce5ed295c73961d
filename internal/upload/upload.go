// Package upload stores the files that are attached to the descriptions and comments
// of a project.
package upload

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/blob"
	"svc/internal/blob/removal"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Blobs    blob.Store
	Projects *project.Service
	Now      func() time.Time
}

// Service manages uploads.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service {
	s := &Service{d}
	queue.Handle(d.Queue, s.dropUnused)
	return s
}

// Upload is a file that texts of a project link to. It can be read by users who
// can see the project and know its secret; see Service.Open.
type Upload struct {
	ID        int64
	ProjectID int64
	Secret    string
	Name      string
	Size      int64
	AuthorID  *int64
	CreatedAt time.Time
}

// Path returns the path that texts of the project link to. The name is escaped:
// it may contain characters that end a link in Markdown or a path in a URL.
func (u *Upload) Path() string { return "/uploads/" + u.Secret + "/" + url.PathEscape(u.Name) }

// IsMedia reports whether a file name has the extension of an image, audio or video
// file.
func IsMedia(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tiff", ".ico", ".mp4", ".m4v", ".mov", ".webm", ".ogv", ".mp3", ".oga", ".ogg", ".wav":
		return true
	}
	return false
}

// key is the key of the file in the object storage.
func (u *Upload) key() string { return keyOf(u.ProjectID, u.Secret) }

func keyOf(projectID int64, secret string) string {
	return fmt.Sprintf("uploads/%d/%s/%s", projectID, secret[:2], secret)
}

// MaxSize is the maximum size of a file in bytes.
const MaxSize = 100 << 20

// Add stores a file for a project. Every signed-in user who can see the project may
// add files. NotFound; Forbidden; TooLarge.
func (s *Service) Add(ctx context.Context, by actor.Actor, ref project.Ref, name string, size int64, content io.Reader) (*Upload, error) {
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
	if size > MaxSize {
		return nil, errs.TooLarge("The file is larger than %d bytes.", MaxSize)
	}
	u := &Upload{ProjectID: in.ID, Name: name, Size: size, AuthorID: &by.ID}
	return u, s.store(ctx, u, content)
}

// store stores a new file with a new secret.
func (s *Service) store(ctx context.Context, u *Upload, content io.Reader) error {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	u.Secret, u.CreatedAt = hex.EncodeToString(id[:]), s.Now()
	// The file is stored first, because a row must refer to an existing file. If the row
	// is not inserted, the job removes the file.
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		return s.Queue.Add(ctx, tx, dropUnused{u.ProjectID, u.Secret}, queue.Delay(unusedAfter))
	})
	if err != nil {
		return fmt.Errorf("add upload: %w", err)
	}
	if _, err := s.Blobs.Put(ctx, u.key(), content, blob.Options{Size: u.Size}); err != nil {
		return fmt.Errorf("store upload: %w", err)
	}
	if err := insert(ctx, s.DB, u); err != nil {
		return fmt.Errorf("add upload: %w", err)
	}
	return nil
}

// Limits of Copy, which runs while the user waits.
const (
	maxCopied     = 100
	maxCopiedSize = 512 << 20
)

// Copy copies files of a project to another project, for texts that are copied, and
// returns the new secrets by the old ones. Secrets without a file are left out. The
// caller must have checked that the actor can see the first project and change the
// second. TooLarge if there are more than 100 files, or they are larger than 512 MiB.
func (s *Service) Copy(ctx context.Context, fromProject, toProject int64, secrets []string) (map[string]string, error) {
	files, err := findAll(ctx, s.DB, fromProject, secrets)
	if err != nil {
		return nil, fmt.Errorf("find uploads: %w", err)
	}
	var size int64
	for _, u := range files {
		size += u.Size
	}
	if len(files) > maxCopied || size > maxCopiedSize {
		return nil, errs.TooLarge("At most %d uploaded files with %d bytes can be copied.", maxCopied, maxCopiedSize)
	}
	copies := map[string]string{}
	for _, u := range files {
		secret, err := s.copy(ctx, u, toProject)
		if errs.Is(err, errs.KindNotFound) {
			continue // it is being deleted
		}
		if err != nil {
			return nil, fmt.Errorf("copy upload %d: %w", u.ID, err)
		}
		copies[u.Secret] = secret
	}
	return copies, nil
}

func (s *Service) copy(ctx context.Context, u *Upload, toProject int64) (secret string, err error) {
	file, err := s.Blobs.Get(ctx, u.key())
	if err != nil {
		return "", err
	}
	defer file.Close()
	made := &Upload{ProjectID: toProject, Name: u.Name, Size: u.Size, AuthorID: u.AuthorID}
	err = s.store(ctx, made, file)
	return made.Secret, err
}

// unusedAfter is the time after which a file without a row is removed. It is longer
// than any upload takes.
const unusedAfter = 24 * time.Hour

// dropUnused is the background job that removes a file without a row.
type dropUnused struct {
	ProjectID int64  `json:"project_id"`
	Secret    string `json:"secret"`
}

// Kind implements queue.Work.
func (dropUnused) Kind() string { return "upload_drop_unused" }

func (s *Service) dropUnused(ctx context.Context, w dropUnused) error {
	used, err := exists(ctx, s.DB, w.ProjectID, w.Secret)
	if err != nil || used {
		return err
	}
	if err := s.Blobs.Delete(ctx, keyOf(w.ProjectID, w.Secret)); err != nil {
		return fmt.Errorf("drop upload: %w", err)
	}
	return nil
}

// List lists the files of a project, newest first. Requires Maintainer.
func (s *Service) List(ctx context.Context, by actor.Actor, ref project.Ref, p db.Paging) (db.Page[*Upload], error) {
	in, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return db.Page[*Upload]{}, err
	}
	page, err := list(ctx, s.DB, in.ID, p)
	if err != nil {
		return page, fmt.Errorf("list uploads: %w", err)
	}
	return page, nil
}

// Open returns a file by its secret to users who can see the project, or by its ID
// to Maintainers. Images, audio and video are returned by their secret to everyone
// if the project does not require authentication for them. NotFound.
func (s *Service) Open(ctx context.Context, by actor.Actor, ref project.Ref, id int64, secret string) (*Upload, *blob.Object, error) {
	level := project.NoAccess
	if secret == "" {
		level = project.Maintainer
	}
	in, err := s.Projects.Require(ctx, by, ref, level)
	mediaOnly := secret != "" && errs.Is(err, errs.KindNotFound)
	if mediaOnly {
		// The error remains that of the actor: it may reveal where a project has
		// moved.
		media, mediaErr := s.Projects.RequireMedia(ctx, ref)
		switch {
		case mediaErr == nil:
			in, err = media, nil
		case !errs.Is(mediaErr, errs.KindNotFound):
			err = mediaErr
		}
	}
	if err != nil {
		return nil, nil, err
	}
	u, err := find(ctx, s.DB, in.ID, id, secret)
	if err != nil {
		return nil, nil, db.NotFound(err, "File")
	}
	if mediaOnly && !IsMedia(u.Name) {
		return nil, nil, errs.NotFound("Project") // as if the project did not exist
	}
	file, err := s.Blobs.Get(ctx, u.key())
	if err != nil {
		return nil, nil, fmt.Errorf("open upload %d: %w", u.ID, err)
	}
	return u, file, nil
}

// Delete deletes a file by its ID or its secret. Requires Maintainer. NotFound.
func (s *Service) Delete(ctx context.Context, by actor.Actor, ref project.Ref, id int64, secret string) error {
	in, err := s.Projects.RequireChange(ctx, by, ref, project.WholePart, project.Maintainer)
	if err != nil {
		return err
	}
	u, err := find(ctx, s.DB, in.ID, id, secret)
	if err != nil {
		return db.NotFound(err, "File")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := remove(ctx, tx, u.ID); err != nil {
			return err
		}
		return removal.Add(ctx, s.Queue, tx, u.key())
	})
	if err != nil {
		return fmt.Errorf("delete upload %d: %w", u.ID, err)
	}
	return nil
}

// Content opens the file of an upload for an export. The caller must have checked
// that the actor is a Maintainer. NotFound if it was deleted.
func (s *Service) Content(ctx context.Context, projectID int64, secret string) (*blob.Object, error) {
	return s.Blobs.Get(ctx, keyOf(projectID, secret))
}

// Fill stores the file of an upload in a draft project. The row of the upload must
// exist and the secret must be valid. Invalid if the size differs.
func (s *Service) Fill(ctx context.Context, projectID int64, secret string, size int64, content io.Reader) error {
	n, err := s.Blobs.Put(ctx, keyOf(projectID, secret), content, blob.Options{Size: size})
	if err != nil {
		return fmt.Errorf("store upload: %w", err)
	}
	if n != size {
		return errs.Invalid("the file does not have the size of its row")
	}
	return nil
}

// ProjectsDeleted adds background jobs that remove the files of deleted projects.
func (s *Service) ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	for _, p := range gone {
		secrets, err := findSecrets(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		keys := make([]string, len(secrets))
		for i, secret := range secrets {
			keys[i] = keyOf(p.ID, secret)
		}
		if err := removal.Add(ctx, s.Queue, tx, keys...); err != nil {
			return err
		}
	}
	return nil
}
