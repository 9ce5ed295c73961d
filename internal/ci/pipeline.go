package ci

import (
	"time"

	"svc/internal/ci/flow"
	"svc/internal/user"
)

// Source says what made a pipeline.
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
	IID        int64 // its number within the project
	Status     flow.Status
	Source     Source
	Ref        string // the short name of a branch or tag, or the full one of a merge request
	Tag        bool
	SHA        string
	BeforeSHA  string
	Name       string
	UserID     *int64
	Protected  bool     // the ref was protected when it began
	YAMLErrors string   // why it has no jobs
	Stages     []string // in their order
	AutoCancel AutoCancel
	// CancelOnFailure says that a job which fails cancels the others.
	CancelOnFailure bool
	ParentID        *int64 // the pipeline whose trigger job made it
	ParentJobID     *int64
	Child           bool // in the same project
	ScheduleID      *int64
	Coverage        *float64
	Archived        bool // its logs and artifacts were removed by age
	CreatedAt       time.Time
	UpdatedAt       time.Time
	StartedAt       *time.Time
	FinishedAt      *time.Time

	variables string // sealed
	facts     facts
	outside   bool // there are commit statuses beside its jobs

	// Read by Service.Pipeline and the like.
	User *user.User
}

// facts is what predefined variables need to know of how a pipeline was created.
// It is stored as JSON.
type facts struct {
	TriggerToken string `json:"trigger_token,omitempty"` // its beginning
	Schedule     string `json:"schedule,omitempty"`      // its description
	ConfigPath   string `json:"config_path,omitempty"`
	TagMessage   string `json:"tag_message,omitempty"`
	// Request is set for a pipeline of a merge request, and its children.
	Request *request `json:"merge_request,omitempty"`
	// OpenRequests are those from the branch when the pipeline was made.
	OpenRequests []string `json:"open_merge_requests,omitempty"`
	// Upstream is set for a pipeline that a trigger job made.
	Upstream *upstream `json:"upstream,omitempty"`
}

type upstream struct {
	ProjectID  int64 `json:"project_id"`
	PipelineID int64 `json:"pipeline_id"`
	JobID      int64 `json:"job_id"`
}

// AutoCancel says when a newer pipeline of the same ref cancels this one.
type AutoCancel string

// The values of AutoCancel.
const (
	Conservative  AutoCancel = "conservative"  // as long as nothing runs that must not be interrupted
	Interruptible AutoCancel = "interruptible" // only its jobs that may be interrupted
	NeverCancel   AutoCancel = "none"
)

// QueuedDuration is how long it waited until it began.
func (p *Pipeline) QueuedDuration() *time.Duration {
	if p.StartedAt == nil {
		return nil
	}
	d := p.StartedAt.Sub(p.CreatedAt)
	return &d
}

// Duration is the time from when it began to its end, nil before.
func (p *Pipeline) Duration() *time.Duration {
	if p.StartedAt == nil || p.FinishedAt == nil {
		return nil
	}
	d := p.FinishedAt.Sub(*p.StartedAt)
	return &d
}
