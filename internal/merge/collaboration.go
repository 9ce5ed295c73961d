package merge

import (
	"context"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
)

// collaborationBranches is the repo.Lender of requests from forks: who may merge one may push to
// its branch, if its author allows it. So the last touch needs not wait for him.
func (s *Service) collaborationBranches(ctx context.Context, by actor.Actor, in *project.Project) ([]string, error) {
	list, err := findCollaborations(ctx, s.DB, in.ID)
	if err != nil {
		return nil, err
	}
	var branches []string
	for _, m := range list {
		target, err := s.Projects.RequireView(ctx, by, project.RefTo(m.ProjectID), project.MergePart)
		if errs.IsRefusal(err) {
			continue
		}
		if err != nil {
			return nil, err
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
