package project

import (
	"fmt"
	"strconv"
	"strings"

	"svc/internal/errs"
)

// Ref identifies a project or group by ID or full path. A number is an ID.
type Ref string

// RefTo returns a Ref by ID.
func RefTo(id int64) Ref { return Ref(strconv.FormatInt(id, 10)) }

// UnmarshalParam parses a Ref in a request.
func (r *Ref) UnmarshalParam(text string) error {
	if text == "" || len(text) > 2048 {
		return errs.Invalid("not a project")
	}
	*r = Ref(text)
	return nil
}

// id returns the ID if the Ref is a number.
func (r Ref) id() (int64, bool) {
	if strings.Trim(string(r), "0123456789") != "" {
		return 0, false
	}
	id, err := strconv.ParseInt(string(r), 10, 64)
	if err != nil {
		return 0, true // too large for an ID
	}
	return id, true
}

// Near returns a Ref to a project by its full path, or by its path alone if it is in the
// same namespace as this one.
func (p *Project) Near(path string) Ref {
	if _, numeric := Ref(path).id(); numeric || path == "" || strings.Contains(path, "/") {
		return Ref(path)
	}
	return Ref(p.Namespace.FullPath + "/" + path)
}

// Moved is the error for a project or group that was requested by an old path and
// that the actor can see.
type Moved struct {
	Thing string // "Project" or "Group"
	From  Ref
	ID    int64
	Path  string // current path
}

// Error returns the message for users.
func (m *Moved) Error() string { return fmt.Sprintf("%s has moved to %s", m.Thing, m.Path) }

// Unwrap returns NotFound.
func (m *Moved) Unwrap() error { return errs.NotFound(m.Thing) }
