package config

import "encoding/json"

// When is the condition under which a job runs.
type When string

// The conditions.
const (
	OnSuccess When = "on_success" // no earlier or needed job failed
	OnFailure When = "on_failure" // at least one failed
	Always    When = "always"
	Manual    When = "manual"  // a user starts it
	Delayed   When = "delayed" // after a delay
	Never     When = "never"   // in rules only: the job is excluded
)

// Job is a job of a plan. It is stored as JSON, so its tags must not change. Fields for
// the runner contain variables, which the runner expands.
type Job struct {
	// Name is unique in the pipeline. Jobs of one definition with parallel share a Group,
	// the name without the suffix.
	Name  string `json:"name"`
	Group string `json:"group"`
	Stage string `json:"stage"`
	// StageIndex is the index of the stage in Config.Stages.
	StageIndex int `json:"stage_index"`
	// Parallel is the place of the job in its group.
	Parallel *Parallel `json:"parallel,omitempty"`

	// Trigger is set for a bridge, which starts another pipeline instead of running a
	// script. MirrorPipeline is set for a bridge that mirrors the status of the latest
	// pipeline of that project.
	Trigger        *Trigger `json:"trigger,omitempty"`
	MirrorPipeline string   `json:"mirror_pipeline,omitempty"`

	BeforeScript []string   `json:"before_script,omitempty"`
	Script       []string   `json:"script,omitempty"`
	AfterScript  []string   `json:"after_script,omitempty"`
	Hooks        *Hooks     `json:"hooks,omitempty"`
	Image        *Image     `json:"image,omitempty"`
	Services     []Service  `json:"services,omitempty"`
	Tags         []string   `json:"tags,omitempty"` // variables expanded
	Variables    []Variable `json:"variables,omitempty"`

	When         When  `json:"when"`
	StartIn      int64 `json:"start_in,omitempty"` // seconds, for Delayed
	AllowFailure bool  `json:"allow_failure"`
	// AllowFailureExitCodes are the exit codes of the script that count as allowed failures.
	AllowFailureExitCodes []int  `json:"allow_failure_exit_codes,omitempty"`
	ManualConfirmation    string `json:"manual_confirmation,omitempty"`
	Retry                 *Retry `json:"retry,omitempty"`
	Timeout               int64  `json:"timeout,omitempty"` // seconds; 0 is the project's
	// Interruptible is nil if the keyword is missing.
	Interruptible *bool `json:"interruptible,omitempty"`
	// ResourceGroup is the name with its variables expanded.
	ResourceGroup string `json:"resource_group,omitempty"`

	// Needs are the jobs that this job waits for. Nil means all jobs of earlier stages;
	// empty means none.
	Needs []Need `json:"needs,omitzero"`
	// CrossNeeds are artifacts of other pipelines that are downloaded.
	CrossNeeds []CrossNeed `json:"cross_needs,omitempty"`
	// Dependencies are the jobs whose artifacts are downloaded. Nil means those of Needs
	// that request artifacts, or all jobs of earlier stages; empty means none.
	Dependencies []string `json:"dependencies,omitzero"`

	Environment *Environment `json:"environment,omitempty"`
	Artifacts   *Artifacts   `json:"artifacts,omitempty"`
	Cache       []Cache      `json:"cache,omitempty"`
	// Coverage is the pattern, without its slashes, that finds the coverage in the log;
	// Regexp compiles it.
	Coverage string             `json:"coverage,omitempty"`
	Secrets  map[string]Secret  `json:"secrets,omitempty"`
	IDTokens map[string]IDToken `json:"id_tokens,omitempty"`
	Identity string             `json:"identity,omitempty"`
	Release  *Release           `json:"release,omitempty"`
	Pages    *Pages             `json:"pages,omitempty"`
	// DAST is dast_configuration as written.
	DAST json.RawMessage `json:"dast_configuration,omitempty"`
}

// Parallel is the place of a job in its group, from 1.
type Parallel struct {
	Index int `json:"index"`
	Total int `json:"total"`
	// Matrix are the variables of this job from parallel:matrix, which are also in its
	// Variables.
	Matrix []Variable `json:"matrix,omitempty"`
}

// Need is a job of the same pipeline that another job waits for.
type Need struct {
	Job       string `json:"job"`
	Artifacts bool   `json:"artifacts"`
	Optional  bool   `json:"optional,omitempty"`
}

// CrossNeed is a job of another pipeline: the latest of a project at a ref, or that of
// the pipeline of the same project whose ID is in Pipeline.
type CrossNeed struct {
	Project   string `json:"project,omitempty"`
	Ref       string `json:"ref,omitempty"`
	Pipeline  string `json:"pipeline,omitempty"`
	Job       string `json:"job"`
	Artifacts bool   `json:"artifacts"`
}

// Hooks are scripts at certain points of a job.
type Hooks struct {
	PreGetSourcesScript []string `json:"pre_get_sources_script,omitempty"`
}

// Image is the container of a job.
type Image struct {
	Name       string   `json:"name"`
	Entrypoint []string `json:"entrypoint,omitzero"`
	PullPolicy []string `json:"pull_policy,omitempty"`
	// Docker and Kubernetes are options for these executors.
	Docker     *DockerOptions     `json:"docker,omitempty"`
	Kubernetes *KubernetesOptions `json:"kubernetes,omitempty"`
}

