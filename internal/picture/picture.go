// Package picture stores the avatars of users, groups, projects and topics: it
// checks uploaded images and writes them to the object storage.
package picture

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"path"
	"strings"

	"svc/internal/blob"
	"svc/internal/errs"
)

// File is an uploaded picture.
type File struct {
	Name string // file name that the client sent
	Data io.Reader

	image []byte // content of Data, set by Check
	kind  imageKind
}

// MaxSize is the maximum size of a picture in bytes. Pictures are held in memory to
// check them before they are stored.
const MaxSize = 200 << 10

// Check reads the picture and validates it. Invalid if it is too large or not a
// supported image. A nil file is valid: the request contains no picture.
func (f *File) Check() error {
	if f == nil || f.image != nil {
		return nil
	}
	image, err := io.ReadAll(io.LimitReader(f.Data, MaxSize+1))
	if err != nil {
		return fmt.Errorf("read picture: %w", err)
	}
	if len(image) > MaxSize {
		return errs.InvalidField("avatar", "is too big (should be at most %d KiB)", MaxSize>>10)
	}
	kind, problem := inspect(image)
	if problem != "" {
		return errs.InvalidField("avatar", problem)
	}
	f.image, f.kind = image, kind
	return nil
}

// newName returns a file name with the ASCII alphanumerics, hyphens and underscores
// of the client's name, followed by a random part.
func (f *File) newName() string {
	stem := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return -1
	}, strings.TrimSuffix(f.Name, path.Ext(f.Name)))
	stem = strings.TrimLeft(stem[:min(len(stem), 64)], "-")
	if stem != "" {
		stem += "-"
	}
	return stem + strings.ToLower(rand.Text()[:12]) + f.kind.extension
}

// Store stores the pictures of one type of owner.
type Store struct {
	Blobs blob.Store
	Owner string // type of the owner: user, group, project or topic
}

// Put stores a checked picture and returns its name. Each picture has its own
// random name, so that caches can keep it forever.
func (s Store) Put(ctx context.Context, id int64, f *File) (name string, err error) {
	name = f.newName()
	_, err = s.Blobs.Put(ctx, s.Key(id, name), bytes.NewReader(f.image), blob.Options{ContentType: f.kind.contentType, Size: int64(len(f.image))})
	if err != nil {
		return "", fmt.Errorf("store picture of %s %d: %w", s.Owner, id, err)
	}
	return name, nil
}

// Open opens a picture. The caller must close it.
func (s Store) Open(ctx context.Context, id int64, name string) (*blob.Object, error) {
	return s.Blobs.Get(ctx, s.Key(id, name))
}

// Drop deletes a picture that is no longer referenced, even if ctx is canceled; an
// empty name does nothing. Errors are ignored, because an unused file only takes
// space.
func (s Store) Drop(ctx context.Context, id int64, name string) {
	if name != "" {
		_ = s.Blobs.Delete(context.WithoutCancel(ctx), s.Key(id, name))
	}
}

// DropUnsaved is Drop for a new picture that was not saved because of an error. The picture
// is kept if the error leaves open whether it was saved, as that of a commit does.
func (s Store) DropUnsaved(ctx context.Context, id int64, name string, err error) {
	if errs.IsRefusal(err) {
		s.Drop(ctx, id, name)
	}
}

// Replace stores a file and calls save with its name, or with an empty name if
// remove is set. save returns the name of the previous file, which is deleted.
// Without a file and remove it does nothing.
func (s Store) Replace(ctx context.Context, id int64, f *File, remove bool, save func(name string) (was string, err error)) error {
	if f == nil && !remove {
		return nil
	}
	name := ""
	if f != nil {
		// The file is stored first, because a row must refer to an existing file. A
		// crash in between leaves an unused file.
		var err error
		if name, err = s.Put(ctx, id, f); err != nil {
			return err
		}
	}
	was, err := save(name)
	if err != nil {
		s.DropUnsaved(ctx, id, name, err)
		return err
	}
	if was != name {
		s.Drop(ctx, id, was)
	}
	return nil
}

// Key returns the key of a picture in the object storage.
func (s Store) Key(id int64, name string) string {
	return fmt.Sprintf("avatars/%s/%d/%s", s.Owner, id, name)
}
