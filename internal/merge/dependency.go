package merge

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
)

const (
	// maxBlockers is the maximum number of dependencies of a merge request.
	maxBlockers = 10
	// maxBlockees is the maximum number of merge requests that depend on the same one.
	maxBlockees = 100
	// maxChain is the maximum number of direct and indirect dependencies of a merge
	// request.
	maxChain = 1000
)

// Dependency prevents the merge of the blocked merge request until the blocking one
// is merged.
type Dependency struct {
	ID         int64
	BlockedID  int64
	BlockingID int64
	CreatedAt  time.Time

	// Blocked and Blocking are the merge requests; nil if the actor cannot see
	// them.
	Blocked, Blocking *MergeRequest
}

// Dependencies lists the dependencies of a merge request: the merge requests that
// block it, for users who can see it. NotFound.
func (s *Service) Dependencies(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) ([]*Dependency, error) {
	_, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	return s.DependenciesOf(ctx, by, m)
}

// DependenciesOf is like Dependencies for a merge request that was read for the
// actor.
func (s *Service) DependenciesOf(ctx context.Context, by actor.Actor, m *MergeRequest) ([]*Dependency, error) {
	list, err := findBlockers(ctx, s.DB, m.ID)
	if err != nil {
		return nil, fmt.Errorf("dependencies of merge request %d: %w", m.ID, err)
	}
	return list, s.showEnds(ctx, by, m, list)
}

// Dependents lists the dependencies on a merge request: the merge requests that it
// blocks, for users who can see it. NotFound.
func (s *Service) Dependents(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) ([]*Dependency, error) {
	_, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	return s.DependentsOf(ctx, by, m)
}

// DependentsOf is like Dependents for a merge request that was read for the actor.
func (s *Service) DependentsOf(ctx context.Context, by actor.Actor, m *MergeRequest) ([]*Dependency, error) {
	list, err := findBlockees(ctx, s.DB, m.ID)
	if err != nil {
		return nil, fmt.Errorf("dependents of merge request %d: %w", m.ID, err)
	}
	return list, s.showEnds(ctx, by, m, list)
}

// Dependency returns a dependency of a merge request, for users who can see the
// merge request. NotFound.
func (s *Service) Dependency(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64) (*Dependency, error) {
	_, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	d, err := findDependency(ctx, s.DB, m.ID, id)
	if err != nil {
		return nil, db.NotFound(err, "")
	}
	return d, s.showEnds(ctx, by, m, []*Dependency{d})
}

// showEnds sets both merge requests of dependencies of m; nil for those that the
// actor cannot see.
func (s *Service) showEnds(ctx context.Context, by actor.Actor, m *MergeRequest, list []*Dependency) error {
	var ids []int64
	for _, d := range list {
		ids = append(ids, d.other(m.ID))
	}
	if len(ids) == 0 {
		return nil
	}
	others, err := findSeen(ctx, s.DB, s.visible(by, nil), ids)
	if err != nil {
		return fmt.Errorf("dependencies of merge request %d: %w", m.ID, err)
	}
	if err := s.fill(ctx, others...); err != nil {
		return err
	}
	for _, d := range list {
		at := slices.IndexFunc(others, func(o *MergeRequest) bool { return o.ID == d.other(m.ID) })
		var other *MergeRequest
		if at >= 0 {
			other = others[at]
		}
		if d.Blocked, d.Blocking = m, other; d.BlockingID == m.ID {
			d.Blocked, d.Blocking = other, m
		}
	}
	return nil
}

// other returns the ID of the merge request at the other end of a dependency.
func (d *Dependency) other(id int64) int64 {
	if d.BlockedID == id {
		return d.BlockingID
	}
	return d.BlockedID
}

// AddDependency makes a merge request depend on another one that the actor can see,
// for users who may edit the first. NotFound; Forbidden; Invalid if the dependencies
// would form a cycle, or there are too many; Conflict if it exists.
func (s *Service) AddDependency(ctx context.Context, by actor.Actor, ref project.Ref, iid, blockingID int64) (*Dependency, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if err := m.CheckEdit(by, in); err != nil {
		return nil, err
	}
	_, blocking, err := s.Seen(ctx, by, blockingID)
	if err != nil {
		return nil, err
	}
	if blocking.ID == m.ID {
		return nil, errs.Invalid("A merge request cannot depend on itself")
	}
	d := &Dependency{BlockedID: m.ID, BlockingID: blocking.ID, CreatedAt: s.Now(), Blocked: m, Blocking: blocking}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		// In order of ID, to avoid deadlocks.
		for _, id := range []int64{min(m.ID, blocking.ID), max(m.ID, blocking.ID)} {
			if _, err := lockRequest(ctx, tx, id); err != nil {
				return err
			}
		}
		if err := checkDependency(ctx, tx, d); err != nil {
			return err
		}
		if err := insertDependency(ctx, tx, d); err != nil {
			return err
		}
		if err := s.recordDependency(ctx, tx, by, in, d, "merge_request_dependency_created", audit.Details{Add: "merge_request_dependency"}); err != nil {
			return err
		}
		return s.Plan.AddSystemNote(ctx, tx, by, m.Target(), m.IID, m.ProjectID, "added a dependency on "+dependencyName(m, blocking))
	})
	if err != nil {
		return nil, fmt.Errorf("add dependency of merge request %d: %w", m.ID, err)
	}
	return s.Dependency(ctx, by, project.RefTo(in.ID), iid, d.ID)
}

