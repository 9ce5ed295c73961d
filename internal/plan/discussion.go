package plan

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// Discussion is a note and its replies, oldest first.
type Discussion struct {
	ID    string
	Notes []*Note
}

// Individual reports whether the discussion is a single note that is not a thread.
func (d *Discussion) Individual() bool { return d.Notes[0].Type == "" }

// Discussions lists the discussions of a target, oldest first. Internal notes are
// included if the actor may read them.
func (s *Service) Discussions(ctx context.Context, on Noteable, p db.Paging) (db.Page[*Discussion], error) {
	page, err := listDiscussions(ctx, s.DB, s.readable(on), p)
	if err != nil {
		return page, fmt.Errorf("list discussions: %w", err)
	}
	return page, s.fillDiscussions(ctx, on, page.Items...)
}

func (s *Service) fillDiscussions(ctx context.Context, on Noteable, list ...*Discussion) error {
	if len(list) == 0 {
		return nil
	}
	byID := map[string]*Discussion{}
	ids := make([]string, len(list))
	for i, d := range list {
		ids[i], byID[d.ID] = d.ID, d
	}
	notes, err := findDiscussionNotes(ctx, s.DB, s.readable(on), ids)
	if err != nil {
		return fmt.Errorf("notes of discussions: %w", err)
	}
	for _, n := range notes {
		byID[n.Discussion].Notes = append(byID[n.Discussion].Notes, n)
	}
	return s.fillNotesOn(ctx, on, notes...)
}

// Discussion returns a discussion of a target. NotFound.
func (s *Service) Discussion(ctx context.Context, on Noteable, id string) (*Discussion, error) {
	d := &Discussion{ID: id}
	if err := s.fillDiscussions(ctx, on, d); err != nil {
		return nil, err
	}
	if len(d.Notes) == 0 {
		return nil, errs.NotFound("Discussion")
	}
	return d, nil
}

// maxThread is the maximum number of notes in a discussion. Discussions are always
// read completely.
const maxThread = 500

// joinDiscussion makes a note a reply. A discussion that was a single note becomes
// a thread. The reply takes the confidentiality and the diff position of the first
// note. The caller has locked the target, so that concurrent replies do not exceed
// the limit. NotFound; Forbidden; Invalid if the discussion is full.
func (s *Service) joinDiscussion(ctx context.Context, tx *db.Tx, on Noteable, n *Note) error {
	first, err := findFirstNote(ctx, tx, on, n.Discussion)
	if err != nil {
		return db.NotFound(err, "Discussion")
	}
	if first.System != "" {
		return errs.Forbidden("")
	}
	full, err := hasNotes(ctx, tx, on.Target, n.Discussion, maxThread)
	if err != nil {
		return err
	}
	if full {
		return errs.Invalid("A thread can have at most %d comments. Start a new thread.", maxThread)
	}
	n.Internal, n.Type = first.Internal, DiscussionNote
	if first.Type != "" {
		n.Type, n.Position, n.Current = first.Type, first.Position, first.Current
		return nil
	}
	return beginThread(ctx, tx, first.ID)
}

// Resolve resolves or reopens a thread. The permissions depend on the target; for an
// issue, Planners, the author and the assignees may. NotFound; Forbidden; Invalid if
// the discussion is not a thread.
func (s *Service) Resolve(ctx context.Context, by actor.Actor, on Noteable, id string, resolved bool) (*Discussion, error) {
	if err := on.mayResolve(by); err != nil {
		return nil, err
	}
	d, err := s.Discussion(ctx, on, id)
	if err != nil {
		return nil, err
	}
	if !d.Notes[0].Resolvable() {
		return nil, errs.Invalid("The discussion is not a thread")
	}
	if err := s.setResolved(ctx, by, on, id, nil, resolved); err != nil {
		return nil, err
	}
	return s.Discussion(ctx, on, id)
}

// ResolveNote resolves or reopens a single note of a thread. Permissions are those
// of Resolve. NotFound; Forbidden; Invalid.
func (s *Service) ResolveNote(ctx context.Context, by actor.Actor, on Noteable, id int64, resolved bool) (*Note, error) {
	if err := on.mayResolve(by); err != nil {
		return nil, err
	}
	n, err := on.find(ctx, s.DB, id)
	if err != nil {
		return nil, err
	}
	if !n.Resolvable() {
		return nil, errs.Invalid("The note is not part of a thread")
	}
	if err := s.setResolved(ctx, by, on, n.Discussion, &n.ID, resolved); err != nil {
		return nil, err
	}
	return s.Note(ctx, on, id)
}

// ResolveThread resolves a thread in the transaction of the caller, which has
// checked permissions. A discussion that is not a thread is left unchanged.
func (s *Service) ResolveThread(ctx context.Context, tx *db.Tx, by actor.Actor, on Target, id string) error {
	return resolveThread(ctx, tx, on, id, nil, by.ID, s.Now())
}

// mayResolve returns an error if the actor may not resolve threads of the target.
func (on Noteable) mayResolve(by actor.Actor) error {
	if err := on.mayComment(by); err != nil {
		return err
	}
	if !on.Resolver {
		return errs.Forbidden("")
	}
	return nil
}

// setResolved resolves or reopens a thread, or one note of it.
func (s *Service) setResolved(ctx context.Context, by actor.Actor, on Noteable, id string, note *int64, resolved bool) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if !resolved {
			return reopenThread(ctx, tx, on.Target, id, note)
		}
		if on.Resolved != nil { // locks the target, as all code that changes notes does
			if err := on.Resolved(ctx, tx); err != nil {
				return err
			}
		}
		return resolveThread(ctx, tx, on.Target, id, note, by.ID, s.Now())
	})
	if err != nil {
		return fmt.Errorf("resolve discussion %s: %w", id, err)
	}
	return nil
}
