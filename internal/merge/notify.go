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

// notify has those told of what happened to a merge request whom it concerns.
func (s *Service) notify(ctx context.Context, tx *db.Tx, userID int64, m *MergeRequest, e notify.EventType, d notify.Details) error {
	return s.Notify.Notify(ctx, tx, notify.Event{
		Type: e, TargetKind: string(plan.MergeKind), TargetID: m.ID, ProjectID: m.ProjectID, AuthorID: userID, Details: d,
	})
}

// notifyDone is notify for what is an event as well.
func (s *Service) notifyDone(ctx context.Context, tx *db.Tx, userID int64, m *MergeRequest, done activity.Action) error {
	event, ok := map[activity.Action]notify.EventType{
		activity.Created: notify.NewMergeRequest, activity.Closed: notify.CloseMergeRequest, activity.Reopened: notify.ReopenMergeRequest,
		activity.Merged: notify.MergeMergeRequest,
	}[done]
	if !ok {
		return nil
	}
	return s.notify(ctx, tx, userID, m, event, notify.Details{})
}

// reappoint is appoint for a request that is there: those are told whom it
// concerns.
func (s *Service) reappoint(ctx context.Context, tx *db.Tx, by actor.Actor, m *MergeRequest, f Fields) ([]string, error) {
	done, err := s.appoint(ctx, tx, m, f)
	if err != nil {
		return nil, err
	}
	events := map[plan.People]notify.EventType{plan.Assignees: notify.ReassignMergeRequest, plan.Reviewers: notify.ChangeReviewer}
	var told []string
	for _, d := range done {
		if err := s.notify(ctx, tx, by.ID, m, events[d.as], notify.Details{Before: d.Before, After: d.After}); err != nil {
			return nil, err
		}
		told = append(told, d.Text)
	}
	return told, nil
}

// notifyTexts notifies those whom a new description mentions, and those who
// follow labels that were added.
func (s *Service) notifyTexts(ctx context.Context, tx *db.Tx, by actor.Actor, m *MergeRequest, added []*plan.Label, mentioned []string) error {
	if len(added) > 0 {
		if err := s.notify(ctx, tx, by.ID, m, notify.Relabel, notify.Details{After: plan.LabelIDs(added)}); err != nil {
			return err
		}
	}
	if len(mentioned) == 0 {
		return nil
	}
	return s.notify(ctx, tx, by.ID, m, notify.Mention, notify.Details{Mentioned: mentioned})
}

// notifications is the notify.Source of merge requests.
type notifications struct{ s *Service }

// Recipients implements notify.Source.
func (l notifications) Recipients(ctx context.Context, a *notify.Event) (notify.Recipients, error) {
	m, err := findRequestByID(ctx, l.s.DB, a.TargetID)
	if err != nil {
		return notify.Recipients{}, notFound(err)
	}
	if err := l.s.fill(ctx, m); err != nil {
		return notify.Recipients{}, err
	}
	return l.s.Plan.Recipients(ctx, a, plan.NotifyTarget{
		Thing: m.thing(), AuthorID: m.AuthorID, Description: m.Description, Labels: m.Labels, Assignees: m.Assignees, Reviewers: m.Reviewers,
	})
}

// View implements notify.Source.
func (l notifications) View(ctx context.Context, by actor.Actor, acts []*notify.Event) (*notify.View, error) {
	found, err := findRequestByID(ctx, l.s.DB, acts[0].TargetID)
	if err != nil {
		return nil, notFound(err)
	}
	in, m, err := l.s.request(ctx, by, project.RefTo(found.ProjectID), found.IID)
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
	names, err := l.s.Plan.Named(ctx, acts)
	if err != nil {
		return nil, err
	}
	return v, v.Add(acts, notify.NewMergeRequest, func(a *notify.Event) (*mail.Section, error) { return l.section(ctx, by, in, m, a, names) })
}

// section tells of one act; nil when there is nothing that the reader may know.
func (l notifications) section(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest, a *notify.Event, names plan.Names) (*mail.Section, error) {
	who := names.Name(a.AuthorID)
	plain := func(head string) (*mail.Section, error) { return &mail.Section{Head: who + " " + head}, nil }
	exchange := func(head string) (*mail.Section, error) {
		text := names.Change(a)
		return &mail.Section{Head: who + " " + head, Text: text, HTML: mail.Plain(text)}, nil
	}
	switch a.Type {
	case notify.NewMergeRequest:
		return l.s.Plan.Section(ctx, by, in, who+" opened a merge request: "+m.SourceBranch+" into "+m.TargetBranch+".", m.Description)
	case notify.Mention:
		return l.s.Plan.Section(ctx, by, in, who+" mentioned you in the merge request.", m.Description)
	case notify.CloseMergeRequest:
		return plain("closed the merge request.")
	case notify.ReopenMergeRequest:
		return plain("reopened the merge request.")
	case notify.MergeMergeRequest:
		return plain("merged " + m.SourceBranch + " into " + m.TargetBranch + ".")
	case notify.MergeWhenSucceeds:
		return plain("set the merge request to be merged when its pipeline succeeds.")
	case notify.PushToMergeRequest:
		return plain("pushed new commits to " + m.SourceBranch + ": " + a.To[:min(8, len(a.To))] + ".")
	case notify.ReassignMergeRequest:
		return exchange("changed the assignees.")
	case notify.ChangeReviewer:
		return exchange("changed the reviewers.")
	case notify.Relabel:
		return plan.Relabelled(m.Labels, a, who), nil
	case notify.NewNote:
		return l.s.Plan.NoteSection(ctx, by, in, a, who)
	}
	return nil, nil
}

// Subscribe implements notify.Source.
func (l notifications) Subscribe(ctx context.Context, userID, thingID int64, want bool) error {
	return l.s.Plan.SetSubscribed(ctx, plan.Thing{Kind: plan.MergeKind, ID: thingID}, userID, want)
}

// CanUnsubscribe implements notify.Source.
func (notifications) CanUnsubscribe() bool { return true }
