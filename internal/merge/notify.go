package merge

import (
	"context"
	"strconv"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/mail"
	"svc/internal/notify"
	"svc/internal/plan"
	"svc/internal/project"
)

// notifyDone queues the notification of a change that is also an activity event.
func (s *Service) notifyDone(ctx context.Context, tx *db.Tx, userID int64, m *MergeRequest, done activity.Action) error {
	event, ok := map[activity.Action]notify.EventType{
		activity.Created: notify.NewMergeRequest, activity.Closed: notify.CloseMergeRequest, activity.Reopened: notify.ReopenMergeRequest,
		activity.Merged: notify.MergeMergeRequest,
	}[done]
	if !ok {
		return nil
	}
	return s.Plan.NotifyOf(ctx, tx, userID, &m.Issuable, event, notify.Details{})
}

// notifications implements notify.Source for merge requests.
type notifications struct{ s *Service }

// Notifications returns the target kind and the source of emails about merge
// requests.
func (s *Service) Notifications() (string, notify.Source) {
	return string(plan.MergeKind), notifications{s}
}

// Recipients implements notify.Source.
func (n notifications) Recipients(ctx context.Context, e *notify.Event) (notify.Recipients, error) {
	m, err := findRequestByID(ctx, n.s.DB, e.TargetID)
	if err != nil {
		return notify.Recipients{}, db.NotFound(err, "Merge Request")
	}
	if err := n.s.fill(ctx, m); err != nil {
		return notify.Recipients{}, err
	}
	return n.s.Plan.Recipients(ctx, e, &m.Issuable)
}

// View implements notify.Source.
func (n notifications) View(ctx context.Context, by actor.Actor, events []*notify.Event) (*notify.View, error) {
	found, err := findRequestByID(ctx, n.s.DB, events[0].TargetID)
	if err != nil {
		return nil, db.NotFound(err, "Merge Request")
	}
	in, m, err := n.s.request(ctx, by, project.RefTo(found.ProjectID), found.IID)
	if err != nil {
		return nil, err
	}
	number := strconv.FormatInt(m.IID, 10)
	v := &notify.View{
		Project: in, Subject: m.Title + " (!" + number + ")", Noun: "merge request", Path: "/" + in.FullPath + "/-/merge_requests/" + number,
		Headers: [][2]string{
			{"MergeRequest-ID", strconv.FormatInt(m.ID, 10)}, {"MergeRequest-IID", number}, {"MergeRequest-State", string(m.State)},
		},
	}
	names, err := n.s.Plan.Named(ctx, events)
	if err != nil {
		return nil, err
	}
	return v, v.Add(events, notify.NewMergeRequest, func(e *notify.Event) (*mail.Section, error) { return n.section(ctx, by, in, m, e, names) })
}

// section renders one event. It returns nil if the recipient may not see it.
func (n notifications) section(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest, e *notify.Event, names plan.Names) (*mail.Section, error) {
	who := names.Name(e.AuthorID)
	plain := func(head string) (*mail.Section, error) { return &mail.Section{Head: who + " " + head}, nil }
	exchange := func(head string) (*mail.Section, error) {
		text := names.Change(e)
		return &mail.Section{Head: who + " " + head, Text: text, HTML: mail.Plain(text)}, nil
	}
	switch e.Type {
	case notify.NewMergeRequest:
		return n.s.Plan.Section(ctx, by, in, who+" opened a merge request: "+m.SourceBranch+" into "+m.TargetBranch+".", m.Description)
	case notify.Mention:
		return n.s.Plan.Section(ctx, by, in, who+" mentioned you in the merge request.", m.Description)
	case notify.CloseMergeRequest:
		return plain("closed the merge request.")
	case notify.ReopenMergeRequest:
		return plain("reopened the merge request.")
	case notify.MergeMergeRequest:
		return plain("merged " + m.SourceBranch + " into " + m.TargetBranch + ".")
	case notify.MergeWhenSucceeds:
		return plain("set the merge request to be merged when its pipeline succeeds.")
	case notify.PushToMergeRequest:
		return plain("pushed new commits to " + m.SourceBranch + ": " + e.To[:min(8, len(e.To))] + ".")
	case notify.ApproveMergeRequest:
		return plain("approved the merge request.")
	case notify.UnapproveMergeRequest:
		return plain("revoked their approval of the merge request.")
	case notify.ReassignMergeRequest:
		return exchange("changed the assignees.")
	case notify.ChangeReviewer:
		return exchange("changed the reviewers.")
	case notify.Relabel:
		return plan.Relabelled(m.Labels, e, who), nil
	case notify.NewNote:
		return n.s.Plan.NoteSection(ctx, by, in, e, who)
	}
	return nil, nil
}

// Subscribe implements notify.Source.
func (n notifications) Subscribe(ctx context.Context, userID, targetID int64, want bool) error {
	return n.s.Plan.SetSubscribed(ctx, plan.Target{Kind: plan.MergeKind, ID: targetID}, userID, want)
}

// CanUnsubscribe implements notify.Source.
func (notifications) CanUnsubscribe() bool { return true }
