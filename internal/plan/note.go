package plan

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/notify"
	"svc/internal/plan/diffnote"
	"svc/internal/plan/listing"
	"svc/internal/project"
	"svc/internal/user"
)

// Note is a comment or a system note on a target.
type Note struct {
	ID           int64
	ProjectID    *int64
	On           Target
	OnIID        int64 // number of the target in the project; 0 if it has none
	Discussion   string
	Type         string // DiscussionNote or DiffNote; empty for a note that is not in a thread
	Body         string
	AuthorID     int64
	System       string             // kind of system note; empty for a comment
	Internal     bool               // visible only to users who can read confidential issues
	Position     *diffnote.Position // DiffNote only
	Current      *diffnote.Position // position in the newest version of the diff that has the line; nil if it equals Position
	CommitSHA    string             // the commit that the author was viewing; usually empty
	ResolvedAt   *time.Time
	ResolvedByID *int64
	CreatedAt    time.Time
	UpdatedAt    time.Time

	Author      *user.User
	ResolvedBy  *user.User
	Suggestions []*diffnote.Suggestion // DiffNote only

	// Commands is the outcome of the quick actions in a new note; nil if there were
	// none. A note that contained nothing else has no ID.
	Commands *Outcome
}

// The types of notes in threads.
const (
	DiscussionNote = "DiscussionNote"
	DiffNote       = "DiffNote"
)

// Together reports whether the note is part of a thread.
func (n *Note) Together() bool { return n.System == "" && n.Type != "" }

// Resolvable reports whether the note is part of a thread that can be resolved.
// Only issues and merge requests have such threads.
func (n *Note) Resolvable() bool {
	return n.Together() && (n.On.Kind == IssueKind || n.On.Kind == MergeKind)
}

// Noteable is an object of a project that can have notes, together with the
// permissions of an actor. The feature that owns the object creates it after
// checking access.
type Noteable struct {
	Target
	IID      int64  // number in the project; 0 if it has none
	Title    string // for events
	In       *project.Project
	Locked   bool // only members may comment
	Insider  bool // the actor may read internal notes
	Resolver bool // the actor may resolve threads
	// Count adds step to the number of notes of the target and locks the target until
	// the end of the transaction. It returns the audience of events on the target.
	// NotFound.
	Count func(ctx context.Context, tx *db.Tx, step int) (activity.Audience, error)
	// Resolved is called in the transaction that resolves threads or deletes a note of
	// one; may be nil.
	Resolved func(ctx context.Context, tx *db.Tx) error
	Diff     diffnote.Differ // nil for a target without a diff
	// Source returns the content of a file of the diff in a commit, for suggestions.
	// NotFound; TooLarge; Invalid for a binary file. It is nil for a target without a
	// diff.
	Source func(ctx context.Context, sha, path string) ([]byte, error)
	// CheckSuggestions sets Appliable of the suggestions of notes. It is nil for a
	// target without a diff.
	CheckSuggestions func(ctx context.Context, notes []*Note) error
	by               actor.Actor // the reader
	crossed          db.Where    // condition on the cross-references that the reader can see; empty hides all
	// Commands is the target of quick actions; nil if they are not supported.
	Commands *CommandTarget
}

func (s *Service) noteable(by actor.Actor, proj *project.Project, i *Issue) Noteable {
	on := i.Noteable(by, proj)
	on.Resolver = mayPlan(by, proj) || i.IsOwn(by)
	on.Count = func(ctx context.Context, tx *db.Tx, step int) (activity.Audience, error) {
		current := Issue{Issuable: Issuable{ID: i.ID}}
		err := countNote(ctx, tx, &current, step, s.Now())
		return current.audience(), err
	}
	on.Commands = s.commandTarget(by, proj, i)
	return on
}

// commandTarget returns an issue as the target of quick actions. An issue without
// an ID is a new one.
func (s *Service) commandTarget(by actor.Actor, proj *project.Project, i *Issue) *CommandTarget {
	on := &CommandTarget{Issuable: &i.Issuable, Issue: i}
	if i.ID == 0 {
		on.Edit, on.Plan = true, maySetPlan(by, proj)
		return on
	}
	can := i.Can(by, proj)
	on.Edit, on.Plan = can.Edit, can.Plan
	on.Apply = func(ctx context.Context, out *Outcome) (func(context.Context, *db.Tx) error, error) {
		f := IssueFields{}
		out.mergeIssue(&f)
		if err := s.checkPlan(ctx, proj, &f); err != nil {
			return nil, err
		}
		return func(ctx context.Context, tx *db.Tx) error {
			if err := s.ChangeIssue(ctx, tx, by, proj, i.ID, f); err != nil {
				return err
			}
			return out.InTx(ctx, tx, &i.Issuable)
		}, nil
	}
	return on
}

