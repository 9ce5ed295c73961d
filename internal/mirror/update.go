package mirror

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/gitremote"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
)

// updateWork is the background job of an update of a mirror.
type updateWork struct {
	MirrorID int64 `json:"mirror_id"`
}

// Kind implements queue.Work.
func (updateWork) Kind() string { return "mirror_update" }

const (
	// The minimum time between updates after pushes.
	pushInterval      = 5 * time.Minute
	protectedInterval = time.Minute // of mirrors of protected branches only

	maxUpdate = 3 * time.Hour
	// leaseTime is the lifetime of a lease, which a run extends every leaseTime/4.
	// If the process of the run is killed, another run can start when the lease
	// expires.
	leaseTime = time.Minute
	// busyTime is the delay before a retry while another run has the lease.
	busyTime = 3 * time.Second

	maxPushRetries = 5

	dueInterval = 30 * time.Second // between searches for updates that are due
	maxDue      = 200              // updates that are queued at once
	// lostTime is the time after which an update whose job was lost is queued again.
	lostTime = 2 * time.Hour
)

// Pushed schedules updates of the push mirrors of a project.
func (s *Service) Pushed(ctx context.Context, tx *db.Tx, push repo.Push) error {
	list, err := findEnabled(ctx, tx, push.Project.ID, Push)
	if err != nil {
		return err
	}
	for _, m := range list {
		if err := s.schedule(ctx, tx, m); err != nil {
			return err
		}
	}
	return nil
}

// interval returns the minimum time between updates of the mirror.
func (m *Mirror) interval() time.Duration {
	if m.Direction == Push && m.OnlyProtected {
		return protectedInterval
	}
	return pushInterval
}

// schedule schedules an update of a mirror: immediately, or at the end of the
// interval after its latest update.
func (s *Service) schedule(ctx context.Context, tx *db.Tx, m *Mirror) error {
	if m.StartedAt != nil {
		if due := m.StartedAt.Add(m.interval()); due.After(s.Now()) {
			return saveScheduled(ctx, tx, m.ID, due)
		}
	}
	return s.start(ctx, tx, m.ID)
}

// start queues an update of a mirror.
func (s *Service) start(ctx context.Context, tx *db.Tx, id int64) error {
	if err := saveScheduled(ctx, tx, id, s.Now().Add(lostTime)); err != nil {
		return err
	}
	return s.Queue.Add(ctx, tx, updateWork{MirrorID: id}, queue.In(lane), queue.Unique())
}

// UpdateDue queues the updates that are due: those that were delayed by an interval
// or wait for a retry. It runs periodically.
func (s *Service) UpdateDue(ctx context.Context) error {
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		ids, err := findDue(ctx, tx, s.Now(), maxDue)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := s.start(ctx, tx, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// updateMirror handles updateWork.
func (s *Service) updateMirror(ctx context.Context, w updateWork) error {
	m, err := findMirror(ctx, s.DB, w.MirrorID)
	if errors.Is(err, db.ErrNoRows) {
		return nil // deleted
	}
	if err != nil {
		return err
	}
	if !m.Enabled {
		return nil
	}
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(m.ProjectID), project.NoAccess)
	if err != nil {
		return err // deleted in the meantime
	}
	if p.Archived || p.MarkedAt != nil || p.Import.Pending() {
		return s.pause(ctx, m)
	}
	who := -m.ProjectID
	if m.UserID != nil {
		who = *m.UserID
	}
	end := s.takePlace(who)
	if end == nil {
		n, err := countScheduled(ctx, s.DB, m.UserID)
		if err != nil {
			return err
		}
		return queue.PostponeTurn(n)
	}
	defer end()
	run := rand.Text()
	now := s.Now()
	got, err := takeLease(ctx, s.DB, m.ID, run, now, now.Add(leaseTime))
	if err != nil {
		return err
	}
	if !got {
		return queue.Postpone(busyTime)
	}
	return s.runUpdate(ctx, m, p, run)
}

// pause skips the update of a mirror whose project is archived, marked for deletion
// or being imported. Pull mirrors are retried.
func (s *Service) pause(ctx context.Context, m *Mirror) error {
	var next *time.Time
	if m.Direction == Pull {
		next = m.nextPull(s.Now())
	}
	return savePaused(ctx, s.DB, m.ID, next)
}

// errTaken ends a run whose mirror was deleted or disabled, or whose lease was lost.
var errTaken = errors.New("the mirror is no longer held by this run")

// runUpdate updates a mirror whose lease the run has, and records the result.
func (s *Service) runUpdate(ctx context.Context, m *Mirror, p *project.Project, run string) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := s.holdLease(inner, m.ID, run, cancel)
	err := s.transfer(inner, m, p)
	stop()
	late := context.WithoutCancel(ctx)
	var failure *gitremote.Failure
	var partial *divergence
	refusal, refused := errs.As(err)
	switch {
	case errors.Is(context.Cause(inner), errTaken):
		return endLease(late, s.DB, m.ID, run, StatusNone)
	case err == nil:
		return s.finishUpdate(late, m, run, "", false)
	case errors.As(err, &partial):
		m.Failures = 0 // the other refs were updated
		return s.finishUpdate(late, m, run, partial.Error(), false)
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return s.finishUpdate(late, m, run, fmt.Sprintf("The update took longer than %d hours.", int(maxUpdate.Hours())), true)
	case ctx.Err() != nil: // the node is shutting down; another node retries
		return errors.Join(err, endLease(late, s.DB, m.ID, run, StatusScheduled))
	case errors.As(err, &failure):
		s.Log.InfoContext(ctx, "a mirror was not updated", "mirror", m.ID, "project", m.ProjectID, "error", failure.Text)
		return s.finishUpdate(late, m, run, failure.Text, failure.Temporary)
	case refused && refusal.Kind != errs.KindUnavailable && refusal.Kind != errs.KindConflict:
		return s.finishUpdate(late, m, run, refusal.Error(), false)
	}
	// An internal error, or this server is overloaded.
	s.Log.WarnContext(ctx, "a mirror was not updated", "mirror", m.ID, "project", m.ProjectID, "error", err)
	return s.finishUpdate(late, m, run, "The update failed because of an internal error.", true)
}

