package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/mail"
	"svc/internal/project"
	"svc/internal/transfer/archive"
	"svc/internal/transfer/rows"
)

// NewProjectImport has the fields of a new import of a project.
type NewProjectImport struct {
	Name        string // default: the path
	Path        string
	NamespaceID *int64 // default: that of the actor
	Overrides   Overrides
	Size        int64 // of the file; 0 if unknown
	File        io.Reader
}

// StartProjectImport stores a file and starts the import of its project in the
// background. It requires permission to create the project; Unauthorized, Forbidden,
// NotFound, Invalid, and TooLarge for a file above the limit. The path is reserved
// at once, but the project is hidden until the import is complete.
func (s *Service) StartProjectImport(ctx context.Context, by actor.Actor, n NewProjectImport) (*Import, *project.Project, error) {
	i, to, err := s.newProjectImport(ctx, by, n)
	if err != nil {
		return nil, nil, err
	}
	var p *project.Project
	err = s.receive(ctx, by, i, n.Size, n.File, func(ctx context.Context, tx *db.Tx) (err error) {
		p, err = s.beginProjectImport(ctx, tx, by, i, to, "Project import started")
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return i, p, nil
}

// newProjectImport checks the fields of a new import, and returns it with the fields of
// its project.
func (s *Service) newProjectImport(ctx context.Context, by actor.Actor, n NewProjectImport) (*Import, project.NewProject, error) {
	to := project.NewProject{Name: n.Name, Path: n.Path, NamespaceID: n.NamespaceID}
	if to.Name == "" {
		to.Name = n.Path
	}
	if err := s.Projects.CheckProject(ctx, by, to); err != nil {
		return nil, to, err
	}
	if err := n.Overrides.apply(&project.Project{Settings: project.DefaultSettings()}); err != nil {
		return nil, to, err
	}
	if to.NamespaceID == nil {
		own, err := s.Projects.OwnNamespace(ctx, by)
		if err != nil {
			return nil, to, err
		}
		to.NamespaceID = &own
	}
	return &Import{Project: true, Name: to.Name, Path: to.Path, ParentID: to.NamespaceID, overrides: n.Overrides}, to, nil
}

// beginProjectImport creates the draft of an import's project.
func (s *Service) beginProjectImport(ctx context.Context, tx *db.Tx, by actor.Actor, i *Import, to project.NewProject, message string) (*project.Project, error) {
	p, err := s.Projects.BeginProject(ctx, tx, by, to)
	if err != nil {
		return nil, err
	}
	i.draft = &p.ID
	if err := saveDraft(ctx, tx, i); err != nil {
		return nil, err
	}
	return p, audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: "project_import_created", Entity: audit.Entity{Type: audit.UserEntity, ID: by.ID, Path: by.Username},
		Target: audit.Target{Type: "ProjectImport", ID: i.ID, Details: p.FullPath}, Details: audit.Details{Add: "import", Message: message},
	})
}

// ProjectImport returns the import of a project from a file by its ID, for the user
// who started it and administrators; NotFound.
func (s *Service) ProjectImport(ctx context.Context, by actor.Actor, id int64) (*Import, error) {
	return s.imported(ctx, by, func() (*Import, error) { return findImport(ctx, s.DB, true, id) })
}

// ProjectImportOf is ProjectImport by the ID of the new project, which may be
// hidden, or deleted because the import failed.
func (s *Service) ProjectImportOf(ctx context.Context, by actor.Actor, projectID int64) (*Import, error) {
	return s.imported(ctx, by, func() (*Import, error) { return findImportOf(ctx, s.DB, projectID) })
}

// FileImport returns the report of the import that created a project, which the
// actor can see; nil if it was not imported from a file, or the report has expired.
// Only the user who started the import and administrators get it.
func (s *Service) FileImport(ctx context.Context, by actor.Actor, p *project.Project) (*Import, error) {
	if p.ImportType != project.FromFile {
		return nil, nil
	}
	i, err := s.ProjectImportOf(ctx, by, p.ID)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	return i, err
}

// ProjectImports lists the imports of projects that the actor has started, the
// newest first.
func (s *Service) ProjectImports(ctx context.Context, by actor.Actor, p db.Paging) (db.Page[*Import], error) {
	return s.listImports(ctx, by, true, p)
}

// ProjectID returns the ID of the project of an import, also while it is hidden.
func (i *Import) ProjectID() int64 {
	switch {
	case i.OwnerID != nil:
		return *i.OwnerID
	case i.draft != nil:
		return *i.draft
	}
	return 0
}

// CancelProjectImport cancels the import of a project, for the user who started it
// and administrators. What it has written is removed. NotFound; Conflict if the
// import has ended.
func (s *Service) CancelProjectImport(ctx context.Context, by actor.Actor, id int64) error {
	i, err := s.ProjectImport(ctx, by, id)
	if err != nil {
		return err
	}
	if i.State != Queued && i.State != Started {
		return errs.Conflict("No import of the project is in progress.")
	}
	err = s.failImport(ctx, i, "The import was canceled.")
	if errors.Is(err, db.ErrNoRows) {
		return errs.Conflict("No import of the project is in progress.")
	}
	return err
}

