package lfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"svc/internal/blob"
	"svc/internal/blob/removal"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// newKey returns a new key for the content of an object. Keys are not reused: an object
// that is removed and uploaded again has another key, so that a late removal of the first
// content cannot delete the second.
func newKey(oid string) string {
	return "lfs/" + oid[:2] + "/" + oid[2:4] + "/" + oid + "-" + secret.Token("")[:12]
}

// stagingKey returns the key to which a client uploads directly. Its content is not
// checked yet.
func stagingKey(uploadID string) string { return incoming + uploadID }

// incoming is the prefix of the keys of direct uploads.
const incoming = "lfs/incoming/"

// uploadIDOf returns the ID of the direct upload to a key.
func uploadIDOf(key string) string { return strings.TrimPrefix(key, incoming) }

// maxDirect is the largest object that S3 accepts in one request.
const maxDirect = 5 << 30

// direct reports whether clients transfer objects directly to and from the object
// storage.
func (s *Service) direct(ctx context.Context) (bool, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil || !settings.LFSDirect {
		return false, err
	}
	_, err = s.Blobs.URL(ctx, "lfs", tokenLife)
	if errs.Is(err, errs.KindNotAllowed) {
		return false, nil
	}
	return err == nil, err
}

// Put stores an object that is uploaded through the server, for an actor who may upload to
// the project; see Project. The content is checked while it is stored. Unprocessable if it
// has another size or digest; then nothing is kept. TooLarge over the limits, Unavailable
// if too many uploads are in progress.
func (s *Service) Put(ctx context.Context, p *project.Project, o Pointer, content io.Reader) error {
	if !ValidOID(o.OID) || o.Size < 0 {
		return errs.Unprocessable("The object ID or size is invalid.")
	}
	l, err := s.limitsOf(ctx, p)
	if err != nil {
		return err
	}
	if err := l.take(o.Size); err != nil {
		return err
	}
	release, err := s.uploads.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	checked := &checkedReader{from: content, want: o, sum: sha256.New()}
	known, err := findObject(ctx, s.DB, o.OID)
	if err == nil {
		// The content is already stored. The client must prove that it has it too.
		if _, err := io.CopyBuffer(io.Discard, onlyReader{checked}, make([]byte, 64<<10)); err != nil {
			return err
		}
		return s.add(ctx, p, known)
	}
	if !errors.Is(err, db.ErrNoRows) {
		return fmt.Errorf("find LFS object: %w", err)
	}
	key := newKey(o.OID)
	if err := insertUpload(ctx, s.DB, upload{blob: key, createdAt: s.Now()}); err != nil {
		return fmt.Errorf("begin LFS upload: %w", err)
	}
	if _, err := s.Blobs.Put(ctx, key, checked, blob.Options{Size: o.Size}); err != nil {
		return errors.Join(fmt.Errorf("store LFS object: %w", err), s.drop(ctx, key))
	}
	return s.add(ctx, p, object{oid: o.OID, size: o.Size, blob: key, createdAt: s.Now()})
}

// add adds an object whose content was checked to a project. If the object has no ID, its
// key is that of an upload.
func (s *Service) add(ctx context.Context, p *project.Project, o object) error {
	spare := ""
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		spare = ""
		known, err := findObject(ctx, tx, o.oid)
		if err == nil {
			// It must not be removed meanwhile.
			if err := tx.Lock(ctx, "lfs_objects", known.id); err != nil {
				return err
			}
			known, err = findObject(ctx, tx, o.oid)
		}
		switch {
		case err == nil && o.id == 0:
			spare = o.blob // another upload was faster
		case errors.Is(err, db.ErrNoRows) && o.id == 0:
			known = o
			if err := insertObject(ctx, tx, &known); err != nil {
				return err
			}
			if err := deleteUpload(ctx, tx, o.blob); errors.Is(err, db.ErrNoRows) {
				return errs.Conflict("The upload took too long.")
			} else if err != nil {
				return err
			}
		case errors.Is(err, db.ErrNoRows):
			return errs.Unavailable("The object was removed in the meantime. Please try again.")
		case err != nil:
			return err
		}
		return link(ctx, tx, p.ID, known, s.Now())
	})
	if db.IsUnique(err, "lfs_objects_oid") { // the other upload is stored now
		return s.add(ctx, p, o)
	}
	if err != nil {
		err = fmt.Errorf("add LFS object to project %d: %w", p.ID, err)
		if o.id == 0 {
			err = errors.Join(err, s.drop(ctx, o.blob))
		}
		return err
	}
	if spare != "" {
		return s.drop(ctx, spare)
	}
	return nil
}