// checkDependency returns Invalid if a new dependency would form a cycle or exceed a
// limit.
func checkDependency(ctx context.Context, tx *db.Tx, d *Dependency) error {
	blockers, blockees, err := countDependencies(ctx, tx, d.BlockedID, d.BlockingID)
	switch {
	case err != nil:
		return err
	case blockers >= maxBlockers:
		return errs.Invalid("A merge request can have at most %d dependencies", maxBlockers)
	case blockees >= maxBlockees:
		return errs.Invalid("At most %d merge requests can depend on one", maxBlockees)
	}
	known := map[int64]bool{d.BlockingID: true}
	for level := []int64{d.BlockingID}; len(level) > 0; {
		found, err := blockersOf(ctx, tx, level)
		if err != nil {
			return err
		}
		level = nil
		for _, id := range found {
			if id == d.BlockedID {
				return errs.Invalid("The merge requests would depend on each other")
			}
			if !known[id] {
				known[id], level = true, append(level, id)
			}
		}
		if len(known) > maxChain {
			return errs.Invalid("A merge request can depend on at most %d others, directly or not", maxChain)
		}
	}
	return nil
}

// dependencyName returns the reference to a merge request in a system note on
// another one. It does not name a merge request of another project, because not all
// readers of the note can see it.
func dependencyName(on, other *MergeRequest) string {
	if other == nil || on.ProjectID != other.ProjectID {
		return "a merge request of another project"
	}
	return "!" + strconv.FormatInt(other.IID, 10)
}

// DeleteDependency deletes a dependency of a merge request, for users who may edit
// it. NotFound; Forbidden.
func (s *Service) DeleteDependency(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64) error {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return err
	}
	if err := m.CheckEdit(by, in); err != nil {
		return err
	}
	d, err := s.Dependency(ctx, by, project.RefTo(in.ID), iid, id)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRequest(ctx, tx, m.ID)
		if err != nil {
			return err
		}
		if err := deleteDependency(ctx, tx, d.ID); err != nil {
			return err
		}
		if err := s.continueAuto(ctx, tx, now); err != nil {
			return err
		}
		if err := s.recordDependency(ctx, tx, by, in, d, "merge_request_dependency_deleted", audit.Details{Remove: "merge_request_dependency"}); err != nil {
			return err
		}
		return s.Plan.AddSystemNote(ctx, tx, by, m.Target(), m.IID, m.ProjectID, "removed the dependency on "+dependencyName(m, d.Blocking))
	})
	if err != nil {
		return fmt.Errorf("delete dependency of merge request %d: %w", m.ID, err)
	}
	return nil
}

// recordDependency records an audit event about a dependency. It contains only the
// IDs of the merge requests, because readers of the event may not be allowed to see
// the other one.
func (s *Service) recordDependency(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, d *Dependency, kind string, details audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: in.Entity(), Details: details,
		Target: audit.Target{Type: "MergeRequestBlock", ID: d.ID, Details: fmt.Sprintf("merge request %d depends on %d", d.BlockedID, d.BlockingID)},
	})
}

// unblock adds a background job for each dependent of a merge request, which merges
// it if it is set to merge automatically. It is called in the transaction in which
// the blocking merge request is merged or deleted.
func (s *Service) unblock(ctx context.Context, tx *db.Tx, id int64) error {
	list, err := findBlockees(ctx, tx, id)
	if err != nil {
		return fmt.Errorf("dependents of merge request %d: %w", id, err)
	}
	for _, d := range list {
		// Also if auto-merge is not set: it may be set concurrently.
		if err := s.Queue.Add(ctx, tx, autoWork{d.BlockedID}, queue.In(lane)); err != nil {
			return err
		}
	}
	return nil
}
