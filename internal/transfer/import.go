package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/mail"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/secret"
	"svc/internal/transfer/archive"
)

// Import is the import of a group or project from a file.
type Import struct {
	ID         int64
	Project    bool
	UserID     *int64 // the user who started it; nil if deleted
	Name       string // of the new group or project
	Path       string
	ParentID   *int64 // the parent group, nil for a top-level group; the namespace of a project
	OwnerID    *int64 // the group or project, when it is finished and until it is deleted
	State      State
	Done       int64 // bytes; the file is read twice
	Total      int64
	Error      string
	Report     Report
	CreatedAt  time.Time
	FinishedAt *time.Time

	draft     *int64 // the group or project while it is hidden
	tries     int64
	attempt   *int64 // the value of tries in the row, for the attempt that runs; nil for others, such as who cancels
	file      string
	overrides Overrides // of a project
	source    string    // of a project: where its file is fetched from, sealed
	entity    *Entity   // the source of the file; nil if it was uploaded
}

// Percent is the progress. It is 0 until the file is there.
func (i *Import) Percent() int {
	if i.Fetching() {
		return 0
	}
	return percent(i.State, i.Done, i.Total)
}

// Fetching reports whether the file of the import is still to be fetched from a URL or
// a bucket.
func (i *Import) Fetching() bool { return i.source != "" && i.Going() }

// Going reports whether the import is pending or running.
func (i *Import) Going() bool { return i.State == Uploading || i.State == Queued || i.State == Started }

// keepImport is how long the report of an import is kept.
const keepImport = 90 * 24 * time.Hour

// ImportWork is an import of a group in the background.
type ImportWork struct {
	ImportID int64 `json:"import_id"`
}

// Kind implements queue.Work.
func (ImportWork) Kind() string { return "transfer_import" }

// ProjectImportWork is an import of a project in the background. It has its own
// kind, because nodes of older releases know only groups.
type ProjectImportWork ImportWork

// Kind implements queue.Work.
func (ProjectImportWork) Kind() string { return "transfer_project_import" }

// EntityImportWork is ProjectImportWork for the file of an entity of a bulk import. It has
// its own kind, because it has its own lane.
type EntityImportWork ImportWork

// Kind implements queue.Work.
func (EntityImportWork) Kind() string { return "transfer_entity_import" }

// NewImport has the fields of a new import.
type NewImport struct {
	Name     string
	Path     string
	ParentID *int64 // nil for a top-level group
	Size     int64  // of the file; 0 if unknown
	File     io.Reader
}

// Limit returns the maximum size of a file in bytes; 0 is no limit.
func (s *Service) Limit(ctx context.Context) (int64, error) {
	now, err := s.Settings.Current(ctx)
	return int64(now.MaxImportMegabytes) << 20, err
}

// StartImport stores a file and starts the import of its group in the background. It
// requires permission to create the group; Unauthorized, Forbidden, NotFound,
// Invalid, and TooLarge for a file above the limit.
func (s *Service) StartImport(ctx context.Context, by actor.Actor, n NewImport) (*Import, error) {
	if err := s.Projects.CheckGroup(ctx, by, project.NewGroup{Name: n.Name, Path: n.Path, ParentID: n.ParentID}); err != nil {
		return nil, err
	}
	i := &Import{Name: n.Name, Path: n.Path, ParentID: n.ParentID}
	return i, s.receive(ctx, by, i, n.Size, n.File, func(ctx context.Context, tx *db.Tx) error {
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "group_import_created", Entity: audit.Entity{Type: audit.UserEntity, ID: by.ID, Path: by.Username},
			Target: audit.Target{Type: "GroupImport", ID: i.ID, Details: i.Path}, Details: audit.Details{Add: "import", Message: "Group import started"},
		})
	})
}

