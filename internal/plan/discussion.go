package plan

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// Discussion is a note and its replies, the oldest first.
type Discussion struct {
	ID    string
	Notes []*Note
}

// Individual reports whether it is a single note that no one can reply to as a
// thread.
func (d *Discussion) Individual() bool { return d.Notes[0].Type == "" }

// Discussions lists the discussions of a target, the oldest first; internal notes
// for those who read such.
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
	notes, err := findDiscussed(ctx, s.DB, s.readable(on), ids)
	if err != nil {
		return fmt.Errorf("notes of discussions: %w", err)
	}
	for _, n := range notes {
		byID[n.Discussion].Notes = append(byID[n.Discussion].Notes, n)
	}
	return s.fillNotesOn(ctx, on, notes...)
}

// Discussion returns a discussion of a target; NotFound.
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

// maxThread is the maximum number of notes of a discussion, which is read as a
// whole.
const maxThread = 500

// joinDiscussion makes a note a reply: the discussion becomes a thread if it was
// a single note. The reply is as internal as what it replies to, and stands where
// that stands. NotFound; Forbidden; Invalid if the discussion is full. The target
// is locked: otherwise concurrent replies could exceed the limit.
func (s *Service) joinDiscussion(ctx context.Context, tx *db.Tx, on Noteable, n *Note) error {
	first, err := findFirstDiscussed(ctx, tx, on, n.Discussion)
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

// Resolve settles a thread of a target, or opens it again: whom the target lets
// may; of an issue those are Planners and above, its author and its assignees.
// NotFound; Forbidden; Invalid for notes that are no thread.
func (s *Service) Resolve(ctx context.Context, by actor.Actor, on Noteable, id string, resolved bool) (*Discussion, error) {
	if err := on.maySettle(by); err != nil {
		return nil, err
	}
	d, err := s.Discussion(ctx, on, id)
	if err != nil {
		return nil, err
	}
	if !d.Notes[0].Resolvable() {
		return nil, errs.Invalid("The discussion is not a thread")
	}
	if err := s.settle(ctx, by, on, id, nil, resolved); err != nil {
		return nil, err
	}
	return s.Discussion(ctx, on, id)
}

// ResolveNote settles one note of a thread, or opens it again, as Resolve does it
// with all of them. NotFound; Forbidden; Invalid.
func (s *Service) ResolveNote(ctx context.Context, by actor.Actor, on Noteable, id int64, resolved bool) (*Note, error) {
	if err := on.maySettle(by); err != nil {
		return nil, err
	}
	n, err := on.find(ctx, s.DB, id)
	if err != nil {
		return nil, err
	}
	if !n.Resolvable() {
		return nil, errs.Invalid("The note is not part of a thread")
	}
	if err := s.settle(ctx, by, on, n.Discussion, &n.ID, resolved); err != nil {
		return nil, err
	}
	return s.Note(ctx, on, id)
}

// ResolveThread resolves a thread in the transaction of the caller, who has checked
// permissions. What is no thread stays as it is.
func (s *Service) ResolveThread(ctx context.Context, tx *db.Tx, by actor.Actor, on Target, id string) error {
	return resolveThread(ctx, tx, on, id, nil, by.ID, s.Now())
}

// maySettle refuses one who may not settle discussions here.
func (on Noteable) maySettle(by actor.Actor) error {
	if err := on.mayComment(by); err != nil {
		return err
	}
	if !on.Settler {
		return errs.Forbidden("")
	}
	return nil
}

// settle writes what became of a thread, or of one note of it.
func (s *Service) settle(ctx context.Context, by actor.Actor, on Noteable, id string, note *int64, resolved bool) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if !resolved {
			return reopenThread(ctx, tx, on.Target, id, note)
		}
		if on.Resolved != nil { // it locks the target, as others do before they change its notes
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
