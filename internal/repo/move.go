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
	Options []string // what the user sent with -o
	// About is what the push was for, in the words of the feature that asked
	// for it; empty for what users push.
	About string
	At    time.Time

	settled string // the text of the row that is settled; empty for one's own
}

// Change is the change of one ref by a push.
type Change struct {
	Ref     string  // in full
	Old     git.OID // ZeroOID for a ref that was made
	New     git.OID // ZeroOID for a ref that was deleted
	Commits int     // that came with it; known for few changes only
}

// Events is what happens to repositories.
type Events struct {
	// Pushed is published for each push, in the transaction that records it.
	Pushed event.Event[Push]
}

// PushHint returns messages for a user who has pushed branches, such as the URL
// to create a merge request. git shows them in the terminal.
type PushHint func(ctx context.Context, by actor.Actor, in *project.Project, branches []string) []string

// OnPushHints registers a PushHint. It is called at start-up.
func (s *Service) OnPushHints(h PushHint) { s.pushHints = append(s.pushHints, h) }

// hint shows what the features have to say about the branches of a push that
// was recorded.
func (s *Service) hint(ctx context.Context, by actor.Actor, in *project.Project, push *git.Push) {
	var branches []string
	for _, c := range changesOf(push) {
		if name, ok := strings.CutPrefix(c.Ref, git.Heads); ok && c.New != git.ZeroOID {
			branches = append(branches, name)
		}
	}
	for _, h := range s.pushHints {
		for _, line := range h(ctx, by, in, branches) {
			push.Say("%s", line)
		}
	}
}

// move moves refs for an actor who may write: asks the rules, moves them all
// or none, and records it. Forbidden in the words of the rule; Conflict when a
// ref is elsewhere by now.
func (s *Service) move(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, updates ...git.Update) error {
	return s.moveBy(ctx, by, p, r, overWeb, journal{}, updates...)
}

// moveBy is move by another door, with what is to be written down beside the
// changes.
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
	// Once it is decided a caller who leaves does not stop it: half of it may
	// be done.
	ctx = context.WithoutCancel(ctx)
	begun.Changes, begun.Mark = changesOf(push), newMark()
	id, err := s.begin(ctx, by, p, begun)
	if err != nil {
		return err
	}
	if err := r.UpdateRefsAs(ctx, begun.Mark, updates); err != nil {
		if err := s.land(ctx, id, by, p, r, begun); err != nil {
			return err
		}
		var conflict *git.RefConflict
		if errors.As(err, &conflict) {
			return errs.Conflict("%s could not be moved: %s", shortRef(conflict.Ref), conflict.Why).Because(err)
		}
		if allAt(ctx, r, updates) {
			return nil // git failed after it had moved them
		}
		return missing(err, "Commit")
	}
	if err := s.finish(ctx, id, by, p, r, begun); err != nil {
		// The refs have moved, so the caller has what they asked for. The record
		// follows when the row that begin wrote is settled.
		s.Log.ErrorContext(ctx, "a push is not recorded yet", "project", p.ID, "push", id, "error", err)
	}
	return nil
}

// allAt reports whether all refs are where updates move them.
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

// begin writes down what a push is about to do. What is found there after a
// crash is settled by looking at the refs. Unavailable while the repository is
// being moved, Conflict when it was since p was read.
func (s *Service) begin(ctx context.Context, by actor.Actor, p *project.Project, j journal) (int64, error) {
	id, storage, err := s.enter(ctx, by, p.ID, j)
	if err == nil && storage != p.Storage { // what it would lead to is where p was
		err = errors.Join(errs.Conflict(elsewhere), s.drop(ctx, id))
	}
	return id, err
}

// journal is what is written down of a push under way, as JSON.
type journal struct {
	Changes []Change
	Options []string
	About   string `json:",omitempty"`
	// Mark is what the logs of the refs know the push by. Rows of earlier
	// versions have none.
	Mark string `json:",omitempty"`

	settled string // the text that was read of a row of another process
}

// newMark makes a mark that no other push has. The id of a row would not do:
// it may be given again when the row is gone.
func newMark() string { return rand.Text() }

// changesOf are the changes of a push that were not refused.
func changesOf(push *git.Push) []Change {
	var list []Change
	for _, c := range push.Changes {
		if c.Refused == "" {
			list = append(list, Change{Ref: c.Ref, Old: c.Old, New: c.New})
		}
	}
	return list
}

// drop forgets a push that did nothing.
func (s *Service) drop(ctx context.Context, id int64) error {
	if err := deletePush(ctx, s.DB, id); err != nil && !errors.Is(err, db.ErrNoRows) {
		return fmt.Errorf("drop push %d: %w", id, err)
	}
	return nil
}

