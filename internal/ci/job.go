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
	ClaimedAt     *time.Time // a runner was assigned and has not started it yet
	HeardAt       *time.Time // last contact with its runner
}

// Job is a job of a pipeline. A bridge (trigger job) creates a downstream pipeline
// instead of running on a runner.
type Job struct {
	JobState
	Bridge        bool
	Refusal       string // why a runner refused the pending job; read by Service.Job
	Retried       bool   // there is a newer attempt
	Name          string
	Stage         string
	StageIndex    int
	When          flow.When
	AllowFailure  bool
	Needs         []flow.Need // nil: the job waits for the earlier stages
	Ref           string
	Tag           bool
	Protected     bool
	Interruptible bool
	UserID        *int64
	TagSetID      int64
	Attempt       int    // number of automatic retries
	RetryOf       *int64 // the job that it retries
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

	// Options is the job in the CI/CD configuration.
	Options config.Job

	// The following fields are set by Service.Job and similar functions.
	Pipeline   *Pipeline
	User       *user.User
	Commit     *git.Commit // nil if it no longer exists
	Project    *project.Project
	Downstream *Pipeline // of a bridge
	// DownstreamPath is the full path of the project of Downstream.
	DownstreamPath string
	Artifacts      []*artifact.File
	Blocked        bool             // its deployment waits for approvals
	Runner         *runners.Runner  // nil also if it was deleted
	Manager        *runners.Manager // of the runner
}

// FailureReason is the reason why a job failed.
type FailureReason string

// The failure reasons of the API.
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
	// ProtectedEnvironmentFailure: the user may not deploy to the environment.
	ProtectedEnvironmentFailure FailureReason = "protected_environment_failure"
	UserBlocked                 FailureReason = "user_blocked"
	DeploymentRejected          FailureReason = "deployment_rejected"
	UnknownFailure              FailureReason = "unknown_failure"
)

// Archived reports whether the log and artifacts of the job were removed
// because of their age.
func (j *Job) Archived() bool { return j.Pipeline != nil && j.Pipeline.Archived }

// Duration returns how long the job ran; for a running job, until now.
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

// QueuedDuration returns how long the job waited for a runner.
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
