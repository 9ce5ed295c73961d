package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"svc/internal/blob"
	"svc/internal/ci/config"
	"svc/internal/ci/report"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
)

// newKey returns a new key for a file of a job. Keys are spread over directories,
// because a store on disk reads whole directories.
func newKey(jobID, projectID int64, kind Kind) string {
	return fmt.Sprintf("ci/%02x/%d/%d/%s-%s", uint8(jobID), projectID, jobID, kind, secret.Token("")[:12])
}

// Upload is an artifact as a runner sends it.
type Upload struct {
	Kind     Kind
	Format   Format
	Filename string
	ExpireIn string
	Content  io.Reader
}

// Add stores a file of a running job, with its index if it has one. Forbidden if the job
// is not running, TooLarge over the limit, Invalid if the content does not have the
// format of its kind or the job has another file of its kind.
func (s *Service) Add(ctx context.Context, jobID, projectID int64, u Upload) (*File, error) {
	if u.Content == nil {
		return nil, errs.Invalid("the file is missing")
	}
	a, err := s.newFile(ctx, jobID, projectID, &u)
	if err != nil {
		return nil, err
	}
	files := []*File{a}
	if err = s.put(ctx, a, u.Content); err != nil {
		err = fmt.Errorf("store artifact: %w", err)
	}
	if err == nil {
		err = s.checkReport(ctx, a)
	}
	if err == nil {
		var index *File
		if index, err = s.index(ctx, a); index != nil {
			files = append(files, index)
		}
	}
	if err == nil {
		err = s.save(ctx, files...)
	}
	if errors.Is(err, errSame) {
		return a, s.dropFiles(ctx, files)
	}
	if err != nil {
		return nil, errors.Join(err, s.dropFiles(ctx, files))
	}
	return a, nil
}

// index stores the index of an archive or JUnit report; nil for other files.
func (s *Service) index(ctx context.Context, a *File) (*File, error) {
	switch a.Kind {
	case Archive:
		return s.indexArchive(ctx, a)
	case JUnit:
		return s.indexReport(ctx, a)
	}
	return nil, nil
}

// dropFiles is dropUploads for uploaded files.
func (s *Service) dropFiles(ctx context.Context, files []*File) error {
	keys := make([]string, len(files))
	for i, a := range files {
		keys[i] = a.blob
	}
	return s.dropUploads(ctx, keys...)
}

// dropUploads removes the files of uploads in a background job, except for those that got
// a row: after the error of a commit, that is unknown. It works after the request has
// ended.
func (s *Service) dropUploads(ctx context.Context, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		gone, err := deleteUploads(ctx, tx, keys) // waits for a transaction that saves the files
		if err != nil || len(gone) == 0 {
			return err
		}
		return s.Queue.Add(ctx, tx, blobsWork{Keys: gone})
	})
	if err != nil {
		return fmt.Errorf("remove uploads: %w", err)
	}
	return nil
}

// uploadTime is the maximum duration of an upload.
const uploadTime = 24 * time.Hour

// sweepUploads removes the files of uploads that were interrupted by a crash.
func (s *Service) sweepUploads(ctx context.Context) error {
	left, err := findUploads(ctx, s.DB, s.Now().Add(-uploadTime), removedAtOnce)
	if err != nil {
		return fmt.Errorf("sweep uploads: %w", err)
	}
	return s.dropUploads(ctx, left...)
}

func (s *Service) newFile(ctx context.Context, jobID, projectID int64, u *Upload) (*File, error) {
	f, known := forms()[u.Kind]
	if !known || u.Kind == Trace || u.Kind == Metadata { // only the server creates these
		return nil, errs.Invalid("there is no such type of artifact")
	}
	if u.Format == "" {
		u.Format = f.format
	}
	if u.Format != f.format {
		return nil, errs.Invalid("Invalid file format with specified file type")
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	a := &File{
		JobID: jobID, ProjectID: projectID, Kind: u.Kind, Format: u.Format, Filename: u.Filename, CreatedAt: s.Now(), blob: newKey(jobID, projectID, u.Kind),
	}
	if a.Filename == "" {
		a.Filename = f.name
	}
	if a.ExpiresAt, err = expiry(u.ExpireIn, settings.ArtifactDays, a.CreatedAt); err != nil {
		return nil, err
	}
	limit := int64(settings.MaxArtifactMegabytes) << 20
	u.Content = blob.LimitReader(u.Content, limit, errs.TooLarge("an artifact may have %d MB", settings.MaxArtifactMegabytes))
	return a, nil
}

// expiry returns the expiration time of artifacts; nil for never.
func expiry(in string, days int, now time.Time) (*time.Time, error) {
	in = strings.TrimSpace(in)
	switch {
	case in == "never", in == "" && days == 0:
		return nil, nil
	case in == "":
		at := now.AddDate(0, 0, days)
		return &at, nil
	}
	d, err := config.ParseDuration(in)
	if err != nil {
		return nil, errs.Invalid("expire_in is not a duration").Because(err)
	}
	if d <= 0 {
		return nil, nil
	}
	at := now.Add(d)
	return &at, nil
}

// put stores a file that has no row yet.
func (s *Service) put(ctx context.Context, a *File, content io.Reader) error {
	if err := insertUpload(ctx, s.DB, a.blob, a.CreatedAt); err != nil {
		return err
	}
	sum := sha256.New()
	size, err := s.Blobs.Put(ctx, a.blob, io.TeeReader(content, sum), blob.Options{})
	if err != nil {
		return err
	}
	a.Size, a.SHA256 = size, hex.EncodeToString(sum.Sum(nil))
	return nil
}

// checkReport refuses a report that the server cannot use.
func (s *Service) checkReport(ctx context.Context, a *File) error {
	if a.Kind != Dotenv {
		return nil
	}
	if a.Size > report.MaxDotenv {
		return report.DotenvTooLarge()
	}
	r, err := s.openPlain(ctx, a, report.MaxDotenv+1)
	if err != nil {
		return err
	}
	defer r.Close()
	return report.CheckDotenv(r)
}

// errSame means that a job already has the same file: runners send a file again if they
// did not get the response.
var errSame = errors.New("the job has this file already")

// save inserts the rows of a file of a job and of its index.
func (s *Service) save(ctx context.Context, files ...*File) error {
	a := files[0]
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "jobs", a.JobID); err != nil {
			return err
		}
		j, err := findJob(ctx, tx, a.JobID)
		if err != nil {
			return err
		}
		if !j.running() {
			return errs.Forbidden("Job is not running")
		}
		have, err := find(ctx, tx, a.JobID, a.Kind)
		if err == nil {
			if have.SHA256 == a.SHA256 {
				return errSame
			}
			return errs.Invalid("another artifact of the same type already exists")
		}
		if !errs.Is(err, errs.KindNotFound) {
			return err
		}
		for _, f := range files {
			if err := deleteUpload(ctx, tx, f.blob); err != nil {
				return err
			}
			if err := insert(ctx, tx, f); err != nil {
				return err
			}
		}
		if a.Kind != Archive {
			return nil
		}
		return setJobExpiry(ctx, tx, a.JobID, a.ExpiresAt)
	})
	if err != nil {
		return fmt.Errorf("save artifact of job %d: %w", a.JobID, err)
	}
	return nil
}
