package ci

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/ci/flow"
	"svc/internal/db"
)

// advance moves the jobs of a pipeline on and updates its status after a change
// of its jobs. It runs in the transaction of the change, so that a crash cannot
// leave the pipeline half updated.
func (s *Service) advance(ctx context.Context, tx *db.Tx, pipelineID int64) (*Pipeline, error) {
	p, err := s.advancePipeline(ctx, tx, pipelineID)
	if err != nil {
		return nil, fmt.Errorf("advance pipeline %d: %w", pipelineID, err)
	}
	return p, nil
}

func (s *Service) advancePipeline(ctx context.Context, tx *db.Tx, id int64) (*Pipeline, error) {
	// Transactions that advance a pipeline are serialized: two that each see
	// half of the changes could both leave the pipeline waiting.
	if err := tx.Lock(ctx, "pipelines", id); err != nil {
		return nil, err
	}
	p, err := readPipeline(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	jobs, err := findFlow(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	at := make(map[int64]int, len(jobs))
	for i := range jobs {
		at[jobs[i].ID] = i
	}
	for _, m := range flow.Advance(jobs) {
		if jobs[at[m.ID]].Status, err = s.enter(ctx, tx, m); err != nil {
			return nil, err
		}
		if err := s.Events.JobChanged.Publish(ctx, tx, JobChange{ProjectID: p.ProjectID, PipelineID: p.ID, JobID: m.ID}); err != nil {
			return nil, err
		}
	}
	if p.outside {
		more, err := findOutside(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, more...)
	}
	overall := flow.Overall(jobs)
	if len(jobs) == 0 && p.YAMLErrors != "" {
		overall = flow.Failed
	}
	if err := s.saveOverall(ctx, tx, p, overall); err != nil {
		return nil, err
	}
	return p, s.changed(ctx, tx, p)
}

// enter moves a created job to its next status, runs the effects of that
// status, and returns the resulting status.
func (s *Service) enter(ctx context.Context, tx *db.Tx, m flow.Move) (flow.Status, error) {
	moved, err := moveJob(ctx, tx, m.ID, flow.Created, m.To, s.Now())
	if err != nil {
		return m.To, err
	}
	if !moved {
		return m.To, errors.New("a job was changed concurrently")
	}
	return s.entered(ctx, tx, m.ID, m.To)
}

// saveOverall saves the state of a pipeline if it has changed, and publishes the
// change.
func (s *Service) saveOverall(ctx context.Context, tx *db.Tx, p *Pipeline, now flow.Status) error {
	if p.Status == now {
		return nil
	}
	at := s.Now()
	p.Status, p.UpdatedAt = now, at
	if p.StartedAt == nil && (now == flow.Running || now.Done() && now != flow.Skipped) {
		p.StartedAt = &at
	}
	p.FinishedAt = nil
	if now.Done() {
		p.FinishedAt = &at
		var err error
		if p.Coverage, err = averageCoverage(ctx, tx, p.ID); err != nil {
			return err
		}
	}
	if err := savePipelineState(ctx, tx, p); err != nil {
		return err
	}
	return s.publishChange(ctx, tx, p)
}
