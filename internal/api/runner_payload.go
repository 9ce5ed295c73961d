package api

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"svc/internal/ci"
	"svc/internal/ci/config"
)

// assignmentJSON is a job in the format of the public runner.
type assignmentJSON struct {
	ID            int64                `json:"id"`
	Token         string               `json:"token"`
	AllowGitFetch bool                 `json:"allow_git_fetch"`
	JobInfo       jobInfoJSON          `json:"job_info"`
	GitInfo       gitInfoJSON          `json:"git_info"`
	RunnerInfo    jobRunnerInfoJSON    `json:"runner_info"`
	Inputs        []string             `json:"inputs"`
	Variables     []jobVariableJSON    `json:"variables"`
	Steps         []jobStepJSON        `json:"steps"`
	Hooks         []jobHookJSON        `json:"hooks"`
	Image         *jobImageJSON        `json:"image"`
	Services      []jobImageJSON       `json:"services"`
	Artifacts     []jobArtifactJSON    `json:"artifacts"`
	Cache         []jobCacheJSON       `json:"cache"`
	Credentials   []jobCredentialJSON  `json:"credentials"`
	Dependencies  []jobDependencyJSON  `json:"dependencies"`
	Secrets       map[string]secretAny `json:"secrets,omitempty"`
	Features      jobFeaturesJSON      `json:"features"`
}

type jobInfoJSON struct {
	ID                 int64  `json:"id"`
	Name               string `json:"name"`
	Stage              string `json:"stage"`
	PipelineID         int64  `json:"pipeline_id"`
	ProjectID          int64  `json:"project_id"`
	ProjectName        string `json:"project_name"`
	ProjectFullPath    string `json:"project_full_path"`
	NamespaceID        int64  `json:"namespace_id"`
	RootNamespaceID    int64  `json:"root_namespace_id"`
	OrganizationID     int64  `json:"organization_id"`
	UserID             *int64 `json:"user_id"`
	TimeInQueueSeconds int64  `json:"time_in_queue_seconds"`
	RunningShared      string `json:"project_jobs_running_on_instance_runners_count"`
}

type gitInfoJSON struct {
	RepoURL          string   `json:"repo_url"`
	RepoObjectFormat string   `json:"repo_object_format"`
	Ref              string   `json:"ref"`
	SHA              string   `json:"sha"`
	BeforeSHA        string   `json:"before_sha"`
	RefType          string   `json:"ref_type"`
	Refspecs         []string `json:"refspecs"`
	Depth            int64    `json:"depth"`
	Protected        bool     `json:"protected"`
}

type jobRunnerInfoJSON struct {
	UUID    string `json:"uuid"`
	Timeout int64  `json:"timeout"`
}

type jobVariableJSON struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Public bool   `json:"public"`
	File   bool   `json:"file"`
	Masked bool   `json:"masked"`
	Raw    bool   `json:"raw"`
}

type jobStepJSON struct {
	Name         string   `json:"name"`
	Script       []string `json:"script"`
	Timeout      int64    `json:"timeout"`
	When         string   `json:"when"`
	AllowFailure bool     `json:"allow_failure"`
}

type jobHookJSON struct {
	Name   string   `json:"name"`
	Script []string `json:"script"`
}

type jobImageJSON struct {
	Name         string            `json:"name"`
	Alias        *string           `json:"alias,omitempty"`
	Entrypoint   []string          `json:"entrypoint,omitempty"`
	Command      []string          `json:"command,omitempty"`
	Ports        []string          `json:"ports"`
	Variables    []jobVariableJSON `json:"variables,omitempty"`
	PullPolicy   []string          `json:"pull_policy,omitempty"`
	ExecutorOpts *executorOptsJSON `json:"executor_opts,omitempty"`
}

type executorOptsJSON struct {
	Docker     *dockerOptsJSON     `json:"docker,omitempty"`
	Kubernetes *kubernetesOptsJSON `json:"kubernetes,omitempty"`
}

type dockerOptsJSON struct {
	Platform string `json:"platform,omitempty"`
	User     string `json:"user,omitempty"`
}

