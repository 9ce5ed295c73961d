package merge

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

// maxDeployed is the maximum number of commits of a deployment, newest first, whose
// merge requests are found.
const maxDeployed = 10_000

// Deployed lists the merge requests of a project that were merged with the commits
// that are reachable from head but not from before. Without before, it lists all
// merge requests merged into the branch. Requires read access to merge requests.
// NotFound.
func (s *Service) Deployed(ctx context.Context, by actor.Actor, ref project.Ref, branch string, before, head git.OID, f Filter, order listing.Sort, p db.Paging) (db.Page[*MergeRequest], error) {
	none := db.Page[*MergeRequest]{Items: []*MergeRequest{}}
	in, err := s.Projects.RequireView(ctx, by, ref, project.MergePart)
	if err != nil {
		return none, err
	}
	at := project.Place{Ref: project.RefTo(in.ID)}
	if before == "" {
		if f.State != "" && f.State != Merged || f.TargetBranch != "" && f.TargetBranch != branch {
			return none, nil
		}
		f.State, f.TargetBranch = Merged, branch
		return s.PlaceList(ctx, by, at, f, order, p)
	}
	iids, err := s.deployedIIDs(ctx, in, before, head)
	if errs.Is(err, errs.KindNotFound) { // a commit no longer exists in the repository
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("merge requests of deployment: %w", err)
	}
	if len(f.IIDs) > 0 {
		iids = slices.DeleteFunc(iids, func(iid int64) bool { return !slices.Contains(f.IIDs, iid) })
	}
	if len(iids) == 0 {
		return none, nil
	}
	f.IIDs = iids
	return s.PlaceList(ctx, by, at, f, order, p)
}

func (s *Service) deployedIIDs(ctx context.Context, in *project.Project, before, head git.OID) ([]int64, error) {
	commits, err := s.Repos.NewCommits(ctx, in, before, head, maxDeployed)
	if err != nil {
		return nil, err
	}
	var iids []int64
	for part := range slices.Chunk(commits, 500) {
		found, err := mergedWith(ctx, s.DB, in.ID, part)
		if err != nil {
			return nil, err
		}
		iids = append(iids, found...)
	}
	slices.Sort(iids)
	return slices.Compact(iids), nil
}
