package packages

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// content is an upload that was stored and has no row yet.
type content struct {
	size         int64
	sha256       string
	sha1         string
	md5          string
	sha512Base64 string
	blob         string
	// missing is the key of the stored content with the same digest, if the object store
	// has lost it.
	missing string
}

// uploadTime is the maximum duration of an upload.
const uploadTime = 24 * time.Hour

// store streams an upload into the object store. The caller saves it with keep, or
// drops it. TooLarge over the limit in megabytes; 0 means no limit.
func (s *Service) store(ctx context.Context, from io.Reader, megabytes int) (*content, error) {
	c := &content{blob: newKey()}
	if err := insertUpload(ctx, s.DB, c.blob, s.Now()); err != nil {
		return nil, fmt.Errorf("begin upload: %w", err)
	}
	if megabytes > 0 {
		from = blob.LimitReader(from, int64(megabytes)<<20, errs.TooLarge("a file of this package type may have %d MB", megabytes))
	}
	// SHA-1 and MD5 identify files to clients that ask for them; nothing trusts them.
	sums := [...]io.Writer{sha256.New(), sha1.New(), md5.New(), sha512.New()}
	size, err := s.Blobs.Put(ctx, c.blob, io.TeeReader(from, io.MultiWriter(sums[:]...)), blob.Options{})
	if err != nil {
		return nil, errors.Join(err, s.drop(ctx, c))
	}
	sum := func(i int) []byte { return sums[i].(interface{ Sum([]byte) []byte }).Sum(nil) }
	c.size = size
	c.sha256, c.sha1, c.md5 = hex.EncodeToString(sum(0)), hex.EncodeToString(sum(1)), hex.EncodeToString(sum(2))
	c.sha512Base64 = base64.StdEncoding.EncodeToString(sum(3))
	if c.missing, err = s.findMissing(ctx, c.sha256); err != nil {
		return nil, errors.Join(err, s.drop(ctx, c))
	}
	return c, nil
}

// findMissing returns the key of the stored content with a digest if the object store does
// not have it: an upload of the same content then replaces it. Otherwise it is empty.
func (s *Service) findMissing(ctx context.Context, sha256 string) (string, error) {
	key, err := findBlob(ctx, s.DB, sha256)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	if err == nil {
		_, err = s.Blobs.Stat(ctx, key)
	}
	if errs.Is(err, errs.KindNotFound) {
		return key, nil
	}
	if err != nil {
		return "", fmt.Errorf("find stored content: %w", err)
	}
	return "", nil
}

// newKey returns a new key. Keys are spread over directories, because a store on
// disk reads whole directories.
func newKey() string {
	name := secret.Token("")
	return "packages/" + name[:2] + "/" + name[2:4] + "/" + name
}

// drop removes an upload in a background job, unless it got a row: after the error of a
// commit, that is unknown. It works after the request has ended.
func (s *Service) drop(ctx context.Context, c *content) error {
	if c == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		err := deleteUpload(ctx, tx, c.blob) // waits for a transaction that takes the upload
		if errors.Is(err, db.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return s.Queue.Add(ctx, tx, removeWork{Keys: []string{c.blob}})
	})
	if err != nil {
		return fmt.Errorf("remove %s: %w", c.blob, err)
	}
	return nil
}

// keep returns the ID of the row of an upload, in the transaction of the file that
// refers to it. If the same content is stored already, its row is returned, and a
// background job removes the upload.
func (s *Service) keep(ctx context.Context, tx *db.Tx, c *content) (int64, error) {
	if err := takeUpload(ctx, tx, c.blob); err != nil {
		return 0, err
	}
	id, stored, err := upsertBlob(ctx, tx, c, s.Now())
	if err != nil {
		return 0, err
	}
	if stored != c.blob && stored == c.missing {
		return id, replaceBlob(ctx, tx, id, c.blob)
	}
	if stored != c.blob {
		return id, s.Queue.Add(ctx, tx, removeWork{Keys: []string{c.blob}})
	}
	return id, nil
}

// Content is the content of a file, opened for reading. The caller closes it.
type Content struct {
	*blob.Object
	File *File
}

// open opens a file, and records the download of its package.
func (s *Service) open(ctx context.Context, f *File) (*Content, error) {
	o, err := s.Blobs.Get(ctx, f.blob)
	if err != nil {
		return nil, fmt.Errorf("open package file %d: %w", f.ID, err)
	}
	now := s.Now()
	if err := touchPackage(ctx, s.DB, f.PackageID, now, now.Add(-touchEvery)); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return &Content{Object: o, File: f}, nil
}

// touchEvery is the precision of the time of the last download, so that not every
// download writes to the database.
const touchEvery = 10 * time.Minute

// removeWork removes content that has no row.
type removeWork struct{ Keys []string }

// Kind implements queue.Work.
func (removeWork) Kind() string { return "packages.remove_content" }

func (s *Service) removeContent(ctx context.Context, w removeWork) error {
	for _, key := range w.Keys {
		if err := s.Blobs.Delete(ctx, key); err != nil {
			return fmt.Errorf("remove %s: %w", key, err)
		}
	}
	return nil
}

// sweptAtOnce is the number of rows per transaction.
const sweptAtOnce = 200

// releaseTime is the time from the release of content until it is removed. It is
// longer than a transaction.
const releaseTime = time.Minute

// Sweep removes content that no file refers to any more, and uploads that were
// interrupted by a crash.
func (s *Service) Sweep(ctx context.Context) error {
	left, err := findUploads(ctx, s.DB, s.Now().Add(-uploadTime), sweptAtOnce)
	if err != nil {
		return fmt.Errorf("sweep uploads: %w", err)
	}
	for _, key := range left {
		if err := s.drop(ctx, &content{blob: key}); err != nil {
			return err
		}
	}
	for {
		before := s.Now().Add(-releaseTime)
		ids, err := findReleased(ctx, s.DB, before, sweptAtOnce)
		if err != nil {
			return fmt.Errorf("sweep content: %w", err)
		}
		if len(ids) == 0 {
			return nil
		}
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			keys, err := deleteReleased(ctx, tx, ids, before)
			if err != nil || len(keys) == 0 {
				return err
			}
			return s.Queue.Add(ctx, tx, removeWork{Keys: keys})
		})
		if err != nil {
			return fmt.Errorf("sweep content: %w", err)
		}
	}
}

// ProjectsDeleted releases the content of the packages of deleted projects. The
// rows of the packages are deleted with those of the projects.
func (s *Service) ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	for _, p := range gone {
		if err := releaseProject(ctx, tx, p.ID, s.Now()); err != nil {
			return err
		}
	}
	return nil
}
