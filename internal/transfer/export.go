package transfer

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/mail"
	"svc/internal/project"
	"svc/internal/queue"
)

// Export is the export of a group or project to a file.
type Export struct {
	ID         int64
	Project    bool
	OwnerID    *int64 // the group or project; nil if deleted
	UserID     *int64 // the user who started it; nil if deleted
	State      State
	Done       int64 // rows
	Total      int64
	Size       int64 // bytes of the file
	Error      string
	CreatedAt  time.Time
	FinishedAt *time.Time
	ExpiresAt  *time.Time

	tries       int64
	addresses   bool    // it has digests of addresses; for administrators only
	description *string // of a project, instead of its own
	upload      string  // of a project: where its file is sent to, sealed
}

// Percent is the progress.
func (e *Export) Percent() int { return percent(e.State, e.Done, e.Total) }

// Going reports whether the export is pending or running.
func (e *Export) Going() bool { return e.State == Queued || e.State == Started }

// key is the key of the file in the object storage.
func (e *Export) key() string {
	if e.Project {
		return fmt.Sprintf("transfer/project_exports/%d.tar.gz", e.ID)
	}
	return fmt.Sprintf("transfer/exports/%d.tar.gz", e.ID)
}

// keepExport is how long a file can be downloaded.
const keepExport = 7 * 24 * time.Hour

// ExportWork is an export of a group in the background.
type ExportWork struct {
	ExportID int64 `json:"export_id"`
}

// Kind implements queue.Work.
func (ExportWork) Kind() string { return "transfer_export" }

// ProjectExportWork is an export of a project in the background. It has its own
// kind, because nodes of older releases know only groups.
type ProjectExportWork ExportWork

// Kind implements queue.Work.
func (ProjectExportWork) Kind() string { return "transfer_project_export" }

// StartExport starts the export of a group with its subgroups in the background, for
// Owners; NotFound, Forbidden. It returns the current export if there is one. The
// file of an administrator has digests of the addresses of members, so that an
// import elsewhere can find their accounts; other files have none, because digests
// of addresses are easily guessed.
func (s *Service) StartExport(ctx context.Context, by actor.Actor, ref project.Ref) (*Export, error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return nil, err
	}
	e := &Export{OwnerID: &g.ID}
	place := audit.Entity{Type: audit.GroupEntity, ID: g.ID, Path: g.FullPath}
	return s.startExport(ctx, by, e, nil, "namespaces", audit.Event{
		Type: "group_export_created", Entity: place, Details: audit.Details{Add: "export", Message: "Group export started"},
	})
}

// startExport adds an export, unless there is a current one of the same kind, with or
// without addresses; Conflict if the file is also to be sent somewhere.
func (s *Service) startExport(ctx context.Context, by actor.Actor, e *Export, to *Upload, table string, event audit.Event) (*Export, error) {
	e.UserID, e.State, e.CreatedAt, e.addresses = &by.ID, Queued, s.Now(), by.Admin
	found := e
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, table, *e.OwnerID); err != nil {
			return err
		}
		list, err := findExports(ctx, tx, e.Project, *e.OwnerID)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(other *Export) bool { return other.addresses != e.addresses })
		if len(list) > 0 && list[0].Going() {
			if found = list[0]; to != nil {
				return errs.Conflict("An export is in progress. Upload its file when it has finished, or start another export then.")
			}
			return nil
		}
		found, e.upload = e, ""
		if err := insertExport(ctx, tx, e); err != nil {
			return err
		}
		if to != nil {
			if err := s.sealUpload(ctx, tx, e, to); err != nil {
				return err
			}
		}
		if err := audit.Record(ctx, tx, by, s.Now(), event); err != nil {
			return err
		}
		return s.Queue.Add(ctx, tx, e.work(), queue.In(e.lane()), queue.Tries(maxTries+1))
	})
	if err != nil {
		return nil, fmt.Errorf("start export: %w", err)
	}
	return found, nil
}

// Exports are the latest exports of a group or project. For administrators, an export with
// addresses comes before newer ones without them.
type Exports struct {
	Group   *project.Namespace
	Project *project.Project
	Last    *Export // the newest; nil for none
	Ready   *Export // the newest that can be downloaded; nil for none
}

