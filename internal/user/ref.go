package user

import (
	"context"

	"svc/internal/errs"
)

// Ref names an account by id or username.
type Ref string

// UnmarshalParam reads a Ref from a request.
func (r *Ref) UnmarshalParam(text string) error {
	if text == "" || len(text) > 255 {
		return errs.Invalid("not a user")
	}
	*r = Ref(text)
	return nil
}

// FindAll returns several accounts by id, with what their public form shows,
// for features that name users beside their own things. Who is not there is
// left out.
func (s *Service) FindAll(ctx context.Context, ids []int64) (map[int64]*User, error) {
	if len(ids) == 0 {
		return map[int64]*User{}, nil
	}
	return findUsers(ctx, s.DB, ids)
}
