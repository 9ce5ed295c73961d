package todo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/ci"
	"svc/internal/ci/flow"
	"svc/internal/comment"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/markup"
	"svc/internal/merge"
	"svc/internal/notify"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/user"
)

// Notified creates and resolves to-do items for an event. A background job finds the
// mentioned users.
func (s *Service) Notified(ctx context.Context, tx *db.Tx, e notify.Event) error {
	on := plan.Target{Kind: plan.Kind(e.TargetKind), ID: e.TargetID}
	if on.Kind != plan.IssueKind && on.Kind != plan.MergeKind {
		return nil
	}
	switch e.Type {
	case notify.NewIssue, notify.NewMergeRequest:
		return s.opened(ctx, tx, &e, on)
	case notify.ReassignIssue, notify.ReassignMergeRequest:
		return s.appointed(ctx, tx, &e, on, Assigned)
	case notify.ChangeReviewer:
		return s.appointed(ctx, tx, &e, on, ReviewRequested)
	case notify.Mention:
		return s.Queue.Add(ctx, tx, mentionsIn(&e))
	case notify.NewNote:
		if err := s.acted(ctx, tx, e.AuthorID, on); err != nil {
			return err
		}
		for _, id := range append([]int64{e.NoteID}, e.MoreNotes...) {
			e.NoteID = id
			if err := s.Queue.Add(ctx, tx, mentionsIn(&e)); err != nil {
				return err
			}
		}
		return nil
	case notify.PushToMergeRequest, notify.ApproveMergeRequest, notify.UnapproveMergeRequest:
		return s.acted(ctx, tx, e.AuthorID, on)
	case notify.CloseIssue, notify.CloseMergeRequest, notify.MergeMergeRequest, notify.ReopenIssue, notify.ReopenMergeRequest:
		if err := s.acted(ctx, tx, e.AuthorID, on); err != nil {
			return err
		}
		return s.counted(ctx, tx, on)
	}
	return nil
}

// opened creates the items for a new issue or merge request.
func (s *Service) opened(ctx context.Context, tx *db.Tx, e *notify.Event, on plan.Target) error {
	for as, action := range map[plan.Relation]Action{plan.Assignees: Assigned, plan.Reviewers: ReviewRequested} {
		users, err := plan.Related(ctx, tx, on, as)
		if err != nil {
			return err
		}
		if err := s.add(ctx, tx, e, on, action, users); err != nil {
			return err
		}
	}
	return s.Queue.Add(ctx, tx, mentionsIn(e))
}

// appointed creates items for users who became assignees or reviewers, and resolves
// those of users who no longer are.
func (s *Service) appointed(ctx context.Context, tx *db.Tx, e *notify.Event, on plan.Target, action Action) error {
	var came, went []int64
	for _, id := range e.After {
		if !slices.Contains(e.Before, id) {
			came = append(came, id)
		}
	}
	for _, id := range e.Before {
		if !slices.Contains(e.After, id) {
			went = append(went, id)
		}
	}
	for _, id := range went {
		if _, err := resolve(ctx, tx, id, on, s.Now(), action); err != nil {
			return err
		}
		if err := s.changed(ctx, tx, id); err != nil {
			return err
		}
	}
	return s.add(ctx, tx, e, on, action, came)
}

// add creates items for users and updates their counters, which may have changed
// even for users who already have an item.
func (s *Service) add(ctx context.Context, tx *db.Tx, e *notify.Event, on plan.Target, action Action, users []int64) error {
	return s.addEach(ctx, tx, users, func(id int64) *Item {
		author := e.AuthorID
		if author <= 0 {
			author = id
		}
		t := s.item(id, author, e.ProjectID, on, action)
		if e.NoteID != 0 && (action == Mentioned || action == DirectlyAddressed) {
			t.NoteID = &e.NoteID
		}
		return t
	})
}

