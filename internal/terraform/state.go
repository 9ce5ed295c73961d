package terraform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob/removal"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// State is a state of a project.
type State struct {
	ID        int64
	ProjectID int64
	Name      string
	Lock      *Lock // nil if it is not locked
	CreatedAt time.Time
	UpdatedAt time.Time

	// Current is the current version; nil for a state that was only locked.
	Current *Version
}

// Version is a version of a state: what was saved at one time.
type Version struct {
	ID        int64
	StateID   int64
	Serial    int64
	Size      int64  // in bytes
	SHA256    string // of the content, in hex
	CreatedBy *int64
	Author    string // username of the creator; empty if deleted
	JobID     *int64 // the CI/CD job that saved it
	CreatedAt time.Time

	blob, sealedKey string
}

const (
	maxName   = 255
	maxStates = 10_000 // of a project
	// keptVersions is how many versions of a state are kept.
	keptVersions = 1000
)

func checkName(name string) error {
	switch {
	case name == "", !utf8.ValidString(name), strings.ContainsAny(name, "/\x00"):
		return errs.Invalid("name is invalid")
	case utf8.RuneCountInString(name) > maxName:
		return errs.Invalid("name is too long (maximum is %d characters)", maxName)
	}
	return nil
}

// States lists the states of a project by name, with their current versions.
// Developers and above. NotFound, Forbidden.
func (s *Service) States(ctx context.Context, by actor.Actor, ref project.Ref, p db.Paging) (db.Page[*State], error) {
	in, err := s.reader(ctx, by, ref)
	if err != nil {
		return db.Page[*State]{}, err
	}
	page, err := listStates(ctx, s.DB, in.ID, p)
	if err != nil {
		return page, fmt.Errorf("list terraform states: %w", err)
	}
	return page, nil
}

// State returns a state with its current version. Developers and above. NotFound,
// Forbidden.
func (s *Service) State(ctx context.Context, by actor.Actor, ref project.Ref, name string) (*State, error) {
	in, err := s.reader(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	return s.find(ctx, s.DB, in.ID, name)
}

func (s *Service) find(ctx context.Context, q db.Q, projectID int64, name string) (*State, error) {
	st, err := findState(ctx, q, projectID, name)
	if err != nil {
		return nil, db.NotFound(err, "")
	}
	return st, nil
}

// Versions lists the versions of a state, the current one first. Developers and
// above. NotFound, Forbidden.
func (s *Service) Versions(ctx context.Context, by actor.Actor, ref project.Ref, name string, p db.Paging) (db.Page[*Version], error) {
	st, err := s.State(ctx, by, ref, name)
	if err != nil {
		return db.Page[*Version]{}, err
	}
	page, err := listVersions(ctx, s.DB, st.ID, p)
	if err != nil {
		return page, fmt.Errorf("list versions of terraform state %d: %w", st.ID, err)
	}
	return page, nil
}

// File is the content of a version. The caller closes it.
type File struct {
	*Version
	io.ReadCloser
}

// Open returns the content of the current version of a state, or of the version
// with a serial. It is nil if the state has no version yet. Developers and above.
// NotFound, Forbidden.
func (s *Service) Open(ctx context.Context, by actor.Actor, ref project.Ref, name string, serial *int64) (*File, error) {
	st, err := s.State(ctx, by, ref, name)
	if err != nil {
		return nil, err
	}
	v := st.Current
	if serial != nil {
		if v, err = findVersion(ctx, s.DB, st.ID, *serial); err != nil {
			return nil, db.NotFound(err, "")
		}
	}
	if v == nil {
		return nil, nil
	}
	return s.open(ctx, v)
}

// DeleteVersion removes a version of a state. Maintainers and above. NotFound,
// Forbidden.
func (s *Service) DeleteVersion(ctx context.Context, by actor.Actor, ref project.Ref, name string, serial int64) error {
	in, err := s.writer(ctx, by, ref)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		st, err := s.find(ctx, tx, in.ID, name)
		if err != nil {
			return err
		}
		v, err := findVersion(ctx, tx, st.ID, serial)
		if err != nil {
			return db.NotFound(err, "")
		}
		if err := deleteVersion(ctx, tx, v.ID); err != nil {
			return db.NotFound(err, "")
		}
		if err := removal.Add(ctx, s.Queue, tx, v.blob); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in, "terraform_state_version_deleted", st, audit.Details{Remove: fmt.Sprintf("version %d", serial)})
	})
	if err != nil {
		return fmt.Errorf("delete version of terraform state: %w", err)
	}
	return nil
}

// Delete removes a state with all its versions. A locked state needs the ID of
// the lock. Maintainers and above. NotFound, Forbidden; Locked.
func (s *Service) Delete(ctx context.Context, by actor.Actor, ref project.Ref, name, lockID string) error {
	in, err := s.writer(ctx, by, ref)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		st, err := s.find(ctx, tx, in.ID, name)
		if err != nil {
			return err
		}
		if err := tx.Lock(ctx, "terraform_states", st.ID); err != nil {
			return err
		}
		if st, err = s.find(ctx, tx, in.ID, name); err != nil {
			return err
		}
		if err := st.checkLock(lockID); err != nil {
			return err
		}
		if err := s.dropAll(ctx, tx, st.ID); err != nil {
			return err
		}
		if err := deleteState(ctx, tx, st.ID); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in, "terraform_state_deleted", st, audit.Details{Remove: "terraform_state"})
	})
	if err != nil {
		return fmt.Errorf("delete terraform state: %w", err)
	}
	return nil
}

// obtain returns a state for a change, and creates it if need be. The state is
// locked in the database until the transaction ends.
func (s *Service) obtain(ctx context.Context, tx *db.Tx, projectID int64, name string) (*State, error) {
	st, err := findState(ctx, tx, projectID, name)
	if errors.Is(err, db.ErrNoRows) {
		if err := tx.Lock(ctx, "projects", projectID); err != nil { // no one else counts meanwhile
			return nil, err
		}
		n, err := countStates(ctx, tx, projectID)
		if err != nil {
			return nil, err
		}
		if n >= maxStates {
			return nil, errs.Invalid("A project has at most %d Terraform states: delete one first", maxStates)
		}
		if err := insertState(ctx, tx, projectID, name, s.Now()); err != nil {
			return nil, err
		}
		st, err = findState(ctx, tx, projectID, name)
		if err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	if err := tx.Lock(ctx, "terraform_states", st.ID); err != nil {
		return nil, err
	}
	return s.find(ctx, tx, projectID, name)
}

// ProjectsDeleted adds background jobs that remove the files of deleted projects.
func (s *Service) ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	for _, p := range gone {
		ids, err := findStateIDs(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := s.dropAll(ctx, tx, id); err != nil {
				return err
			}
		}
	}
	return nil
}