// drop removes the content of uploads in background jobs, unless it belongs to an object:
// after the error of a commit, that is unknown. It works after the request has ended.
func (s *Service) drop(ctx context.Context, keys ...string) error {
	ctx = context.WithoutCancel(ctx)
	for part := range slices.Chunk(keys, inStatement) {
		err := s.DB.Tx(ctx, func(tx *db.Tx) error {
			gone, err := deleteUploads(ctx, tx, part) // waits for a transaction that adds an object
			if err != nil {
				return err
			}
			return removal.Add(ctx, s.Queue, tx, gone...)
		})
		if err != nil {
			return fmt.Errorf("remove LFS uploads: %w", err)
		}
	}
	return nil
}

// Verify finishes the upload of an object, for an actor who may upload to the
// project. A direct upload is identified by the ID from its batch; its content is
// checked here, and the project gets the object. NotFound if the object was not
// uploaded, Unprocessable if it has another size or digest, TooLarge over the limits.
func (s *Service) Verify(ctx context.Context, p *project.Project, o Pointer, uploadID string) error {
	if !ValidOID(o.OID) {
		return errs.Unprocessable("The object ID or size is invalid.")
	}
	have, err := findHeld(ctx, s.DB, p.ID, []string{o.OID})
	if err != nil {
		return fmt.Errorf("find LFS object: %w", err)
	}
	if h, ok := have[o.OID]; ok {
		if h.size != o.Size {
			return errs.Unprocessable("The size is not that of the object.")
		}
		return nil
	}
	if uploadID == "" || len(uploadID) > 100 || blob.CheckKey(stagingKey(uploadID)) != nil {
		return errs.NotFound("Object")
	}
	u, err := findUpload(ctx, s.DB, stagingKey(uploadID))
	if errors.Is(err, db.ErrNoRows) || err == nil && (u.projectID != p.ID || u.oid != o.OID || u.size != o.Size) {
		return errs.NotFound("Object")
	}
	if err != nil {
		return fmt.Errorf("find LFS upload: %w", err)
	}
	return s.accept(ctx, p, o, u)
}

// accept checks the content of a direct upload and copies it to the key of the object,
// because the client can change what it uploaded until the URL expires.
func (s *Service) accept(ctx context.Context, p *project.Project, o Pointer, u upload) error {
	release, err := s.uploads.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	content, err := s.Blobs.Get(ctx, u.blob)
	if err != nil {
		return fmt.Errorf("open LFS upload: %w", err)
	}
	defer content.Close()
	if content.Size != o.Size {
		return errors.Join(errs.Unprocessable("The object has %d bytes, not %d.", content.Size, o.Size), s.discard(ctx, u))
	}
	// Other batches may have used up the remaining space since this upload began.
	l, err := s.limitsOf(ctx, p)
	if err != nil {
		return err
	}
	if err := l.take(o.Size); err != nil {
		return errors.Join(err, s.discard(ctx, u))
	}
	checked := &checkedReader{from: content, want: o, sum: sha256.New()}
	if _, err := io.CopyBuffer(io.Discard, onlyReader{checked}, make([]byte, 256<<10)); err != nil {
		if errs.Is(err, errs.KindUnprocessable) {
			err = errors.Join(err, s.discard(ctx, u))
		}
		return err
	}
	key := newKey(o.OID)
	if err := insertUpload(ctx, s.DB, upload{blob: key, createdAt: s.Now()}); err != nil {
		return fmt.Errorf("begin LFS upload: %w", err)
	}
	if err := s.Blobs.Copy(ctx, content.Info, key); err != nil {
		return errors.Join(fmt.Errorf("store LFS object: %w", err), s.drop(ctx, key))
	}
	if err := s.add(ctx, p, object{oid: o.OID, size: o.Size, blob: key, createdAt: s.Now()}); err != nil {
		return err
	}
	if err := settleUpload(ctx, s.DB, u.blob); err != nil {
		return fmt.Errorf("finish LFS upload: %w", err)
	}
	return s.discard(ctx, u)
}

