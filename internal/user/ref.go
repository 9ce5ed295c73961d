package user

import "svc/internal/errs"

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
