package notify

import (
	"context"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/mail"
	"svc/internal/project"
)

// projectKind is the kind of projects themselves.
const projectKind = "Project"

// projectChanged tells the members of a project that it has moved.
func (s *Service) projectChanged(ctx context.Context, tx *db.Tx, a project.Act) error {
	if a.Kind != project.ProjectMoved {
		return nil
	}
	return s.Notify(ctx, tx, Event{
		Type: MovedProject, TargetKind: projectKind, TargetID: a.ProjectID, ProjectID: a.ProjectID, AuthorID: a.UserID, Details: Details{From: a.From},
	})
}

// projects is the Source of projects.
type projects struct{ s *Service }

// Recipients implements Source.
func (projects) Recipients(context.Context, *Event) (Recipients, error) {
	return Recipients{AllMembers: true, SkipWatchers: true}, nil
}

// View implements Source.
func (p projects) View(ctx context.Context, by actor.Actor, acts []*Event) (*View, error) {
	in, err := p.s.Projects.Require(ctx, by, project.RefTo(acts[0].TargetID), project.NoAccess)
	if err != nil {
		return nil, err
	}
	v := &View{Project: in, Subject: "Project was moved", Noun: "project", Path: "/" + in.FullPath}
	for _, a := range acts {
		if a.Type == MovedProject {
			v.Events = append(v.Events, a)
			v.Sections = append(v.Sections, mail.Section{
				Head: "The project " + a.From + " has moved to " + in.FullPath + ".",
				Text: "The old address leads to the new one as long as nothing else takes it. Set the new one in your clones:\n\n    git remote set-url origin " +
					p.s.Mail.Site + "/" + in.FullPath + ".git",
			})
		}
	}
	for i := range v.Sections {
		v.Sections[i].HTML = mail.Plain(v.Sections[i].Text)
	}
	return v, nil
}

// Subscribe implements Source: who is a member is told.
func (projects) Subscribe(context.Context, int64, int64, bool) error { return nil }

// CanUnsubscribe implements Source.
func (projects) CanUnsubscribe() bool { return false }
