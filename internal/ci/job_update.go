package ci

import (
	"bytes"
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
	Reason   string // failure reason
	ExitCode *int64
	// Checksum is "crc32:…" of the whole log, and Size its length in bytes.
	// Empty if the runner does not send them.
	Checksum string
	Size     int64
}

// JobReply is the response to a runner's request about its job.
type JobReply struct {
	Status   string        // of the job, in the terms of the runner API
	Size     int64         // of the log
	Interval time.Duration // how often the runner must send the log
	// Mismatch means that the stored log differs from the log of the runner.
	// The runner must send all of it again.
	Mismatch bool
	// Gap means that the size of the stored log differs from the offset of the
	// chunk.
	Gap bool
}

func (s *Service) jobReply(j *JobState, size int64) *JobReply {
	return &JobReply{Status: j.runnerStatus(), Size: size, Interval: s.Artifacts.Logs.Interval(j.ID)}
}

// runnerStatus returns the status that runners see: "canceling" while a
// canceled job may still run its after_script.
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
				return s.refusedFor(ctx, h, u, err)
			}
		}
	}
	return s.jobReply(&h.JobState, 0), s.touchJob(ctx, &h.JobState)
}

// overFor returns the reply for a job that has been updated before. A repeated update
// is not an error: the runner may not have received the first reply.
func (s *Service) overFor(j *JobState, u JobUpdate) (*JobReply, error) {
	reply := s.jobReply(j, 0)
	if u.State == string(j.Status) {
		return reply, nil
	}
	return reply, errs.Forbidden("Job is not running")
}

// startByRunner starts a job for the runner that has its token. Conflict if the
// job was returned to the queue because the runner took too long.
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

// refusedFor returns the reply for a job that was changed concurrently: by the same
// update, if the runner or a proxy has repeated it before the first one ended, or
// by someone else.
func (s *Service) refusedFor(ctx context.Context, h *heldJob, u JobUpdate, cause error) (*JobReply, error) {
	if !errs.Is(cause, errs.KindConflict) {
		return nil, fmt.Errorf("update job %d: %w", h.ID, cause)
	}
	now, err := findHeld(ctx, s.DB, h.ID)
	if err != nil {
		return nil, db.NotFound(err, "Job")
	}
	if bytes.Equal(now.token, h.token) {
		return s.overFor(&now.JobState, u)
	}
	return s.jobReply(&now.JobState, 0), errs.Forbidden("Job is not running").Because(cause)
}

// endByRunner ends a job with the result that its runner reports. The log is
// compared first: if it differs, the runner sends it again.
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
			ended = *j // the transaction may be retried
			return s.endHeld(ctx, tx, &ended, h.token, end)
		})
		if !fresh || !errs.Is(err, errs.KindConflict) {
			break
		}
		// The job was canceled or assigned to another runner since it was read.
		if j, err = findAnyJob(ctx, s.DB, h.ID); err != nil {
			break
		}
	}
	if err != nil {
		return s.refusedFor(ctx, h, u, err)
	}
	s.Artifacts.Logs.Changed(j.ID)
	return s.jobReply(&ended.JobState, 0), nil
}

// endHeld ends a job for the runner that has its token.
func (s *Service) endHeld(ctx context.Context, tx *db.Tx, j *Job, token []byte, end End) error {
	if j.Status == flow.Pending { // the runner reported the end without the start
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

// failureReason returns the failure reason that a runner reports, or
// UnknownFailure if it is not known.
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

// RunnerFailureReasons returns the failure reasons that runners may report.
func RunnerFailureReasons() []string {
	return []string{
		string(UnknownFailure), string(ScriptFailure), string(RunnerSystemFailure), string(ExecutionTimeout), string(RunnerUnsupported),
		string(MissingDependency), string(StuckFailure),
	}
}

// heardTouch is the precision of the recorded last contact with the runner of a
// job. It is far below the time after which the job fails.
const heardTouch = 10 * time.Minute

// touchJob records a contact with the runner of a job.
func (s *Service) touchJob(ctx context.Context, j *JobState) error {
	now := s.Now()
	if j.HeardAt != nil && now.Sub(*j.HeardAt) < heardTouch {
		return nil
	}
	j.HeardAt = &now
	return setHeard(ctx, s.DB, j.ID, now)
}

// MaxPatch is the maximum number of bytes of a log in one request.
const MaxPatch = 4 << 20

// LogPatch is a chunk of a job log that a runner sends.
type LogPatch struct {
	At    int64 // offset; negative if the runner does not send it
	Text  []byte
	Debug bool // the job has debug logging on
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
		return s.jobReply(j, 0), errs.Invalid("Content-Range is missing")
	}
	if err := s.touchJob(ctx, j); err != nil {
		return nil, err
	}
	if p.Debug && !h.debugLog { // before it can be read
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
