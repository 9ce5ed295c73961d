// Package todo implements the to-do list of users: issues, merge requests, commits,
// alerts and access requests that need their attention.
//
// Items are created from the events that users are notified of (package notify),
// so that emails and the list agree. Notification levels do not
// apply to them, and no mail server is needed. A user has at most one pending item
// for a target: further events do not add another one.
package todo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/alert"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/notice"
	"svc/internal/notify"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/user"
)

// Action is the reason why a user has a to-do item.
type Action string

// The actions.
const (
	Assigned          Action = "assigned"
	Mentioned         Action = "mentioned"
	BuildFailed       Action = "build_failed"
	Marked            Action = "marked" // by the user
	ApprovalRequired  Action = "approval_required"
	Unmergeable       Action = "unmergeable"
	DirectlyAddressed Action = "directly_addressed"
	ReviewRequested   Action = "review_requested"
	ReviewSubmitted   Action = "review_submitted"
	AccessRequested   Action = "member_access_requested"
)

// The kinds of targets of access requests.
const (
	ProjectKind plan.Kind = "Project"
	GroupKind   plan.Kind = "Namespace"
)

// Kinds returns all kinds of targets.
func Kinds() []plan.Kind {
	return []plan.Kind{plan.IssueKind, plan.MergeKind, plan.CommitKind, alert.NoteKind, ProjectKind, GroupKind}
}

// Actions returns all actions of items.
func Actions() []Action {
	return []Action{
		Assigned, ReviewRequested, ApprovalRequired, Mentioned, DirectlyAddressed, BuildFailed, Unmergeable, ReviewSubmitted, AccessRequested, Marked,
	}
}

// State is the state of an item.
type State string

// The states.
const (
	Pending State = "pending"
	Done    State = "done"
)

// Item is a to-do item.
type Item struct {
	ID        int64
	UserID    int64
	AuthorID  int64
	ProjectID int64       // 0 for a group
	GroupID   int64       // of an access request; 0 for a project
	On        plan.Target // without an ID for commits and access requests
	Commit    *Commit     // of CommitKind
	NoteID    *int64      // the comment that mentions the user
	Action    Action
	State     State
	CreatedAt time.Time
	UpdatedAt time.Time

	// Read with the row.
	NoteText string // the beginning of the comment
	Author   *user.User
	Project  *project.Project    // nil for a group
	Group    *project.Namespace  // of an access request; nil for a project
	Issue    *plan.Issue         // of IssueKind
	Request  *merge.MergeRequest // of MergeKind
	Alert    *Alert              // of the kind of alerts
}

// Commit is a commit with the comment that mentions the user.
type Commit struct {
	SHA       string `json:"sha"`
	Title     string `json:"title"`
	CommentID int64  `json:"comment_id"`
}

// Alert has the fields of an alert that an item shows.
type Alert struct {
	IID   int64
	Title string
}

// Own reports whether the user caused the item.
func (t *Item) Own() bool { return t.UserID == t.AuthorID }

// Target returns the issue or merge request; nil for other targets.
func (t *Item) Target() *plan.Issuable {
	switch {
	case t.Issue != nil:
		return &t.Issue.Issuable
	case t.Request != nil:
		return &t.Request.Issuable
	}
	return nil
}

// Title returns the title of the target.
func (t *Item) Title() string {
	switch {
	case t.Commit != nil:
		return t.Commit.Title
	case t.Alert != nil:
		return t.Alert.Title
	case t.Target() != nil:
		return t.Target().Title
	case t.Group != nil:
		return t.Group.FullName
	}
	return t.Project.FullName()
}

// Body returns the text of the item: the comment, or else the title of the target.
func (t *Item) Body() string {
	if t.NoteText != "" {
		return t.NoteText
	}
	return t.Title()
}

// Filter selects items; zero values select all.
type Filter struct {
	Action    Action
	State     State
	Kind      plan.Kind
	AuthorID  int64
	ProjectID int64
	GroupID   int64 // with its subgroups

	few bool // the user has few items in the group
}

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Notices  *notice.Bus
	Users    *user.Service
	Projects *project.Service
	Notify   *notify.Service
	Plan     *plan.Service
	Merges   *merge.Service
	Now      func() time.Time
}

// Service manages the to-do lists of the instance.
type Service struct {
	Deps
	counts    *notice.Cache[int64, Counts]
	followers followers
	closed    chan struct{} // closed when the server stops
}

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d, closed: make(chan struct{})}
	s.counts = notice.NewCache[int64](notice.CacheOptions[Counts]{
		Bus: d.Notices, TTL: countAge, Now: d.Now, Max: maxCounts, Group: func(c Counts) int64 { return c.userID },
	})
	queue.Handle(d.Queue, s.findMentions)
	queue.Handle(d.Queue, s.addRequest)
	for _, kind := range []plan.Kind{plan.IssueKind, plan.MergeKind} {
		d.Plan.OnCommand(kind, "todo", s.todoCommand)
		d.Plan.OnCommand(kind, "done", s.doneCommand)
	}
	s.listen()
	return s
}

