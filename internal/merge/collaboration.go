package merge

import (
	"context"
	"slices"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
)

// CollaborationBranches implements repo.Collaboration: users who may merge a merge
// request from a fork may push to its source branch, if the author allows it and may
// push there. Both projects must be in the same fork network.
func (s *Service) CollaborationBranches(ctx context.Context, by actor.Actor, in *project.Project) ([]string, error) {
	list, err := findCollaborations(ctx, s.DB, in.ID)
	if err != nil {
		return nil, err
	}
	var authors []int64
	for _, m := range list {
		authors = append(authors, m.AuthorID)
	}
	slices.Sort(authors)
	authors = slices.Compact(authors)
	access, err := s.Projects.AccessOf(ctx, in, authors)
	if err != nil {
		return nil, err
	}
	admins, err := findAdmins(ctx, s.DB, authors)
	if err != nil {
		return nil, err
	}
	var branches []string
	for _, m := range list {
		if access[m.AuthorID].Level() < project.Developer && !admins[m.AuthorID] {
			continue
		}
		target, err := s.Projects.RequireView(ctx, by, project.RefTo(m.ProjectID), project.MergePart)
		if errs.IsRefusal(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		same, err := s.Projects.SameNetwork(ctx, in, target)
		if err != nil {
			return nil, err
		}
		if !same {
			continue
		}
		may, err := s.Repos.MayMerge(ctx, by, target, m.TargetBranch)
		if err != nil {
			return nil, err
		}
		if may {
			branches = append(branches, m.SourceBranch)
		}
	}
	return branches, nil
}
