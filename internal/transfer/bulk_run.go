package transfer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/transfer/archive"
	"svc/internal/transfer/remote"
)

// userOfEntity returns the user who started the import of a job.
func (s *Service) userOfEntity(ctx context.Context, w BulkImportWork) (*int64, error) {
	e, err := findEntity(ctx, s.DB, w.EntityID)
	if err != nil || e == nil {
		return nil, err
	}
	return userOf(ctx, s.DB, "bulk_imports", e.ImportID)
}

func (s *Service) waitingEntities(ctx context.Context, userID int64) (int, error) {
	return countWaiting(ctx, s.DB, userID)
}

// RunBulkImport reads an entity of a bulk import. Each step is stored when it is
// complete, so that an interrupted run continues with the step that was interrupted.
// Then the steps are combined into an export file, which is imported like an
// uploaded one.
func (s *Service) RunBulkImport(ctx context.Context, w BulkImportWork) error {
	e, err := findEntity(ctx, s.DB, w.EntityID)
	if err != nil || e == nil || !e.Going() || e.fileID != nil {
		return err
	}
	if e.tries++; e.tries > maxTries {
		return s.failEntity(ctx, e, internalFault)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := startBulkImport(ctx, tx, e.ImportID, s.Now()); err != nil {
			return err
		}
		return startEntity(ctx, tx, e, s.Now())
	})
	if isNoRows(err) {
		return nil // it was canceled
	}
	if err != nil {
		return fmt.Errorf("start entity %d: %w", e.ID, err)
	}
	err = s.fetchEntity(ctx, e)
	var failure *remote.Failure
	switch {
	case err == nil, errors.Is(err, errCanceled):
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return s.failEntity(context.WithoutCancel(ctx), e, "The import took longer than a day.")
	case ctx.Err() != nil:
		// The node stops, and another one continues: this does not count as a failed
		// attempt.
		return errors.Join(err, forgetTry(context.WithoutCancel(ctx), s.DB, e))
	case errors.As(err, &failure):
		s.Log.InfoContext(ctx, "cannot read the source of an import", "entity", e.ID, "error", failure.Text)
		if !failure.Temporary || e.tries >= maxTries {
			return s.failEntity(ctx, e, failure.Text)
		}
	default:
		if why, ok := refused(err); ok {
			return s.failEntity(ctx, e, why)
		}
		if e.tries >= maxTries {
			err = errors.Join(err, s.failEntity(ctx, e, internalFault))
		}
	}
	return fmt.Errorf("entity %d: %w", e.ID, err)
}

// failEntity ends an entity without a group or project.
func (s *Service) failEntity(ctx context.Context, e *Entity, why string) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "bulk_imports", e.ImportID); err != nil {
			return err
		}
		e.State = Failed
		return s.endEntity(ctx, tx, e, []*Failure{{Relation: kindOf(e.Project), Title: e.SourcePath, Path: "/" + e.SourcePath, Message: why, CreatedAt: s.Now()}}, 1)
	})
	if err != nil {
		return fmt.Errorf("give up entity %d: %w", e.ID, err)
	}
	s.dropParts(ctx, e.ID)
	return nil
}

// lockEnd locks what the end of an import changes first: the bulk import of its
// entity, if it has one, and the import itself. CancelBulkImport and
// CancelProjectImport lock in the same order, so that they cannot deadlock with the
// end. ErrNoRows if the import has ended.
func lockEnd(ctx context.Context, tx *db.Tx, i *Import) error {
	if i.entity != nil {
		if err := tx.Lock(ctx, "bulk_imports", i.entity.ImportID); err != nil {
			return err
		}
	}
	if err := tx.Lock(ctx, tablesOf(i.Project).imports, i.ID); err != nil {
		return err
	}
	return importGoing(ctx, tx, i)
}

// endEntity ends an entity, and its import if it was the last one. The transaction
// has locked the import.
func (s *Service) endEntity(ctx context.Context, tx *db.Tx, e *Entity, failures []*Failure, all int64) error {
	now := s.Now()
	ended, err := endEntity(ctx, tx, e, now)
	if err != nil || !ended {
		return err
	}
	if err := addFailures(ctx, tx, e, failures, all); err != nil {
		return err
	}
	return s.endIfLast(ctx, tx, e.ImportID)
}

