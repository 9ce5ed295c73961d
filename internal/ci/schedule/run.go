package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/db"
	"svc/internal/queue"
)

// lane is the lane of background jobs that create pipelines; see package ci.
const lane = "pipelines"

// RunDue adds background jobs for the schedules that are due. The queue calls it
// regularly.
func (s *Service) RunDue(ctx context.Context) error {
	due, err := findDue(ctx, s.DB, s.Now(), 100)
	if err != nil {
		return fmt.Errorf("find schedules: %w", err)
	}
	var faults []error
	for _, sch := range due {
		faults = append(faults, s.run(ctx, sch))
	}
	return errors.Join(faults...)
}

func (s *Service) run(ctx context.Context, sch *Schedule) error {
	at := *sch.NextRunAt
	var next *time.Time
	if rule, err := parseCron(sch.Cron); err == nil {
		zone, err := time.LoadLocation(sch.Timezone)
		if err != nil {
			zone = time.UTC
		}
		if t, ok := rule.next(s.Now().In(zone)); ok { // missed runs are caught up by one run
			next = &t
		}
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		err := advance(ctx, tx, sch.ID, at, next)
		if errors.Is(err, db.ErrNoRows) || err == nil && sch.OwnerID == nil { // another node runs it, or it has no owner
			return nil
		}
		if err != nil {
			return err
		}
		return s.Queue.Add(ctx, tx, Work{ScheduleID: sch.ID, UserID: *sch.OwnerID, At: at}, queue.In(lane))
	})
	if err != nil {
		return fmt.Errorf("run schedule %d: %w", sch.ID, err)
	}
	return nil
}

// Work is the background job that creates a pipeline of a schedule. Package ci handles
// it.
type Work struct {
	ScheduleID int64     `json:"schedule_id"`
	UserID     int64     `json:"user_id"`
	At         time.Time `json:"at"`
}

// Kind implements queue.Work.
func (Work) Kind() string { return "ci_schedule" }

// Find returns a schedule for its background job; nil if it was deleted.
func (s *Service) Find(ctx context.Context, id int64) (*Schedule, error) {
	sch, err := findAny(ctx, s.DB, id)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return sch, err
}

// Exists checks that a project has a schedule. NotFound.
func (s *Service) Exists(ctx context.Context, projectID, id int64) error {
	_, err := find(ctx, s.DB, projectID, id)
	return err
}

// SetLastPipeline records the last pipeline of a schedule, in the transaction that
// creates the pipeline.
func (s *Service) SetLastPipeline(ctx context.Context, tx *db.Tx, id, pipelineID int64) error {
	return setLastPipeline(ctx, tx, id, pipelineID)
}
