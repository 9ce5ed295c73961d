package repo

import (
	"context"
	"errors"
	"fmt"
	"io"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
)

// Held is a repository in a database backup.
type Held struct {
	ProjectID int64 // 0 for an auxiliary repository
	AuxRepoID int64
	Kind      AuxRepoKind
	Storage   string
	// Filled means that the repository had a push and must exist.
	Filled bool
}

// Path returns the path of the repository in its storage.
func (h Held) Path() string {
	if h.ProjectID != 0 {
		return pathOf(h.ProjectID)
	}
	return auxRepoPath(h.Kind, h.AuxRepoID)
}

// Bundle writes a repository as a bundle and returns its default branch. Pushes
// may go on at the same time. Only the system may call it, for svc backup.
// NotFound if the repository does not exist. The caller may retry after an
// error: the repository may have been moved to another storage.
func (s *Service) Bundle(ctx context.Context, by actor.Actor, h Held, w io.Writer) (branch string, err error) {
	if by.ID != actor.SystemID {
		return "", errs.Forbidden("")
	}
	table, id := "annexes", h.AuxRepoID
	if h.ProjectID != 0 {
		table, id = "projects", h.ProjectID
	}
	storage, err := findStorage(ctx, s.DB, table, id)
	if errors.Is(err, db.ErrNoRows) {
		storage, err = h.Storage, nil // its files may still exist
	}
	if err != nil {
		return "", fmt.Errorf("find %s: %w", h.Path(), err)
	}
	r, err := s.at(storage, h.Path())
	if err != nil {
		return "", err
	}
	branch, _, err = r.BundleAll(ctx, w)
	if errors.Is(err, git.ErrNoRepository) {
		return "", errs.NotFound("Repository").Because(err)
	}
	return branch, err
}
