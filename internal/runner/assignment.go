package runner

// assignment is a job as sent by the server, without the fields that the shell
// executor does not use.
type assignment struct {
	ID            int64        `json:"id"`
	Token         string       `json:"token"`
	AllowGitFetch bool         `json:"allow_git_fetch"`
	JobInfo       jobInfo      `json:"job_info"`
	GitInfo       gitInfo      `json:"git_info"`
	RunnerInfo    runnerInfo   `json:"runner_info"`
	Variables     []variable   `json:"variables"`
	Steps         []step       `json:"steps"`
	Hooks         []hook       `json:"hooks"`
	Image         *image       `json:"image"`
	Services      []image      `json:"services"`
	Artifacts     []artifact   `json:"artifacts"`
	Cache         []cache      `json:"cache"`
	Dependencies  []dependency `json:"dependencies"`
	Features      features     `json:"features"`
}

type jobInfo struct {
	Name            string `json:"name"`
	Stage           string `json:"stage"`
	ProjectID       int64  `json:"project_id"`
	ProjectFullPath string `json:"project_full_path"`
}

type gitInfo struct {
	RepoURL          string   `json:"repo_url"`
	RepoObjectFormat string   `json:"repo_object_format"`
	Ref              string   `json:"ref"`
	SHA              string   `json:"sha"`
	Refspecs         []string `json:"refspecs"`
	Depth            int      `json:"depth"`
}

type runnerInfo struct {
	Timeout int64 `json:"timeout"` // seconds
}

type variable struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	File   bool   `json:"file"`
	Masked bool   `json:"masked"`
	Raw    bool   `json:"raw"`
}

// The names of the steps.
const (
	scriptStep = "script"
	afterStep  = "after_script"
)

type step struct {
	Name   string   `json:"name"`
	Script []string `json:"script"`
}

type hook struct {
	Name   string   `json:"name"`
	Script []string `json:"script"`
}

type image struct {
	Name string `json:"name"`
}

type artifact struct {
	Name      string   `json:"name"`
	Untracked bool     `json:"untracked"`
	Paths     []string `json:"paths"`
	Exclude   []string `json:"exclude"`
	When      string   `json:"when"`
	Type      string   `json:"artifact_type"`
	Format    string   `json:"artifact_format"`
	ExpireIn  string   `json:"expire_in"`
}

type cache struct {
	Key          string   `json:"key"`
	Untracked    bool     `json:"untracked"`
	Policy       string   `json:"policy"`
	Paths        []string `json:"paths"`
	When         string   `json:"when"`
	FallbackKeys []string `json:"fallback_keys"`
}

type dependency struct {
	ID            int64  `json:"id"`
	Token         string `json:"token"`
	Name          string `json:"name"`
	ArtifactsFile struct {
		Filename string `json:"filename"`
		Size     int64  `json:"size"`
	} `json:"artifacts_file"`
}

type features struct {
	TraceSections     bool     `json:"trace_sections"`
	TokenMaskPrefixes []string `json:"token_mask_prefixes"`
}

// applies reports whether an artifact or a cache with this "when" is saved, given
// the result of the script.
func applies(when string, failed bool) bool {
	switch when {
	case "always":
		return true
	case "on_failure":
		return failed
	}
	return !failed
}