// visible removes the exports that an actor may not download. Those with addresses come
// first.
func visible(list []*Export, by actor.Actor) []*Export {
	var with, without []*Export
	for _, e := range list {
		switch {
		case !e.addresses:
			without = append(without, e)
		case by.Admin:
			with = append(with, e)
		}
	}
	return append(with, without...)
}

// Exports returns the latest exports of a group, for Owners. Only administrators see
// exports with addresses; NotFound, Forbidden.
func (s *Service) Exports(ctx context.Context, by actor.Actor, ref project.Ref) (*Exports, error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return nil, err
	}
	found := &Exports{Group: g}
	return found, s.fillExports(ctx, by, found, false, g.ID)
}

func (s *Service) fillExports(ctx context.Context, by actor.Actor, found *Exports, project bool, ownerID int64) error {
	list, err := findExports(ctx, s.DB, project, ownerID)
	if err != nil {
		return fmt.Errorf("find exports: %w", err)
	}
	for _, e := range visible(list, by) {
		if e.ExpiresAt != nil && !e.ExpiresAt.After(s.Now()) {
			continue
		}
		if found.Last == nil {
			found.Last = e
		}
		if found.Ready == nil && e.State == Finished {
			found.Ready = e
		}
	}
	return nil
}

// OpenExport opens the newest file of a group, for Owners; the caller closes it.
// NotFound, also if there is no file or it has expired; Forbidden.
func (s *Service) OpenExport(ctx context.Context, by actor.Actor, ref project.Ref) (*Exports, *blob.Object, error) {
	found, err := s.Exports(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	return s.openExport(ctx, found)
}

func (s *Service) openExport(ctx context.Context, found *Exports) (*Exports, *blob.Object, error) {
	missing := errs.NotFound("Not found or has expired")
	missing.Bare = true
	if found.Ready == nil {
		return nil, nil, missing
	}
	file, err := s.Blobs.Get(ctx, found.Ready.key())
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil, missing.Because(err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open export %d: %w", found.Ready.ID, err)
	}
	return found, file, nil
}

// FileName returns the name of the downloaded file.
func (e *Exports) FileName() string {
	path := ""
	if e.Project != nil {
		path = e.Project.Path
	} else {
		path = e.Group.Path
	}
	return fmt.Sprintf("%s_%s_export.tar.gz", e.Ready.CreatedAt.UTC().Format("2006-01-02_15-04-05"), path)
}

// RunExport runs an export.
func (s *Service) RunExport(ctx context.Context, w ExportWork) error {
	return s.runExport(ctx, false, w.ExportID)
}

// RunProjectExport is RunExport for a project.
func (s *Service) RunProjectExport(ctx context.Context, w ProjectExportWork) error {
	return s.runExport(ctx, true, w.ExportID)
}

// work returns the background job of the export.
func (e *Export) work() queue.Work {
	switch {
	case e.upload != "":
		return ProjectUploadWork{e.ID}
	case e.Project:
		return ProjectExportWork{e.ID}
	}
	return ExportWork{e.ID}
}

// lane returns the lane of the background job.
func (e *Export) lane() string {
	if e.upload != "" {
		return remoteLane
	}
	return lane
}

func (s *Service) runExport(ctx context.Context, ofProject bool, id int64) error {
	e, err := findExport(ctx, s.DB, ofProject, id)
	if err != nil || e == nil || !e.Going() {
		return err
	}
	return s.run(ctx, task{
		name: fmt.Sprintf("export %d", e.ID), tries: &e.tries,
		begin: func(ctx context.Context) error { return startExport(ctx, s.DB, e) },
		do:    func(ctx context.Context) error { return s.export(ctx, e) },
		fail:  func(ctx context.Context, why string) error { return s.failExport(ctx, e, why) },
	})
}

// export writes the file and notifies the user.
func (s *Service) export(ctx context.Context, e *Export) error {
	if e.OwnerID == nil {
		return errs.NotFound("Group or project")
	}
	by, err := s.as(ctx, e.UserID)
	if err != nil {
		return err
	}
	if e.Project {
		return s.exportProject(ctx, e, by)
	}
	top, tree, err := s.Projects.Tree(ctx, by, project.RefTo(*e.OwnerID))
	if err != nil {
		return err
	}
	if e.Total, err = s.countRows(ctx, top, len(tree)); err != nil {
		return err
	}
	err = s.measured(ctx, e, func(out io.Writer, m *meter) error { return s.write(ctx, out, m, top, tree, e.addresses && by.Admin) })
	if err != nil {
		return err
	}
	return s.finishExport(ctx, e, by, notice{"group", top.FullPath, top.FullName, "/groups/" + top.FullPath + "/-/settings/export"})
}

// measured stores the output of write, and saves the progress.
func (s *Service) measured(ctx context.Context, e *Export, write func(out io.Writer, m *meter) error) (err error) {
	m := s.measure(ctx, func(ctx context.Context, done int64) error {
		return saveProgress(ctx, s.DB, tablesOf(e.Project).exports, e.ID, done, e.Total)
	})
	e.Size, err = s.store(ctx, e, func(out io.Writer) error { return write(out, m) })
	m.close()
	return err
}

// notice is the data of the email about an export.
type notice struct{ noun, path, name, page string }

// store stores the output of write as a stream.
func (s *Service) store(ctx context.Context, e *Export, write func(io.Writer) error) (int64, error) {
	in, out := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := write(out)
		out.CloseWithError(err)
		wrote <- err
	}()
	size, err := s.Blobs.Put(ctx, e.key(), in, blob.Options{ContentType: "application/gzip"})
	in.CloseWithError(err) // the reader has stopped: the writer must not block
	if cause := <-wrote; err == nil || cause != nil && cause != io.ErrClosedPipe {
		err = cause // it is more specific
	}
	return size, err
}