// Noteable returns the object as a target of notes for an actor who can see it.
// The owner of the object sets the remaining fields.
func (i *Issuable) Noteable(by actor.Actor, proj *project.Project) Noteable {
	return Noteable{
		by: by, Target: i.Target(), IID: i.IID, Title: i.Title, In: proj, Locked: i.IsLocked(), Insider: proj.MayRead(by, project.ConfidentialPart),
	}
}

// NoteFilter selects notes of a target. Zero values select all.
type NoteFilter struct {
	Only string       // only_comments or only_activity
	Sort listing.Sort // by created_at or updated_at
}

// OnIssue returns an issue as a target of notes. NotFound.
func (s *Service) OnIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (Noteable, error) {
	proj, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return Noteable{}, err
	}
	return s.noteable(by, proj, i), nil
}

// Notes lists the notes on a target. Internal notes are included if the actor may
// read them.
func (s *Service) Notes(ctx context.Context, on Noteable, f NoteFilter, p db.Paging) (db.Page[*Note], error) {
	page, err := listNotes(ctx, s.DB, s.readable(on), f, p)
	if err != nil {
		return page, fmt.Errorf("list notes: %w", err)
	}
	return page, s.fillNotesOn(ctx, on, page.Items...)
}

// fillNotesOn reads the users and suggestions of notes on a target.
func (s *Service) fillNotesOn(ctx context.Context, on Noteable, list ...*Note) error {
	if err := s.fillNotes(ctx, list...); err != nil {
		return err
	}
	return s.fillSuggestions(ctx, on, list)
}

func (s *Service) fillNotes(ctx context.Context, list ...*Note) error {
	var ids []int64
	for _, n := range list {
		ids = append(ids, n.AuthorID)
		if n.ResolvedByID != nil {
			ids = append(ids, *n.ResolvedByID)
		}
	}
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return fmt.Errorf("authors of notes: %w", err)
	}
	for _, n := range list {
		n.Author = users[n.AuthorID]
		if n.ResolvedByID != nil {
			n.ResolvedBy = users[*n.ResolvedByID]
		}
	}
	return nil
}

// Note returns a note on a target. NotFound.
func (s *Service) Note(ctx context.Context, on Noteable, id int64) (*Note, error) {
	n, err := on.find(ctx, s.DB, id)
	if err != nil {
		return nil, err
	}
	if n.System == crossReference {
		if ok, err := noteVisible(ctx, s.DB, s.visibleNotes(on.by), n.ID); err != nil || !ok {
			return nil, orNotFound(err, "Note")
		}
	}
	return n, s.fillNotesOn(ctx, on, n)
}

// orNotFound returns err, or NotFound if err is nil.
func orNotFound(err error, what string) error {
	if err != nil {
		return err
	}
	return errs.NotFound(what)
}

// find returns a note on a target. NotFound, also for an internal note that the
// actor may not read.
func (on Noteable) find(ctx context.Context, q db.Q, id int64) (*Note, error) {
	n, err := findNote(ctx, q, on.Target, id)
	if err == nil && n.Internal && !on.Insider {
		return nil, errs.NotFound("Note")
	}
	return n, db.NotFound(err, "Note")
}

// NewNote has the fields of a new note.
type NewNote struct {
	Body      string
	Internal  bool
	CreatedAt *time.Time // Owners and administrators only
	// Thread starts a thread; Discussion is the ID of a discussion to reply to.
	Thread     bool
	Discussion string
	Position   *diffnote.Position // starts a thread on a line of the diff
	Checked    bool               // Position was checked when the draft note was created
	CommitSHA  string             // the commit that the author was viewing
	HeadSHA    string             // head of the merge request that the author has seen, for quick actions
}

// CreateNote adds a note to a target. Requires a signed-in user; if the discussion
// is locked, a member; for an internal note, permission to read internal notes.
// Quick actions in the note are applied in the same transaction; a note that
// contains nothing else is not stored. NotFound; Forbidden; Invalid.
func (s *Service) CreateNote(ctx context.Context, by actor.Actor, on Noteable, n NewNote) (*Note, error) {
	batch, err := s.PrepareNotes(ctx, by, on, n.HeadSHA, n)
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return batch.Publish(ctx, tx) })
	if err != nil {
		return nil, fmt.Errorf("create note on %s %d: %w", on.Kind, on.ID, err)
	}
	if err := batch.After(ctx); err != nil {
		return nil, err
	}
	note := batch.Notes[0]
	if note == nil {
		note = &Note{}
	}
	note.Commands = batch.Outcome
	if note.ID != 0 {
		return note, s.fillNotesOn(ctx, on, note)
	}
	if len(batch.Outcome.Messages) == 0 {
		return nil, errs.Invalid("%s", strings.Join(batch.Outcome.Refused, " "))
	}
	return note, nil
}

