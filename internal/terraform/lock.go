package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// Lock is the lock of a state. The client chooses the ID.
type Lock struct {
	ID     string
	Info   LockInfo
	UserID *int64
	User   string // username of the locker; empty if deleted
	At     time.Time
}

// LockInfo is the description of a lock that its client sends. It is shown to clients
// that want the lock.
type LockInfo struct {
	Operation string `json:"operation,omitempty"`
	Info      string `json:"info,omitempty"`
	Who       string `json:"who,omitempty"`
	Version   string `json:"version,omitempty"` // of the client
	Path      string `json:"path,omitempty"`
}

const (
	maxLockID   = 255
	maxLockInfo = 4096 // characters of each field
)

// Locked is the error of a change of a state that another client has locked, or
// whose lock has another ID. It is a conflict.
type Locked struct{ Lock *Lock } // nil if the state is not locked

// Error implements error.
func (e *Locked) Error() string {
	if e.Lock == nil {
		return "the state is not locked with this lock ID"
	}
	return "the state is locked"
}

// Unwrap returns the conflict.
func (e *Locked) Unwrap() error { return errs.Conflict("%s", e.Error()) }

// checkLock returns Locked if a client that names this lock may not change the
// state: the ID must be that of the lock, or empty for a state without one.
func (st *State) checkLock(id string) error {
	switch {
	case st.Lock == nil && id == "":
		return nil
	case st.Lock == nil:
		return &Locked{}
	case len(id) != len(st.Lock.ID) || !secret.Equal(id, st.Lock.ID):
		return &Locked{st.Lock}
	}
	return nil
}

func checkLockID(id string) error {
	if utf8.RuneCountInString(id) > maxLockID {
		return errs.Invalid("ID is too long (maximum is %d characters)", maxLockID)
	}
	return nil
}

// Acquire locks a state, which is created if need be. Maintainers and above.
// NotFound, Forbidden, Invalid; Locked.
func (s *Service) Acquire(ctx context.Context, by actor.Actor, ref project.Ref, name, id string, info LockInfo) (*Lock, error) {
	in, err := s.writer(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkName(name), checkLockID(id)); err != nil {
		return nil, err
	}
	if id == "" {
		return nil, errs.Invalid("ID is missing")
	}
	for _, text := range []string{info.Operation, info.Info, info.Who, info.Version, info.Path} {
		if utf8.RuneCountInString(text) > maxLockInfo {
			return nil, errs.Invalid("a field of the lock is too long (maximum is %d characters)", maxLockInfo)
		}
	}
	text, err := json.Marshal(info)
	if err != nil {
		return nil, err
	}
	var lock *Lock
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		st, err := s.obtain(ctx, tx, in.ID, name)
		if err != nil {
			return err
		}
		if st.Lock != nil {
			return &Locked{st.Lock}
		}
		lock = &Lock{ID: id, Info: info, UserID: &by.ID, User: by.Username, At: s.Now()}
		return saveLock(ctx, tx, st.ID, lock, string(text))
	})
	if err != nil {
		return nil, fmt.Errorf("lock terraform state: %w", err)
	}
	return lock, nil
}

// Release unlocks a state. An empty ID unlocks it whatever the ID of the lock is, as the
// command force-unlock does. Maintainers and above. NotFound, Forbidden; Locked.
func (s *Service) Release(ctx context.Context, by actor.Actor, ref project.Ref, name, id string) error {
	in, err := s.writer(ctx, by, ref)
	if err != nil {
		return err
	}
	if err := checkLockID(id); err != nil {
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
		if id != "" {
			if err := st.checkLock(id); err != nil {
				return err
			}
		}
		if st.Lock == nil {
			return nil
		}
		if err := clearLock(ctx, tx, st.ID, s.Now()); err != nil || id != "" {
			return err
		}
		return s.record(ctx, tx, by, in, "terraform_state_force_unlocked", st, audit.Details{Remove: "lock of " + st.Lock.User})
	})
	if err != nil {
		return fmt.Errorf("unlock terraform state: %w", err)
	}
	return nil
}
