package project

import (
	"fmt"
	"strconv"
	"strings"

	"svc/internal/errs"
)

// Ref names a project or a group by id or full path. All digits are an id.
type Ref string

// RefTo names a thing by its id.
func RefTo(id int64) Ref { return Ref(strconv.FormatInt(id, 10)) }

// UnmarshalParam reads a Ref from a request.
func (r *Ref) UnmarshalParam(text string) error {
	if text == "" || len(text) > 2048 {
		return errs.Invalid("not a project")
	}
	*r = Ref(text)
	return nil
}

// id is the number that the Ref is, if it is one.
func (r Ref) id() (int64, bool) {
	if strings.Trim(string(r), "0123456789") != "" {
		return 0, false
	}
	id, err := strconv.ParseInt(string(r), 10, 64)
	if err != nil {
		return 0, true // too large to be anyone's
	}
	return id, true
}

// Moved says that a thing was named by a path that it no longer has. The one
// who asks may see it.
type Moved struct {
	Thing string // "Project" or "Group"
	From  Ref
	ID    int64
	Path  string // where it is now
}

// Error returns the reason for users.
func (m *Moved) Error() string { return fmt.Sprintf("%s has moved to %s", m.Thing, m.Path) }

// Unwrap makes it NotFound for those who do not know the type.
func (m *Moved) Unwrap() error { return errs.NotFound(m.Thing) }