type kubernetesOptsJSON struct {
	User string `json:"user,omitempty"`
}

type jobArtifactJSON struct {
	Name           *string  `json:"name"`
	Untracked      bool     `json:"untracked"`
	Paths          []string `json:"paths"`
	Exclude        []string `json:"exclude,omitempty"`
	When           *string  `json:"when"`
	ExpireIn       *string  `json:"expire_in"`
	ArtifactType   string   `json:"artifact_type"`
	ArtifactFormat string   `json:"artifact_format"`
}

type jobCacheJSON struct {
	Key          string   `json:"key"`
	Untracked    bool     `json:"untracked"`
	Paths        []string `json:"paths"`
	Policy       string   `json:"policy"`
	When         string   `json:"when"`
	FallbackKeys []string `json:"fallback_keys"`
}

type jobCredentialJSON struct {
	Type     string `json:"type"`
	URL      string `json:"url"`
	Username string `json:"username"`
	Password string `json:"password"`
}

type jobDependencyJSON struct {
	ID            int64            `json:"id"`
	Name          string           `json:"name"`
	Token         string           `json:"token"`
	ArtifactsFile artifactFileJSON `json:"artifacts_file"`
}

type artifactFileJSON struct {
	Filename string `json:"filename"`
	Size     int64  `json:"size"`
}

type jobFeaturesJSON struct {
	TraceSections     bool     `json:"trace_sections"`
	TokenMaskPrefixes []string `json:"token_mask_prefixes"`
	FailureReasons    []string `json:"failure_reasons"`
}

// secretAny is the source of a secret. Its format depends on the secret manager.
type secretAny map[string]any

