package repo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/event"
	"svc/internal/git"
	"svc/internal/project"
)

// Push is a completed push.
type Push struct {
	Project *project.Project
	By      actor.Actor
	Changes []Change
	Options []string // push options (git push -o)
	// About is the description of the push by the feature that made it; empty
	// for pushes of users.
	About string
	At    time.Time

	settled string // text of the row that is settled; empty if it is not settled
	found   bool   // the changes were found in the refs
}

// Change is the change of one ref by a push.
type Change struct {
	Ref     string  // full name
	Old     git.OID // ZeroOID for a new ref
	New     git.OID // ZeroOID for a deleted ref
	Commits int     // number of new commits; only set for few changes
}

// Events are the events of repositories.
type Events struct {
	// Pushed is published for each push, in the transaction that records it.
	Pushed event.Event[Push]
}

// PushCheck refuses changes of a push by setting Refused. An error means that the
// rules could not be checked.
type PushCheck func(ctx context.Context, by actor.Actor, in *project.Project, push *git.Push) error

// OnPushRule registers a PushCheck that is also applied to the merges of merge
// requests, and before the others. It is called at start-up.
func (s *Service) OnPushRule(c PushCheck) { s.pushRules = append(s.pushRules, c) }

// OnPushCheck registers a PushCheck. It is called at start-up.
func (s *Service) OnPushCheck(c PushCheck) { s.pushChecks = append(s.pushChecks, c) }

// PushHint returns messages for a user who has pushed branches, such as the URL
// to create a merge request. git shows them in the terminal.
type PushHint func(ctx context.Context, by actor.Actor, in *project.Project, branches []string) []string

// OnPushHints registers a PushHint. It is called at start-up.
func (s *Service) OnPushHints(h PushHint) { s.pushHints = append(s.pushHints, h) }

// PushOption does what push options ask for the branches of a recorded push, and
// returns messages for the user.
type PushOption func(ctx context.Context, by actor.Actor, in *project.Project, branches, options []string) []string

// OnPushOptions registers a PushOption. It is called at start-up.
func (s *Service) OnPushOptions(h PushOption) { s.pushOptions = append(s.pushOptions, h) }

// hint applies the push options and sends the push hints for the branches of a
// recorded push.
func (s *Service) hint(ctx context.Context, by actor.Actor, in *project.Project, push *git.Push) {
	var branches []string
	for _, c := range changesOf(push) {
		if name, ok := strings.CutPrefix(c.Ref, git.Heads); ok && c.New != git.ZeroOID {
			branches = append(branches, name)
		}
	}
	if len(push.Options) > 0 {
		for _, h := range s.pushOptions {
			for _, line := range h(ctx, by, in, branches, push.Options) {
				push.Say("%s", line)
			}
		}
	}
	for _, h := range s.pushHints {
		for _, line := range h(ctx, by, in, branches) {
			push.Say("%s", line)
		}
	}
}

// move updates refs for an actor who may push: it checks the rules, updates all
// refs or none, and records the push. Forbidden with the message of the rule;
// Conflict if a ref has moved.
func (s *Service) move(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, updates ...git.Update) error {
	return s.moveBy(ctx, by, p, r, overWeb, journal{}, updates...)
}

// moveBy is move with another origin and additional data for the journal.
func (s *Service) moveBy(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, from pushOrigin, begun journal, updates ...git.Update) error {
	push := &git.Push{Repo: r, Atomic: true}
	for _, u := range updates {
		push.Changes = append(push.Changes, &git.RefChange{Ref: u.Ref, Old: u.Old, New: u.New})
	}
	if err := s.check(ctx, by, p, push, from); err != nil {
		return err
	}
	for _, c := range push.Changes {
		if c.Refused != "" {
			return errs.Forbidden("%s", c.Refused)
		}
	}
	// From here on the request must not stop the update halfway.
	ctx = context.WithoutCancel(ctx)
	begun.Changes, begun.Mark = changesOf(push), newMark()
	if move := (projectTarget{s, p, r, by}).mover(); move != nil {
		return moveError(move(ctx, begun))
	}
	id, err := s.begin(ctx, by, p, begun)
	if err != nil {
		return err
	}
	defer s.alive(ctx, pushTable, id)()
	if err := r.UpdateRefsAs(ctx, begun.Mark, updates); err != nil {
		if err := s.land(ctx, id, by, p, r, begun); err != nil {
			return err
		}
		if !errors.Is(err, git.ErrConflict) && allAt(ctx, r, updates) {
			return nil // git failed after it had updated them
		}
		return moveError(err)
	}
	if err := s.finish(ctx, id, by, p, r, begun); err != nil {
		// The refs have moved, so the request was successful.
		s.Log.ErrorContext(ctx, "a push is not recorded yet", "project", p.ID, "push", id, "error", err)
		s.landLater(ctx, func(ctx context.Context) error { return s.land(ctx, id, by, p, r, begun) })
	}
	return nil
}