// endIfLast ends an import without pending and running entities.
func (s *Service) endIfLast(ctx context.Context, tx *db.Tx, id int64) error {
	going, finished, err := countEntities(ctx, tx, id)
	if err != nil || going > 0 {
		return err
	}
	to := Finished
	if finished == 0 {
		to = Failed
	}
	_, err = endBulkImport(ctx, tx, id, to, s.Now())
	return err
}

// checkpoint is the state that is stored after each step: that of the reader, and
// the stored parts.
type checkpoint struct {
	State *remote.State `json:"state"`
	Parts []storedPart  `json:"parts"`
}

// storedPart is a part of an export file, or some rows of it.
type storedPart struct {
	Group int          `json:"group,omitempty"` // the number of the group, from 1
	Part  archive.Part `json:"part"`
	Name  string       `json:"name,omitempty"` // of a file
	Key   string       `json:"key"`
	Size  int64        `json:"size"`
}

// partsAt returns the prefix of the keys of the parts of an entity.
func partsAt(entityID int64) string { return fmt.Sprintf("transfer/bulk_imports/%d/", entityID) }

func checkpointKey(entityID, steps int64) string {
	return fmt.Sprintf("%scheckpoint-%d.json", partsAt(entityID), steps)
}

func (s *Service) loadCheckpoint(ctx context.Context, e *Entity) (*checkpoint, error) {
	c := &checkpoint{State: &remote.State{}}
	if e.Steps == 0 {
		return c, nil
	}
	file, err := s.Blobs.Get(ctx, checkpointKey(e.ID, e.Steps))
	if errs.Is(err, errs.KindNotFound) {
		return nil, errs.Invalid("The stored parts of the import were deleted. Start it again.").Because(err)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := json.NewDecoder(bufio.NewReader(file)).Decode(c); err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	return c, nil
}

func (s *Service) saveCheckpoint(ctx context.Context, e *Entity, c *checkpoint) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = s.Blobs.Put(ctx, checkpointKey(e.ID, e.Steps), strings.NewReader(string(text)), blob.Options{ContentType: "application/json", Size: int64(len(text))})
	return err
}

// fetchEntity reads the remaining steps of an entity, and starts the import of the
// result.
func (s *Service) fetchEntity(ctx context.Context, e *Entity) error {
	b, err := findBulkImport(ctx, s.DB, e.ImportID)
	if err != nil || b == nil {
		return err
	}
	by, err := s.as(ctx, b.UserID)
	if err != nil {
		return errs.Invalid("The account of the user who started the import is not active.").Because(err)
	}
	token, err := s.Keys.Open(b.token, tokenPlace(b.ID))
	if err != nil {
		return fmt.Errorf("open token: %w", err)
	}
	client, err := s.open(ctx, b.SourceURL, string(token))
	if err != nil {
		return err
	}
	defer client.Close()
	c, err := s.loadCheckpoint(ctx, e)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.watch(ctx, e.ID, cancel)()
	f := &fetching{Service: s, e: e, c: c}
	r := &remote.Reader{
		Client: client, State: c.State, Members: e.Members, Digests: by.Admin, Skip: f.skip,
		Settings: f.settings, GroupSettings: f.groupSettings, Rules: f.pushRules,
	}
	steps := r.GroupSteps(e.SourcePath, e.Projects)
	if e.Project {
		steps = r.ProjectSteps(e.SourcePath)
	}
	e.Total = int64(len(steps))
	for e.Steps < e.Total {
		if err := f.step(ctx, steps[e.Steps]); err != nil {
			if errors.Is(context.Cause(ctx), errCanceled) {
				return errCanceled
			}
			return err
		}
	}
	return s.handOver(ctx, e, by, c)
}