// receive stores the file of an import and adds the background job. begin is called in
// its transaction. TooLarge.
func (s *Service) receive(ctx context.Context, by actor.Actor, i *Import, given int64, file io.Reader, begin func(ctx context.Context, tx *db.Tx) error) error {
	most, err := s.Limit(ctx)
	if err != nil {
		return err
	}
	if most > 0 && given > most {
		return tooLarge(most)
	}
	i.UserID, i.State, i.CreatedAt, i.Total, i.file = &by.ID, Uploading, s.Now(), 2*given, "transfer/imports/"+secret.Token("")+".tar.gz"
	// The row is committed before the file is stored, so that the file of an
	// interrupted upload is found and removed.
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertImport(ctx, tx, i); err != nil {
			return err
		}
		return admit(ctx, tx, by)
	})
	if err != nil {
		return fmt.Errorf("add import: %w", err)
	}
	within := archive.Bounded(file, func(read int64) error {
		if most > 0 && read > most {
			return tooLarge(most)
		}
		return nil
	})
	size, err := s.Blobs.Put(ctx, i.file, within, blob.Options{ContentType: "application/gzip", Size: given})
	if err == nil {
		i.State, i.Total = Queued, 2*size
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			if err := moveImport(ctx, tx, i, Uploading); err != nil {
				return err
			}
			if err := begin(ctx, tx); err != nil {
				return err
			}
			return s.Queue.Add(ctx, tx, i.work(), queue.In(lane), queue.Tries(maxTries+1))
		})
	}
	if err != nil {
		// Without the file or the namespace there is no import. But the transaction may have
		// been committed, and only its answer lost: then the import goes on.
		ctx := context.WithoutCancel(ctx)
		err = fmt.Errorf("keep the file of import %d: %w", i.ID, err)
		deleted, failed := deleteUploading(ctx, s.DB, i)
		if deleted {
			failed = s.Blobs.Delete(ctx, i.file)
		}
		return errors.Join(err, failed)
	}
	return nil
}

// maxFiles is the maximum number of pending and running imports of files of a user. Those of
// bulk imports, which have their own limit, are not counted.
const maxFiles = 10

// admit returns Invalid if the user has more imports of files than allowed, including the
// one that the transaction has added.
func admit(ctx context.Context, tx *db.Tx, by actor.Actor) error {
	if err := tx.Lock(ctx, "users", by.ID); err != nil {
		return err
	}
	n, err := countFiles(ctx, tx, by.ID)
	if err != nil {
		return err
	}
	if n > maxFiles {
		return errs.Invalid("%d of your imports are under way. Wait until one of them ends, or cancel it.", n-1)
	}
	return nil
}

func tooLarge(most int64) error { return errs.TooLarge("The file has more than %d MiB.", most>>20) }

// Import returns an import of a group, for the user who started it and
// administrators; NotFound.
func (s *Service) Import(ctx context.Context, by actor.Actor, id int64) (*Import, error) {
	return s.imported(ctx, by, func() (*Import, error) { return findImport(ctx, s.DB, false, id) })
}

func (s *Service) imported(ctx context.Context, by actor.Actor, find func() (*Import, error)) (*Import, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	i, err := find()
	if err != nil {
		return nil, fmt.Errorf("find import: %w", err)
	}
	if i == nil || !by.Admin && (i.UserID == nil || *i.UserID != by.ID) {
		return nil, errs.NotFound("Import")
	}
	return i, nil
}

// Imports lists the imports of groups that the actor has started, the newest first.
func (s *Service) Imports(ctx context.Context, by actor.Actor, p db.Paging) (db.Page[*Import], error) {
	return s.listImports(ctx, by, false, p)
}

func (s *Service) listImports(ctx context.Context, by actor.Actor, project bool, p db.Paging) (db.Page[*Import], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[*Import]{}, err
	}
	page, err := listImports(ctx, s.DB, project, by.ID, p)
	if err != nil {
		return page, fmt.Errorf("list imports: %w", err)
	}
	return page, nil
}

// RunImport runs an import.
func (s *Service) RunImport(ctx context.Context, w ImportWork) error {
	return s.runImport(ctx, false, w.ImportID)
}

// RunProjectImport is RunImport for a project.
func (s *Service) RunProjectImport(ctx context.Context, w ProjectImportWork) error {
	return s.runImport(ctx, true, w.ImportID)
}

// RunEntityImport is RunProjectImport for the file of an entity of a bulk import.
func (s *Service) RunEntityImport(ctx context.Context, w EntityImportWork) error {
	return s.runImport(ctx, true, w.ImportID)
}

// work returns the background job of the import.
func (i *Import) work() queue.Work {
	if i.Project {
		return ProjectImportWork{i.ID}
	}
	return ImportWork{i.ID}
}

