package transfer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
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
	if err != nil {
		if err := rememberFiles(context.WithoutCancel(ctx), s.DB, e.ID); err != nil {
			return fmt.Errorf("entity %d: %w", e.ID, err)
		}
	}
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

// checkpointKey returns the key of the checkpoint that a run has stored. Older releases
// store it without the run, which is 0 then.
func checkpointKey(e *Entity, run int64) string {
	if run == 0 {
		return fmt.Sprintf("%scheckpoint-%d.json", partsAt(e.ID), e.Steps)
	}
	return fmt.Sprintf("%s%d/checkpoint-%d.json", partsAt(e.ID), run, e.Steps)
}

func (s *Service) loadCheckpoint(ctx context.Context, e *Entity) (*checkpoint, error) {
	c := &checkpoint{State: &remote.State{}}
	if e.Steps == 0 {
		return c, nil
	}
	file, err := s.Blobs.Get(ctx, checkpointKey(e, e.stored))
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
	_, err = s.Blobs.Put(ctx, checkpointKey(e, e.run), strings.NewReader(string(text)), blob.Options{ContentType: "application/json", Size: int64(len(text))})
	return err
}

// dropLeftovers removes what earlier runs have stored and no complete step has. They cannot
// complete one any more. What later runs have stored is kept: this one may have stalled.
func (s *Service) dropLeftovers(ctx context.Context, e *Entity, c *checkpoint) error {
	keep := map[string]bool{checkpointKey(e, e.stored): true}
	for _, p := range c.Parts {
		keep[p.Key] = true
	}
	for object, err := range s.Blobs.List(ctx, partsAt(e.ID)) {
		if err != nil {
			return err
		}
		dir, _, _ := strings.Cut(strings.TrimPrefix(object.Key, partsAt(e.ID)), "/")
		run, _ := strconv.ParseInt(dir, 10, 64) // 0 for a key of an older release
		if keep[object.Key] || run >= e.run {
			continue
		}
		if err := s.Blobs.Delete(ctx, object.Key); err != nil {
			return err
		}
	}
	return nil
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
	client, err := s.open(ctx, b.SourceURL, string(token), s.Limits)
	if err != nil {
		return err
	}
	defer client.Close()
	c, err := s.loadCheckpoint(ctx, e)
	if err != nil {
		return err
	}
	if err := s.dropLeftovers(ctx, e, c); err != nil {
		return fmt.Errorf("remove the parts of interrupted runs: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer watch(ctx, func() error { return entityGoing(ctx, s.DB, e) }, cancel)()
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
	err = s.handOver(ctx, e, by, c)
	if err != nil && errors.Is(context.Cause(ctx), errCanceled) {
		return errCanceled
	}
	return err
}

// watch cancels a context when going returns ErrNoRows: what is read was canceled, or taken
// over by another run.
func watch(ctx context.Context, going func() error, cancel context.CancelCauseFunc) (stop func()) {
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
			if isNoRows(going()) {
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
	out := newSpool(ctx, f.Service, e, f.c.Parts, f.skip)
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
	e.tries, e.stored = 0, e.run
	return err
}