// Prepare validates a new note and returns it for Publish. It reads the diff, so
// it must not be called in a transaction. Forbidden; Invalid.
func (s *Service) Prepare(ctx context.Context, by actor.Actor, on Noteable, n NewNote) (*Note, error) {
	if err := on.mayComment(by); err != nil {
		return nil, err
	}
	if n.Internal && !on.Insider {
		return nil, errs.Forbidden("")
	}
	if n.CommitSHA != "" && (on.Diff == nil || !commitPattern.MatchString(n.CommitSHA)) {
		return nil, errs.InvalidField("commit_id", "is invalid")
	}
	now := s.Now()
	note := &Note{
		ProjectID: &on.In.ID, On: on.Target, OnIID: on.IID, Body: n.Body, AuthorID: by.ID, Internal: n.Internal, Discussion: n.Discussion, CommitSHA: n.CommitSHA,
		CreatedAt: now, UpdatedAt: now,
	}
	if n.CreatedAt != nil && on.In.Enough(by, project.Owner) == nil {
		note.CreatedAt, note.UpdatedAt = *n.CreatedAt, *n.CreatedAt
	}
	if n.Thread || n.Discussion != "" {
		note.Type = DiscussionNote
	}
	if err := note.check(); err != nil {
		return nil, err
	}
	if n.Position != nil && n.Discussion == "" {
		note.Type, note.Position = DiffNote, n.Position
		if !n.Checked {
			if err := note.Position.Check(ctx, on.Diff); err != nil {
				return nil, err
			}
		}
	}
	return note, s.suggest(ctx, on, note)
}

func (n *Note) check() error {
	switch {
	case n.Body == "":
		return errs.InvalidField("note", "can't be blank")
	case len(n.Body) > MaxText:
		return errs.InvalidField("note", "is too long (maximum is 1048576 characters)")
	}
	return nil
}

var commitPattern = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// mayComment returns an error if the actor may not comment.
func (on Noteable) mayComment(by actor.Actor) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	part := project.WholePart // of a snippet, whose package has checked its part
	if on.Kind == IssueKind || on.Kind == MergeKind {
		part = on.Kind.part()
	}
	if err := on.In.Change(by, part, project.NoAccess); err != nil {
		return err
	}
	if on.Locked {
		return on.In.Enough(by, project.Guest)
	}
	return nil
}

// Publish adds prepared notes of one author to a target, in the transaction of the
// caller. Several notes are a review: they share one notification and one event.
// If one of several notes replies to a discussion that was deleted in the
// meantime, it starts a new one, which is internal if the note is. NotFound;
// Forbidden for a reply to a system note.
func (s *Service) Publish(ctx context.Context, tx *db.Tx, by actor.Actor, on Noteable, notes ...*Note) error {
	// Count locks the target first, as all code that changes notes does. The target
	// may have become confidential or been deleted.
	audience, err := on.Count(ctx, tx, len(notes))
	if err != nil {
		return err
	}
	for _, n := range notes {
		if n.Discussion == "" {
			n.Discussion = newDiscussion()
		} else if err := s.joinDiscussion(ctx, tx, on, n); len(notes) > 1 && errs.IsRefusal(err) {
			n.Discussion = newDiscussion()
		} else if err != nil {
			return err
		}
		if err := insertNote(ctx, tx, n); err != nil {
			return err
		}
		if err := diffnote.InsertSuggestions(ctx, tx, n.ID, n.Suggestions); err != nil {
			return err
		}
	}
	if err := joinSubscription(ctx, tx, on.Target, by.ID, s.Now()); err != nil {
		return err
	}
	if err := project.Touch(ctx, tx, on.In, s.Now()); err != nil {
		return err
	}
	for _, n := range notes {
		if err := s.Events.NoteSaved.Publish(ctx, tx, NoteSaving{Note: n, By: by.ID}); err != nil {
			return err
		}
	}
	first := notes[0]
	details := notify.Details{NoteID: first.ID}
	for _, n := range notes[1:] {
		details.MoreNotes = append(details.MoreNotes, n.ID)
	}
	err = s.Notify.Notify(ctx, tx, notify.Event{
		Type: notify.NewNote, TargetKind: string(on.Kind), TargetID: on.ID, ProjectID: on.In.ID, AuthorID: by.ID, Details: details,
	})
	if err != nil {
		return err
	}
	e := activity.Event{
		ProjectID: &on.In.ID, AuthorID: by.ID, Action: activity.Commented, Audience: audience, Subject: activity.Subject{Type: string(on.Kind), ID: on.ID},
		TargetType: "Note", TargetID: &first.ID, TargetIID: &first.ID, TargetTitle: on.Title, CreatedAt: s.Now(),
	}
	if first.Type != "" {
		e.TargetType = first.Type
	}
	if first.Internal {
		e.Audience = activity.Insiders
	}
	return activity.Record(ctx, tx, e)
}

