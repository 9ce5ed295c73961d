package ci

import (
	"time"

	"svc/internal/ci/artifact"
	"svc/internal/ci/config"
	"svc/internal/ci/flow"
	"svc/internal/ci/runners"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/user"
)

// JobState is the part of a job that most requests of its runner need.
type JobState struct {
	ID            int64
	ProjectID     int64
	PipelineID    int64
	Status        flow.Status
	Canceling     bool // canceled, and its runner may still finish
	EnvironmentID *int64
	ClaimedAt     *time.Time // a runner got it and has not begun yet
	HeardAt       *time.Time // its runner was heard of last
}

// Job is a job of a pipeline. A bridge (trigger job) creates a downstream pipeline
// instead of running on a runner.
type Job struct {
	JobState
	Bridge        bool
	Refusal       string // why a runner did not take it while it waits; read by Service.Job
	Retried       bool   // there is a newer try
	Name          string
	Stage         string
	StageIndex    int
	When          flow.When
	AllowFailure  bool
	Needs         []flow.Need // nil waits for the stages before
	Ref           string
	Tag           bool
	Protected     bool
	Interruptible bool
	UserID        *int64
	TagSetID      int64
	Attempt       int    // how often it was run again by itself
	RetryOf       *int64 // the job that it is another try of
	Timeout       time.Duration

	ResourceGroupID *int64
	RunnerID        *int64
	ManagerID       *int64

	FailureReason FailureReason
	ExitCode      *int64
	Coverage      *float64

	CreatedAt         time.Time
	UpdatedAt         time.Time
	QueuedAt          *time.Time
	StartedAt         *time.Time
	FinishedAt        *time.Time
	ScheduledAt       *time.Time
	ErasedAt          *time.Time
	ArtifactsExpireAt *time.Time

	// Options is what the job was made of.
	Options config.Job

	// Read by Service.Job and the like.
	Pipeline   *Pipeline
	User       *user.User
	Commit     *git.Commit // nil when it is gone
	Project    *project.Project
	Downstream *Pipeline // of a bridge
	// DownstreamPath is the full path of the project of Downstream.
	DownstreamPath string
	Artifacts      []*artifact.File
	Runner         *runners.Runner  // nil also when it is gone
	Manager        *runners.Manager // of the runner
}

// FailureReason is the reason why a job failed.
type FailureReason string

// The reasons that the API knows.
const (
	ScriptFailure        FailureReason = "script_failure"
	StuckFailure         FailureReason = "stuck_or_timeout_failure"
	ExecutionTimeout     FailureReason = "job_execution_timeout"
	RunnerSystemFailure  FailureReason = "runner_system_failure"
	RunnerUnsupported    FailureReason = "runner_unsupported"
	MissingDependency    FailureReason = "missing_dependency_failure"
	UnmetPrerequisites   FailureReason = "unmet_prerequisites"
	SchedulerFailure     FailureReason = "scheduler_failure"
	DataIntegrityFailure FailureReason = "data_integrity_failure"
	ArchivedFailure      FailureReason = "archived_failure"
	APIFailure           FailureReason = "api_failure"
	UnknownFailure       FailureReason = "unknown_failure"
)

// Archived reports whether its log and artifacts were removed by age.
func (j *Job) Archived() bool { return j.Pipeline != nil && j.Pipeline.Archived }

// Duration is how long it ran; of a job that runs, up to now.
func (j *Job) Duration(now time.Time) *time.Duration {
	if j.StartedAt == nil {
		return nil
	}
	end := now
	if j.FinishedAt != nil {
		end = *j.FinishedAt
	}
	d := end.Sub(*j.StartedAt)
	return &d
}

// QueuedDuration is how long it waited for a runner.
func (j *Job) QueuedDuration(now time.Time) *time.Duration {
	if j.QueuedAt == nil {
		return nil
	}
	end := now
	switch {
	case j.StartedAt != nil:
		end = *j.StartedAt
	case j.FinishedAt != nil:
		end = *j.FinishedAt
	}
	d := end.Sub(*j.QueuedAt)
	return &d
}
