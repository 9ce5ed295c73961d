// Package securefile stores files for CI/CD jobs that do not belong in a
// repository, such as keystores and provisioning profiles. They are encrypted.
package securefile

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/blob/removal"
	"svc/internal/ci"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/secret"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB    *db.DB
	Queue *queue.Queue
	Blobs blob.Store
	Keys  *secret.Keyring
	CI    *ci.Service
	Now   func() time.Time
}

// Service manages the secure files of all projects.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service {
	s := &Service{d}
	queue.Handle(d.Queue, s.dropUnused)
	return s
}

// File is a secure file of a project.
type File struct {
	ID        int64
	ProjectID int64
	Name      string
	Size      int64
	SHA256    string // of the content, in hex
	CreatedAt time.Time

	blob, sealedKey string
}

// Extension returns the file name extension without the dot; empty if there is none.
func (f *File) Extension() string { return strings.TrimPrefix(path.Ext(f.Name), ".") }

const (
	// MaxSize is the maximum size of a file in bytes.
	MaxSize  = 5 << 20
	maxFiles = 100 // of a project
	maxName  = 255
)

var namePattern = regexp.MustCompile(`^[\w.-]+$`)

// reader returns a project if the actor may read its secure files: Developers and
// above, and jobs. NotFound, Forbidden.
func (s *Service) reader(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	by, p, err := s.CI.JobOpens(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if err := p.View(by, project.BuildsPart); err != nil {
		return nil, err
	}
	return p, p.Enough(by, project.Developer)
}

// writer returns a project if the actor may change its secure files: Maintainers and
// above. NotFound, Forbidden.
func (s *Service) writer(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	by, p, err := s.CI.JobOpens(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	return p, p.Change(by, project.BuildsPart, project.Maintainer)
}

// MayChange reports whether an actor may add and delete secure files.
func MayChange(by actor.Actor, p *project.Project) bool {
	return p.MayChange(by, project.BuildsPart, project.Maintainer)
}

// List lists the secure files of a project. Developers and above. NotFound,
// Forbidden.
func (s *Service) List(ctx context.Context, by actor.Actor, ref project.Ref, p db.Paging) (db.Page[*File], error) {
	in, err := s.reader(ctx, by, ref)
	if err != nil {
		return db.Page[*File]{}, err
	}
	page, err := list(ctx, s.DB, in.ID, p)
	if err != nil {
		return page, fmt.Errorf("list secure files: %w", err)
	}
	return page, nil
}

// Get returns a secure file. Developers and above. NotFound, Forbidden.
func (s *Service) Get(ctx context.Context, by actor.Actor, ref project.Ref, id int64) (*File, error) {
	in, err := s.reader(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	f, err := find(ctx, s.DB, in.ID, id)
	return f, db.NotFound(err, "Secure File")
}

// Open returns a secure file and its content, which the caller must close.
// Developers and above. NotFound, Forbidden.
func (s *Service) Open(ctx context.Context, by actor.Actor, ref project.Ref, id int64) (*File, io.ReadCloser, error) {
	f, err := s.Get(ctx, by, ref, id)
	if err != nil {
		return nil, nil, err
	}
	stored, err := s.Blobs.Get(ctx, f.blob)
	if err != nil {
		return nil, nil, fmt.Errorf("open secure file %d: %w", id, err)
	}
	plain, err := s.Keys.OpenStream(stored, f.sealedKey, f.blob)
	if err != nil {
		return nil, nil, fmt.Errorf("open secure file %d: %w", id, err)
	}
	return f, struct {
		io.Reader
		io.Closer
	}{plain, stored}, nil
}

// Create stores a secure file. Maintainers and above. NotFound, Forbidden,
// Invalid, TooLarge.
func (s *Service) Create(ctx context.Context, by actor.Actor, ref project.Ref, name string, size int64, content io.Reader) (*File, error) {
	in, err := s.writer(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	switch {
	case name == "":
		return nil, errs.InvalidField("name", "can't be blank")
	case len(name) > maxName:
		return nil, errs.InvalidField("name", "is too long (maximum is %d characters)", maxName)
	case !namePattern.MatchString(name) || strings.Trim(name, ".") == "":
		return nil, errs.InvalidField("name", "can contain only letters, digits, '_', '-' and '.'")
	case size > MaxSize:
		return nil, errs.TooLarge("The file is larger than %d bytes.", MaxSize)
	case size == 0:
		return nil, errs.InvalidField("file", "can't be blank")
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	text := hex.EncodeToString(id[:])
	f := &File{ProjectID: in.ID, Name: name, Size: size, CreatedAt: s.Now(), blob: fmt.Sprintf("secure_files/%d/%s/%s", in.ID, text[:2], text)}
	digest := sha256.New()
	var encrypted io.Reader
	f.sealedKey, encrypted = s.Keys.SealStream(io.TeeReader(content, digest), f.blob)
	// The file is stored first, because a row must refer to an existing file. If no
	// row is inserted, the job removes the file later.
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.Queue.Add(ctx, tx, dropUnused{Key: f.blob}, queue.Delay(unusedAfter)) })
	if err != nil {
		return nil, fmt.Errorf("store secure file: %w", err)
	}
	if _, err := s.Blobs.Put(ctx, f.blob, encrypted, blob.Options{Size: secret.SealedSize(size)}); err != nil {
		return nil, fmt.Errorf("store secure file: %w", err)
	}
	f.SHA256 = hex.EncodeToString(digest.Sum(nil))
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", in.ID); err != nil {
			return err
		}
		n, err := count(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if n >= maxFiles {
			return errs.Invalid("Maximum number of ci secure files (%d) exceeded", maxFiles)
		}
		if err := insert(ctx, tx, f); err != nil {
			if db.IsUnique(err, "secure_files_project_id_name") {
				return errs.InvalidField("name", "has already been taken")
			}
			return err
		}
		return s.record(ctx, tx, by, in, f, "secure_file_created", audit.Details{Add: "secure_file"})
	})
	if err != nil {
		return nil, fmt.Errorf("create secure file: %w", err)
	}
	return f, nil
}

// unusedAfter is the time after which a file without a row is removed. It is longer
// than any upload takes.
const unusedAfter = 24 * time.Hour

// Delete removes a secure file. Maintainers and above. NotFound, Forbidden.
func (s *Service) Delete(ctx context.Context, by actor.Actor, ref project.Ref, id int64) error {
	in, err := s.writer(ctx, by, ref)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		f, err := find(ctx, tx, in.ID, id)
		if err != nil {
			return db.NotFound(err, "Secure File")
		}
		if err := remove(ctx, tx, f.ID); err != nil {
			return db.NotFound(err, "Secure File")
		}
		if err := removal.Add(ctx, s.Queue, tx, f.blob); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in, f, "secure_file_deleted", audit.Details{Remove: "secure_file"})
	})
	if err != nil {
		return fmt.Errorf("delete secure file: %w", err)
	}
	return nil
}

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, f *File, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: audit.Entity{Type: audit.ProjectEntity, ID: p.ID, Path: p.FullPath},
		Target: audit.Target{Type: "Ci::SecureFile", ID: f.ID, Details: f.Name}, Details: d,
	})
}

// ProjectsDeleted adds background jobs that remove the files of deleted projects.
func (s *Service) ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	for _, p := range gone {
		keys, err := blobs(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if err := removal.Add(ctx, s.Queue, tx, keys...); err != nil {
			return err
		}
	}
	return nil
}

// dropUnused is the background job that removes a file without a row.
type dropUnused struct {
	Key string `json:"key"`
}

// Kind implements queue.Work.
func (dropUnused) Kind() string { return "secure_file_drop_unused" }

func (s *Service) dropUnused(ctx context.Context, w dropUnused) error {
	used, err := blobUsed(ctx, s.DB, w.Key)
	if err != nil || used {
		return err
	}
	if err := s.Blobs.Delete(ctx, w.Key); err != nil {
		return fmt.Errorf("drop secure file: %w", err)
	}
	return nil
}
