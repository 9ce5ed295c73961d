package lfs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/blob/removal"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/project"
	"svc/internal/queue"
)

// errTooMany stops a search whose result is already known.
var errTooMany = errors.New("too many")

func keys[V any](set map[string]V) []string { return slices.Sorted(maps.Keys(set)) }

const (
	// grace is how long an object is kept after the last commit that refers to it is gone.
	grace = 14 * 24 * time.Hour
	// checkEvery is the interval at which the repository of a project is searched for
	// pointers.
	checkEvery = 7 * 24 * time.Hour
	// uploadTime is the maximum duration of an upload.
	uploadTime = 24 * time.Hour
	// directTime is the maximum duration of a direct upload until it is verified. It counts
	// towards the size limit of the project for so long, because its content is stored. It
	// is longer than the URL is valid: a request that began in time may take long.
	directTime = 6 * time.Hour

	inBatch    = 500     // rows of one transaction
	inCheck    = 200_000 // objects whose pointers are looked for in one search
	inSweep    = 1000    // projects and uploads of one sweep
	checkLane  = "lfs"
	checkLimit = 2 * time.Hour
)

// handleWork registers the background jobs of this feature.
func (s *Service) handleWork() {
	s.Queue.Lane(checkLane, 1)
	queue.Handle(s.Queue, s.check, queue.Timeout(checkLimit))
	queue.Handle(s.Queue, s.linkRequest, queue.Timeout(time.Hour))
	s.Queue.Every("lfs_sweep", time.Hour, s.Sweep)
	s.Queue.Every("lfs_sweep_objects", 24*time.Hour, s.SweepObjects)
}

// checkWork is the background job that removes the objects of a project that commits no
// longer refer to.
type checkWork struct {
	ProjectID int64 `json:"project_id"`
	After     int64 `json:"after,omitempty"` // ID of an object
}

// Kind implements queue.Work.
func (checkWork) Kind() string { return "lfs_check" }

