package ci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/ci/joblog"
	"svc/internal/ci/jobqueue"
	"svc/internal/ci/runners"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// JobRequest is a runner's request for a job.
type JobRequest struct {
	runners.Contact
	// Cursor is the value that the runner got with its last request. A request
	// with the cursor of any node may be held.
	Cursor string
	// Wait is the maximum time for which the runner asks to hold its request; 0 if
	// it does not ask.
	Wait time.Duration
}

// RequestJob assigns a job to a runner; nil if there is none. The cursor is for
// its next request. Forbidden if the token is invalid. No two runners get the
// same job.
func (s *Service) RequestJob(ctx context.Context, req JobRequest) (*Assignment, string, error) {
	cursor := s.JobQueue.Cursor()
	r, m, err := s.Runners.Authenticate(ctx, req.Contact)
	if err != nil {
		return nil, cursor, err
	}
	var a *Assignment
	look := func(ctx context.Context) (found bool, err error) {
		if r.Paused {
			return false, nil
		}
		a, err = s.assign(ctx, r, m)
		return a != nil, err
	}
	if s.JobQueue.Holds(req.Cursor) {
		err = s.JobQueue.Await(ctx, r, req.Wait, look)
	} else {
		_, err = look(ctx)
	}
	return a, cursor, err
}

// assign claims a job for a runner and prepares what the runner needs. If that is
// not possible, the job fails and assign tries the next one.
func (s *Service) assign(ctx context.Context, r *runners.Runner, m *runners.Manager) (*Assignment, error) {
	for {
		a, err := s.claim(ctx, r, m)
		if a == nil || err != nil {
			return nil, err
		}
		err = s.prepare(ctx, a)
		if err == nil {
			begun, err := s.begin(ctx, a)
			if begun || err != nil {
				return a, err
			}
			continue // the job was canceled
		}
		failed, ok := errors.AsType[*unrunnable](err)
		if kind := errs.KindOf(err); !ok && kind != 0 && kind != errs.KindUnavailable {
			// A refusal is permanent: a job that is put back would be tried forever.
			failed, ok = &unrunnable{UnmetPrerequisites, "A prerequisite of the job no longer exists."}, true
		}
		if ok {
			if err := s.failClaimed(ctx, a.Job, failed); err != nil {
				return nil, err
			}
			continue
		}
		// The server failed, not the job: put the job back.
		if back := s.unclaim(context.WithoutCancel(ctx), a.Job); back != nil {
			err = errors.Join(err, back)
		}
		return nil, fmt.Errorf("prepare job %d: %w", a.Job.ID, err)
	}
}

// begin records that a job is running, unless its runner reports that itself. It
// is false if the job is no longer pending.
func (s *Service) begin(ctx context.Context, a *Assignment) (bool, error) {
	if a.Manager.Info.Features["two_phase_job_commit"] {
		return true, nil
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error { return s.beginJob(ctx, tx, a.Job, digest(a.Token)) })
	if errs.Is(err, errs.KindConflict) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("begin job %d: %w", a.Job.ID, err)
	}
	return true, nil
}

// unrunnable is the error of a job that cannot be run: the failure reason, and a
// text for the job log.
type unrunnable struct {
	reason FailureReason
	text   string
}

func (u *unrunnable) Error() string { return "job cannot be run: " + string(u.reason) }

// claim takes a job for a runner; nil if there is none.
func (s *Service) claim(ctx context.Context, r *runners.Runner, m *runners.Manager) (*Assignment, error) {
	refused := map[int64]bool{}
	for {
		projectID, id, err := s.JobQueue.Next(ctx, r)
		if id == 0 || err != nil {
			return nil, err
		}
		if !s.JobQueue.Take(id) {
			continue // another request of this node is claiming it
		}
		p, err := s.servable(ctx, r, projectID) // it may have changed
		var a *Assignment
		reason := ""
		if p != nil && err == nil {
			reason, err = s.refusal(ctx, r, p, id)
		}
		if p != nil && err == nil && reason == "" {
			a, err = s.take(ctx, r, m, p, id)
		}
		s.JobQueue.Drop(id)
		if a != nil || err != nil {
			s.JobQueue.Served(projectID)
			return a, err
		}
		if reason == "" {
			continue
		}
		if refused[id] || len(refused) >= maxRefused { // all pending jobs were tried
			return nil, nil
		}
		refused[id] = true
		if err := jobqueue.NoteRefusal(ctx, s.DB, id, reason); err != nil {
			return nil, fmt.Errorf("refuse job %d: %w", id, err)
		}
	}
}