// todoCommand is the quick action that adds an item.
func (s *Service) todoCommand(ctx context.Context, by actor.Actor, _ *project.Project, i *plan.Issuable, _, _ string) (string, error) {
	if _, _, err := s.mark(ctx, by, i); err != nil {
		return "", err
	}
	return "Added a to-do item.", nil
}

// doneCommand is the quick action that marks the item of the actor as done.
func (s *Service) doneCommand(ctx context.Context, by actor.Actor, _ *project.Project, i *plan.Issuable, _, _ string) (string, error) {
	id, err := s.PendingFor(ctx, by, i.Target())
	if err != nil {
		return "", err
	}
	if id == 0 {
		return "", errs.Invalid("There is no to-do item.")
	}
	if _, err := s.MarkDone(ctx, by, id); err != nil {
		return "", err
	}
	return "Marked the to-do item as done.", nil
}

// UserDeleted makes the ghost user the author of the items that a deleted user
// caused. Their own items, and after a hard deletion also those that they caused,
// are deleted with the account.
func UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	if d.Hard {
		return nil
	}
	return changeAuthor(ctx, tx, d.UserID, d.GhostID)
}

// List lists the items of the actor whose targets they can see, newest first.
func (s *Service) List(ctx context.Context, by actor.Actor, f Filter, p db.Paging) (db.Page[*Item], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[*Item]{}, err
	}
	page, err := list(ctx, s.DB, s.visible(by), by.ID, f, p)
	if err != nil {
		return page, fmt.Errorf("list to-do items of user %d: %w", by.ID, err)
	}
	page.Items, err = s.fill(ctx, by, page.Items)
	return page, err
}

// fill reads the objects that items refer to. Items whose target was deleted in the
// meantime are left out.
func (s *Service) fill(ctx context.Context, by actor.Actor, items []*Item) ([]*Item, error) {
	if len(items) == 0 {
		return items, nil
	}
	var users, projects, groups, issues, requests []int64
	for _, t := range items {
		users = append(users, t.AuthorID)
		if t.GroupID != 0 {
			groups = append(groups, t.GroupID)
		} else {
			projects = append(projects, t.ProjectID)
		}
		switch t.On.Kind {
		case plan.IssueKind:
			issues = append(issues, t.On.ID)
		case plan.MergeKind:
			requests = append(requests, t.On.ID)
		}
	}
	authors, err := s.Users.FindAll(ctx, users)
	if err != nil {
		return nil, fmt.Errorf("authors of to-do items: %w", err)
	}
	in, err := s.Projects.Among(ctx, by, unique(projects))
	if err != nil {
		return nil, err
	}
	byID := map[int64]*project.Project{}
	for _, p := range in {
		byID[p.ID] = p
	}
	seenGroups, err := s.Projects.GroupsAmong(ctx, by, unique(groups))
	if err != nil {
		return nil, err
	}
	seenIssues, err := s.Plan.IssuesAmong(ctx, by, unique(issues))
	if err != nil {
		return nil, err
	}
	seenRequests, err := s.Merges.Among(ctx, by, unique(requests))
	if err != nil {
		return nil, err
	}
	kept := items[:0]
	for _, t := range items {
		t.Author, t.Project, t.Group = authors[t.AuthorID], byID[t.ProjectID], seenGroups[t.GroupID]
		if at := slices.IndexFunc(seenIssues, func(i *plan.Issue) bool { return i.ID == t.On.ID }); at >= 0 && t.On.Kind == plan.IssueKind {
			t.Issue = seenIssues[at]
		}
		if at := slices.IndexFunc(seenRequests, func(m *merge.MergeRequest) bool { return m.ID == t.On.ID }); at >= 0 && t.On.Kind == plan.MergeKind {
			t.Request = seenRequests[at]
		}
		if t.Author != nil && t.found() {
			kept = append(kept, t)
		}
	}
	return kept, nil
}

// found reports whether fill has read the objects that the item refers to.
func (t *Item) found() bool {
	switch t.On.Kind {
	case plan.IssueKind:
		return t.Project != nil && t.Issue != nil
	case plan.MergeKind:
		return t.Project != nil && t.Request != nil
	case GroupKind:
		return t.Group != nil
	}
	return t.Project != nil
}

func unique(ids []int64) []int64 {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Get returns an item of the actor. NotFound.
func (s *Service) Get(ctx context.Context, by actor.Actor, id int64) (*Item, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	t, err := find(ctx, s.DB, s.visible(by), by.ID, id)
	if err != nil {
		return nil, db.NotFound(err, "Todo")
	}
	items, err := s.fill(ctx, by, []*Item{t})
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, errs.NotFound("Todo")
	}
	return items[0], nil
}