// beginProject counts an attempt, and removes what the previous one has written.
func (s *Service) beginProject(ctx context.Context, i *Import) error {
	first := i.tries == 1
	if err := startImport(ctx, s.DB, i); err != nil {
		return err
	}
	i.join()
	if first || i.draft == nil {
		return nil
	}
	// Waits for the previous attempt, if it is writing. It does not write any more then.
	if err := s.DB.Tx(ctx, func(tx *db.Tx) error { return tx.Lock(ctx, "projects", *i.draft) }); err != nil {
		return err
	}
	for table := range rows.Tables() {
		if err := rows.Clear(ctx, s.DB, *i.draft, table); err != nil {
			return fmt.Errorf("clear draft %d: %w", *i.draft, err)
		}
	}
	p, err := s.Projects.DraftProject(ctx, s.DB, *i.draft)
	if errs.Is(err, errs.KindNotFound) {
		return nil // importProject returns this error
	}
	if err != nil {
		return err
	}
	if err := s.Content.Repos.DiscardProject(ctx, p); err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error { return s.Content.Repos.DropOrphans(ctx, tx) })
}

// importProject fills the draft of a project and makes it visible.
func (s *Service) importProject(ctx context.Context, i *Import, by actor.Actor) error {
	gone := errs.Invalid("The project, or its group, was deleted.")
	if i.draft == nil {
		return gone
	}
	p, err := s.Projects.DraftProject(ctx, s.DB, *i.draft)
	if errs.Is(err, errs.KindNotFound) {
		return gone.Because(err)
	}
	if err != nil {
		return err
	}
	ghost, err := rows.Ghost(ctx, s.DB)
	if err != nil {
		return fmt.Errorf("find ghost user: %w", err)
	}
	put := &projectFilling{Service: s, by: by, i: i, p: p}
	put.to = rows.Target{Plan: s.Plan, Draft: rows.Draft(p), NamespaceID: p.NamespaceID, ByID: by.ID, GhostID: ghost, Now: s.Now()}
	err = s.readTwice(ctx, i, by, archive.Project(), func(people *archive.UserList) (archive.Taker, error) {
		for _, row := range people.List {
			u := rows.User{Username: row.Username, Name: row.Name}
			if d, ok, err := row.Digest(); err != nil {
				return nil, err
			} else if ok {
				u.ID = people.Digests[d]
			}
			put.to.Users = append(put.to.Users, u)
		}
		return put, nil
	})
	if errors.Is(err, errCanceled) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := put.complete(); err != nil {
		return err
	}
	return s.finishProject(ctx, i, put)
}

// errCanceled ends the reading of a file whose import was canceled.
var errCanceled = errors.New("the import was canceled")

// finishProject makes the project visible. The user and their right to create it are
// checked again, because the import may have taken hours.
func (s *Service) finishProject(ctx context.Context, i *Import, put *projectFilling) error {
	by, err := s.as(ctx, i.UserID)
	if err != nil {
		return err
	}
	put.report()
	now := s.Now()
	p := put.p
	if err := i.overrides.apply(p); err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := lockEnd(ctx, tx, i); err != nil {
			return err
		}
		t := &i.Report.Imported
		message := fmt.Sprintf("Project imported with %d issues, %d merge requests", t.Issues, t.MergeRequests)
		if err := s.Projects.ShowProject(ctx, tx, by, p, message); err != nil {
			return err
		}
		if put.rules != nil {
			if err := s.Content.PushRules.Put(ctx, tx, p.ID, *put.rules); err != nil {
				return err
			}
		}
		if err := s.Content.Repos.Filled(ctx, tx, p); err != nil {
			return err
		}
		if err := s.Content.Code.Build(ctx, tx, p.ID); err != nil {
			return err
		}
		i.OwnerID, i.State, i.FinishedAt, i.Done = &p.ID, Finished, &now, i.Total
		if err := endImport(ctx, tx, i); err != nil {
			return err
		}
		if i.entity != nil {
			return s.finishEntity(ctx, tx, i, p.FullPath, nil)
		}
		return s.post(ctx, tx, by, mail.Email{
			Subject: "Project " + p.FullPath + " was imported",
			Lines:   []string{"The project " + p.FullName() + " was imported from a file."},
			Action:  "View the import", Path: fmt.Sprintf("/-/project_imports/%d", i.ID),
		})
	})
	if errors.Is(err, db.ErrNoRows) { // canceled
		return nil
	}
	if err != nil {
		return fmt.Errorf("finish import: %w", err)
	}
	s.dropFile(ctx, i)
	return nil
}