func (s *Service) runImport(ctx context.Context, ofProject bool, id int64) error {
	i, err := findImport(ctx, s.DB, ofProject, id)
	if err != nil || i == nil || !i.Going() {
		return err
	}
	if i.entity, err = findEntityOf(ctx, s.DB, i); err != nil {
		return err
	}
	i.join()
	ended := func(ctx context.Context, err error) error {
		if err != nil && isNoRows(attemptGoing(ctx, s.DB, i)) {
			return errEnded // the error is that what it works on is gone
		}
		return err
	}
	return s.run(ctx, task{
		name: fmt.Sprintf("import %d", i.ID), tries: &i.tries,
		begin: func(ctx context.Context) error {
			err := s.beginImport(ctx, i)
			if isNoRows(err) || err != nil && isNoRows(importGoing(ctx, s.DB, i)) {
				return errEnded
			}
			return err
		},
		do: func(ctx context.Context) error { return ended(ctx, s.imports(ctx, i)) },
		fail: func(ctx context.Context, why string) error {
			if err := s.failImport(ctx, i, why); !isNoRows(err) {
				return err
			}
			return nil // it was canceled
		},
	})
}

// join makes i the import of an attempt, which another attempt may take over: if a node is
// taken for dead, its job is run again. The tries of the row show that.
func (i *Import) join() {
	n := i.tries
	i.attempt = &n
}

// beginImport counts an attempt, and removes what the previous one has written.
func (s *Service) beginImport(ctx context.Context, i *Import) error {
	i.Report = Report{}
	if i.Project {
		return s.beginProject(ctx, i)
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.dropDraft(ctx, tx, i); err != nil {
			return err
		}
		return startImport(ctx, tx, i)
	})
	if err != nil {
		return err
	}
	i.join()
	return nil
}

func (s *Service) dropDraft(ctx context.Context, tx *db.Tx, i *Import) error {
	if i.draft == nil {
		return nil
	}
	if err := s.Projects.DropDraft(ctx, tx, *i.draft); err != nil {
		return err
	}
	i.draft = nil
	return saveDraft(ctx, tx, i)
}

// imports reads the file twice: first to check it and to find the users in it, then
// to create the group.
func (s *Service) imports(ctx context.Context, i *Import) error {
	by, err := s.as(ctx, i.UserID)
	if err != nil {
		return err
	}
	if i.Project {
		return s.importProject(ctx, i, by)
	}
	to := project.NewGroup{Name: i.Name, Path: i.Path, ParentID: i.ParentID}
	if err := s.Projects.CheckGroup(ctx, by, to); err != nil {
		return err
	}
	put := &filling{Service: s, by: by, i: i}
	err = s.readTwice(ctx, i, by, archive.Groups(), func(people *archive.UserList) (archive.Taker, error) {
		put.people = people.Digests
		return put, nil
	})
	if err != nil {
		return err
	}
	return s.finishImport(ctx, i, put.drafts[0], to)
}