// DockerOptions are options for the Docker executor.
type DockerOptions struct {
	Platform string `json:"platform,omitempty"`
	User     string `json:"user,omitempty"`
}

// KubernetesOptions are options for the Kubernetes executor.
type KubernetesOptions struct {
	User string `json:"user,omitempty"`
}

// Service is a container that runs next to the container of a job.
type Service struct {
	Image
	Alias     string     `json:"alias,omitempty"`
	Command   []string   `json:"command,omitzero"`
	Variables []Variable `json:"variables,omitempty"`
}

// Retry configures how often, and after which failures, a job is retried.
type Retry struct {
	Max       int      `json:"max"`
	When      []string `json:"when,omitempty"` // failure reasons; empty means all
	ExitCodes []int    `json:"exit_codes,omitempty"`
}

// Environment is the environment that a job deploys to.
type Environment struct {
	Name   string `json:"name"`          // variables expanded
	URL    string `json:"url,omitempty"` // as written, because a job may set its variables
	Action string `json:"action"`        // start, stop, prepare, verify, access
	OnStop string `json:"on_stop,omitempty"`
	// AutoStopIn is as written; it may contain variables.
	AutoStopIn string          `json:"auto_stop_in,omitempty"`
	Tier       string          `json:"deployment_tier,omitempty"`
	Kubernetes json.RawMessage `json:"kubernetes,omitempty"`
}

// Artifacts are the files that a job uploads.
type Artifacts struct {
	Name      string   `json:"name,omitempty"`
	Paths     []string `json:"paths,omitempty"`
	Exclude   []string `json:"exclude,omitempty"`
	Untracked bool     `json:"untracked,omitempty"`
	When      When     `json:"when,omitempty"`
	ExpireIn  string   `json:"expire_in,omitempty"` // as written, or never
	ExposeAs  string   `json:"expose_as,omitempty"`
	Access    string   `json:"access,omitempty"` // all, developer, maintainer, none
	// Reports are the paths of reports by type: junit, dotenv …
	Reports        map[string][]string `json:"reports,omitempty"`
	CoverageReport *CoverageReport     `json:"coverage_report,omitempty"`
}

// CoverageReport is a report of line coverage.
type CoverageReport struct {
	Format string `json:"coverage_format"` // cobertura or jacoco
	Path   string `json:"path"`
}

// Cache is a set of files that is kept between jobs.
type Cache struct {
	// Key is a text. If KeyFiles is set, the key is computed from the content of the files
	// that match these patterns, after KeyPrefix; with KeyCommits, from the last commits
	// that changed these paths.
	Key          string   `json:"key,omitempty"`
	KeyFiles     []string `json:"key_files,omitempty"`
	KeyCommits   bool     `json:"key_commits,omitempty"`
	KeyPrefix    string   `json:"key_prefix,omitempty"`
	Paths        []string `json:"paths,omitempty"`
	Untracked    bool     `json:"untracked,omitempty"`
	Unprotect    bool     `json:"unprotect,omitempty"`
	Policy       string   `json:"policy"`
	When         When     `json:"when"`
	FallbackKeys []string `json:"fallback_keys,omitempty"`
}

// Secret is a secret that the runner fetches from a secrets provider.
type Secret struct {
	// Provider is the type of the provider, Config its settings.
	Provider string          `json:"provider"`
	Config   json.RawMessage `json:"config"`
	File     *bool           `json:"file,omitempty"`
	Token    string          `json:"token,omitempty"`
}

// IDToken is a token with which a job authenticates to other services.
type IDToken struct {
	Audience []string `json:"aud"`
}

// Trigger starts a pipeline of another project, or a child of this one.
type Trigger struct {
	Project  string          `json:"project,omitempty"`
	Branch   string          `json:"branch,omitempty"`
	Strategy string          `json:"strategy,omitempty"` // depend, mirror or empty
	Include  json.RawMessage `json:"include,omitempty"`  // see Trigger.Content
	Forward  Forward         `json:"forward"`
	Inputs   json.RawMessage `json:"inputs,omitempty"`
}

// Forward selects the variables that the downstream pipeline gets.
type Forward struct {
	YAMLVariables     bool `json:"yaml_variables"`
	PipelineVariables bool `json:"pipeline_variables"`
}

// Content returns the configuration of a child pipeline: a file that includes the files
// of the trigger.
func (t *Trigger) Content() []byte {
	if t.Include == nil {
		return nil
	}
	return []byte(`{"include":` + string(t.Include) + `}`) // JSON is YAML
}

// Release is a release that a job creates.
type Release struct {
	TagName     string          `json:"tag_name"`
	TagMessage  string          `json:"tag_message,omitempty"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description"`
	Ref         string          `json:"ref,omitempty"`
	Milestones  []string        `json:"milestones,omitempty"`
	ReleasedAt  string          `json:"released_at,omitempty"`
	Assets      json.RawMessage `json:"assets,omitempty"`
}

// Pages is a site that a job publishes.
type Pages struct {
	Publish    string `json:"publish"`
	PathPrefix string `json:"path_prefix,omitempty"`
	ExpireIn   string `json:"expire_in,omitempty"`
}
