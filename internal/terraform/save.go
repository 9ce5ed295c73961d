package terraform

import (
	"bufio"
	"context"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"svc/internal/actor"
	"svc/internal/blob"
	"svc/internal/blob/removal"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
)

// Save stores a new version of a state, which is created if need be. It returns
// false for empty content, which changes nothing. The content
// is read until its end; sum is its MD5 digest, or nil if the client sent none.
// The serial of the version is in the content. A locked state needs the ID of the
// lock. Maintainers and above. NotFound, Forbidden, Invalid, TooLarge; Locked;
// Unprocessable if another version has the serial.
func (s *Service) Save(ctx context.Context, by actor.Actor, ref project.Ref, name, lockID string, content io.Reader, sum []byte) (bool, error) {
	in, err := s.writer(ctx, by, ref)
	if err != nil {
		return false, err
	}
	if err := errors.Join(checkName(name), checkLockID(lockID)); err != nil {
		return false, err
	}
	from := bufio.NewReader(content)
	if _, err := from.Peek(1); errors.Is(err, io.EOF) {
		return false, nil
	}
	// Checked before the upload too, which may be large.
	if st, err := findState(ctx, s.DB, in.ID, name); err == nil {
		if err := st.checkLock(lockID); err != nil {
			return false, err
		}
	} else if !errors.Is(err, db.ErrNoRows) {
		return false, err
	}
	v, err := s.upload(ctx, by, in, from, sum)
	if err != nil {
		return false, fmt.Errorf("save terraform state: %w", err)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		st, err := s.obtain(ctx, tx, in.ID, name)
		if err != nil {
			return err
		}
		if err := st.checkLock(lockID); err != nil {
			return err
		}
		return s.add(ctx, tx, st, v)
	})
	if err != nil {
		return false, fmt.Errorf("save terraform state: %w", err)
	}
	return true, nil
}

// add makes a version the current one of a state.
func (s *Service) add(ctx context.Context, tx *db.Tx, st *State, v *Version) error {
	v.StateID = st.ID
	was, err := findVersion(ctx, tx, st.ID, v.Serial)
	switch {
	case err == nil && was.SHA256 != v.SHA256:
		return errs.Unprocessable("The serial %d has already been taken by another version.", v.Serial)
	case err == nil: // the same version again becomes the current one
		if err := deleteVersion(ctx, tx, was.ID); err != nil {
			return err
		}
		if err := removal.Add(ctx, s.Queue, tx, was.blob); err != nil {
			return err
		}
	case !errors.Is(err, db.ErrNoRows):
		return err
	}
	if err := insertVersion(ctx, tx, v); err != nil {
		return err
	}
	if err := touchState(ctx, tx, st.ID, v.CreatedAt); err != nil {
		return err
	}
	old, err := findOldVersions(ctx, tx, st.ID, keptVersions)
	if err != nil || len(old) == 0 {
		return err
	}
	keys := make([]string, 0, len(old))
	for _, v := range old {
		if err := deleteVersion(ctx, tx, v.ID); err != nil {
			return err
		}
		keys = append(keys, v.blob)
	}
	return removal.Add(ctx, s.Queue, tx, keys...)
}

// unusedAfter is the age at which a file without a row is removed. It is longer than
// any upload.
const unusedAfter = 24 * time.Hour

// upload stores the content of a version in the object store.
func (s *Service) upload(ctx context.Context, by actor.Actor, in *project.Project, content io.Reader, sum []byte) (*Version, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	text := hex.EncodeToString(id[:])
	v := &Version{CreatedBy: &by.ID, CreatedAt: s.Now(), blob: fmt.Sprintf("terraform/%d/%s/%s", in.ID, text[:2], text)}
	if by.Job != nil {
		v.JobID = &by.Job.ID
	}
	// The file is stored first: a row promises that its file exists. If no row follows,
	// the file is removed later.
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		return s.Queue.Add(ctx, tx, dropUnused{Key: v.blob}, queue.Delay(unusedAfter))
	})
	if err != nil {
		return nil, err
	}
	digest, check, serial := sha256.New(), md5.New(), &serialScanner{}
	from := &limitedReader{from: content, most: int64(settings.MaxTerraformStateBytes)}
	key, encrypted := s.Keys.SealStream(io.TeeReader(from, io.MultiWriter(digest, check, serial)), v.blob)
	v.sealedKey = key
	if _, err := s.Blobs.Put(ctx, v.blob, encrypted, blob.Options{}); err != nil {
		if from.over {
			return nil, errs.TooLarge("The state is larger than %d bytes.", from.most)
		}
		return nil, err
	}
	v.Size, v.SHA256 = from.size, hex.EncodeToString(digest.Sum(nil))
	if sum != nil && string(check.Sum(nil)) != string(sum) {
		return nil, errs.Invalid("Content-MD5 does not match the content")
	}
	if v.Serial, err = serial.result(); err != nil {
		return nil, err
	}
	return v, nil
}

// limitedReader counts what it reads and ends with an error beyond the limit; 0
// means no limit.
type limitedReader struct {
	from       io.Reader
	size, most int64
	over       bool
}

// Read implements io.Reader.
func (r *limitedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if r.size += int64(n); r.most > 0 && r.size > r.most {
		r.over = true
		return 0, errs.TooLarge("")
	}
	return n, err
}

// open opens the file of a version.
func (s *Service) open(ctx context.Context, v *Version) (*File, error) {
	file, err := s.Blobs.Get(ctx, v.blob)
	if err != nil {
		return nil, fmt.Errorf("open terraform state version %d: %w", v.ID, err)
	}
	plain, err := s.Keys.OpenStream(file, v.sealedKey, v.blob)
	if err != nil {
		return nil, fmt.Errorf("open terraform state version %d: %w", v.ID, err)
	}
	return &File{v, struct {
		io.Reader
		io.Closer
	}{plain, file}}, nil
}

// dropAll adds background jobs that remove the files of a state.
func (s *Service) dropAll(ctx context.Context, tx *db.Tx, stateID int64) error {
	keys, err := findBlobs(ctx, tx, stateID)
	if err != nil {
		return err
	}
	return removal.Add(ctx, s.Queue, tx, keys...)
}

// dropUnused is the background job that removes a file that got no row.
type dropUnused struct {
	Key string `json:"key"`
}

// Kind implements queue.Work.
func (dropUnused) Kind() string { return "terraform_drop_unused" }

func (s *Service) dropUnused(ctx context.Context, w dropUnused) error {
	used, err := blobUsed(ctx, s.DB, w.Key)
	if err != nil || used {
		return err
	}
	if err := s.Blobs.Delete(ctx, w.Key); err != nil {
		return fmt.Errorf("drop terraform state: %w", err)
	}
	return nil
}
