package transfer

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/transfer/remote"
)

// failEntity ends an entity without a group or project, unless another run has taken it
// over.
func (s *Service) failEntity(ctx context.Context, e *Entity, why string) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "bulk_imports", e.ImportID); err != nil {
			return err
		}
		if err := lastRun(ctx, tx, e); err != nil {
			return err
		}
		e.State = Failed
		return s.endEntity(ctx, tx, e, []*Failure{{Relation: kindOf(e.Project), Title: e.SourcePath, Path: "/" + e.SourcePath, Message: why, CreatedAt: s.Now()}}, 1)
	})
	if isNoRows(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("give up entity %d: %w", e.ID, err)
	}
	s.dropParts(ctx, e.ID)
	return nil
}

// lockEnd locks what the end of an import changes first: the bulk import of its
// entity, if it has one, and the import itself. CancelBulkImport and
// CancelProjectImport lock in the same order, so that they cannot deadlock with the
// end. ErrNoRows if the import has ended, or another attempt has taken it over.
func lockEnd(ctx context.Context, tx *db.Tx, i *Import) error {
	if i.entity != nil {
		if err := tx.Lock(ctx, "bulk_imports", i.entity.ImportID); err != nil {
			return err
		}
	}
	if err := tx.Lock(ctx, tablesOf(i.Project).imports, i.ID); err != nil {
		return err
	}
	return attemptGoing(ctx, tx, i)
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