// finish records a push whose refs have moved, with all that follows from it,
// in one transaction.
func (s *Service) finish(ctx context.Context, id int64, by actor.Actor, p *project.Project, r git.Repo, j journal) error {
	done := Push{Project: p, By: by, Changes: j.Changes, Options: j.Options, About: j.About, At: s.Now(), settled: j.settled}
	if err := s.record(ctx, id, r, done); err != nil {
		return fmt.Errorf("record push %d to project %d: %w", id, p.ID, err)
	}
	return nil
}

// strike removes the deletions that a push has made from the rows of other pushes
// that were about to make the same ones. A deleted ref has no reflog that shows
// who deleted it, but the push that found the ref as expected and deleted it
// did, and the others did not.
func (s *Service) strike(ctx context.Context, tx *db.Tx, done Push) error {
	if !slices.ContainsFunc(done.Changes, func(c Change) bool { return c.New == git.ZeroOID }) {
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
			return c.New == git.ZeroOID && slices.ContainsFunc(done.Changes, func(d Change) bool { return d.Ref == c.Ref && d.Old == c.Old && d.New == c.New })
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
	if _, err := r.Ref(ctx, git.Heads+branch); errors.Is(err, git.ErrNotFound) {
		branch = "" // only tags so far
	} else if err != nil {
		return err
	}
	events, err := s.events(ctx, r, branch, &done)
	if err != nil {
		return err
	}
	var readme *string
	if branch != "" && slices.Contains(refs, git.Heads+branch) {
		// The tidying that follows finds it else: no push waits for its README.
		if path, err := readmeOf(ctx, r, git.Heads+branch); err == nil {
			readme = &path
		}
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		err := deletePushAs(ctx, tx, id, done.settled)
		if errors.Is(err, db.ErrNoRows) {
			return nil // another node has settled it, or another push has changed it
		}
		if err != nil || len(done.Changes) == 0 {
			return err
		}
		if err := s.strike(ctx, tx, done); err != nil {
			return err
		}
		if err := s.Projects.Pushed(ctx, tx, done.Project.ID, branch, readme, done.At); err != nil {
			return err
		}
		for _, e := range events {
			if err := activity.Record(ctx, tx, e); err != nil {
				return err
			}
		}
		if err := s.Events.Pushed.Publish(ctx, tx, done); err != nil {
			return err
		}
		return s.addTidying(ctx, tx, done.Project.ID)
	})
}

// adopt sets the default branch by a first push. Two first pushes meet at the
// same file; the one that comes second waits for the other.
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

// manyRefs is the number of changed refs from which on a push is one event.
const manyRefs = 4

// events returns the activity events of a push, and counts the commits of its
// changes.
func (s *Service) events(ctx context.Context, r git.Repo, branch string, done *Push) ([]activity.Event, error) {
	author := done.By.ID
	if done.By.Deploy != nil {
		author = done.By.Deploy.UserID
	}
	if author <= 0 { // the program itself, or a key whose maker is gone
		return nil, nil
	}
	event := func(p *activity.Push) activity.Event {
		return activity.Event{ProjectID: &done.Project.ID, AuthorID: author, Action: activity.Pushed, Audience: activity.CodeReaders, Push: p, CreatedAt: done.At}
	}
	if len(done.Changes) >= manyRefs {
		first := describe(done.Changes[0])
		return []activity.Event{event(&activity.Push{Action: first.Action, RefType: first.RefType, RefCount: len(done.Changes)})}, nil
	}
	var list []activity.Event
	for i := range done.Changes {
		c := &done.Changes[i]
		entry := describe(*c)
		if c.New != git.ZeroOID && entry.RefType == "branch" {
			if err := s.count(ctx, r, branch, c); err != nil {
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

func describe(c Change) activity.Push {
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

// count counts the commits that came with a change of a branch: of a new one
// those that the default branch does not have.
func (s *Service) count(ctx context.Context, r git.Repo, branch string, c *Change) error {
	o := git.LogOptions{From: []string{string(c.New)}}
	switch {
	case c.Old != git.ZeroOID:
		o.Not = []string{string(c.Old)}
	case branch != "" && c.Ref != git.Heads+branch:
		o.Not = []string{git.Heads + branch}
	}
	n, err := r.Count(ctx, o)
	if errors.Is(err, git.ErrNotFound) {
		return nil // what was there before is gone from the repository
	}
	c.Commits = n
	return err
}