// watch ends the context when the entity is canceled.
func (s *Service) watch(ctx context.Context, id int64, cancel context.CancelCauseFunc) (stop func()) {
	ctx, done := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := entityGoing(ctx, s.DB, id); isNoRows(err) {
				cancel(errCanceled)
			}
		}
	}()
	return func() {
		done()
		<-ended
	}
}

// fetching reads an entity.
type fetching struct {
	*Service
	e *Entity
	c *checkpoint

	// Of the current step.
	failures []*Failure
	skipped  int64
}

func (f *fetching) skip(k remote.Skipped) {
	if f.skipped++; len(f.failures) < MaxFailures {
		f.failures = append(f.failures, &Failure{Relation: cutName(k.Relation), Title: cutName(k.Name), Path: k.Path, Message: cutTo(k.Why, 1000), CreatedAt: f.Now()})
	}
}

// step reads a step and stores it. It counts only when the row of the entity is
// updated.
func (f *fetching) step(ctx context.Context, step remote.Step) error {
	e := f.e
	e.Phase = step.Name
	if err := savePhase(ctx, f.DB, e, f.Now()); err != nil {
		if isNoRows(err) {
			return errCanceled
		}
		return err
	}
	f.failures, f.skipped = nil, 0
	out := newSpool(ctx, f.Service, e, f.skip)
	defer out.close()
	if err := step.Run(ctx, out); err != nil {
		return err
	}
	parts, err := out.store()
	if err != nil {
		return err
	}
	f.c.Parts = append(f.c.Parts, parts...)
	e.Steps++
	e.Stats = map[string]Stat{}
	for relation, n := range f.c.State.Counts {
		e.Stats[relation] = Stat{Source: n.Source, Fetched: n.Fetched}
	}
	if err := f.saveCheckpoint(ctx, e, f.c); err != nil {
		return err
	}
	err = f.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := saveStep(ctx, tx, e, f.Now()); err != nil {
			return err
		}
		return addFailures(ctx, tx, e, f.failures, f.skipped)
	})
	if isNoRows(err) {
		return errCanceled
	}
	e.tries = 0
	return err
}

// handOver makes an export file from the parts of an entity, and starts its import
// as the user who started the bulk import.
func (s *Service) handOver(ctx context.Context, e *Entity, by actor.Actor, c *checkpoint) error {
	i := &Import{Project: e.Project, UserID: &by.ID, Name: c.State.Name, Path: e.Slug, State: Queued, CreatedAt: s.Now(), file: partsAt(e.ID) + "export.tar.gz"}
	var err error
	if i.ParentID, err = s.destination(ctx, by, e.Project, e.Namespace); err != nil {
		return err
	}
	if !e.Project {
		// A name that is not allowed here is replaced by the path.
		err := s.Projects.CheckGroup(ctx, by, project.NewGroup{Name: i.Name, Path: i.Path, ParentID: i.ParentID})
		if refusal, ok := errs.As(err); ok && len(refusal.Fields["name"]) > 0 {
			i.Name = i.Path
		}
	}
	size, err := s.assemble(ctx, e, c, i.file)
	if err != nil {
		return err
	}
	i.Total = 2 * size
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		i.ID, i.draft = 0, nil
		if err := insertImport(ctx, tx, i); err != nil {
			return err
		}
		e.fileID = &i.ID
		if err := saveFile(ctx, tx, e, s.Now()); err != nil {
			return err
		}
		if e.Project {
			if err := s.reserve(ctx, tx, by, i); err != nil {
				return err
			}
		}
		return s.Queue.Add(ctx, tx, i.work(), queue.In(lane), queue.Tries(maxTries+1))
	})
	if isNoRows(err) {
		return errCanceled
	}
	return err
}

// reserve creates the draft of a project. A name that is not allowed here is replaced by
// the path.
func (s *Service) reserve(ctx context.Context, tx *db.Tx, by actor.Actor, i *Import) error {
	to := project.NewProject{Name: i.Name, Path: i.Path, NamespaceID: i.ParentID}
	p, err := s.Projects.BeginProject(ctx, tx, by, to)
	if refusal, ok := errs.As(err); ok && len(refusal.Fields["name"]) > 0 {
		to.Name = i.Path
		p, err = s.Projects.BeginProject(ctx, tx, by, to)
	}
	if err != nil {
		return err
	}
	i.draft = &p.ID
	return saveDraft(ctx, tx, i)
}