// newDiscussion returns a random discussion ID.
func newDiscussion() string {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// AddSystemNote adds a system note about a change, in the transaction of the
// change. The caller has checked permissions.
func (s *Service) AddSystemNote(ctx context.Context, tx *db.Tx, by actor.Actor, on Target, iid, projectID int64, text string) error {
	if by.ID <= 0 {
		return nil
	}
	now := s.Now()
	return insertNote(ctx, tx, &Note{
		ProjectID: &projectID, On: on, OnIID: iid, Body: text, AuthorID: by.ID, System: "change", Discussion: newDiscussion(), CreatedAt: now, UpdatedAt: now,
	})
}

// UpdateNote changes a note. Requires the author or a Maintainer. System notes
// cannot be changed. NotFound; Forbidden; Invalid.
func (s *Service) UpdateNote(ctx context.Context, by actor.Actor, on Noteable, id int64, body string) (*Note, error) {
	// Suggestions are read from git, so this happens before the transaction.
	next, err := on.find(ctx, s.DB, id)
	if err != nil {
		return nil, err
	}
	next.Body = body
	if err := s.suggest(ctx, on, next); err != nil {
		return nil, err
	}
	var n *Note
	err = s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		if n, err = s.lockNote(ctx, tx, by, on, id); err != nil {
			return err
		}
		n.Body, n.UpdatedAt, n.Suggestions = body, s.Now(), next.Suggestions
		if err := n.check(); err != nil {
			return err
		}
		if err := saveNote(ctx, tx, n); err != nil {
			return err
		}
		if err := diffnote.ReplaceSuggestions(ctx, tx, n.ID, n.Suggestions); err != nil {
			return err
		}
		return s.Events.NoteSaved.Publish(ctx, tx, NoteSaving{Note: n, Update: true, By: by.ID})
	})
	if err != nil {
		return nil, fmt.Errorf("update note %d: %w", id, err)
	}
	return n, s.fillNotesOn(ctx, on, n)
}

// lockNote locks and returns a note that the actor may change.
func (s *Service) lockNote(ctx context.Context, tx *db.Tx, by actor.Actor, on Noteable, id int64) (*Note, error) {
	if err := tx.Lock(ctx, "notes", id); err != nil {
		return nil, err
	}
	n, err := on.find(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	return n, on.editable(by, n)
}

// DeleteNote deletes a note. Requires the author or a Maintainer. NotFound;
// Forbidden; Precondition if the note was modified since.
func (s *Service) DeleteNote(ctx context.Context, by actor.Actor, on Noteable, id int64, unmodifiedSince *time.Time) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if _, err := on.Count(ctx, tx, -1); err != nil {
			return err
		}
		n, err := s.lockNote(ctx, tx, by, on, id)
		if err != nil {
			return err
		}
		if err := errs.ChangedSince(n.UpdatedAt, unmodifiedSince); err != nil {
			return err
		}
		if err := deleteNote(ctx, tx, n.ID); err != nil {
			return err
		}
		if on.Resolved != nil && n.Resolvable() {
			if err := on.Resolved(ctx, tx); err != nil {
				return err
			}
		}
		return activity.ForgetTarget(ctx, tx, activity.Subject{Type: string(on.Kind), ID: on.ID}, n.ID)
	})
	if err != nil {
		return fmt.Errorf("delete note %d: %w", id, err)
	}
	return nil
}

// NoteIn returns a note on a target in a transaction of another feature. NotFound.
func NoteIn(ctx context.Context, q db.Q, on Target, id int64) (*Note, error) {
	n, err := findNote(ctx, q, on, id)
	return n, db.NotFound(err, "Note")
}

// NotesOf returns notes by ID. The caller has checked access.
func (s *Service) NotesOf(ctx context.Context, ids []int64) (map[int64]*Note, error) {
	found := map[int64]*Note{}
	if len(ids) == 0 {
		return found, nil
	}
	list, err := findNotes(ctx, s.DB, ids)
	if err != nil {
		return nil, fmt.Errorf("find notes: %w", err)
	}
	for _, n := range list {
		found[n.ID] = n
	}
	return found, s.fillNotes(ctx, list...)
}