// moveError converts an error of an update of refs.
func moveError(err error) error {
	if conflict, ok := errors.AsType[*git.RefConflict](err); ok {
		return errs.Conflict("%s could not be moved: %s", shortRef(conflict.Ref), conflict.Why).Because(err)
	}
	return missing(err, "Commit")
}

// allAt reports whether all refs have their new values.
func allAt(ctx context.Context, r git.Repo, updates []git.Update) bool {
	for _, u := range updates {
		ref, err := r.Ref(ctx, u.Ref)
		if gone := errors.Is(err, git.ErrNotFound); gone != (u.New == git.ZeroOID) || !gone && (err != nil || ref.ID != u.New) {
			return false
		}
	}
	return true
}

func shortRef(ref string) string {
	return strings.TrimPrefix(strings.TrimPrefix(ref, git.Heads), git.Tags)
}

// begin records a push before it moves refs. After a crash the push is settled
// by looking at the refs. Unavailable while the repository is being moved,
// Conflict if it was moved since p was read.
func (s *Service) begin(ctx context.Context, by actor.Actor, p *project.Project, j journal) (int64, error) {
	id, storage, err := s.enter(ctx, by, p.ID, j)
	if err == nil && storage != p.Storage { // r is the repository at the old location
		err = errors.Join(errs.Conflict(movedMessage), s.drop(ctx, id))
	}
	return id, err
}

// journal is the data of a push in progress. It is stored as JSON.
type journal struct {
	Changes []Change
	Options []string
	About   string `json:",omitempty"`
	// Mark identifies the push in the reflogs. Rows of earlier versions have
	// none.
	Mark string `json:",omitempty"`

	settled string // text of the row, if it is settled by another process
	found   bool   // the changes were found in the refs; see landed
}

// newMark returns a unique mark. The ID of the row is not unique: it may be
// used again after the row is deleted.
func newMark() string { return rand.Text() }

// changesOf returns the changes of a push that were not refused.
func changesOf(push *git.Push) []Change {
	var list []Change
	for _, c := range push.Changes {
		if c.Refused == "" {
			list = append(list, Change{Ref: c.Ref, Old: c.Old, New: c.New})
		}
	}
	return list
}

// drop deletes the row of a push that changed nothing.
func (s *Service) drop(ctx context.Context, id int64) error {
	if err := deletePush(ctx, s.DB, id); err != nil && !errors.Is(err, db.ErrNoRows) {
		return fmt.Errorf("drop push %d: %w", id, err)
	}
	return nil
}

// finish records a push whose refs have moved, with all effects, in one
// transaction.
func (s *Service) finish(ctx context.Context, id int64, by actor.Actor, p *project.Project, r git.Repo, j journal) error {
	done := Push{Project: p, By: by, Changes: j.Changes, Options: j.Options, About: j.About, At: s.Now(), settled: j.settled, found: j.found}
	if err := s.record(ctx, id, r, done); err != nil {
		return fmt.Errorf("record push %d to project %d: %w", id, p.ID, err)
	}
	return nil
}

// strike removes deletions from the rows of other pushes that expected a ref at the
// commit from which this push has moved or deleted it. A deleted ref has no reflog
// that shows who deleted it. But only one push can have found the ref as expected.
func (s *Service) strike(ctx context.Context, tx *db.Tx, done Push) error {
	if !slices.ContainsFunc(done.Changes, func(c Change) bool { return c.Old != git.ZeroOID }) {
		return nil
	}
	others, err := findBegun(ctx, tx, done.Project.ID)
	if err != nil {
		return err
	}
	for _, o := range others {
		var j journal
		if err := json.Unmarshal([]byte(o.what), &j); err != nil {
			return err
		}
		was := len(j.Changes)
		j.Changes = slices.DeleteFunc(j.Changes, func(c Change) bool {
			return c.New == git.ZeroOID && slices.ContainsFunc(done.Changes, func(d Change) bool { return d.Ref == c.Ref && d.Old == c.Old })
		})
		if len(j.Changes) == was {
			continue
		}
		text, err := json.Marshal(j)
		if err != nil {
			return err
		}
		if err := savePush(ctx, tx, o.id, string(text)); err != nil && !errors.Is(err, db.ErrNoRows) {
			return err
		}
	}
	return nil
}