// assemble writes the export file of an entity, and returns its size.
func (s *Service) assemble(ctx context.Context, e *Entity, c *checkpoint, key string) (int64, error) {
	in, out := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := s.writeParts(ctx, e, c, out)
		out.CloseWithError(err)
		written <- err
	}()
	size, err := s.Blobs.Put(ctx, key, in, blob.Options{ContentType: "application/gzip"})
	in.CloseWithError(err)
	if failure := <-written; failure != nil && (err == nil || !errors.Is(failure, io.ErrClosedPipe)) {
		return 0, failure
	}
	return size, err
}

func (s *Service) writeParts(ctx context.Context, e *Entity, c *checkpoint, out io.Writer) (err error) {
	kind, groups := archive.Groups(), len(c.State.Groups)
	if e.Project {
		kind, groups = archive.Project(), 1
	}
	w, err := archive.NewWriter(out, kind, s.TempDir, s.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.Begin(archive.Origin{Name: c.State.Name, Path: c.State.Path, FullPath: c.State.FullPath}); err != nil {
		return err
	}
	parts := map[string][]storedPart{} // by group and part
	for _, p := range c.Parts {
		at := fmt.Sprint(max(p.Group, 1), p.Part)
		parts[at] = append(parts[at], p)
	}
	for n := 1; n <= groups; n++ {
		if !e.Project {
			w.Group()
		}
		for _, part := range kind.Parts() {
			if err := s.writePart(ctx, w, kind, part, parts[fmt.Sprint(n, part)]); err != nil {
				return err
			}
		}
	}
	return w.Finish()
}

func (s *Service) writePart(ctx context.Context, w *archive.Writer, kind archive.Kind, part archive.Part, stored []storedPart) error {
	if !kind.HasRows(part) {
		for _, p := range stored {
			err := w.File(part, p.Name, func(to io.Writer) (bool, error) {
				return true, s.withPart(ctx, p, func(from io.Reader) error {
					_, err := io.Copy(to, from)
					return err
				})
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	return w.Rows(part, func(add func(any) error) error {
		for _, p := range stored {
			err := s.withPart(ctx, p, func(from io.Reader) error {
				for d := json.NewDecoder(bufio.NewReaderSize(from, 64<<10)); ; {
					var row json.RawMessage
					if err := d.Decode(&row); err == io.EOF {
						return nil
					} else if err != nil {
						return err
					}
					if err := add(row); err != nil {
						return err
					}
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Service) withPart(ctx context.Context, p storedPart, read func(io.Reader) error) error {
	file, err := s.Blobs.Get(ctx, p.Key)
	if errs.Is(err, errs.KindNotFound) {
		return errs.Invalid("The stored parts of the import were deleted. Start it again.").Because(err)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return read(file)
}

// finishEntity records that the file of an entity was imported. The projects of a
// group with this full path are added.
func (s *Service) finishEntity(ctx context.Context, tx *db.Tx, i *Import, fullPath string, projects []remote.Place) error {
	e := i.entity
	e.State = Finished
	if e.Project {
		e.ProjectID = i.OwnerID
	} else {
		e.GroupID = i.OwnerID
	}
	if e.Stats == nil {
		e.Stats = map[string]Stat{}
	}
	for relation, n := range importedOf(&i.Report) {
		stat := e.Stats[relation]
		stat.Imported = n
		stat.Fetched = max(stat.Fetched, n)
		stat.Source = max(stat.Source, stat.Fetched)
		e.Stats[relation] = stat
	}
	for _, p := range projects {
		rest, ok := strings.CutPrefix(p.Path, e.SourcePath+"/")
		if !ok {
			continue
		}
		above, slug := splitPath(rest)
		child := &Entity{ImportID: e.ImportID, ParentID: &e.ID, Project: true, SourcePath: p.Path, Slug: slug, Namespace: path.Join(fullPath, above), Members: e.Members}
		if err := s.addEntity(ctx, tx, child); err != nil {
			return err
		}
	}
	list, all := failuresOf(&i.Report, s.Now())
	return s.endEntity(ctx, tx, e, list, all)
}

// groupOf returns the narrowest visibility that the group of an entity and its subgroups
// have at their source, and the projects to import after them.
func (s *Service) groupOf(ctx context.Context, e *Entity) (*project.Visibility, []remote.Place, error) {
	if e == nil || e.Project {
		return nil, nil, nil
	}
	c, err := s.loadCheckpoint(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	v := project.Public
	for _, g := range c.State.Groups {
		switch at := project.Visibility(g.Visibility); {
		case at == project.Public:
		case at == project.Internal && v != project.Private:
			v = project.Internal
		default:
			v = project.Private
		}
	}
	if len(c.State.Groups) == 0 {
		v = project.Private
	}
	if !e.Projects {
		return &v, nil, nil
	}
	return &v, c.State.Projects, nil
}

// importedOf returns the numbers of relations that were in a file.
func importedOf(r *Report) map[string]int64 {
	t := &r.Imported
	return map[string]int64{
		"labels": t.Labels, "milestones": t.Milestones, "boards": t.Boards, "badges": t.Badges, "members": t.Members - r.Lost[memberThing], "issues": t.Issues - r.Lost["issues"],
		"merge_requests": t.MergeRequests - r.Lost["merge_requests"], "releases": t.Releases - r.Lost["releases"], "snippets": t.Snippets,
		"notes": t.Notes - r.Lost["notes"] - r.Lost["note"], "pipeline_schedules": t.PipelineSchedules - r.Lost["pipeline_schedules"],
		"approval_rules": t.ApprovalRules - r.Lost["approval_rule"], "uploads": t.UploadFiles,
	}
}

// failuresOf returns the failures of the import of a file.
func failuresOf(r *Report, now time.Time) (list []*Failure, all int64) {
	listed := map[string]int64{}
	for _, m := range r.Missing {
		listed[m.Thing]++
		list = append(list, &Failure{Relation: m.Thing, Title: path.Join(m.Group, m.Name), Message: "Not carried over: " + cutTo(m.Why, 1000) + ".", CreatedAt: now})
	}
	for thing, n := range r.Lost {
		all += n
		if rest := n - listed[thing]; rest > 0 {
			list = append(list, &Failure{Relation: thing, Title: fmt.Sprintf("%d", rest), Message: "Not carried over: it refers to something that is not there.", CreatedAt: now})
		}
	}
	return list, all
}

// dropParts removes the stored parts of an entity. If it fails, sweep does it later.
func (s *Service) dropParts(ctx context.Context, entityID int64) {
	ctx = context.WithoutCancel(ctx)
	if err := s.deleteParts(ctx, entityID); err != nil {
		s.Log.WarnContext(ctx, "cannot remove the parts of an import", "entity", entityID, "error", err)
	}
}

func (s *Service) deleteParts(ctx context.Context, entityID int64) error {
	for object, err := range s.Blobs.List(ctx, partsAt(entityID)) {
		if err != nil {
			return err
		}
		if err := s.Blobs.Delete(ctx, object.Key); err != nil {
			return err
		}
	}
	return forgetFiles(ctx, s.DB, entityID)
}

// sweepBulk removes the stored files of bulk imports that have ended.
func (s *Service) sweepBulk(ctx context.Context) error {
	for {
		list, err := pastEntities(ctx, s.DB, s.Now().Add(-time.Hour))
		if err != nil {
			return fmt.Errorf("find parts of past imports: %w", err)
		}
		for _, id := range list {
			if err := s.deleteParts(ctx, id); err != nil {
				return fmt.Errorf("remove the parts of entity %d: %w", id, err)
			}
		}
		if len(list) == 0 {
			break
		}
	}
	if err := deletePastBulkImports(ctx, s.DB, s.Now().Add(-keepImport)); err != nil {
		return fmt.Errorf("remove past bulk imports: %w", err)
	}
	return nil
}
