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

// SetAvatar gives a user a new picture: they and administrators may. Invalid
// when it is not an image that browsers show, or is too big.
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

// RemoveAvatar takes the picture of a user away: they and administrators may.
// That there is none is no error.
func (s *Service) RemoveAvatar(ctx context.Context, by actor.Actor, userID int64) (*User, error) {
	if err := by.RequireSelf(userID, "User"); err != nil {
		return nil, err
	}
	if err := s.replaceAvatar(ctx, by, userID, ""); err != nil {
		return nil, err
	}
	return findUser(ctx, s.DB, userID)
}

// OpenAvatar opens the picture of a user for anyone; the caller closes it.
// NotFound unless the name is that of their present picture.
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

// avatars is where the pictures of users are stored.
func (s *Service) avatars() picture.Store { return picture.Store{Blobs: s.Blobs, Owner: "user"} }

// storeAvatar stores a picture that has been checked.
func (s *Service) storeAvatar(ctx context.Context, by actor.Actor, userID int64, f *picture.File) error {
	// The file goes first: a row promises that its picture exists. A crash
	// between the two leaves a file that nothing refers to.
	name, err := s.avatars().Put(ctx, userID, f)
	if err != nil {
		return err
	}
	if err := s.replaceAvatar(ctx, by, userID, name); err != nil {
		s.avatars().Drop(ctx, userID, name)
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
			return nil // what a user does with their own picture is their affair
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
