package rows

import (
	"context"
	"slices"
	"time"

	"svc/internal/db"
	"svc/internal/emoji"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/transfer/archive"
)

// putLabel writes a label, unless a group above has one with the name, which is used
// instead.
func (t *Target) putLabel(ctx context.Context, tx *db.Tx, r *archive.ProjectLabelRow) error {
	id, err := t.Plan.FindLabel(ctx, tx, t.NamespaceID, r.Name, true)
	if err != nil {
		return err
	}
	if id == 0 {
		l := &plan.Label{Name: r.Name, Color: r.Color, Description: r.Description, CreatedAt: t.past(r.CreatedAt), UpdatedAt: t.past(r.UpdatedAt)}
		if err := t.Plan.PutLabels(ctx, tx, t.Draft, []*plan.Label{l}); err != nil {
			return err
		}
		id = l.ID
	}
	if r.Priority == nil {
		return nil
	}
	wrong := errs.Fields{}
	inRange(wrong, "priority", *r.Priority, 0, 1<<31)
	if err := wrong.Err(); err != nil {
		return err
	}
	return insertPriority(ctx, tx, t.Draft.ID, id, *r.Priority)
}

// putMilestone writes a milestone. One of a group is used where the groups above have
// one with the title, and becomes one of the project elsewhere.
func (t *Target) putMilestone(ctx context.Context, tx *db.Tx, r *archive.ProjectMilestoneRow) error {
	m := &plan.Milestone{
		IID: r.IID, Title: r.Title, Description: r.Description, State: plan.MilestoneState(r.State), StartDate: r.StartDate, DueDate: r.DueDate,
		CreatedAt: t.past(r.CreatedAt), UpdatedAt: t.past(r.UpdatedAt),
	}
	if r.Inherited {
		id, err := t.Plan.FindMilestone(ctx, tx, t.NamespaceID, r.Title, true)
		if err != nil || id != 0 {
			return err
		}
		if there, err := findMilestone(ctx, tx, t.Draft.ID, t.NamespaceID, r.Title); err != nil || there != 0 {
			return err
		}
		if m.IID, err = nextMilestone(ctx, tx, t.Draft.ID); err != nil {
			return err
		}
	}
	return t.Plan.PutMilestones(ctx, tx, t.Draft, []*plan.Milestone{m})
}

// label returns the ID of a label of the project or of a group above; 0 if there is
// none.
func (t *Target) label(ctx context.Context, tx *db.Tx, name string) (int64, error) {
	return remember(t.labels, name, func() (int64, error) { return findLabel(ctx, tx, t.Draft.ID, t.NamespaceID, name) })
}

// milestone returns the ID of a milestone by its title; nil if there is none.
func (t *Target) milestone(ctx context.Context, tx *db.Tx, title string) (*int64, error) {
	if title == "" {
		return nil, nil
	}
	id, err := remember(t.milestones, title, func() (int64, error) { return findMilestone(ctx, tx, t.Draft.ID, t.NamespaceID, title) })
	if err != nil || id == 0 {
		t.lost["milestone"]++
		return nil, err
	}
	return &id, nil
}

func remember(known map[string]int64, name string, find func() (int64, error)) (int64, error) {
	if id, ok := known[name]; ok {
		return id, nil
	}
	id, err := find()
	if err == nil {
		known[name] = id
	}
	return id, err
}

// issuable checks what issues and merge requests share.
func (t *Target) issuable(wrong errs.Fields, i *archive.IssuableRow, states ...string) {
	inRange(wrong, "iid", i.IID, 1, maxNumber)
	filled(wrong, "title", i.Title, plan.MaxTitle)
	text(wrong, "description", i.Description)
	among(wrong, "state", i.State, states...)
	inRange(wrong, "time_estimate", i.TimeEstimate, 0, 1<<40)
	inRange(wrong, "total_time_spent", i.TimeSpent, 0, 1<<40)
	for _, l := range i.Timelogs {
		inRange(wrong, "timelogs", l.Seconds, -1<<40, 1<<40)
		short(wrong, "timelogs", l.Summary, 255)
	}
	if (i.ClosedAt != nil) != (i.State == "closed") {
		if i.State == "closed" {
			i.ClosedAt = &i.UpdatedAt
		} else {
			i.ClosedAt = nil
		}
	}
}

