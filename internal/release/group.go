package release

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
)

// OfGroup lists the releases of the projects in a group and its subgroups, the
// newest release date first, as far as the actor can see them. Without details the
// releases have neither commits nor links. NotFound.
func (s *Service) OfGroup(ctx context.Context, by actor.Actor, ref project.Ref, asc, details bool, pg db.Paging) (db.Page[*Release], error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.NoAccess)
	if err != nil {
		return db.Page[*Release]{}, err
	}
	seen, args := s.Projects.Readable(by, project.ReleasePart)
	page, err := listOfGroup(ctx, s.DB, g.ID, seen, args, asc, pg)
	if err != nil {
		return page, fmt.Errorf("list releases of group %d: %w", g.ID, err)
	}
	var ids []int64
	of := map[int64][]*Release{}
	for _, r := range page.Items {
		if of[r.ProjectID] == nil {
			ids = append(ids, r.ProjectID)
		}
		of[r.ProjectID] = append(of[r.ProjectID], r)
	}
	list, err := s.Projects.Among(ctx, by, ids)
	if err != nil {
		return page, err
	}
	if details && len(page.Items) > 0 {
		if err := s.fillRows(ctx, page.Items); err != nil {
			return page, err
		}
	}
	for _, p := range list {
		if !details {
			for _, r := range of[p.ID] {
				r.Code, r.Project = p.MayRead(by, project.CodePart), p
			}
			continue
		}
		if err := s.fillProject(ctx, by, p, of[p.ID]); err != nil {
			return page, err
		}
	}
	return page, nil
}