// discard removes the content of a direct upload. Its row is kept until the URL has expired:
// the client can upload again until then, and a sweep removes that content.
func (s *Service) discard(ctx context.Context, u upload) error {
	ctx = context.WithoutCancel(ctx)
	err := s.Blobs.Delete(ctx, u.blob)
	if err == nil {
		err = shortenUpload(ctx, s.DB, u.blob, s.Now().Add(expiryMargin+tokenLife-directTime))
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", u.blob, err)
	}
	return nil
}

// expiryMargin is the time that a request may take that began when its URL expired.
const expiryMargin = 10 * time.Minute

// Object is the content of an object. The caller closes it.
type Object struct {
	Pointer
	ModTime time.Time
	io.ReadSeekCloser
	release func()
}

// Close implements io.Closer.
func (o *Object) Close() error {
	defer o.release()
	return o.ReadSeekCloser.Close()
}

// Open opens an object for an actor who may read the project; see Project. ctx must last
// until the object is closed. NotFound if the project does not have it, Unavailable if too
// many downloads are in progress.
func (s *Service) Open(ctx context.Context, p *project.Project, oid string) (*Object, error) {
	h, err := s.find(ctx, p, oid)
	if err != nil {
		return nil, err
	}
	release, err := s.downloads.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	content, err := s.Blobs.Get(ctx, h.blob)
	if err != nil {
		release()
		return nil, fmt.Errorf("open LFS object: %w", err)
	}
	return &Object{Pointer: Pointer{OID: h.oid, Size: h.size}, ModTime: content.ModTime, ReadSeekCloser: content, release: release}, nil
}

// Has reports whether a project has an object.
func (s *Service) Has(ctx context.Context, p *project.Project, o Pointer) (bool, error) {
	h, err := s.find(ctx, p, o.OID)
	if errs.Is(err, errs.KindNotFound) {
		return false, nil
	}
	return err == nil && h.size == o.Size, err
}

func (s *Service) find(ctx context.Context, p *project.Project, oid string) (held, error) {
	if !ValidOID(oid) {
		return held{}, errs.NotFound("Object")
	}
	have, err := findHeld(ctx, s.DB, p.ID, []string{oid})
	if err != nil {
		return held{}, fmt.Errorf("find LFS object: %w", err)
	}
	h, ok := have[oid]
	if !ok {
		return held{}, errs.NotFound("Object")
	}
	return h, nil
}

// checkedReader returns an error at the end of its content if the size or digest differs
// from the expected one.
type checkedReader struct {
	from io.Reader
	want Pointer
	sum  hash.Hash
	size int64
}

// Read implements io.Reader.
func (c *checkedReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.sum.Write(p[:n])
	if c.size += int64(n); c.size > c.want.Size {
		return 0, errs.Unprocessable("The object has more than %d bytes.", c.want.Size)
	}
	switch {
	case err == nil:
		return n, nil
	case err != io.EOF:
		if errs.KindOf(err) == 0 {
			err = errs.Invalid("The object could not be read to its end.").Because(err)
		}
		return n, err
	case c.size != c.want.Size:
		return 0, errs.Unprocessable("The object has %d bytes, not %d.", c.size, c.want.Size)
	case hex.EncodeToString(c.sum.Sum(nil)) != c.want.OID:
		return 0, errs.Unprocessable("The SHA-256 digest of the object is not %s.", c.want.OID)
	}
	return n, io.EOF
}

// onlyReader hides all methods but Read, so that a copy uses the given buffer.
type onlyReader struct{ io.Reader }
