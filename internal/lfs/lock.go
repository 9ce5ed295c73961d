package lfs

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Lock is the lock of a user on a file of a project.
type Lock struct {
	ID       int64
	UserID   int64
	Owner    string // name of the user
	Path     string
	LockedAt time.Time

	projectID int64
}

// LockFilter selects locks.
type LockFilter struct {
	Path  string
	ID    int64
	From  int64 // first ID of the page
	Limit int
}

const (
	maxLocks    = 10_000 // of one project
	maxLockPath = 2000   // bytes; PostgreSQL indexes at most 2,700
	// MaxLockPage is the maximum and default number of locks on a page.
	MaxLockPage = 100
)

// Lock locks a file for a user who may push to the project; see Project. Conflict with
// the existing lock if the file is locked, Unprocessable if the path is invalid, Forbidden
// for callers without an account.
func (s *Service) Lock(ctx context.Context, by actor.Actor, p *project.Project, file string) (*Lock, error) {
	if by.Anonymous() || by.Deploy != nil || by.Job != nil {
		return nil, errs.Forbidden("Only users can lock files.")
	}
	if !validPath(file) {
		return nil, errs.Unprocessable("The path is invalid.")
	}
	l := &Lock{UserID: by.ID, Owner: by.Name, Path: file, LockedAt: s.Now().UTC().Truncate(time.Second), projectID: p.ID}
	var taken *Lock
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil {
			return err
		}
		var err error
		taken, err = findLockByPath(ctx, tx, p.ID, file)
		if err == nil || !errs.Is(err, errs.KindNotFound) {
			return err
		}
		taken = nil
		n, err := countLocks(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if n >= maxLocks {
			return errs.Unprocessable("The project has %d locks already.", n)
		}
		return insertLock(ctx, tx, l)
	})
	if err != nil {
		return nil, fmt.Errorf("lock file in project %d: %w", p.ID, err)
	}
	if taken != nil {
		return taken, errs.Conflict("already created lock")
	}
	return l, nil
}

func validPath(file string) bool {
	return file != "" && len(file) <= maxLockPath && utf8.ValidString(file) && !strings.ContainsRune(file, 0) &&
		path.Clean(file) == file && !strings.HasPrefix(file, "/") && file != "." && file != ".." && !strings.HasPrefix(file, "../")
}

// CanLock reports whether an actor may lock files of a project that they can read.
func (s *Service) CanLock(by actor.Actor, p *project.Project) bool {
	return !by.Anonymous() && by.Deploy == nil && by.Job == nil && p.MayChange(by, project.CodePart, project.Developer)
}

// CanUnlock reports whether an actor may remove a lock of a project that they can
// read: users may remove their own locks, Maintainers all locks.
func (s *Service) CanUnlock(by actor.Actor, p *project.Project, l *Lock) bool {
	return s.CanLock(by, p) && (by.Is(l.UserID) || p.MayChange(by, project.CodePart, project.Maintainer))
}

// Locks returns a page of locks to an actor who may read the project, and the ID with
// which the next page begins; 0 if there is none.
func (s *Service) Locks(ctx context.Context, p *project.Project, f LockFilter) (list []*Lock, next int64, err error) {
	if f.Limit <= 0 || f.Limit > MaxLockPage {
		f.Limit = MaxLockPage
	}
	most := f.Limit
	f.Limit++
	if list, err = findLocks(ctx, s.DB, p.ID, f); err != nil {
		return nil, 0, fmt.Errorf("locks of project %d: %w", p.ID, err)
	}
	if len(list) > most {
		next = list[most].ID
		list = list[:most]
	}
	return list, next, nil
}

// Unlock removes a lock, for an actor who may push to the project. Removing the lock of
// another user requires force and the Maintainer role; Forbidden otherwise. NotFound if
// there is no such lock.
func (s *Service) Unlock(ctx context.Context, by actor.Actor, p *project.Project, id int64, force bool) (*Lock, error) {
	l, err := findLock(ctx, s.DB, p.ID, id)
	if err != nil {
		return nil, err
	}
	switch {
	case by.Is(l.UserID):
	case !force:
		return l, errs.Forbidden("The lock belongs to %s. Maintainers can remove it with --force.", l.Owner)
	case !s.CanUnlock(by, p, l):
		return l, errs.Forbidden("You must have at least the Maintainer role to remove the lock of another user.")
	}
	if err := deleteLock(ctx, s.DB, l.ID); err != nil {
		return nil, fmt.Errorf("unlock file in project %d: %w", p.ID, err)
	}
	return l, nil
}