func (s *Service) record(ctx context.Context, id int64, r git.Repo, done Push) error {
	var refs []string
	for _, c := range done.Changes {
		refs = append(refs, c.Ref)
	}
	branch, err := adopt(ctx, r, refs)
	if err != nil {
		return err
	}
	at, err := headNow(ctx, r, branch)
	if err != nil {
		return err
	}
	rec, err := s.describe(ctx, r, at, done)
	if err != nil {
		return err
	}
	gone := false
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		err := deletePushAs(ctx, tx, id, done.settled)
		if gone = errors.Is(err, db.ErrNoRows); gone {
			return nil // settled by another node, or changed by another push
		}
		if err != nil || len(done.Changes) == 0 {
			return err
		}
		return s.insertRecord(ctx, tx, id, done, rec)
	})
	if err != nil || !gone || done.settled != "" {
		return err
	}
	return s.recordRest(ctx, id, r, at, done)
}

func (s *Service) insertRecord(ctx context.Context, tx *db.Tx, id int64, done Push, rec record) error {
	if err := s.strike(ctx, tx, done); err != nil {
		return err
	}
	if err := recordFor(ctx, tx, done.Project.ID, 0, id, done.Changes, done.At); err != nil {
		return err
	}
	return s.insert(ctx, tx, rec)
}

// recordRest records what is missing of a push of this node that another node has settled,
// because this one was frozen: refs may have moved since then.
func (s *Service) recordRest(ctx context.Context, id int64, r git.Repo, at head, done Push) error {
	var err error
	if done.Changes, err = unrecorded(ctx, s.DB, Held{ProjectID: done.Project.ID}, id, done.Changes, done.found); err != nil || len(done.Changes) == 0 {
		return err
	}
	rec, err := s.describe(ctx, r, at, done)
	if err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		_, err := lockPlace(ctx, tx, "projects", done.Project.ID)
		if errors.Is(err, db.ErrNoRows) {
			return nil // it was deleted, with its pushes
		}
		if err != nil {
			return err
		}
		return s.insertRecord(ctx, tx, id, done, rec)
	})
}

// unrecorded returns the changes of a push of this node that are not recorded although its row
// is gone. A deletion that was only found in the refs may be that of another push: it was
// recorded with that, or when the row was settled.
func unrecorded(ctx context.Context, q db.Q, h Held, id int64, changes []Change, found bool) ([]Change, error) {
	rows, err := findRecordedPush(ctx, q, h, id)
	if err != nil {
		return nil, fmt.Errorf("find the record of push %d: %w", id, err)
	}
	var known []Change
	for _, row := range rows {
		var list []Change
		if err := json.Unmarshal([]byte(row.changes), &list); err != nil {
			return nil, err
		}
		known = append(known, list...)
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool {
		return found && c.New == git.ZeroOID || slices.ContainsFunc(known, func(k Change) bool { return k.Ref == c.Ref && k.Old == c.Old && k.New == c.New })
	}), nil
}

// head is the default branch of a repository after a push.
type head struct {
	branch string
	tip    git.OID // empty if the branch does not exist, because only tags were pushed so far
}

// headNow returns the default branch with its commit.
func headNow(ctx context.Context, r git.Repo, branch string) (head, error) {
	ref, err := r.Ref(ctx, git.Heads+branch)
	if errors.Is(err, git.ErrNotFound) {
		err = nil
	}
	return head{branch, ref.ID}, err
}

// record is what the database gets to know of a push.
type record struct {
	head
	push   Push // without notes
	events []activity.Event
	readme *string // path; nil if it has not changed
}

