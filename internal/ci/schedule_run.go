package ci

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/queue"
)

// RunSchedules adds the work of the schedules whose time has come. The queue
// calls it every minute or so.
func (s *Service) RunSchedules(ctx context.Context) error {
	due, err := db.All(ctx, s.DB, scanSchedule, `
		SELECT `+scheduleColumns+` FROM pipeline_schedules s WHERE s.next_run_at IS NOT NULL AND s.next_run_at <= ? ORDER BY s.next_run_at LIMIT 100`, s.Now())
	if err != nil {
		return fmt.Errorf("find schedules: %w", err)
	}
	var faults []error
	for _, sch := range due {
		faults = append(faults, s.runSchedule(ctx, sch))
	}
	return errors.Join(faults...)
}

func (s *Service) runSchedule(ctx context.Context, sch *Schedule) error {
	at := *sch.NextRunAt
	var next *time.Time
	if rule, err := parseCron(sch.Cron); err == nil {
		zone, err := time.LoadLocation(sch.Timezone)
		if err != nil {
			zone = time.UTC
		}
		if t, ok := rule.next(s.Now().In(zone)); ok { // what was missed is made up for once
			next = &t
		}
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		err := db.ExecOne(ctx, tx, `UPDATE pipeline_schedules SET next_run_at = ? WHERE id = ? AND next_run_at = ?`, next, sch.ID, at)
		if err != nil {
			return ignoreNoRows(err) // someone else took it
		}
		if sch.OwnerID == nil {
			return nil
		}
		return s.Queue.Add(ctx, tx, scheduleWork{ScheduleID: sch.ID, UserID: *sch.OwnerID, At: at}, queue.In(lane))
	})
	if err != nil {
		return fmt.Errorf("run schedule %d: %w", sch.ID, err)
	}
	return nil
}

// scheduleWork makes the pipeline of a schedule.
type scheduleWork struct {
	ScheduleID int64     `json:"schedule_id"`
	UserID     int64     `json:"user_id"`
	At         time.Time `json:"at"`
}

// Kind implements queue.Work.
func (scheduleWork) Kind() string { return "ci_schedule" }

func (s *Service) workSchedule(ctx context.Context, w scheduleWork) error {
	sch, err := scanSchedule(s.DB.QueryRowContext(ctx, `SELECT `+scheduleColumns+` FROM pipeline_schedules s WHERE s.id = ?`, w.ScheduleID))
	if err != nil {
		return ignoreNoRows(err)
	}
	by, err := s.Users.As(ctx, w.UserID)
	if err != nil {
		return ignoreRefusal(err)
	}
	proj, err := s.Projects.RequireChange(ctx, by, project.RefTo(sch.ProjectID), project.BuildsPart, project.Developer)
	if err != nil {
		return ignoreRefusal(err)
	}
	m, err := s.propose(ctx, by, proj, NewPipeline{Ref: sch.Ref}, FromSchedule)
	if err != nil {
		return ignoreRefusal(err)
	}
	if m.variables, err = s.scheduleVariables(sch); err != nil {
		return err
	}
	origin := fmt.Sprintf("schedule/%d/%d/%d", sch.ID, w.UserID, w.At.UnixMicro())
	m.origin, m.pipeline.ScheduleID, m.pipeline.facts.Schedule = &origin, &sch.ID, sch.Description
	p, err := s.create(ctx, m, true)
	if err != nil {
		return ignoreRefusal(err)
	}
	_, err = s.DB.ExecContext(ctx, `UPDATE pipeline_schedules SET last_pipeline_id = ? WHERE id = ?`, p.ID, sch.ID)
	return err
}
