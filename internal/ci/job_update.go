package ci

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"svc/internal/ci/flow"
	"svc/internal/ci/joblog"
	"svc/internal/db"
	"svc/internal/errs"
)

// JobUpdate is a runner's update of its job.
type JobUpdate struct {
	State    string // running, success or failed
	Reason   string // why it failed
	ExitCode *int64
	// Checksum is "crc32:…" of the whole log, and Size its bytes; empty when
	// the runner does not say.
	Checksum string
	Size     int64
}

// JobReply is the response to a runner's request about its job.
type JobReply struct {
	Status   string        // of the job, as its runner knows states
	Size     int64         // of the log
	Interval time.Duration // how often it is to send the log
	// Mismatch says that the log is not what the runner sent: it is to send
	// all of it again.
	Mismatch bool
	// Gap says that the log has another size than the runner thinks.
	Gap bool
}

func (s *Service) jobReply(j *JobState, size int64) *JobReply {
	return &JobReply{Status: j.runnerStatus(), Size: size, Interval: s.Artifacts.Logs.Interval(j.ID)}
}

// statusOf is the state that runners see: "canceling" while a canceled job
// may still run its after_script.
func (j *JobState) runnerStatus() string {
	if j.Canceling {
		return "canceling"
	}
	return string(j.Status)
}

// UpdateJob handles a runner's update of its job: that it has started, or its
// result. Forbidden if the token is invalid or the job is no longer the
// runner's; then the reply has the job's state.
func (s *Service) UpdateJob(ctx context.Context, jobID int64, token string, u JobUpdate) (*JobReply, error) {
	h, err := s.held(ctx, jobID, token)
	if err != nil {
		return nil, err
	}
	if !h.holdsToken() {
		return s.overFor(&h.JobState, u)
	}
	switch u.State {
	case "success", "failed":
		return s.endByRunner(ctx, h, u)
	case "running":
		if h.Status == flow.Pending {
			if err := s.startByRunner(ctx, h); err != nil {
				return s.refusedFor(ctx, jobID, err)
			}
		}
	}
	return s.jobReply(&h.JobState, 0), s.touchJob(ctx, &h.JobState)
}

// overFor answers a runner whose job has ended. One that says again what it
// said before did not hear us.
func (s *Service) overFor(j *JobState, u JobUpdate) (*JobReply, error) {
	reply := s.jobReply(j, 0)
	if j.Status.Done() && u.State == string(j.Status) {
		return reply, nil
	}
	return reply, errs.Forbidden("Job is not running")
}

// startByRunner begins a job for the runner that holds its token; Conflict when
// it was given back to the queue meanwhile, since the runner took too long.
func (s *Service) startByRunner(ctx context.Context, h *heldJob) error {
	var j *Job
	err := s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		j = &Job{JobState: h.JobState}
		if j.EnvironmentID != nil { // the deployment changes as well
			if j, err = findAnyJob(ctx, tx, h.ID); err != nil {
				return err
			}
		}
		return s.beginJob(ctx, tx, j, h.token)
	})
	if err == nil {
		h.JobState = j.JobState
	}
	return err
}

// refusedFor answers a runner whose job was changed by someone else in the same
// moment.
func (s *Service) refusedFor(ctx context.Context, jobID int64, cause error) (*JobReply, error) {
	if !errs.Is(cause, errs.KindConflict) {
		return nil, fmt.Errorf("update job %d: %w", jobID, cause)
	}
	now, err := findHeld(ctx, s.DB, jobID)
	if err != nil {
		return nil, db.NotFound(err, "Job")
	}
	return s.jobReply(&now.JobState, 0), errs.Forbidden("Job is not running").Because(cause)
}

// endByRunner ends a job as its runner says. The log is compared first: the
// runner sends it again when it is not the same.
func (s *Service) endByRunner(ctx context.Context, h *heldJob, u JobUpdate) (*JobReply, error) {
	j, err := findAnyJob(ctx, s.DB, h.ID)
	if err != nil {
		return nil, err
	}
	ok, err := s.sameLog(ctx, j.ID, u)
	if err != nil {
		return nil, fmt.Errorf("check log of job %d: %w", j.ID, err)
	}
	if !ok {
		reply := s.jobReply(&j.JobState, 0)
		reply.Mismatch = true
		return reply, nil
	}
	if err := s.Artifacts.Logs.Sync(ctx, j.ID); err != nil {
		return nil, fmt.Errorf("log of job %d: %w", j.ID, err)
	}
	end := End{Status: flow.Status(u.State), ExitCode: u.ExitCode}
	if end.Status == flow.Failed {
		end.Reason = failureReason(u.Reason)
	}
	if end.Coverage, err = s.coverage(ctx, j); err != nil {
		return nil, fmt.Errorf("coverage of job %d: %w", j.ID, err)
	}
	var ended Job
	for fresh := true; ; fresh = false {
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			ended = *j // the transaction may be done again
			return s.endHeld(ctx, tx, &ended, h.token, end)
		})
		if !fresh || !errs.Is(err, errs.KindConflict) {
			break
		}
		// It was canceled, or given to another runner, since we read it.
		if j, err = findAnyJob(ctx, s.DB, h.ID); err != nil {
			break
		}
	}
	if err != nil {
		return s.refusedFor(ctx, h.ID, err)
	}
	s.Artifacts.Logs.Changed(j.ID)
	return s.jobReply(&ended.JobState, 0), nil
}