func (s *Service) addEach(ctx context.Context, tx *db.Tx, users []int64, item func(userID int64) *Item) error {
	for _, id := range users {
		if err := insert(ctx, tx, item(id)); err != nil {
			return err
		}
		if err := s.changed(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

// acted resolves the pending item of a user who acted on its target. The items of
// other users stay pending.
func (s *Service) acted(ctx context.Context, tx *db.Tx, userID int64, on plan.Target) error {
	if userID <= 0 {
		return nil
	}
	done, err := resolve(ctx, tx, userID, on, s.Now())
	if err != nil || !done {
		return err
	}
	return s.changed(ctx, tx, userID)
}

// Planned resolves the item of a user who changed the labels, the milestone, the
// assignees or the reviewers of its target.
func (s *Service) Planned(ctx context.Context, tx *db.Tx, a plan.Act) error {
	return s.acted(ctx, tx, a.By, a.On)
}

// counted updates the counters of the assignees and reviewers of a target that was
// closed or reopened.
func (s *Service) counted(ctx context.Context, tx *db.Tx, on plan.Target) error {
	for _, as := range []plan.Relation{plan.Assignees, plan.Reviewers} {
		users, err := plan.Related(ctx, tx, on, as)
		if err != nil {
			return err
		}
		for _, id := range users {
			if err := s.changed(ctx, tx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// MergeRequestChanged creates items for the author of a merge request that has
// conflicts and the user who enabled auto-merge, and for the author and the
// assignees of a merge request that was reviewed.
func (s *Service) MergeRequestChanged(ctx context.Context, tx *db.Tx, c merge.Change) error {
	switch {
	case c.Request.State != merge.Opened:
	case c.Kind == merge.Conflicted:
		return s.addMergers(ctx, tx, c.Request, Unmergeable)
	case c.Kind == merge.ReviewedBy:
		return s.addReviewed(ctx, tx, c.Request, c.By)
	}
	return nil
}

// addReviewed creates the items for a review and updates the counters of the
// reviewer.
func (s *Service) addReviewed(ctx context.Context, tx *db.Tx, m *merge.MergeRequest, by int64) error {
	users, err := plan.Related(ctx, tx, m.Target(), plan.Assignees)
	if err != nil {
		return err
	}
	users = slices.DeleteFunc(unique(append(users, m.AuthorID)), func(id int64) bool { return id == by })
	e := &notify.Event{ProjectID: m.ProjectID, AuthorID: by}
	if err := s.add(ctx, tx, e, m.Target(), ReviewSubmitted, users); err != nil {
		return err
	}
	return s.changed(ctx, tx, by)
}

// PipelineEnded creates items for the author of a merge request and for the user who
// enabled auto-merge, if its pipeline failed. If the pipeline passed, it resolves
// these items.
func (s *Service) PipelineEnded(ctx context.Context, tx *db.Tx, p *ci.Pipeline) error {
	if p.Tag || p.Status != flow.Failed && p.Status != flow.Success {
		return nil
	}
	requests, err := s.Merges.OfPipeline(ctx, tx, p.ProjectID, p.Ref, p.SHA)
	if err != nil {
		return err
	}
	for _, m := range requests {
		if p.Status == flow.Failed {
			err = s.addMergers(ctx, tx, m, BuildFailed)
		} else {
			err = s.resolveFor(ctx, tx, m.Target(), BuildFailed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resolveFor resolves the items of all users for a target and an action.
func (s *Service) resolveFor(ctx context.Context, tx *db.Tx, on plan.Target, a Action) error {
	users, err := resolveAll(ctx, tx, on, a, s.Now())
	if err != nil {
		return err
	}
	for _, id := range users {
		if err := s.changed(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

// addMergers creates items for the author of a merge request and for the user who
// enabled auto-merge.
func (s *Service) addMergers(ctx context.Context, tx *db.Tx, m *merge.MergeRequest, a Action) error {
	users := []int64{m.AuthorID}
	if m.AutoMergeByID != nil && *m.AutoMergeByID != m.AuthorID {
		users = append(users, *m.AutoMergeByID)
	}
	return s.addEach(ctx, tx, users, func(id int64) *Item { return s.item(id, m.AuthorID, m.ProjectID, m.Target(), a) })
}

// mentionWork is the background job that creates the items of mentioned users:
// parsing texts takes time, and a mentioned group can have many members.
type mentionWork struct {
	Type      notify.EventType `json:"type"`
	On        string           `json:"kind"`
	TargetID  int64            `json:"target_id"`
	ProjectID int64            `json:"project_id"`
	AuthorID  int64            `json:"author_id"`
	NoteID    int64            `json:"note_id,omitempty"`
	Names     []string         `json:"names,omitempty"` // nil: those in the text
	Commit    *Commit          `json:"commit,omitempty"`
}

// Kind implements queue.Work.
func (mentionWork) Kind() string { return "todo.mentions" }

func mentionsIn(e *notify.Event) mentionWork {
	return mentionWork{
		Type: e.Type, On: e.TargetKind, TargetID: e.TargetID, ProjectID: e.ProjectID, AuthorID: e.AuthorID, NoteID: e.NoteID, Names: e.Mentioned,
	}
}

func (w mentionWork) event() *notify.Event {
	return &notify.Event{
		Type: w.Type, TargetKind: w.On, TargetID: w.TargetID, ProjectID: w.ProjectID, AuthorID: w.AuthorID,
		Details: notify.Details{NoteID: w.NoteID, Mentioned: w.Names},
	}
}

// maxMentioned is the maximum number of users who get an item for one text.
const maxMentioned = 10_000

func (s *Service) findMentions(ctx context.Context, w mentionWork) error {
	e := w.event()
	on := plan.Target{Kind: plan.Kind(e.TargetKind), ID: e.TargetID}
	text, internal, err := s.text(ctx, e, on, w.Commit)
	if errs.Is(err, errs.KindNotFound) {
		return nil // the target was deleted
	}
	if err != nil {
		return err
	}
	names := e.Mentioned
	if names == nil {
		if names, err = markup.Mentions(ctx, text); err != nil {
			return err
		}
	}
	names = names[:min(notify.MaxMentions, len(names))]
	direct := addressed(text)
	seen := map[int64]bool{}
	// Users who are addressed directly come first, because a user has only one item per
	// target.
	for _, first := range []bool{true, false} {
		for _, name := range names {
			if slices.Contains(direct, strings.ToLower(name)) != first {
				continue
			}
			action := Mentioned
			if first {
				action = DirectlyAddressed
			}
			users, err := s.Notify.Mentioned(ctx, e, name)
			if err != nil {
				return fmt.Errorf("users of mention: %w", err)
			}
			for _, id := range users {
				if seen[id] || len(seen) >= maxMentioned {
					continue
				}
				seen[id] = true
				if err := s.addMentioned(ctx, e, on, id, action, internal, w.Commit); err != nil {
					return fmt.Errorf("to-do item of user %d: %w", id, err)
				}
			}
		}
	}
	if e.Type == notify.NewMergeRequest {
		return s.addApprovers(ctx, e, on)
	}
	return nil
}

// addApprovers creates items for the users that unsatisfied approval rules list, but
// not for the members of listed groups and roles.
func (s *Service) addApprovers(ctx context.Context, e *notify.Event, on plan.Target) error {
	in, m, err := s.Merges.Seen(ctx, actor.System(), on.ID)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	_, a, err := s.Merges.ApprovalState(ctx, actor.System(), project.RefTo(in.ID), m.IID)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	for _, r := range a.Waiting() {
		if r.Required == 0 {
			continue
		}
		for _, u := range r.Users {
			if u.ID == m.AuthorID {
				continue
			}
			if err := s.addMentioned(ctx, e, on, u.ID, ApprovalRequired, false, nil); err != nil {
				return fmt.Errorf("to-do item of user %d: %w", u.ID, err)
			}
		}
	}
	return nil
}

// text returns the text of an event, and whether it is an internal note. NotFound.
func (s *Service) text(ctx context.Context, e *notify.Event, on plan.Target, c *Commit) (text string, internal bool, err error) {
	if c != nil {
		text, err := comment.Text(ctx, s.DB, c.CommentID)
		return text, false, err
	}
	if e.NoteID != 0 {
		notes, err := s.Plan.NotesOf(ctx, []int64{e.NoteID})
		if err != nil {
			return "", false, err
		}
		n := notes[e.NoteID]
		if n == nil || n.On != on {
			return "", false, errs.NotFound("Note")
		}
		return n.Body, n.Internal, nil
	}
	if on.Kind == plan.IssueKind {
		_, i, err := s.Plan.Seen(ctx, actor.System(), on.ID)
		if err != nil {
			return "", false, err
		}
		return i.Description, false, nil
	}
	_, m, err := s.Merges.Seen(ctx, actor.System(), on.ID)
	if err != nil {
		return "", false, err
	}
	return m.Description, false, nil
}

// addMentioned creates the item of a user who can see the target.
func (s *Service) addMentioned(ctx context.Context, e *notify.Event, on plan.Target, userID int64, a Action, internal bool, c *Commit) error {
	users, err := s.Users.FindAll(ctx, []int64{userID})
	if err != nil {
		return err
	}
	if u := users[userID]; u == nil || u.State != user.Active {
		return nil
	}
	as, err := s.Users.As(ctx, userID)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	var in *project.Project
	switch {
	case c != nil:
		in, err = s.Projects.RequireView(ctx, as, project.RefTo(e.ProjectID), project.CodePart)
	case on.Kind == plan.IssueKind:
		in, _, err = s.Plan.Seen(ctx, as, on.ID)
	default:
		in, _, err = s.Merges.Seen(ctx, as, on.ID)
	}
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	if internal && !in.MayRead(as, project.ConfidentialPart) {
		return nil
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if c == nil {
			return s.add(ctx, tx, e, on, a, []int64{userID})
		}
		return s.addEach(ctx, tx, []int64{userID}, func(id int64) *Item {
			t := s.item(id, e.AuthorID, e.ProjectID, on, a)
			t.Commit = c
			return t
		})
	})
}

// addressed returns the names, in lowercase, that lines of a text begin with:
// "@alice @bob, please look".
func addressed(text string) (names []string) {
	for line := range strings.Lines(text) {
		for {
			line = strings.TrimLeft(line, " \t,")
			rest, ok := strings.CutPrefix(line, "@")
			if !ok || len(names) >= notify.MaxMentions {
				break
			}
			end := strings.IndexFunc(rest, func(r rune) bool {
				return !(r == '_' || r == '-' || r == '.' || r == '/' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
			})
			if end < 0 {
				end = len(rest)
			}
			name := strings.ToLower(strings.TrimRight(rest[:end], ".-/"))
			if name == "" {
				break
			}
			names, line = append(names, name), rest[end:]
		}
	}
	return names
}
