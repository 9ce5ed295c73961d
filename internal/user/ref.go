package user

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/db"
	"svc/internal/errs"
)

// Ref identifies an account by ID or username.
type Ref string

// UnmarshalParam parses a Ref in a request.
func (r *Ref) UnmarshalParam(text string) error {
	if text == "" || len(text) > 255 {
		return errs.Invalid("not a user")
	}
	*r = Ref(text)
	return nil
}

// FindAll returns users by ID, with their public fields, for features that refer
// to users. Users that do not exist are left out.
func (s *Service) FindAll(ctx context.Context, ids []int64) (map[int64]*User, error) {
	if len(ids) == 0 {
		return map[int64]*User{}, nil
	}
	return findUsers(ctx, s.DB, ids)
}

// CommitAddress returns the email address of a user for commits, or an empty
// string if there is no such user.
func (s *Service) CommitAddress(ctx context.Context, id int64) (string, error) {
	u, err := findCommitAddress(ctx, s.DB, id)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("commit address of user %d: %w", id, err)
	}
	return u.CommitAddress(s.Host), nil
}