// endHeld ends a job for the runner that holds its token.
func (s *Service) endHeld(ctx context.Context, tx *db.Tx, j *Job, token []byte, end End) error {
	if j.Status == flow.Pending { // it ended before it said that it began
		if err := s.beginJob(ctx, tx, j, token); err != nil {
			return err
		}
	}
	end.token = token
	return s.finishJob(ctx, tx, j, end)
}

// sameLog compares the log with the checksum of the runner, if it sends one.
func (s *Service) sameLog(ctx context.Context, jobID int64, u JobUpdate) (bool, error) {
	crc, ok := parseChecksum(u.Checksum)
	if !ok {
		return true, nil
	}
	return s.Artifacts.Logs.Verify(ctx, jobID, u.Size, crc)
}

func parseChecksum(text string) (uint32, bool) {
	digits, ok := strings.CutPrefix(text, "crc32:")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	return uint32(n), err == nil
}

// failureReason takes the reason that a runner gives, if we know it.
func failureReason(text string) FailureReason {
	switch reason := FailureReason(text); reason {
	case "":
		return ScriptFailure
	case ScriptFailure, RunnerSystemFailure, ExecutionTimeout, RunnerUnsupported, UnknownFailure, MissingDependency, StuckFailure:
		return reason
	case "image_pull_failure":
		return RunnerSystemFailure
	}
	return UnknownFailure
}

// RunnerFailureReasons are the reasons that runners may give.
func RunnerFailureReasons() []string {
	return []string{
		string(UnknownFailure), string(ScriptFailure), string(RunnerSystemFailure), string(ExecutionTimeout), string(RunnerUnsupported),
		string(MissingDependency), string(StuckFailure),
	}
}

// heardTouch is how exact it is known when the runner of a job was heard of.
// It is far below the time after which a silent runner is given up.
const heardTouch = 10 * time.Minute

// touchJob notes that the runner of a job was heard of.
func (s *Service) touchJob(ctx context.Context, j *JobState) error {
	now := s.Now()
	if j.HeardAt != nil && now.Sub(*j.HeardAt) < heardTouch {
		return nil
	}
	j.HeardAt = &now
	return setHeard(ctx, s.DB, j.ID, now)
}

// MaxPatch is how many bytes of a log a runner may send at once.
const MaxPatch = 4 << 20

// LogPatch is a chunk of a job log that a runner sends.
type LogPatch struct {
	At    int64 // where it begins; below zero when the runner does not say
	Text  []byte
	Debug bool // the job shows every step
}

// AppendLog adds a chunk at an offset to the log of a job. Forbidden if the token
// is invalid or the job is not running, Invalid if the offset is missing; Gap is
// set if the log has another size.
func (s *Service) AppendLog(ctx context.Context, jobID int64, token string, p LogPatch) (*JobReply, error) {
	h, err := s.held(ctx, jobID, token)
	if err != nil {
		return nil, err
	}
	j := &h.JobState
	if j.Status != flow.Running && !j.Canceling {
		return s.jobReply(j, 0), errs.Forbidden("Job is not running")
	}
	if p.At < 0 {
		return s.jobReply(j, 0), errs.Invalid("the place in the log is missing")
	}
	if err := s.touchJob(ctx, j); err != nil {
		return nil, err
	}
	if p.Debug && !h.debugLog { // before a user reads it
		if err := s.noteDebugLog(ctx, j.ID); err != nil {
			return nil, fmt.Errorf("log of job %d: %w", j.ID, err)
		}
	}
	size, err := s.Artifacts.Logs.Append(ctx, j.ID, p.At, p.Text)
	reply := s.jobReply(j, size)
	if gap, ok := errors.AsType[*joblog.GapError](err); ok {
		reply.Gap, reply.Size = true, gap.Size
		return reply, nil
	}
	if err != nil {
		return nil, fmt.Errorf("log of job %d: %w", j.ID, err)
	}
	return reply, nil
}
