package ci

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// JobRequest is a runner that asks for a job.
type JobRequest struct {
	Contact
	// Cursor is what the runner was given with its last request. With one of
	// ours the request may be held.
	Cursor string
}

// RequestJob gives a runner a job, nil when there is none; the cursor is for
// its next request. Forbidden when the token opens nothing. No two runners
// get the same job.
func (s *Service) RequestJob(ctx context.Context, req JobRequest) (*Assignment, string, error) {
	cursor := s.polls.cursor()
	r, m, err := s.heard(ctx, req.Contact)
	if err != nil {
		return nil, cursor, err
	}
	look := func(ctx context.Context) (*Assignment, error) {
		if r.Paused {
			return nil, nil
		}
		return s.assign(ctx, r, m)
	}
	if !s.polls.ours(req.Cursor) {
		a, err := look(ctx)
		return a, cursor, err
	}
	a, err := s.await(ctx, r, look)
	return a, cursor, err
}

// assign finds a job for a runner, takes it and puts together what the runner
// needs. A job for which that is not possible fails, and another one is
// looked for.
func (s *Service) assign(ctx context.Context, r *Runner, m *Manager) (*Assignment, error) {
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
			continue // somebody stopped it
		}
		failed, ok := errors.AsType[*unrunnable](err)
		if kind := errs.KindOf(err); !ok && kind != 0 && kind != errs.KindUnavailable {
			// A refusal stays one: the job would come back for ever.
			failed, ok = &unrunnable{UnmetPrerequisites, "What the job needs is not there any more."}, true
		}
		if ok {
			if err := s.failClaimed(ctx, a.Job, failed); err != nil {
				return nil, err
			}
			continue
		}
		// The fault is ours, so that the job must not suffer.
		if back := s.unclaim(context.WithoutCancel(ctx), a.Job); back != nil {
			err = errors.Join(err, back)
		}
		return nil, fmt.Errorf("prepare job %d: %w", a.Job.ID, err)
	}
}

// begin notes that a job runs, unless its runner says so itself; false when the
// job is no longer to be run.
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

// unrunnable says that a job can not be run, for a reason that its author sees, and
// more of it for the log.
type unrunnable struct {
	reason FailureReason
	text   string
}

func (u *unrunnable) Error() string { return "job can not be run: " + string(u.reason) }

// atOnce is how many projects are compared, and how many jobs of one are read
// at once.
const (
	atOnce     = 32
	jobsAtOnce = 16
)

// claim takes a job for a runner, nil when none waits for it.
func (s *Service) claim(ctx context.Context, r *Runner, m *Manager) (*Assignment, error) {
	refused := map[int64]bool{}
	for {
		c, id, err := s.next(ctx, r)
		if c == nil || err != nil {
			return nil, err
		}
		if !s.taken.take(id) {
			continue // somebody beside us is about to have it
		}
		p, err := s.servable(ctx, r, c.projectID) // it may have changed
		var a *Assignment
		reason := ""
		if p != nil && err == nil {
			reason, err = s.refusal(ctx, r, p, id)
		}
		if p != nil && err == nil && reason == "" {
			a, err = s.take(ctx, r, m, p, id)
		}
		s.taken.drop(id)
		if a != nil || err != nil {
			s.turn.Store(c.projectID)
			return a, err
		}
		if reason == "" {
			continue
		}
		if refused[id] || len(refused) >= maxRefused { // all that wait were looked at
			return nil, nil
		}
		refused[id] = true
		if err := noteRefusal(ctx, s.DB, id, reason); err != nil {
			return nil, fmt.Errorf("refuse job %d: %w", id, err)
		}
	}
}

// servable gives a project whose jobs the runner may take, nil for others.
func (s *Service) servable(ctx context.Context, r *Runner, projectID int64) (*project.Project, error) {
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(projectID), project.NoAccess)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch {
	case !p.MayChange(actor.System(), project.BuildsPart, project.NoAccess), p.Repository == project.Disabled,
		r.Kind == InstanceRunner && !p.Settings.SharedRunnersEnabled,
		r.Kind == GroupRunner && !p.Settings.GroupRunnersEnabled:
		return nil, nil
	}
	return p, nil
}

// take makes a job the runner's, nil when somebody else was faster: whoever
// deletes the row of the queue has the job.
func (s *Service) take(ctx context.Context, r *Runner, m *Manager, p *project.Project, jobID int64) (*Assignment, error) {
	a := &Assignment{Runner: r, Manager: m, Project: p, Token: secret.Token(s.Site.Name + "cbt-")}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		err := db.ExecOne(ctx, tx, `DELETE FROM job_queue WHERE job_id = ?`, jobID)
		if err != nil {
			return err
		}
		if a.Job, err = findAnyJob(ctx, tx, jobID); err != nil {
			return err
		}
		j, at := a.Job, s.Now()
		if r.MaximumTimeout != nil { // of this runner; the job keeps its own
			j.Timeout = min(j.Timeout, seconds(*r.MaximumTimeout))
		}
		j.RunnerID, j.ManagerID, j.ClaimedAt, j.HeardAt = &r.ID, &m.ID, &at, &at
		return saveClaim(ctx, tx, j, digest(a.Token), at)
	})
	if errors.Is(err, db.ErrNoRows) || errs.Is(err, errs.KindConflict) || errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take job %d: %w", jobID, err)
	}
	return a, nil
}

// failClaimed ends a job that a runner was to get and can not run. Its log says
// why.
func (s *Service) failClaimed(ctx context.Context, j *Job, why *unrunnable) error {
	_, err := s.logs.add(ctx, j.ID, 0, []byte("\x1b[31;1mERROR: "+why.text+"\x1b[0;m\n"))
	if _, there := errors.AsType[*gapError](err); err != nil && !there { // it may say so already
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
		return nil // somebody has stopped it
	}
	if err != nil {
		return fmt.Errorf("fail job %d: %w", j.ID, err)
	}
	return nil
}

// unclaim puts a job back where runners look, unless it has begun.
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

// taking are the jobs that requests of this node are about to take, so that
// many who come at once do not all reach for the same one.
type taking struct {
	mu   sync.Mutex
	jobs map[int64]struct{}
}

func (t *taking) take(id int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, there := t.jobs[id]; there {
		return false
	}
	t.jobs[id] = struct{}{}
	return true
}

func (t *taking) drop(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.jobs, id)
}