// describe examines a push whose objects are in the repository.
func (s *Service) describe(ctx context.Context, r git.Repo, at head, done Push) (record, error) {
	rec := record{head: at, push: done}
	rec.push.Changes = slices.DeleteFunc(slices.Clone(done.Changes), func(c Change) bool { return strings.HasPrefix(c.Ref, NoteRefs) })
	var err error
	if rec.events, err = s.events(ctx, r, at, &rec.push); err != nil {
		return rec, err
	}
	if at.tip != "" && slices.ContainsFunc(done.Changes, func(c Change) bool { return c.Ref == git.Heads+at.branch }) {
		// On an error the housekeeping job finds the README later.
		if path, err := readmeOf(ctx, r, string(at.tip)); err == nil {
			rec.readme = &path
		}
	}
	return rec, nil
}

// insert records a push, with all effects.
func (s *Service) insert(ctx context.Context, tx *db.Tx, rec record) error {
	branch := rec.branch
	if rec.tip == "" {
		branch = ""
	}
	id := rec.push.Project.ID
	if err := s.Projects.Pushed(ctx, tx, id, branch, rec.readme, rec.push.At); err != nil {
		return err
	}
	for _, e := range rec.events {
		if err := activity.Record(ctx, tx, e); err != nil {
			return err
		}
	}
	if len(rec.push.Changes) > 0 {
		if err := s.Events.Pushed.Publish(ctx, tx, rec.push); err != nil {
			return err
		}
	}
	return s.addTidying(ctx, tx, id)
}

// adopt sets the default branch on the first push. Concurrent first pushes
// conflict on the same file; the second one waits for the first.
func adopt(ctx context.Context, r git.Repo, refs []string) (string, error) {
	for try := 0; ; try++ {
		branch, _, err := r.AdoptBranch(ctx, refs)
		if !errors.Is(err, git.ErrConflict) || try == 100 {
			return branch, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// manyRefs is the number of changed refs from which a push is a single event.
const manyRefs = 4

// events returns the activity events of a push, and counts the commits of its
// changes.
func (s *Service) events(ctx context.Context, r git.Repo, at head, done *Push) ([]activity.Event, error) {
	author := done.By.ID
	if done.By.Deploy != nil {
		author = done.By.Deploy.UserID
	}
	if author <= 0 { // the system, or a deploy key whose creator was deleted
		return nil, nil
	}
	event := func(p *activity.Push) activity.Event {
		return activity.Event{ProjectID: &done.Project.ID, AuthorID: author, Action: activity.Pushed, Audience: activity.CodeReaders, Push: p, CreatedAt: done.At}
	}
	if len(done.Changes) >= manyRefs {
		first := describeChange(done.Changes[0])
		return []activity.Event{event(&activity.Push{Action: first.Action, RefType: first.RefType, RefCount: len(done.Changes)})}, nil
	}
	var list []activity.Event
	for i := range done.Changes {
		c := &done.Changes[i]
		entry := describeChange(*c)
		if c.New != git.ZeroOID && entry.RefType == "branch" {
			if err := s.count(ctx, r, at, c); err != nil {
				return nil, err
			}
			head, err := r.Commit(ctx, string(c.New))
			if err != nil {
				return nil, err
			}
			entry.CommitCount, entry.CommitTitle = c.Commits, head.Title
		}
		list = append(list, event(&entry))
	}
	return list, nil
}

func describeChange(c Change) activity.Push {
	p := activity.Push{Action: activity.RefPushed, RefType: "branch", Ref: shortRef(c.Ref), From: string(c.Old), To: string(c.New)}
	if strings.HasPrefix(c.Ref, git.Tags) {
		p.RefType = "tag"
	}
	if c.Old == git.ZeroOID {
		p.Action, p.From = activity.RefCreated, ""
	}
	if c.New == git.ZeroOID {
		p.Action, p.To = activity.RefRemoved, ""
	}
	return p
}

// count counts the new commits of a branch; for a new branch those that the
// default branch does not have.
func (s *Service) count(ctx context.Context, r git.Repo, at head, c *Change) error {
	o := git.LogOptions{From: []string{string(c.New)}}
	switch {
	case c.Old != git.ZeroOID:
		o.Not = []string{string(c.Old)}
	case at.tip != "" && c.Ref != git.Heads+at.branch:
		o.Not = []string{string(at.tip)}
	}
	n, err := r.Count(ctx, o)
	if errors.Is(err, git.ErrNotFound) {
		return nil // the previous commit no longer exists
	}
	c.Commits = n
	return err
}