func (s *Service) countRows(ctx context.Context, top *project.Namespace, groups int) (int64, error) {
	sizes, err := s.Plan.GroupSizes(ctx, top)
	if err != nil {
		return 0, err
	}
	boards, err := s.Boards.Count(ctx, top)
	if err != nil {
		return 0, err
	}
	badges, err := s.Badges.Count(ctx, top)
	if err != nil {
		return 0, err
	}
	members, err := s.Projects.CountMembers(ctx, top)
	return int64(groups) + sizes.Labels + sizes.Milestones + boards + badges + members, err
}

func (s *Service) finishExport(ctx context.Context, e *Export, by actor.Actor, of notice) error {
	now := s.Now()
	until := now.Add(keepExport)
	e.State, e.FinishedAt, e.ExpiresAt, e.Done = Finished, &now, &until, e.Total
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := endExport(ctx, tx, e); err != nil {
			return err
		}
		if err := outdateExports(ctx, tx, e, now); err != nil {
			return err
		}
		return s.post(ctx, tx, by, mail.Email{
			Subject: "Export of " + of.path + " is ready",
			Lines:   []string{"The export of the " + of.noun + " " + of.name + " is complete. You can download the file until " + until.UTC().Format("2 January 2006, 15:04 MST") + "."},
			Action:  "Download", Path: of.page,
		})
	})
	if err != nil {
		return fmt.Errorf("finish export %d: %w", e.ID, err)
	}
	return nil
}

// post sends an email to the user who requested the export or import, if their
// address is confirmed.
func (s *Service) post(ctx context.Context, tx *db.Tx, by actor.Actor, l mail.Email) error {
	if !s.Mail.Enabled() || by.Email == "" {
		return nil
	}
	l.To, l.Name = by.Email, by.Name
	return s.Mail.Post(ctx, tx, l)
}

func (s *Service) failExport(ctx context.Context, e *Export, why string) error {
	now := s.Now()
	until := now.Add(keepExport)
	e.State, e.Error, e.FinishedAt, e.ExpiresAt = Failed, why, &now, &until
	if err := endExport(ctx, s.DB, e); err != nil {
		return fmt.Errorf("give up export %d: %w", e.ID, err)
	}
	return nil
}