// MarkDone marks an item of the actor as done. NotFound.
func (s *Service) MarkDone(ctx context.Context, by actor.Actor, id int64) (*Item, error) {
	return s.setState(ctx, by, id, Done)
}

// Restore marks an item of the actor as pending again, unless there is another
// pending one for its target. NotFound.
func (s *Service) Restore(ctx context.Context, by actor.Actor, id int64) (*Item, error) {
	return s.setState(ctx, by, id, Pending)
}

func (s *Service) setState(ctx context.Context, by actor.Actor, id int64, to State) (*Item, error) {
	t, err := s.Get(ctx, by, id)
	if err != nil || t.State == to {
		return t, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		// Lock the user first: otherwise two requests could restore two items for a
		// target.
		if err := tx.Lock(ctx, "users", by.ID); err != nil {
			return err
		}
		if to == Pending {
			other, err := hasPending(ctx, tx, t)
			if err != nil || other {
				return err
			}
		}
		t.State, t.UpdatedAt = to, s.Now()
		if err := saveState(ctx, tx, t); err != nil {
			return err
		}
		return s.changed(ctx, tx, by.ID)
	})
	if err != nil {
		return nil, fmt.Errorf("set state of to-do item %d: %w", id, err)
	}
	return t, nil
}

// doneBatch is the maximum number of rows that one transaction marks, so that other
// writers are not blocked for long.
const doneBatch = 1000

// MarkAllDone marks the pending items of the actor that match a filter as done,
// including those whose target they can no longer see.
func (s *Service) MarkAllDone(ctx context.Context, by actor.Actor, f Filter) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	f.State = Pending
	for {
		var n int64
		err := s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
			if n, err = markAll(ctx, tx, by.ID, f, s.Now(), doneBatch); err != nil || n == 0 {
				return err
			}
			return s.changed(ctx, tx, by.ID)
		})
		if err != nil {
			return fmt.Errorf("mark to-do items of user %d as done: %w", by.ID, err)
		}
		if n < doneBatch {
			return nil
		}
	}
}

// AddIssue adds an item for an issue that the actor can see. added is false if a
// pending one exists. NotFound.
func (s *Service) AddIssue(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (t *Item, added bool, err error) {
	if err := by.RequireUser(); err != nil {
		return nil, false, err
	}
	i, err := s.Plan.Issue(ctx, by, ref, iid)
	if err != nil {
		return nil, false, err
	}
	return s.mark(ctx, by, &i.Issuable)
}

// AddMergeRequest is AddIssue for a merge request.
func (s *Service) AddMergeRequest(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (t *Item, added bool, err error) {
	if err := by.RequireUser(); err != nil {
		return nil, false, err
	}
	m, err := s.Merges.Get(ctx, by, ref, iid)
	if err != nil {
		return nil, false, err
	}
	return s.mark(ctx, by, &m.Issuable)
}

func (s *Service) mark(ctx context.Context, by actor.Actor, on *plan.Issuable) (*Item, bool, error) {
	var id int64
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		t := s.item(by.ID, by.ID, on.ProjectID, on.Target(), Marked)
		if err := insert(ctx, tx, t); err != nil || t.ID == 0 {
			return err
		}
		id = t.ID
		return s.changed(ctx, tx, by.ID)
	})
	if err != nil {
		return nil, false, fmt.Errorf("add to-do item for %s %d: %w", on.Kind, on.ID, err)
	}
	if id == 0 {
		return nil, false, nil
	}
	t, err := s.Get(ctx, by, id)
	return t, true, err
}

func (s *Service) item(userID, authorID, projectID int64, on plan.Target, a Action) *Item {
	now := s.Now()
	return &Item{UserID: userID, AuthorID: authorID, ProjectID: projectID, On: on, Action: a, State: Pending, CreatedAt: now, UpdatedAt: now}
}

// PendingFor returns the ID of the actor's pending item for a target that they can
// see; 0 if there is none.
func (s *Service) PendingFor(ctx context.Context, by actor.Actor, on plan.Target) (int64, error) {
	if by.ID <= 0 {
		return 0, nil
	}
	id, err := findPending(ctx, s.DB, by.ID, on)
	if err != nil {
		return 0, fmt.Errorf("to-do item for %s %d: %w", on.Kind, on.ID, err)
	}
	return id, nil
}

// ProjectsOf returns the projects of the actor's items in a state that they can see,
// for filters.
func (s *Service) ProjectsOf(ctx context.Context, by actor.Actor, state State) ([]*project.Project, error) {
	ids, err := findProjects(ctx, s.DB, by.ID, state)
	if err != nil {
		return nil, fmt.Errorf("projects of to-do items: %w", err)
	}
	return s.Projects.Among(ctx, by, ids)
}