// holdLease extends the lease of a run until stop is called, and cancels the run if
// the lease is lost.
func (s *Service) holdLease(ctx context.Context, id int64, run string, cancel context.CancelCauseFunc) (stop func()) {
	ctx, end := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() {
		pause := time.NewTicker(leaseTime / 4)
		defer pause.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
			}
			// A database error: the next tick retries.
			if has, err := extendLease(ctx, s.DB, id, run, s.Now().Add(leaseTime)); err == nil && !has {
				cancel(errTaken)
				return
			}
		}
	})
	return func() {
		end()
		ended.Wait()
	}
}

// finishUpdate records the result of a run. With retry, a failed push is retried.
func (s *Service) finishUpdate(ctx context.Context, m *Mirror, run, failure string, retry bool) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		now := s.Now()
		m.UpdatedAt, m.LastError = &now, failure
		if failure == "" {
			m.Status, m.SucceededAt, m.Failures = StatusFinished, &now, 0
		} else {
			m.Status = StatusFailed
			m.Failures++
		}
		var next *time.Time
		switch {
		case m.Direction == Pull:
			next = m.nextPull(now)
		case retry && failure != "" && m.Failures <= maxPushRetries:
			m.Status = StatusRetry
			at := now.Add(retryTime(m.Failures))
			next = &at
		}
		_, err := saveResult(ctx, tx, m, run, next)
		return err
	})
	if err != nil {
		return fmt.Errorf("end update of mirror %d: %w", m.ID, err)
	}
	return nil
}

// retryTime returns the delay before the retry after a number of failures.
func retryTime(failures int) time.Duration {
	return min(time.Minute<<(2*min(failures-1, 10)), 6*time.Hour) // 1, 4, 16, … minutes
}

// transfer pushes or pulls the commits of a mirror.
func (s *Service) transfer(ctx context.Context, m *Mirror, p *project.Project) error {
	c, err := s.secrets(m)
	if err != nil {
		return err
	}
	remote, err := s.open(ctx, m.URL, credentials{User: c.User, Password: c.Password, PrivateKey: c.PrivateKey, HostKeys: m.HostKeys})
	if err != nil {
		return err
	}
	defer remote.Close()
	if m.Direction == Pull {
		return s.pull(ctx, m, p, remote)
	}
	return s.push(ctx, m, p, remote, c)
}

// branchFilter returns a function that reports whether a mirror includes a branch.
func (s *Service) branchFilter(ctx context.Context, m *Mirror) (func(name string) bool, error) {
	switch {
	case m.OnlyProtected:
		rules, err := s.Repos.BranchRules(ctx, m.ProjectID)
		if err != nil {
			return nil, err
		}
		return func(name string) bool {
			return slices.ContainsFunc(rules, func(r *repo.Protected) bool { return r.Matches(name) })
		}, nil
	case m.BranchRegex != "":
		pattern, err := regexp.Compile(m.BranchRegex)
		if err != nil {
			return nil, errs.Invalid("The regular expression of the branches is not valid.")
		}
		return pattern.MatchString, nil
	}
	return func(string) bool { return true }, nil
}

// wanted reports whether a mirror includes a ref: branches by the filter, and all
// tags.
func wanted(ref string, branch func(string) bool) bool {
	name, isBranch := strings.CutPrefix(ref, git.Heads)
	return isBranch && branch(name) || strings.HasPrefix(ref, git.Tags)
}

// divergence is the error of an update that skipped refs.
type divergence struct{ text string }

// Error implements error.
func (d *divergence) Error() string { return d.text }

// diverged returns the error for refs that were not updated.
func diverged(refs []string) error {
	const most = 20
	list := strings.Join(refs[:min(len(refs), most)], ", ")
	if more := len(refs) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return &divergence{"Some refs have diverged and were not updated: " + list}
}
