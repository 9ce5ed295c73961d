package user

import (
	"context"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/picture"
)

// SetAvatar sets the avatar of a user. Requires the user or an administrator.
// Invalid if the file is not a supported image or is too large.
func (s *Service) SetAvatar(ctx context.Context, by actor.Actor, userID int64, f *picture.File) (*User, error) {
	if err := by.RequireSelf(userID, "User"); err != nil {
		return nil, err
	}
	if err := f.Check(); err != nil {
		return nil, err
	}
	if err := s.storeAvatar(ctx, by, userID, f); err != nil {
		return nil, err
	}
	return findUser(ctx, s.DB, userID)
}

// RemoveAvatar removes the avatar of a user. Requires the user or an
// administrator. It is not an error if there is none.
func (s *Service) RemoveAvatar(ctx context.Context, by actor.Actor, userID int64) (*User, error) {
	if err := by.RequireSelf(userID, "User"); err != nil {
		return nil, err
	}
	if err := s.replaceAvatar(ctx, by, userID, ""); err != nil {
		return nil, err
	}
	return findUser(ctx, s.DB, userID)
}

// OpenAvatar opens the avatar of a user. No permissions are required. The caller
// must close it. NotFound unless the name is that of the current avatar.
func (s *Service) OpenAvatar(ctx context.Context, userID int64, name string) (*blob.Object, error) {
	u, err := findUser(ctx, s.DB, userID)
	if err != nil {
		return nil, errs.NotFound("Avatar").Because(err)
	}
	if name == "" || u.Avatar != name {
		return nil, errs.NotFound("Avatar")
	}
	return s.avatars().Open(ctx, userID, name)
}

// avatars returns the store for avatars.
func (s *Service) avatars() picture.Store { return picture.Store{Blobs: s.Blobs, Owner: "user"} }

// storeAvatar stores a checked file as the avatar.
func (s *Service) storeAvatar(ctx context.Context, by actor.Actor, userID int64, f *picture.File) error {
	// The file is stored first, because a row must refer to an existing file. A crash
	// in between leaves an unused file.
	name, err := s.avatars().Put(ctx, userID, f)
	if err != nil {
		return err
	}
	if err := s.replaceAvatar(ctx, by, userID, name); err != nil {
		s.avatars().DropUnsaved(ctx, userID, name, err)
		return err
	}
	return nil
}

// replaceAvatar saves the name of an avatar, and deletes the previous file when
// the transaction is committed.
func (s *Service) replaceAvatar(ctx context.Context, by actor.Actor, userID int64, name string) error {
	var was string
	_, err := s.change(ctx, userID, func(tx *db.Tx, u *User) error {
		was, u.Avatar = u.Avatar, name
		if by.Is(userID) || was == name {
			return nil // changes by the user themselves are not audited
		}
		return s.record(ctx, tx, by, u, "user_avatar_updated", audit.Details{Change: "avatar", From: was, To: name})
	})
	if err != nil {
		return err
	}
	if was != name {
		s.avatars().Drop(ctx, userID, was)
	}
	return nil
}
