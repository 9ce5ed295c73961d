package comment

import (
	"context"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/mail"
	"svc/internal/notify"
	"svc/internal/plan"
	"svc/internal/project"
)

// Created notifies users of a comment on a commit.
func (s *Service) Created(ctx context.Context, tx *db.Tx, c Created) error {
	return s.Notify.Notify(ctx, tx, notify.Event{
		Type: notify.NewNote, TargetKind: string(plan.CommitKind), TargetID: c.First, ProjectID: c.ProjectID, AuthorID: c.Comment.AuthorID,
		Details: notify.Details{NoteID: c.Comment.ID, From: c.Title, To: c.SHA},
	})
}

// notifications implements notify.Source for comments on commits. Commits
// have no ID, so the target ID is that of the first comment on the commit. The
// details of an event contain the title and the SHA of the commit.
type notifications struct{ s *Service }

// Notifications returns the target kind and the source of emails about
// comments on commits.
func (s *Service) Notifications() (string, notify.Source) {
	return string(plan.CommitKind), notifications{s}
}

// Recipients implements notify.Source. The participants are the author of the
// commit and everyone who commented on it.
func (n notifications) Recipients(ctx context.Context, e *notify.Event) (notify.Recipients, error) {
	text, err := Text(ctx, n.s.DB, e.NoteID)
	if err != nil {
		return notify.Recipients{}, err
	}
	ids, err := n.s.commenters(ctx, e.ProjectID, e.To)
	return notify.Recipients{Participants: ids, Text: text}, err
}

// View implements notify.Source.
func (n notifications) View(ctx context.Context, by actor.Actor, events []*notify.Event) (*notify.View, error) {
	first := events[0]
	proj, err := n.s.Projects.RequireView(ctx, by, project.RefTo(first.ProjectID), project.CodePart)
	if err != nil {
		return nil, err
	}
	short := first.To[:min(8, len(first.To))]
	v := &notify.View{
		Project: proj, Subject: first.From + " (" + short + ")", Noun: "commit", Path: "/" + proj.FullPath + "/-/commit/" + first.To,
		Headers: [][2]string{{"Commit-ID", first.To}},
	}
	names, err := n.s.Plan.Named(ctx, events)
	if err != nil {
		return nil, err
	}
	return v, v.Add(events, "", func(e *notify.Event) (*mail.Section, error) {
		text, err := Text(ctx, n.s.DB, e.NoteID)
		if errs.Is(err, errs.KindNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return n.s.Plan.Section(ctx, by, proj, names.Name(e.AuthorID)+" commented on commit "+short+":", text)
	})
}

// Subscribe implements notify.Source. Users cannot subscribe to commits.
func (notifications) Subscribe(context.Context, int64, int64, bool) error { return nil }

// CanUnsubscribe implements notify.Source.
func (notifications) CanUnsubscribe() bool { return false }
