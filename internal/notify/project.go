package notify

import (
	"context"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/mail"
	"svc/internal/project"
)

// projectKind is the target kind of projects.
const projectKind = "Project"

// ProjectChanged notifies the members of a project that was moved.
func (s *Service) ProjectChanged(ctx context.Context, tx *db.Tx, e project.Event) error {
	if e.Kind != project.ProjectMoved {
		return nil
	}
	return s.Notify(ctx, tx, Event{
		Type: MovedProject, TargetKind: projectKind, TargetID: e.ProjectID, ProjectID: e.ProjectID, AuthorID: e.UserID, Details: Details{From: e.From},
	})
}

// projects is the Source of projects.
type projects struct{ s *Service }

// Recipients implements Source.
func (projects) Recipients(context.Context, *Event) (Recipients, error) {
	return Recipients{AllMembers: true, SkipWatchers: true}, nil
}

// View implements Source.
func (p projects) View(ctx context.Context, by actor.Actor, events []*Event) (*View, error) {
	in, err := p.s.Projects.Require(ctx, by, project.RefTo(events[0].TargetID), project.NoAccess)
	if err != nil {
		return nil, err
	}
	v := &View{Project: in, Subject: "Project was moved", Noun: "project", Path: "/" + in.FullPath}
	for _, e := range events {
		if e.Type == MovedProject {
			v.Events = append(v.Events, e)
			v.Sections = append(v.Sections, mail.Section{
				Head: "Project " + e.From + " was moved to " + in.FullPath + ".",
				Text: "The old URL redirects to the new one until another project takes its path. Update the remote of your clones:\n\n    git remote set-url origin " +
					p.s.Mail.Site + "/" + in.FullPath + ".git",
			})
		}
	}
	for i := range v.Sections {
		v.Sections[i].HTML = mail.Plain(v.Sections[i].Text)
	}
	return v, nil
}

// Subscribe implements Source. All members are notified, so there is nothing to
// store.
func (projects) Subscribe(context.Context, int64, int64, bool) error { return nil }

// CanUnsubscribe implements Source.
func (projects) CanUnsubscribe() bool { return false }
