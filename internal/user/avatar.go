package user

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"path"
	"strings"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
)

// AvatarFile is an image that somebody sent.
type AvatarFile struct {
	Name string // as the sender calls it
	Data io.Reader

	image []byte // what Data gave, once check has read it
	kind  imageKind
}

// maxAvatar is the size of an image in bytes; it fits into memory, so that it
// can be looked at before it is stored.
const maxAvatar = 200 << 10

// SetAvatar gives a user a new picture: he himself and administrators may.
// Invalid when it is not an image that browsers show, or is too big.
func (s *Service) SetAvatar(ctx context.Context, by actor.Actor, userID int64, f *AvatarFile) (*User, error) {
	if err := by.RequireSelf(userID, "User"); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	if err := s.storeAvatar(ctx, by, userID, f); err != nil {
		return nil, err
	}
	return findUser(ctx, s.DB, userID)
}

// RemoveAvatar takes the picture of a user away: he himself and
// administrators may. That there is none is no error.
func (s *Service) RemoveAvatar(ctx context.Context, by actor.Actor, userID int64) (*User, error) {
	if err := by.RequireSelf(userID, "User"); err != nil {
		return nil, err
	}
	if err := s.replaceAvatar(ctx, by, userID, ""); err != nil {
		return nil, err
	}
	return findUser(ctx, s.DB, userID)
}

// OpenAvatar opens the picture of a user for anybody; the caller closes it.
// NotFound unless the name is that of his present picture.
func (s *Service) OpenAvatar(ctx context.Context, userID int64, name string) (*blob.Object, error) {
	u, err := findUser(ctx, s.DB, userID)
	if err != nil {
		return nil, errs.NotFound("Avatar").Because(err)
	}
	if name == "" || u.Avatar != name {
		return nil, errs.NotFound("Avatar")
	}
	return s.Blobs.Get(ctx, avatarKey(userID, name))
}

// avatarKey is where a picture is stored.
func avatarKey(userID int64, name string) string {
	return fmt.Sprintf("avatars/user/%d/%s", userID, name)
}

// storeAvatar stores a picture that has been checked. Each has a name of its
// own, so that a cache can keep what it has under that name for ever.
func (s *Service) storeAvatar(ctx context.Context, by actor.Actor, userID int64, f *AvatarFile) error {
	name := f.newName()
	// The file goes first: a row promises that its picture exists. A crash
	// between the two leaves a file that nothing refers to.
	_, err := s.Blobs.Put(ctx, avatarKey(userID, name), bytes.NewReader(f.image),
		blob.Options{ContentType: f.kind.contentType, Size: int64(len(f.image))})
	if err != nil {
		return fmt.Errorf("store avatar of user %d: %w", userID, err)
	}
	if err := s.replaceAvatar(ctx, by, userID, name); err != nil {
		s.dropAvatar(ctx, userID, name)
		return err
	}
	return nil
}

// replaceAvatar writes the name of a picture, and removes the file of the one
// before when nothing refers to it any more.
func (s *Service) replaceAvatar(ctx context.Context, by actor.Actor, userID int64, name string) error {
	var was string
	_, err := s.change(ctx, userID, func(tx *db.Tx, u *User) error {
		was, u.Avatar = u.Avatar, name
		if by.Is(userID) || was == name {
			return nil // what a user does with his own picture is his affair
		}
		return s.record(ctx, tx, by, u, "user_avatar_updated", audit.Details{Change: "avatar", From: was, To: name})
	})
	if err != nil {
		return err
	}
	if was != name {
		s.dropAvatar(ctx, userID, was)
	}
	return nil
}

// dropAvatar removes a file that no row refers to, even for a caller who has
// gone away. A failure costs room in the store and nothing else, so it is not
// held against the change that was made.
func (s *Service) dropAvatar(ctx context.Context, userID int64, name string) {
	if name != "" {
		_ = s.Blobs.Delete(context.WithoutCancel(ctx), avatarKey(userID, name))
	}
}

// check reads the image and refuses what is none or too big. A nil file, for
// requests that bring none, is fine.
func (f *AvatarFile) check() error {
	if f == nil || f.image != nil {
		return nil
	}
	image, err := io.ReadAll(io.LimitReader(f.Data, maxAvatar+1))
	if err != nil {
		return fmt.Errorf("read avatar: %w", err)
	}
	if len(image) > maxAvatar {
		return errs.InvalidField("avatar", "is too big (should be at most %d KiB)", maxAvatar>>10)
	}
	kind, problem := inspectImage(image)
	if problem != "" {
		return errs.InvalidField("avatar", problem)
	}
	f.image, f.kind = image, kind
	return nil
}

// newName keeps the readable part of the sender's name, so that a saved
// picture is recognised, and makes the rest.
func (f *AvatarFile) newName() string {
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