// Sweep removes abandoned uploads, and adds background jobs for the projects whose objects
// must be checked. The queue calls it every hour.
func (s *Service) Sweep(ctx context.Context) error {
	for {
		left, err := findUploads(ctx, s.DB, s.Now().Add(-uploadTime), s.Now().Add(-directTime), inSweep)
		if err != nil {
			return fmt.Errorf("sweep LFS uploads: %w", err)
		}
		if err := s.drop(ctx, left...); err != nil {
			return err
		}
		if len(left) < inSweep {
			break
		}
	}
	projects, err := findUnchecked(ctx, s.DB, s.Now().Add(-checkEvery), inSweep)
	if err != nil {
		return fmt.Errorf("sweep LFS objects: %w", err)
	}
	for part := range slices.Chunk(projects, inBatch) {
		err := s.DB.Tx(ctx, func(tx *db.Tx) error {
			for _, id := range part {
				if err := saveChecked(ctx, tx, id, s.Now()); err != nil {
					return err
				}
				if err := s.Queue.Add(ctx, tx, checkWork{ProjectID: id}, queue.In(checkLane), queue.Unique(), queue.Priority(4)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("sweep LFS objects: %w", err)
		}
	}
	return nil
}

// check removes objects that no commit of the project refers to, if they were not used for
// a while.
func (s *Service) check(ctx context.Context, w checkWork) error {
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(w.ProjectID), project.NoAccess)
	if err != nil {
		return err // deleted in the meantime
	}
	before := s.Now().Add(-grace)
	list, err := candidates(ctx, s.DB, p.ID, w.After, before, inCheck)
	if err != nil {
		return fmt.Errorf("check LFS objects of project %d: %w", p.ID, err)
	}
	if len(list) == 0 {
		return nil
	}
	unused := make(map[string]held, len(list))
	for _, h := range list {
		unused[h.oid] = h
	}
	err = s.eachPointer(ctx, p, git.SmallBlobs{Upkeep: true}, func(o Pointer) error {
		delete(unused, o.OID)
		if len(unused) == 0 {
			return errTooMany
		}
		return nil
	})
	if err != nil && !errors.Is(err, errTooMany) && !errors.Is(err, git.ErrNoRepository) {
		return fmt.Errorf("check LFS objects of project %d: %w", p.ID, err)
	}
	for part := range slices.Chunk(slices.Collect(maps.Values(unused)), inBatch) {
		err := s.DB.Tx(ctx, func(tx *db.Tx) error {
			for _, h := range part {
				if err := unlink(ctx, tx, p.ID, h, before); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("remove LFS objects of project %d: %w", p.ID, err)
		}
	}
	if len(unused) > 0 {
		s.Log.InfoContext(ctx, "removed unreferenced LFS objects", "project", p.ID, "objects", len(unused))
	}
	if len(list) < inCheck {
		return nil
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		return s.Queue.Add(ctx, tx, checkWork{p.ID, list[len(list)-1].id}, queue.In(checkLane), queue.Unique(), queue.Priority(4))
	})
}

// eachPointer calls do for each pointer in the repository of a project, possibly several
// times.
func (s *Service) eachPointer(ctx context.Context, p *project.Project, o git.SmallBlobs, do func(Pointer) error) error {
	r, err := s.Repos.Of(p)
	if err != nil {
		return err
	}
	o.Min, o.Max = minPointer, MaxPointer
	return r.EachSmallBlob(ctx, o, func(_ git.OID, content []byte) error {
		if pointer, ok := ParsePointer(content); ok {
			return do(pointer)
		}
		return nil
	})
}

// SweepObjects removes the content of objects without references. The queue calls it every
// day. New objects are skipped only to save work: an object and its first reference are
// inserted in one transaction.
func (s *Service) SweepObjects(ctx context.Context) error {
	var after int64
	for {
		list, err := findObjects(ctx, s.DB, after, inBatch)
		if err != nil {
			return fmt.Errorf("sweep LFS objects: %w", err)
		}
		if len(list) == 0 {
			return nil
		}
		after = list[len(list)-1].id
		if err := s.removeUnheld(ctx, list); err != nil {
			return fmt.Errorf("sweep LFS objects: %w", err)
		}
	}
}

// removeUnheld deletes those of the objects that have no references, and adds background
// jobs that remove their content.
func (s *Service) removeUnheld(ctx context.Context, list []object) error {
	ids := make([]int64, len(list))
	for i, o := range list {
		ids[i] = o.id
	}
	used, err := linked(ctx, s.DB, ids)
	if err != nil {
		return err
	}
	for _, o := range list {
		if used[o.id] {
			continue
		}
		err := s.DB.Tx(ctx, func(tx *db.Tx) error {
			if err := tx.Lock(ctx, "lfs_objects", o.id); err != nil {
				return err
			}
			now, err := linked(ctx, tx, []int64{o.id})
			if err != nil || now[o.id] {
				return err
			}
			if err := deleteObject(ctx, tx, o.id); err != nil {
				return err
			}
			return removal.Add(ctx, s.Queue, tx, o.blob)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Forked adds the objects of the source project to a fork before its repository can be
// used. Their content is not copied.
func (s *Service) Forked(ctx context.Context, from, to *project.Project) error {
	var after int64
	return s.DB.Batches(ctx, func(tx *db.Tx) (last int64, err error) {
		if last, err = copyLinks(ctx, tx, from.ID, to.ID, after, inBatch, s.Now()); err != nil {
			return 0, fmt.Errorf("add LFS objects to fork %d: %w", to.ID, err)
		}
		after = last
		return last, nil
	})
}

// requestWork is the background job that adds the objects of the commits of a merge
// request to its target project.
type requestWork struct {
	TargetID int64  `json:"target_id"`
	SourceID int64  `json:"source_id"`
	Head     string `json:"head"`
	Start    string `json:"start"` // head of the target branch at that time; empty if it did not exist
}

// Kind implements queue.Work.
func (requestWork) Kind() string { return "lfs_merge_request" }

// MergeRequestChanged adds a background job when a merge request from another project has
// new commits, whose objects are added to the target project.
func (s *Service) MergeRequestChanged(ctx context.Context, tx *db.Tx, c merge.Change) error {
	m := c.Request
	if c.Kind != merge.Collected || m.SourceProjectID == nil || *m.SourceProjectID == m.ProjectID || m.Version == nil {
		return nil
	}
	some, err := holdsAny(ctx, tx, *m.SourceProjectID)
	if err != nil || !some {
		return err
	}
	return s.Queue.Add(ctx, tx, requestWork{m.ProjectID, *m.SourceProjectID, m.Version.Head, m.Version.Start}, queue.In(checkLane), queue.Unique())
}

// Merging adds the objects of a merge request from another project to the target project
// before the commits are merged, because the background job may not have run yet.
func (s *Service) Merging(ctx context.Context, m *merge.MergeRequest) error {
	if m.SourceProjectID == nil || *m.SourceProjectID == m.ProjectID || m.Version == nil {
		return nil
	}
	some, err := holdsAny(ctx, s.DB, *m.SourceProjectID)
	if err != nil || !some {
		return err
	}
	return s.addRequest(ctx, requestWork{m.ProjectID, *m.SourceProjectID, m.Head, m.Version.Start}, true)
}

// linkRequest is the handler of requestWork.
func (s *Service) linkRequest(ctx context.Context, w requestWork) error {
	return s.addRequest(ctx, w, false)
}

// requestShare is the share of the size limit of a project, in percent, up to which objects
// are added before a merge request is merged: authors who may not push to the project must
// not use up the space of those who may.
const requestShare = 90

// addRequest adds the objects of a merge request to its target project. If the request is
// being merged, it returns TooLarge if they exceed the size limit; otherwise it skips
// objects for which there is no space.
func (s *Service) addRequest(ctx context.Context, w requestWork, merging bool) error {
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(w.TargetID), project.NoAccess)
	if err != nil {
		return err // deleted in the meantime
	}
	o := git.SmallBlobs{From: []git.OID{git.OID(w.Head)}}
	if w.Start != "" {
		o.Not = []git.OID{git.OID(w.Start)}
	}
	found := map[string]bool{}
	err = s.eachPointer(ctx, p, o, func(o Pointer) error {
		found[o.OID] = true
		if len(found) > maxPointers {
			return errTooMany
		}
		return nil
	})
	if errors.Is(err, git.ErrNotFound) || len(found) == 0 && err == nil {
		return nil // the commits are gone, or have no pointers
	}
	if err != nil && !errors.Is(err, errTooMany) {
		return fmt.Errorf("find LFS pointers of a merge request in project %d: %w", p.ID, err)
	}
	have, err := findHeld(ctx, s.DB, w.SourceID, keys(found))
	if err != nil {
		return err
	}
	there, err := findHeld(ctx, s.DB, p.ID, keys(have))
	if err != nil {
		return err
	}
	l, err := s.limitsOf(ctx, p)
	if err != nil {
		return err
	}
	l.object = 0 // the objects are stored already
	if !merging {
		l.quota = l.quota / 100 * requestShare
	}
	var fit []held
	for _, oid := range keys(have) {
		h := have[oid]
		if _, ok := there[oid]; !ok {
			if err := l.take(h.size); err != nil {
				if merging {
					return err
				}
				continue
			}
		}
		fit = append(fit, h)
	}
	if skipped := len(have) - len(fit); skipped > 0 {
		s.Log.InfoContext(ctx, "skipped LFS objects of a merge request over the size limit", "project", p.ID, "objects", skipped)
	}
	for part := range slices.Chunk(fit, inBatch) {
		err := s.DB.Tx(ctx, func(tx *db.Tx) error {
			for _, h := range part {
				if err := link(ctx, tx, p.ID, object{id: h.id, size: h.size}, s.Now()); err != nil {
					return err
				}
			}
			return nil
		})
		if db.IsForeignKey(err) {
			return errs.Unavailable("An object was removed in the meantime.").Because(err)
		}
		if err != nil {
			return fmt.Errorf("add LFS objects to project %d: %w", p.ID, err)
		}
	}
	return nil
}
