package api

import (
	"slices"
	"strconv"
	"time"

	"svc/internal/ci"
	"svc/internal/ci/artifact"
	"svc/internal/ci/flow"
	"svc/internal/ci/variable"
	"svc/internal/user"
)

func (a *API) jobRoutes() {
	a.tag("Jobs")
	handle(a, "GET /projects/{id}/jobs", readAPI.orAnonymous(), a.listJobs, summary("List project jobs"))
	handle(a, "GET /projects/{id}/pipelines/{pipeline_id}/jobs", readAPI.orAnonymous(), a.listPipelineJobs, summary("List pipeline jobs"))
	handle(a, "GET /projects/{id}/pipelines/{pipeline_id}/bridges", readAPI.orAnonymous(), a.listBridges, summary("List pipeline trigger jobs"))
	handle(a, "GET /projects/{id}/jobs/{job_id}", readAPI.orAnonymous(), a.getJob, summary("Get a job"))
	handle(a, "POST /projects/{id}/jobs/{job_id}/cancel", writeAPI, a.cancelJob, summary("Cancel a job"))
	handle(a, "POST /projects/{id}/jobs/{job_id}/retry", writeAPI, a.retryJob, summary("Retry a job"))
	handle(a, "POST /projects/{id}/jobs/{job_id}/erase", writeAPI, a.eraseJob, summary("Erase a job"))
	handle(a, "POST /projects/{id}/jobs/{job_id}/play", writeAPI, a.playJob, status(200), summary("Run a job"))
	handle(a, "POST /projects/{id}/jobs/{job_id}/unschedule", writeAPI, a.unscheduleJob, summary("Unschedule a delayed job"))
	handle(a, "POST /projects/{id}/jobs/{job_id}/artifacts/keep", writeAPI, a.keepArtifacts, status(200), summary("Keep job artifacts"))
	handle(a, "GET /job", readAPI.orJob(), a.getOwnJob, summary("Get the job of a job token"))
}

// jobScopeParams filter jobs by status.
type jobScopeParams struct {
	Scope []string `param:"scope" enum:"created,pending,running,failed,success,canceled,skipped,waiting_for_resource,manual,scheduled,canceling,preparing"`
}

func (p *jobScopeParams) states() []flow.Status {
	var states []flow.Status
	for _, s := range p.Scope {
		if !slices.Contains(states, flow.Status(s)) {
			states = append(states, flow.Status(s))
		}
	}
	return states
}

type listJobsParams struct {
	projectParams
	jobScopeParams
	OrderBy string `param:"order_by" default:"id" doc:"Must be id for keyset pagination."`
	Sort    string `param:"sort" enum:"asc,desc" default:"desc" doc:"Must be desc for keyset pagination."`
	keysetParams
}

// listJobs: https://docs.gitlab.com/api/jobs/#list-project-jobs
func (a *API) listJobs(c *call, p listJobsParams) (page[jobJSON], error) {
	k := keyset{object: "Ci::Build", columns: []string{"id"}, allowed: p.OrderBy == "id" && p.Sort == "desc"}
	paging, err := p.paging(k)
	if err != nil {
		return page[jobJSON]{}, err
	}
	list, err := a.CI.Jobs(c, c.actor, p.Project, p.states(), paging)
	if err != nil {
		return page[jobJSON]{}, err
	}
	return keysetPage(p.keysetParams, k, list, a.jobForm(c)), nil
}

type pipelineJobsParams struct {
	pipelineParams
	jobScopeParams
	Retried bool `param:"include_retried" doc:"Include retried jobs."`
	pageParams
}

// listPipelineJobs: https://docs.gitlab.com/api/jobs/#list-pipeline-jobs
func (a *API) listPipelineJobs(c *call, p pipelineJobsParams) (page[jobJSON], error) {
	f := ci.JobFilter{Scope: p.states(), Retried: p.Retried}
	return offsetList(p.pageParams, a.jobForm(c))(a.CI.PipelineJobs(c, c.actor, p.Project, p.Pipeline, f, p.paging()))
}

type bridgesParams struct {
	pipelineParams
	jobScopeParams
	pageParams
}