// readTwice reads the file of an import: first to check it and to find the users in
// it, then for the taker that begin returns. It stops if the import is canceled, or taken
// over by another attempt.
func (s *Service) readTwice(ctx context.Context, i *Import, by actor.Actor, k archive.Kind, begin func(*archive.UserList) (archive.Taker, error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer watch(ctx, func() error { return attemptGoing(ctx, s.DB, i) }, cancel)()
	m := s.measure(ctx, func(ctx context.Context, done int64) error {
		return saveProgress(ctx, s.DB, tablesOf(i.Project).imports, i.ID, done, i.Total)
	})
	defer m.close()
	var people *archive.UserList
	err := s.withFile(ctx, i, func(file io.Reader) (err error) {
		people, err = archive.Inspect(ctx, file, k, m.done.Store)
		return err
	})
	if err != nil {
		return err
	}
	if !by.Admin { // no other user learns which addresses have accounts
		clear(people.Digests)
	}
	if err := s.Users.Recognise(ctx, people.Digests); err != nil {
		return err
	}
	to, err := begin(people)
	if err != nil {
		return err
	}
	half := i.Total / 2
	return s.withFile(ctx, i, func(file io.Reader) (err error) {
		i.Report.Imported, err = archive.Read(ctx, file, k, to, func(read int64) { m.done.Store(half + read) })
		return err
	})
}

// withFile calls read with the uploaded file.
func (s *Service) withFile(ctx context.Context, i *Import, read func(file io.Reader) error) error {
	file, err := s.Blobs.Get(ctx, i.file)
	if errs.Is(err, errs.KindNotFound) {
		return errs.Invalid("The file was deleted.").Because(err)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return read(file)
}

// finishImport makes the group visible. The user and their right to create it are
// checked again, because the import may have taken hours.
func (s *Service) finishImport(ctx context.Context, i *Import, d *project.Draft, to project.NewGroup) error {
	now := s.Now()
	by, err := s.as(ctx, i.UserID)
	if err != nil {
		return err
	}
	if err := s.Projects.CheckGroup(ctx, by, to); err != nil {
		return err
	}
	visibility, projects, err := s.groupOf(ctx, i.entity)
	if err != nil {
		return err
	}
	to.Visibility = visibility
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := lockEnd(ctx, tx, i); err != nil {
			return err
		}
		g, err := s.Projects.ShowDraft(ctx, tx, by, d, to, fmt.Sprintf("Group imported with %d members, %d subgroups", i.Report.Imported.Members-i.Report.Lost[memberThing], i.Report.Imported.Groups-1))
		if err != nil {
			return err
		}
		i.OwnerID, i.State, i.FinishedAt, i.Done = &g.ID, Finished, &now, i.Total
		if err := endImport(ctx, tx, i); err != nil {
			return err
		}
		if i.entity != nil {
			return s.finishEntity(ctx, tx, i, g.FullPath, projects)
		}
		return s.post(ctx, tx, by, mail.Email{
			Subject: "Group " + g.FullPath + " was imported",
			Lines:   []string{"The group " + g.FullName + " was imported from the file that you uploaded."},
			Action:  "View the import", Path: fmt.Sprintf("/-/group_imports/%d", i.ID),
		})
	})
	if isNoRows(err) { // canceled
		return nil
	}
	if err != nil {
		return fmt.Errorf("finish import: %w", err)
	}
	s.dropFile(ctx, i)
	return nil
}

// failImport ends an import without a group or project.
func (s *Service) failImport(ctx context.Context, i *Import, why string) error {
	now := s.Now()
	e, err := findEntityOf(ctx, s.DB, i)
	if err != nil {
		return err
	}
	i.State, i.Error, i.FinishedAt, i.OwnerID, i.Report, i.entity = Failed, why, &now, nil, Report{}, e
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := lockEnd(ctx, tx, i); err != nil {
			return err
		}
		if err := s.endFailed(ctx, tx, i); err != nil {
			return err
		}
		if e == nil {
			return nil
		}
		e.State = Failed
		return s.endEntity(ctx, tx, e, []*Failure{{Relation: kindOf(e.Project), Title: e.SourcePath, Path: "/" + e.SourcePath, Message: why, CreatedAt: now}}, 1)
	})
	if err != nil {
		return fmt.Errorf("give up import %d: %w", i.ID, err)
	}
	s.dropFile(ctx, i)
	return nil
}

// endFailed ends an import that has failed, and removes what it has written.
// ErrNoRows if the import has ended already.
func (s *Service) endFailed(ctx context.Context, tx *db.Tx, i *Import) error {
	if !i.Project {
		if err := s.dropDraft(ctx, tx, i); err != nil {
			return err
		}
	}
	if err := endImport(ctx, tx, i); err != nil {
		return err
	}
	if i.Project && i.draft != nil {
		return s.Projects.DropProject(ctx, tx, *i.draft)
	}
	return nil
}

// dropFile removes the uploaded file. If it fails, sweep does it later.
func (s *Service) dropFile(ctx context.Context, i *Import) {
	ctx = context.WithoutCancel(ctx)
	err := s.Blobs.Delete(ctx, i.file)
	if err == nil {
		err = forgetFile(ctx, s.DB, i)
	}
	if err != nil {
		s.Log.WarnContext(ctx, "cannot remove the file of an import", "import", i.ID, "error", err)
	}
	if i.entity != nil {
		s.dropParts(ctx, i.entity.ID)
	}
}
