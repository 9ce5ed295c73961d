// Package ci implements pipelines and jobs, and assigns jobs to runners. Areas
// with their own rules and tables are in the packages below it: runners,
// variables, artifacts, logs, deployments, schedules and others. They do not
// import ci.
//
// A change of a job and its effects on the pipeline are one transaction (see
// advance). Work that needs git or another pipeline is a background job.
package ci

import (
	"context"
	"sync/atomic"
	"time"

	"svc/internal/actor"
	"svc/internal/ci/artifact"
	"svc/internal/ci/config"
	"svc/internal/ci/deployment"
	"svc/internal/ci/jobqueue"
	"svc/internal/ci/jobtoken"
	"svc/internal/ci/runners"
	"svc/internal/ci/schedule"
	"svc/internal/ci/trigger"
	"svc/internal/ci/variable"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/event"
	"svc/internal/limit"
	"svc/internal/merge"
	"svc/internal/notice"
	"svc/internal/notify"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/release"
	"svc/internal/repo"
	"svc/internal/setting"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Notices  *notice.Bus
	Settings *setting.Service
	Users    *user.Service
	Projects *project.Service
	Repos    *repo.Service
	Merges   *merge.Service
	Releases *release.Service
	Notify   *notify.Service
	Now      func() time.Time
	Site     Site
	Parts
}

// Parts are the services of the packages below ci. Interfaces call them
// directly, for example CI.Variables.List.
type Parts struct {
	Artifacts   *artifact.Service
	Runners     *runners.Service
	Deployments *deployment.Service
	Variables   *variable.Service
	Schedules   *schedule.Service
	Triggers    *trigger.Service
	JobTokens   *jobtoken.Service
}

// Site is the data about the instance that jobs need.
type Site struct {
	URL      string // without a trailing slash
	Name     string // of the service
	Tokens   string // what tokens start with; empty for Name
	Version  string
	Revision string
	SSHPort  string // empty without an SSH server
	// TemplateDir is the directory with the operator's CI/CD templates; it may
	// not exist.
	TemplateDir string
	// Features are the names of licensed features, for GITLAB_FEATURES.
	Features []string
}

// Service implements CI/CD.
type Service struct {
	Deps
	Events   Events
	JobQueue *jobqueue.Queue

	variableSources []VariableSource
	limits          map[int64]RunnerLimit // by runner

	changes         *changes // followers of pipelines on this node
	readers         readers  // of live streams on this node
	compilations    *limit.Share
	compilationTime time.Duration
	sweptGroup      atomic.Int64 // the last resource group of an unfinished sweep
}

// Events are the events of CI/CD.
type Events struct {
	// JobChanged is published when a job is created, becomes pending, manual or
	// scheduled, starts or ends.
	JobChanged event.Event[JobChange]
	// PipelineChanged is published when a pipeline has another status.
	PipelineChanged event.Event[*Pipeline]
	// JobEnded is published when a job has ended, in the transaction of its
	// end.
	JobEnded event.Event[*Job]
	// PipelineEnded is published when a pipeline that is not a child has ended, in
	// the transaction of its end. A retried pipeline ends several times.
	PipelineEnded event.Event[*Pipeline]
}

// JobChange is a change of the status of a job.
type JobChange struct{ ProjectID, PipelineID, JobID int64 }

// VariableSource returns variables that another feature adds to the jobs of a
// project.
type VariableSource func(ctx context.Context, p *project.Project) ([]config.Variable, error)

// OnVariables registers a VariableSource. It is called at start-up.
func (s *Service) OnVariables(t VariableSource) { s.variableSources = append(s.variableSources, t) }

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d, limits: map[int64]RunnerLimit{}, changes: newChanges()}
	s.JobQueue = jobqueue.New(jobqueue.Deps{DB: d.DB, Notices: d.Notices, Serves: s.serves, Now: d.Now})
	s.LimitCompilations(compilationWait, compilationTime)
	s.handleWork()
	s.OnVariables(s.freezeVariables)
	s.listenChanged()
	d.Users.OnChange(s.readers.changed)
	return s
}

// UserDeleted makes the ghost user the owner of the pipelines and jobs of a
// deleted user.
func (s *Service) UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	return replaceUser(ctx, tx, d.UserID, d.GhostID)
}

// person returns a user with their profile; nil if the user was deleted.
func (s *Service) person(ctx context.Context, id int64) (*user.User, error) {
	u, err := s.Users.Get(ctx, actor.System(), id, false)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	return u, err
}
