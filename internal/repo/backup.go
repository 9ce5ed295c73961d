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

// Held is a repository as a backup of the database knows it.
type Held struct {
	ProjectID int64 // 0 for an annex
	AnnexID   int64
	Kind      AnnexKind
	Storage   string
}

// Path is where it lies in its storage.
func (h Held) Path() string {
	if h.ProjectID != 0 {
		return pathOf(h.ProjectID)
	}
	return annexPath(h.Kind, h.AnnexID)
}

// Bundle writes a repository as a bundle, while others push to it, and gives
// its default branch and the number of its refs. Only the system may, for svc
// backup. NotFound when there is none.
func (s *Service) Bundle(ctx context.Context, by actor.Actor, h Held, w io.Writer) (branch string, refs int, err error) {
	if by.ID != actor.SystemID {
		return "", 0, errs.Forbidden("")
	}
	table, id := "annexes", h.AnnexID
	if h.ProjectID != 0 {
		table, id = "projects", h.ProjectID
	}
	storage := h.Storage
	at, err := findPlace(ctx, s.DB, table, id)
	switch {
	case err == nil: // it may have moved since
		storage = at.storage
	case !errors.Is(err, db.ErrNoRows):
		return "", 0, fmt.Errorf("find %s: %w", h.Path(), err)
	}
	r, err := s.at(storage, h.Path())
	if err != nil {
		return "", 0, err
	}
	branch, refs, err = r.BundleAll(ctx, w)
	if errors.Is(err, git.ErrNoRepository) {
		return "", 0, errs.NotFound("Repository").Because(err)
	}
	return branch, refs, err
}
