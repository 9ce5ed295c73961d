package ci

import (
	"time"

	"svc/internal/ci/flow"
	"svc/internal/user"
)

// Source is the event that created a pipeline.
type Source string

// The sources of pipelines.
const (
	FromPush     Source = "push"
	FromWeb      Source = "web"
	FromTrigger  Source = "trigger"
	FromSchedule Source = "schedule"
	FromAPI      Source = "api"
	FromPipeline Source = "pipeline"        // a trigger job of another project
	FromParent   Source = "parent_pipeline" // a trigger job of the same project
	FromMerge    Source = "merge_request_event"
	FromOutside  Source = "external" // commit statuses
)

// Pipeline is a set of jobs that belong to one commit.
type Pipeline struct {
	ID         int64
	ProjectID  int64
	IID        int64 // number within the project
	Status     flow.Status
	Source     Source
	Ref        string // short name of the branch or tag, or the full name of a merge request ref
	Tag        bool
	SHA        string
	BeforeSHA  string
	Name       string
	UserID     *int64
	Protected  bool     // the ref was protected when the pipeline was created
	YAMLErrors string   // why it has no jobs
	Stages     []string // in order
	AutoCancel AutoCancel
	// CancelOnFailure means that a failed job cancels the other jobs.
	CancelOnFailure bool
	ParentID        *int64 // the pipeline whose trigger job created it
	ParentJobID     *int64
	Child           bool // the parent is in the same project
	ScheduleID      *int64
	Coverage        *float64
	Archived        bool // logs and artifacts were removed because of their age
	CreatedAt       time.Time
	UpdatedAt       time.Time
	StartedAt       *time.Time
	FinishedAt      *time.Time

	variables string // sealed
	facts     facts
	outside   bool // it has external commit statuses

	// User is set by Service.Pipeline and similar functions.
	User *user.User
	// Warnings reports that the pipeline passed although jobs failed that are allowed to
	// fail. It is read for pages only: by Service.PipelineRows, CommitPipelines and others.
	Warnings bool
}

// facts is the data about the creation of a pipeline that predefined variables
// use. It is stored as JSON.
type facts struct {
	TriggerToken string `json:"trigger_token,omitempty"` // the first characters
	Schedule     string `json:"schedule,omitempty"`      // its description
	ConfigPath   string `json:"config_path,omitempty"`
	TagMessage   string `json:"tag_message,omitempty"`
	// Request is set for merge request pipelines and their child pipelines.
	Request *request `json:"merge_request,omitempty"`
	// OpenRequests are the merge requests of the branch that were open when the
	// pipeline was created.
	OpenRequests []string `json:"open_merge_requests,omitempty"`
	// Upstream is set for a pipeline that a trigger job created.
	Upstream *upstream `json:"upstream,omitempty"`
}

type upstream struct {
	ProjectID  int64 `json:"project_id"`
	PipelineID int64 `json:"pipeline_id"`
	JobID      int64 `json:"job_id"`
}

// AutoCancel is when a newer pipeline of the same ref cancels this one.
type AutoCancel string

// The values of AutoCancel.
const (
	Conservative  AutoCancel = "conservative"  // unless a job that is not interruptible has started
	Interruptible AutoCancel = "interruptible" // only interruptible jobs
	NeverCancel   AutoCancel = "none"
)

// QueuedDuration returns the time from the creation of the pipeline to its
// start.
func (p *Pipeline) QueuedDuration() *time.Duration {
	if p.StartedAt == nil {
		return nil
	}
	d := p.StartedAt.Sub(p.CreatedAt)
	return &d
}

// Duration returns the time from the start of the pipeline to its end; nil
// before its end.
func (p *Pipeline) Duration() *time.Duration {
	if p.StartedAt == nil || p.FinishedAt == nil {
		return nil
	}
	d := p.FinishedAt.Sub(*p.StartedAt)
	return &d
}

// Elapsed is how long the pipeline has run at a time, also if it has not finished.
func (p *Pipeline) Elapsed(now time.Time) *time.Duration {
	if p.StartedAt == nil || p.FinishedAt != nil || p.Status != flow.Running {
		return p.Duration()
	}
	d := max(now.Sub(*p.StartedAt), 0)
	return &d
}
