package schedule

import (
	"context"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
)

// Can is what an actor may do with a schedule.
type Can struct {
	Play   bool // run it now
	Edit   bool
	Take   bool // take its ownership, if it is not theirs
	Delete bool
}

// Can returns what an actor may do with schedules of a project.
func (s *Service) Can(ctx context.Context, by actor.Actor, p *project.Project, list []*Schedule) ([]Can, error) {
	cans := make([]Can, len(list))
	if !p.MayChange(by, project.BuildsPart, project.Developer) {
		return cans, nil
	}
	may, err := s.mayRun(ctx, by, p, list)
	if err != nil {
		return nil, err
	}
	maintain := p.MayChange(by, project.BuildsPart, project.Maintainer)
	for i, sch := range list {
		mine := sch.OwnerID != nil && by.Is(*sch.OwnerID)
		cans[i] = Can{Play: may[sch.Ref], Edit: mayEdit(by, p, sch), Take: maintain && !mine, Delete: mayManage(by, p, sch)}
	}
	return cans, nil
}

// mayRun returns the refs of schedules on which the actor may run pipelines.
func (s *Service) mayRun(ctx context.Context, by actor.Actor, p *project.Project, list []*Schedule) (map[string]bool, error) {
	src, err := s.Repos.SourceOf(by, p)
	if errs.IsRefusal(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	may := map[string]bool{}
	for _, sch := range list {
		if _, checked := may[sch.Ref]; checked {
			continue
		}
		name, tag := shortName(sch.Ref)
		if may[sch.Ref], err = src.MayRun(ctx, name, tag); err != nil {
			return nil, err
		}
	}
	return may, nil
}