func toAssignment(c *call, a *ci.Assignment, now time.Time) assignmentJSON {
	j := a.Job
	out := assignmentJSON{
		ID: j.ID, Token: a.Token, AllowGitFetch: a.Project.Settings.BuildGitStrategy == "fetch",
		JobInfo: jobInfoJSON{
			ID: j.ID, Name: j.Name, Stage: j.Stage, PipelineID: j.PipelineID, ProjectID: a.Project.ID, ProjectName: a.Project.Name,
			ProjectFullPath: a.Project.FullPath, NamespaceID: a.Project.NamespaceID, RootNamespaceID: a.RootNamespaceID, OrganizationID: 1,
			UserID: j.UserID, RunningShared: strconv.FormatInt(a.RunningShared, 10),
		},
		GitInfo: gitInfoJSON{
			RepoURL: a.RepositoryURL, RepoObjectFormat: "sha1", Ref: j.Ref, SHA: a.Pipeline.SHA, BeforeSHA: a.Pipeline.BeforeSHA, RefType: "branch",
			Refspecs: a.Refspecs, Depth: a.Depth, Protected: j.Protected,
		},
		RunnerInfo: jobRunnerInfoJSON{UUID: a.Manager.SystemID, Timeout: seconds(j.Timeout)},
		Inputs:     []string{}, Credentials: []jobCredentialJSON{}, Hooks: []jobHookJSON{},
		Variables: mapped(a.Variables, toJobVariable), Steps: toSteps(j), Services: mapped(j.Options.Services, toServiceImage),
		Artifacts: mapped(a.Artifacts, toJobArtifact), Cache: mapped(a.Cache, toJobCache),
		Dependencies: mapped(a.Dependencies, func(d ci.Dependency) jobDependencyJSON {
			return jobDependencyJSON{d.Job.ID, d.Job.Name, a.Token, artifactFileJSON{d.File.Filename, d.File.Size}}
		}),
		Secrets: toSecrets(a.Secrets),
		Features: jobFeaturesJSON{
			TraceSections: true, TokenMaskPrefixes: c.site.maskPrefixes(),
			FailureReasons: ci.RunnerFailureReasons(),
		},
	}
	if j.Tag {
		out.GitInfo.RefType = "tag"
	}
	if d := j.QueuedDuration(now); d != nil {
		out.JobInfo.TimeInQueueSeconds = seconds(*d)
	}
	if i := j.Options.Image; i != nil {
		image := toJobImage(*i)
		out.Image = &image
	}
	if h := j.Options.Hooks; h != nil && len(h.PreGetSourcesScript) > 0 {
		out.Hooks = append(out.Hooks, jobHookJSON{"pre_get_sources_script", h.PreGetSourcesScript})
	}
	return out
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func toJobVariable(v ci.JobVariable) jobVariableJSON {
	return jobVariableJSON{v.Key, v.Value, v.Public, v.File, v.Masked, v.Raw}
}

// toSteps returns the scripts of a job as steps. after_script always runs.
func toSteps(j *ci.Job) []jobStepJSON {
	o := &j.Options
	steps := []jobStepJSON{{
		Name: "script", Script: append(append([]string{}, o.BeforeScript...), o.Script...), Timeout: seconds(j.Timeout), When: "on_success",
	}}
	if release := j.ReleaseScript(); release != nil {
		steps = append(steps, jobStepJSON{Name: "release", Script: release, Timeout: seconds(j.Timeout), When: "on_success"})
	}
	if len(o.AfterScript) > 0 {
		steps = append(steps, jobStepJSON{Name: "after_script", Script: o.AfterScript, Timeout: seconds(j.Timeout), When: "always", AllowFailure: true})
	}
	return steps
}

func toJobImage(i config.Image) jobImageJSON {
	out := jobImageJSON{Name: i.Name, Entrypoint: i.Entrypoint, Ports: []string{}, PullPolicy: i.PullPolicy}
	if i.Docker != nil || i.Kubernetes != nil {
		out.ExecutorOpts = &executorOptsJSON{}
	}
	if i.Docker != nil {
		out.ExecutorOpts.Docker = &dockerOptsJSON{i.Docker.Platform, i.Docker.User}
	}
	if i.Kubernetes != nil {
		out.ExecutorOpts.Kubernetes = &kubernetesOptsJSON{i.Kubernetes.User}
	}
	return out
}

func toServiceImage(s config.Service) jobImageJSON {
	out := toJobImage(s.Image)
	out.Alias, out.Command = textOrNull(s.Alias), s.Command
	for _, v := range s.Variables {
		out.Variables = append(out.Variables, jobVariableJSON{Key: v.Key, Value: v.Value, Public: true, Raw: v.Raw})
	}
	return out
}

func toJobArtifact(u ci.ArtifactUse) jobArtifactJSON {
	return jobArtifactJSON{
		Name: textOrNull(u.Name), Untracked: u.Untracked, Paths: append([]string{}, u.Paths...), Exclude: u.Exclude, When: textOrNull(u.When),
		ExpireIn: textOrNull(u.ExpireIn), ArtifactType: string(u.Kind), ArtifactFormat: string(u.Format),
	}
}

func toJobCache(u ci.CacheUse) jobCacheJSON {
	return jobCacheJSON{
		Key: u.Key, Untracked: u.Untracked, Paths: append([]string{}, u.Paths...), Policy: u.Policy, When: string(u.When),
		FallbackKeys: append([]string{}, u.FallbackKeys...),
	}
}

func toSecrets(list []ci.SecretUse) map[string]secretAny {
	if len(list) == 0 {
		return nil
	}
	out := map[string]secretAny{}
	for _, s := range list {
		entry := map[string]any{"server": s.Server}
		maps.Copy(entry, s.Config)
		out[s.Name] = secretAny{s.Provider: entry}
		if s.File != nil {
			out[s.Name]["file"] = *s.File
		}
	}
	return out
}

// maskPrefixes returns the prefixes of the tokens that runners mask in logs,
// including tokens that were created before the instance's token prefix was set.
func (s *Site) maskPrefixes() []string {
	list := []string{"glrt-"}
	for _, start := range []string{s.Tokens, s.Name} {
		for _, kind := range []string{"pat-", "cbt-", "dt-", "ptt-"} {
			if prefix := start + kind; start != "" && !slices.Contains(list, prefix) {
				list = append(list, prefix)
			}
		}
	}
	return list
}