// servable returns the project if the runner may take its jobs, else nil.
func (s *Service) servable(ctx context.Context, r *runners.Runner, projectID int64) (*project.Project, error) {
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(projectID), project.NoAccess)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch {
	case !p.MayChange(actor.System(), project.BuildsPart, project.NoAccess), p.Repository == project.Disabled,
		r.Type == runners.InstanceType && !p.Settings.SharedRunnersEnabled,
		r.Type == runners.GroupType && !p.Settings.GroupRunnersEnabled:
		return nil, nil
	}
	return p, nil
}

func (s *Service) serves(ctx context.Context, r *runners.Runner, projectID int64) (bool, error) {
	p, err := s.servable(ctx, r, projectID)
	return p != nil, err
}

// take assigns a job to the runner; nil if another runner was faster. The
// transaction that deletes the row of the queue gets the job. The row of a job that is
// no longer pending is deleted, too: it would be found again at once.
func (s *Service) take(ctx context.Context, r *runners.Runner, m *runners.Manager, p *project.Project, jobID int64) (*Assignment, error) {
	a := &Assignment{Runner: r, Manager: m, Project: p, Token: s.newJobToken()}
	stale := false
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if queued, err := jobqueue.Remove(ctx, tx, jobID); err != nil || !queued {
			return cmp.Or(err, db.ErrNoRows)
		}
		var err error
		if a.Job, err = findAnyJob(ctx, tx, jobID); err != nil {
			return err
		}
		j, at := a.Job, s.Now()
		if r.MaximumTimeout != nil { // of this runner; the job keeps its own
			j.Timeout = min(j.Timeout, time.Duration(*r.MaximumTimeout)*time.Second)
		}
		j.RunnerID, j.ManagerID, j.ClaimedAt, j.HeardAt = &r.ID, &m.ID, &at, &at
		err = saveClaim(ctx, tx, j, digest(a.Token), at)
		if stale = errors.Is(err, db.ErrNoRows); stale {
			return nil
		}
		return err
	})
	if stale || errors.Is(err, db.ErrNoRows) || errs.Is(err, errs.KindConflict) || errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take job %d: %w", jobID, err)
	}
	return a, nil
}

// failClaimed fails a claimed job that cannot be run. Its log says why.
func (s *Service) failClaimed(ctx context.Context, j *Job, why *unrunnable) error {
	_, err := s.Artifacts.Logs.Append(ctx, j.ID, 0, []byte("\x1b[31;1mERROR: "+why.text+"\x1b[0;m\n"))
	if _, there := errors.AsType[*joblog.GapError](err); err != nil && !there { // a previous attempt wrote it
		return fmt.Errorf("log of job %d: %w", j.ID, err)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := findAnyJob(ctx, tx, j.ID)
		if err != nil {
			return err
		}
		return s.finishJob(ctx, tx, now, End{Status: flow.Failed, Reason: why.reason})
	})
	if errs.Is(err, errs.KindConflict) || errs.Is(err, errs.KindNotFound) {
		return nil // the job was canceled
	}
	if err != nil {
		return fmt.Errorf("fail job %d: %w", j.ID, err)
	}
	return nil
}

// unclaim puts a job back into the queue, unless it has started.
func (s *Service) unclaim(ctx context.Context, j *Job) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := dropClaim(ctx, tx, j.ID, s.Now()); err != nil {
			return err
		}
		return s.queueJob(ctx, tx, j.ID)
	})
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	return err
}