// reactions checks reactions, and counts those up and down. Unknown ones are lost.
func (t *Target) reactions(list []archive.AwardRow) (rest []award, up, down int64, err error) {
	for _, a := range list {
		user, err := t.need(a.User)
		if err != nil {
			return nil, 0, 0, err
		}
		if user == nil {
			continue
		}
		if emoji.Find(a.Name) == nil {
			t.lost["award_emoji"]++
			continue
		}
		if slices.ContainsFunc(rest, func(b award) bool { return b.name == a.Name && b.userID == *user }) {
			continue
		}
		switch a.Name {
		case "thumbsup":
			up++
		case "thumbsdown":
			down++
		}
		rest = append(rest, award{a.Name, *user, t.past(a.CreatedAt)})
	}
	return rest, up, down, nil
}

func (t *Target) putIssue(ctx context.Context, tx *db.Tx, r *archive.IssueRow) error {
	wrong := errs.Fields{}
	t.issuable(wrong, &r.IssuableRow, "opened", "closed")
	among(wrong, "type", r.Type, "issue", "incident", "task", "test_case")
	day(wrong, "due_date", r.DueDate)
	if r.Weight != nil {
		inRange(wrong, "weight", *r.Weight, 0, 1<<31)
	}
	// Positions between others are calculated, and they are moved to make room.
	inRange(wrong, "relative_position", r.RelativePosition, -1<<53, 1<<53)
	if err := wrong.Err(); err != nil {
		return err
	}
	return t.putIssuable(ctx, tx, plan.IssueKind, &r.IssuableRow, func(i *issuable) error { return insertIssue(ctx, tx, r, i) })
}

// issuable is what the rows of issues and merge requests have in the database.
type issuable struct {
	id, projectID       int64
	author              int64
	closedBy, milestone *int64
	up, down            int64
	created, updated    time.Time
	closed              *time.Time
}

// putIssuable writes an issue or merge request, and what it has in other tables.
func (t *Target) putIssuable(ctx context.Context, tx *db.Tx, kind plan.Kind, r *archive.IssuableRow, insert func(*issuable) error) error {
	i := &issuable{projectID: t.Draft.ID, created: t.past(r.CreatedAt), updated: t.past(r.UpdatedAt), closed: t.pastOrNull(r.ClosedAt)}
	var err error
	if i.author, err = t.signed(r.Author, i.created, &r.Description); err != nil {
		return err
	}
	if i.closedBy, err = t.find(r.ClosedBy); err != nil {
		return err
	}
	if i.milestone, err = t.milestone(ctx, tx, r.Milestone); err != nil {
		return err
	}
	awards, up, down, err := t.reactions(r.AwardEmoji)
	if err != nil {
		return err
	}
	i.up, i.down = up, down
	if err := insert(i); err != nil {
		return err
	}
	if err := raiseNumber(ctx, tx, t.Draft.ID, kind, r.IID); err != nil {
		return err
	}
	on := plan.Target{Kind: kind, ID: i.id}
	if err := insertAwards(ctx, tx, on, awards); err != nil {
		return err
	}
	for _, name := range r.Labels {
		id, err := t.label(ctx, tx, name)
		if err != nil {
			return err
		}
		if id == 0 {
			t.lost[lostLabel]++
			continue
		}
		if err := insertLink(ctx, tx, on, "label", id); err != nil {
			return err
		}
	}
	for _, p := range r.Assignees {
		user, err := t.need(p)
		if err != nil {
			return err
		}
		if user == nil {
			continue
		}
		if err := insertLink(ctx, tx, on, "assignee", *user); err != nil {
			return err
		}
	}
	for _, l := range r.Timelogs {
		user, err := t.find(l.User)
		if err != nil {
			return err
		}
		if err := insertTimelog(ctx, tx, on, t.Draft.ID, user, l, t.past(l.SpentAt), t.past(l.CreatedAt)); err != nil {
			return err
		}
	}
	return nil
}

// objectID returns the ID of an issue or merge request of the draft; 0 if there is
// none.
func (t *Target) objectID(ctx context.Context, tx *db.Tx, kind plan.Kind, iid int64) (int64, error) {
	return findObject(ctx, tx, kind, t.Draft.ID, iid)
}

func (t *Target) putIssueLink(ctx context.Context, tx *db.Tx, r *archive.IssueLinkRow) error {
	wrong := errs.Fields{}
	among(wrong, "link_type", r.LinkType, "relates_to", "blocks")
	if err := wrong.Err(); err != nil {
		return err
	}
	from, err := t.objectID(ctx, tx, plan.IssueKind, r.Source)
	if err != nil {
		return err
	}
	to, err := t.objectID(ctx, tx, plan.IssueKind, r.Target)
	if err != nil {
		return err
	}
	if from == 0 || to == 0 || from == to {
		t.lost[lostRow]++
		return nil
	}
	return insertIssueLink(ctx, tx, from, to, r.LinkType, t.past(r.CreatedAt), t.past(r.UpdatedAt))
}
