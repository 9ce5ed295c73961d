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

// projectActed tells the members of a project that it has moved.
func (s *Service) projectActed(ctx context.Context, tx *db.Tx, a project.Act) error {
	if a.Kind != project.ProjectMoved {
		return nil
	}
	return s.Tell(ctx, tx, Act{
		Event: MovedProject, Kind: projectKind, ThingID: a.ProjectID, ProjectID: a.ProjectID, AuthorID: a.UserID, Details: Details{From: a.From},
	})
}

// projects is the Source of projects.
type projects struct{ s *Service }

// People implements Source.
func (projects) People(context.Context, *Act) (People, error) {
	return People{Members: true, Quiet: true}, nil
}

// Look implements Source.
func (p projects) Look(ctx context.Context, by actor.Actor, acts []*Act) (*View, error) {
	in, err := p.s.Projects.Require(ctx, by, project.RefTo(acts[0].ThingID), project.NoAccess)
	if err != nil {
		return nil, err
	}
	v := &View{Project: in, Subject: "Project was moved", Word: "project", Path: "/" + in.FullPath}
	for _, a := range acts {
		if a.Event == MovedProject {
			v.Told = append(v.Told, a)
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

// Follow implements Source: who is a member is told.
func (projects) Follow(context.Context, int64, int64, bool) error { return nil }

// Lasting implements Source.
func (projects) Lasting() bool { return false }
