package repo

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/db"
	"svc/internal/errs"
)

// Owner is the owner of repositories. Exactly one field is set. A project has its
// own repository and that of its wiki, a group a wiki, a snippet its files.
type Owner struct {
	ProjectID, NamespaceID, SnippetID int64
}

// column returns the column of auxiliary repositories that refers to the owner.
func (o Owner) column() (name string, id int64) {
	switch {
	case o.ProjectID != 0:
		return "project_id", o.ProjectID
	case o.NamespaceID != 0:
		return "namespace_id", o.NamespaceID
	}
	return "snippet_id", o.SnippetID
}

// Located is a repository with its location.
type Located struct {
	Storage  string
	Path     string // in the storage
	ReadOnly bool

	projectID int64
	auxRepoID int64 // 0 for the repository of a project
}

// Located returns the repositories of an owner with their locations. NotFound if
// the owner has none or was deleted.
func (s *Service) Located(ctx context.Context, q db.Q, owner Owner) ([]Located, error) {
	var list []Located
	if id := owner.ProjectID; id != 0 {
		at, err := findPlace(ctx, q, "projects", id)
		if err != nil {
			return nil, db.NotFound(err, "Project")
		}
		list = append(list, Located{Storage: at.storage, Path: pathOf(id), ReadOnly: at.readOnly, projectID: id})
	}
	column, id := owner.column()
	a, err := findAuxRepo(ctx, q, column, id)
	switch {
	case err == nil:
		list = append(list, Located{Storage: a.Storage, Path: auxRepoPath(a.Kind, a.ID), ReadOnly: a.ReadOnly, auxRepoID: a.ID})
	case !errors.Is(err, db.ErrNoRows):
		return nil, err
	case owner.ProjectID == 0:
		return nil, errs.NotFound("Repository")
	}
	return list, nil
}

// LockLocated is Located with the rows locked until the transaction ends.
func (s *Service) LockLocated(ctx context.Context, tx *db.Tx, owner Owner) ([]Located, error) {
	if owner.ProjectID != 0 {
		if err := tx.Lock(ctx, "projects", owner.ProjectID); err != nil {
			return nil, err
		}
	}
	list, err := s.Located(ctx, tx, owner)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		if l.auxRepoID != 0 {
			if err := tx.Lock(ctx, "annexes", l.auxRepoID); err != nil {
				return nil, err
			}
		}
	}
	return s.Located(ctx, tx, owner) // read again under the locks
}

// Relocate sets the storage and the read-only flag of a repository. It moves no
// files.
func (s *Service) Relocate(ctx context.Context, tx *db.Tx, l Located, storage string, readOnly bool) error {
	if l.auxRepoID != 0 {
		return saveAuxRepoPlace(ctx, tx, l.auxRepoID, storage, readOnly)
	}
	return s.Projects.Placed(ctx, tx, l.projectID, storage, readOnly)
}

// AddHousekeeping adds a background job that does the housekeeping of a
// repository if it needs one.
func (s *Service) AddHousekeeping(ctx context.Context, tx *db.Tx, l Located) error {
	if l.auxRepoID != 0 {
		return s.addAuxRepoTidying(ctx, tx, l.auxRepoID, false)
	}
	return s.addTidying(ctx, tx, l.projectID)
}

// CountWriters counts the changes in progress of the repositories of an owner.
func (s *Service) CountWriters(ctx context.Context, q db.Q, owner Owner) (int, error) {
	n, err := countWriters(ctx, q, owner)
	if err != nil {
		return 0, fmt.Errorf("count writers: %w", err)
	}
	return n, nil
}