// listBridges: https://docs.gitlab.com/api/jobs/#list-pipeline-trigger-jobs
func (a *API) listBridges(c *call, p bridgesParams) (page[bridgeJSON], error) {
	f := ci.JobFilter{Scope: p.states(), Bridges: true}
	list, err := a.CI.PipelineJobs(c, c.actor, p.Project, p.Pipeline, f, p.paging())
	if err != nil {
		return page[bridgeJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(j *ci.Job) bridgeJSON { return a.toBridge(c, j) }), nil
}

// getJob: https://docs.gitlab.com/api/jobs/#get-a-single-job
func (a *API) getJob(c *call, p jobOfParams) (jobJSON, error) {
	return a.presentJob(c)(a.CI.Job(c, c.actor, p.Project, p.JobID))
}

// getOwnJob: https://docs.gitlab.com/api/jobs/#get-job-tokens-job
func (a *API) getOwnJob(c *call, _ struct{}) (jobJSON, error) {
	return a.presentJob(c)(a.CI.CurrentJob(c, c.actor))
}

type cancelJobParams struct {
	jobOfParams
	Force bool `param:"force" doc:"Cancel the job without waiting for the runner."`
}

// cancelJob: https://docs.gitlab.com/api/jobs/#cancel-a-job
func (a *API) cancelJob(c *call, p cancelJobParams) (jobJSON, error) {
	return a.presentJob(c)(a.CI.Cancel(c, c.actor, p.Project, p.JobID, p.Force))
}

// retryJob: https://docs.gitlab.com/api/jobs/#retry-a-job
func (a *API) retryJob(c *call, p jobOfParams) (jobJSON, error) {
	return a.presentJob(c)(a.CI.Retry(c, c.actor, p.Project, p.JobID))
}

// eraseJob: https://docs.gitlab.com/api/jobs/#erase-a-job
func (a *API) eraseJob(c *call, p jobOfParams) (jobJSON, error) {
	return a.presentJob(c)(a.CI.Erase(c, c.actor, p.Project, p.JobID))
}

type playJobParams struct {
	jobOfParams
	Variables []givenVariableParams `param:"job_variables_attributes" doc:"Variables for this run of the job."`
}

type givenVariableParams struct {
	Key   string        `param:"key,required"`
	Value string        `param:"value" secret:"true"`
	Type  variable.Type `param:"variable_type" enum:"env_var,file" default:"env_var"`
	Raw   bool          `param:"raw"`
}

func toGiven(list []givenVariableParams) []variable.Given {
	return mapped(list, func(v givenVariableParams) variable.Given {
		return variable.Given{Key: v.Key, Value: v.Value, Type: v.Type, Raw: v.Raw}
	})
}

// playJob: https://docs.gitlab.com/api/jobs/#run-a-job
func (a *API) playJob(c *call, p playJobParams) (jobJSON, error) {
	return a.presentJob(c)(a.CI.Play(c, c.actor, p.Project, p.JobID, toGiven(p.Variables)))
}

// unscheduleJob turns a delayed job into a manual job and returns it.
func (a *API) unscheduleJob(c *call, p jobOfParams) (jobJSON, error) {
	return a.presentJob(c)(a.CI.Unschedule(c, c.actor, p.Project, p.JobID))
}

// keepArtifacts: https://docs.gitlab.com/api/job_artifacts/#keep-artifacts
func (a *API) keepArtifacts(c *call, p jobOfParams) (jobJSON, error) {
	return a.presentJob(c)(a.CI.KeepArtifacts(c, c.actor, p.Project, p.JobID))
}

// jobBasicJSON has the fields of jobs and trigger jobs.
type jobBasicJSON struct {
	ID             int64                 `json:"id"`
	Status         string                `json:"status"`
	Stage          string                `json:"stage"`
	Name           string                `json:"name"`
	Ref            string                `json:"ref"`
	Tag            bool                  `json:"tag"`
	Coverage       *float64              `json:"coverage"`
	AllowFailure   bool                  `json:"allow_failure"`
	CreatedAt      stamp                 `json:"created_at"`
	StartedAt      *stamp                `json:"started_at"`
	FinishedAt     *stamp                `json:"finished_at"`
	ErasedAt       *stamp                `json:"erased_at"`
	Duration       *float64              `json:"duration"`
	QueuedDuration *float64              `json:"queued_duration"`
	FailureReason  string                `json:"failure_reason,omitempty"`
	User           *userProfileJSON      `json:"user"`
	Commit         *repositoryCommitJSON `json:"commit"`
	Archived       bool                  `json:"archived"`
	WebURL         string                `json:"web_url"`
	Project        jobProjectJSON        `json:"project"`
}

type jobProjectJSON struct {
	JobTokenScope bool `json:"ci_job_token_scope_enabled"`
}

// jobJSON is a job.
type jobJSON struct {
	jobBasicJSON
	Pipeline          jobPipelineJSON `json:"pipeline"`
	ArtifactsFile     *jobFileJSON    `json:"artifacts_file,omitempty"`
	Artifacts         []artifactJSON  `json:"artifacts"`
	Runner            *runnerJSON     `json:"runner"`
	RunnerManager     *managerJSON    `json:"runner_manager"`
	ArtifactsExpireAt *stamp          `json:"artifacts_expire_at"`
	TagList           []string        `json:"tag_list"`
}

type jobPipelineJSON struct {
	ID        int64  `json:"id"`
	IID       int64  `json:"iid"`
	ProjectID int64  `json:"project_id"`
	SHA       string `json:"sha"`
	Ref       string `json:"ref"`
	Status    string `json:"status"`
	Source    string `json:"source"`
	CreatedAt stamp  `json:"created_at"`
	UpdatedAt stamp  `json:"updated_at"`
	WebURL    string `json:"web_url"`
}

type jobFileJSON struct {
	Filename string `json:"filename"`
	Size     int64  `json:"size"`
}

type artifactJSON struct {
	FileType   string  `json:"file_type"`
	Size       int64   `json:"size"`
	Filename   string  `json:"filename"`
	FileFormat *string `json:"file_format"`
}

// bridgeJSON is a trigger job.
type bridgeJSON struct {
	jobBasicJSON
	Pipeline   jobPipelineJSON  `json:"pipeline"`
	Downstream *jobPipelineJSON `json:"downstream_pipeline"`
}

func (a *API) presentJob(c *call) func(*ci.Job, error) (jobJSON, error) {
	return func(j *ci.Job, err error) (jobJSON, error) {
		if err != nil {
			return jobJSON{}, err
		}
		return a.toJob(c, j), nil
	}
}

func (a *API) jobForm(c *call) func(*ci.Job) jobJSON {
	return func(j *ci.Job) jobJSON { return a.toJob(c, j) }
}

func (a *API) toJob(c *call, j *ci.Job) jobJSON {
	out := jobJSON{
		jobBasicJSON: a.toJobBasic(c, j), Pipeline: a.toJobPipeline(j.Project.FullPath, j.Pipeline),
		Artifacts: []artifactJSON{}, ArtifactsExpireAt: toStampOrNull(j.ArtifactsExpireAt), TagList: j.Options.Tags,
	}
	if out.TagList == nil {
		out.TagList = []string{}
	}
	for _, f := range j.Artifacts {
		out.Artifacts = append(out.Artifacts, artifactJSON{string(f.Kind), f.Size, f.Filename, textOrNull(string(f.Format))})
		if f.Kind == artifact.Archive {
			out.ArtifactsFile = &jobFileJSON{f.Filename, f.Size}
		}
	}
	if j.Runner != nil {
		runner := a.toRunner(j.Runner)
		out.Runner = &runner
	}
	if j.Manager != nil {
		manager := a.toManager(j.Manager)
		out.RunnerManager = &manager
	}
	return out
}

func (a *API) toBridge(c *call, j *ci.Job) bridgeJSON {
	out := bridgeJSON{jobBasicJSON: a.toJobBasic(c, j), Pipeline: a.toJobPipeline(j.Project.FullPath, j.Pipeline)}
	if j.Downstream != nil {
		down := a.toJobPipeline(j.DownstreamPath, j.Downstream)
		out.Downstream = &down
	}
	return out
}

func (a *API) toJobBasic(c *call, j *ci.Job) jobBasicJSON {
	now := a.Now()
	out := jobBasicJSON{
		ID: j.ID, Status: string(j.Status), Stage: j.Stage, Name: j.Name, Ref: j.Ref, Tag: j.Tag, Coverage: j.Coverage, AllowFailure: j.AllowFailure,
		CreatedAt: toStamp(j.CreatedAt), StartedAt: toStampOrNull(j.StartedAt), FinishedAt: toStampOrNull(j.FinishedAt), ErasedAt: toStampOrNull(j.ErasedAt),
		Duration: toSeconds(j.Duration(now)), QueuedDuration: toSeconds(j.QueuedDuration(now)), FailureReason: string(j.FailureReason),
		Archived: j.Archived(), WebURL: a.Site.URL + "/" + j.Project.FullPath + "/-/jobs/" + strconv.FormatInt(j.ID, 10),
		Project: jobProjectJSON{j.Project.Settings.CIJobTokenScopeEnabled},
	}
	if j.User != nil {
		shown := *j.User
		if !user.MayReadProfile(c.actor, j.User) {
			shown.Profile, shown.Followers, shown.Following = user.Profile{}, 0, 0
		}
		u := toUserProfile(c.site, &shown, now)
		out.User = &u
	}
	if j.Commit != nil {
		commit := toRepositoryCommit(c, j.Project, j.Commit)
		out.Commit = &commit
	}
	return out
}

func (a *API) toJobPipeline(path string, p *ci.Pipeline) jobPipelineJSON {
	return jobPipelineJSON{
		p.ID, p.IID, p.ProjectID, p.SHA, p.Ref, string(p.Status), string(p.Source), toStamp(p.CreatedAt), toStamp(p.UpdatedAt), a.pipelineURL(path, p.ID),
	}
}

func toSeconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	seconds := d.Seconds()
	return &seconds
}
