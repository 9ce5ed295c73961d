package ci

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/ci/schedule"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// SchedulePipelines lists the pipelines of a schedule, for users who can see them.
// NotFound.
func (s *Service) SchedulePipelines(ctx context.Context, by actor.Actor, in project.Ref, id int64, p db.Paging) (*project.Project, db.Page[*Pipeline], error) {
	proj, err := s.seePipelines(ctx, by, in)
	if err != nil {
		return nil, db.Page[*Pipeline]{}, err
	}
	if err := s.Schedules.Exists(ctx, proj.ID, id); err != nil {
		return nil, db.Page[*Pipeline]{}, err
	}
	page, err := listSchedulePipelines(ctx, s.DB, id, p)
	return proj, page, err
}

// workSchedule creates the pipeline of a schedule.
func (s *Service) workSchedule(ctx context.Context, w schedule.Work) error {
	sch, err := s.Schedules.Find(ctx, w.ScheduleID)
	if sch == nil || err != nil {
		return err
	}
	by, err := s.Users.As(ctx, w.UserID)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	proj, err := s.Projects.RequireChange(ctx, by, project.RefTo(sch.ProjectID), project.BuildsPart, project.Developer)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	m, err := s.propose(ctx, by, proj, NewPipeline{Ref: sch.Ref}, FromSchedule)
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	if m.variables, err = s.Schedules.VariablesOf(sch); err != nil {
		return err
	}
	origin := fmt.Sprintf("schedule/%d/%d/%d", sch.ID, w.UserID, w.At.UnixMicro())
	m.origin, m.pipeline.ScheduleID, m.pipeline.facts.Schedule = &origin, &sch.ID, sch.Description
	_, err = s.create(ctx, m, true)
	return errs.IgnoreRefusal(err)
}
