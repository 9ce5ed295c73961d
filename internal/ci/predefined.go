package ci

import (
	"context"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"svc/internal/ci/config"
	"svc/internal/ci/deployment"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/user"
)

// variableContext is the data that predefined variables depend on: a pipeline, which may
// not be created yet, and its context.
type variableContext struct {
	site     Site
	project  *project.Project
	pipeline *Pipeline
	commit   *git.Commit
	user     *user.User // nil if deleted
	added    []config.Variable
	release  string // description of the release of the tag
	// languages are those of the default branch, the largest first.
	languages []string
}

// newVariableContext returns the variableContext of a pipeline, with the variables of other
// features.
func (s *Service) newVariableContext(ctx context.Context, p *project.Project, pipeline *Pipeline, commit *git.Commit) (*variableContext, error) {
	sc := &variableContext{site: s.Site, project: p, pipeline: pipeline, commit: commit}
	for _, source := range s.variableSources {
		added, err := source(ctx, p)
		if err != nil {
			return nil, err
		}
		sc.added = append(sc.added, added...)
	}
	var err error
	if sc.languages, err = s.Projects.Languages(ctx, p.ID); err != nil {
		return nil, err
	}
	if pipeline.Tag && p.Settings.Releases != project.Disabled {
		notes, err := s.Releases.Description(ctx, p.ID, pipeline.Ref)
		if err != nil {
			return nil, err
		}
		sc.release = firstRunes(notes, maxReleaseNotes)
	}
	return sc, nil
}

// maxReleaseNotes is the length of CI_RELEASE_DESCRIPTION in characters.
const maxReleaseNotes = 1024

// firstRunes returns the first n characters of a text.
func firstRunes(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// variables is a list of variables under construction.
type variables []config.Variable

func (v *variables) add(key, value string) {
	*v = append(*v, config.Variable{Key: key, Value: value, Raw: strings.ContainsAny(value, "$%")})
}

// addSome adds a variable unless the value is empty.
func (v *variables) addSome(key, value string) {
	if value != "" {
		v.add(key, value)
	}
}

func (v *variables) addTrue(key string, is bool) {
	if is {
		v.add(key, "true")
	}
}

// predefined returns the predefined variables that every job of a pipeline
// gets.
func (sc *variableContext) predefined() []config.Variable {
	var v variables
	v.add("CI", "true")
	v.add("GITLAB_CI", "true")
	sc.server(&v)
	sc.projectVariables(&v)
	v = append(v, sc.added...)
	sc.commitVariables(&v)
	sc.pipelineVariables(&v)
	sc.requestVariables(&v)
	sc.userVariables(&v)
	return v
}

func (sc *variableContext) server(v *variables) {
	u, err := url.Parse(sc.site.URL)
	if err != nil {
		u = &url.URL{}
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	version, _, _ := strings.Cut(sc.site.Version, "-")
	parts := append(strings.Split(version, "."), "0", "0")
	v.add("CI_SERVER", "yes")
	v.add("CI_SERVER_URL", sc.site.URL)
	v.add("CI_SERVER_HOST", u.Hostname())
	v.add("CI_SERVER_FQDN", u.Host)
	v.add("CI_SERVER_PORT", port)
	v.add("CI_SERVER_PROTOCOL", u.Scheme)
	v.add("CI_SERVER_NAME", sc.site.Name)
	v.add("CI_SERVER_VERSION", sc.site.Version)
	v.add("CI_SERVER_VERSION_MAJOR", parts[0])
	v.add("CI_SERVER_VERSION_MINOR", parts[1])
	v.add("CI_SERVER_VERSION_PATCH", parts[2])
	v.add("CI_SERVER_REVISION", sc.site.Revision)
	v.add("CI_SERVER_SHELL_SSH_HOST", u.Hostname())
	v.addSome("CI_SERVER_SHELL_SSH_PORT", sc.site.SSHPort)
	v.add("CI_API_V4_URL", sc.site.URL+"/api/v4")
	v.add("CI_API_GRAPHQL_URL", sc.site.URL+"/api/graphql")
	v.add("CI_TEMPLATE_REGISTRY_HOST", "registry.gitlab.com")
	v.add("GITLAB_FEATURES", strings.Join(sc.site.Features, ","))
}

func (sc *variableContext) projectVariables(v *variables) {
	p := sc.project
	space := p.Namespace.FullPath
	root, _, _ := strings.Cut(space, "/")
	v.add("CI_PROJECT_ID", strconv.FormatInt(p.ID, 10))
	v.add("CI_PROJECT_NAME", p.Path)
	v.add("CI_PROJECT_TITLE", p.Name)
	v.add("CI_PROJECT_DESCRIPTION", p.Description)
	v.add("CI_PROJECT_PATH", p.FullPath)
	v.add("CI_PROJECT_PATH_SLUG", slug(p.FullPath))
	v.add("CI_PROJECT_NAMESPACE", space)
	v.add("CI_PROJECT_NAMESPACE_SLUG", slug(space))
	v.add("CI_PROJECT_NAMESPACE_ID", strconv.FormatInt(p.NamespaceID, 10))
	v.add("CI_PROJECT_ROOT_NAMESPACE", root)
	v.add("CI_PROJECT_URL", sc.site.URL+"/"+p.FullPath)
	v.add("CI_PROJECT_VISIBILITY", string(p.Visibility))
	v.add("CI_PROJECT_REPOSITORY_LANGUAGES", strings.ToLower(strings.Join(sc.languages, ",")))
	v.add("CI_PROJECT_CLASSIFICATION_LABEL", "")
	v.add("CI_PROJECT_TOPICS", strings.Join(p.Topics, ","))
	v.add("CI_DEFAULT_BRANCH", p.DefaultBranch)
	v.add("CI_DEFAULT_BRANCH_SLUG", slug(p.DefaultBranch))
	v.add("CI_CONFIG_PATH", sc.pipeline.facts.ConfigPath)
}

func (sc *variableContext) commitVariables(v *variables) {
	p, c := sc.pipeline, sc.commit
	v.add("CI_COMMIT_SHA", p.SHA)
	v.add("CI_COMMIT_SHORT_SHA", p.SHA[:min(8, len(p.SHA))])
	v.add("CI_COMMIT_BEFORE_SHA", p.BeforeSHA)
	v.add("CI_COMMIT_REF_NAME", p.branch())
	v.add("CI_COMMIT_REF_SLUG", slug(p.branch()))
	v.add("CI_COMMIT_REF_PROTECTED", strconv.FormatBool(p.Protected))
	switch {
	case p.Tag:
		v.add("CI_COMMIT_TAG", p.Ref)
		v.add("CI_COMMIT_TAG_MESSAGE", p.facts.TagMessage)
		v.addSome("CI_RELEASE_DESCRIPTION", sc.release)
	case p.facts.Request == nil: // merge request pipelines have no CI_COMMIT_BRANCH
		v.add("CI_COMMIT_BRANCH", p.Ref)
	}
	if c == nil { // no longer in the repository
		return
	}
	description := ""
	if first, rest, ok := strings.Cut(c.Message, "\n\n"); ok && len(first) <= 100 {
		description = rest
	}
	v.add("CI_COMMIT_MESSAGE", c.Message)
	v.add("CI_COMMIT_TITLE", c.Title)
	v.add("CI_COMMIT_DESCRIPTION", description)
	v.add("CI_COMMIT_TIMESTAMP", c.Committer.When.Format(time.RFC3339))
	v.add("CI_COMMIT_AUTHOR", c.Author.Name+" <"+c.Author.Email+">")
}

func (sc *variableContext) pipelineVariables(v *variables) {
	p := sc.pipeline
	if p.ID != 0 {
		v.add("CI_PIPELINE_ID", strconv.FormatInt(p.ID, 10))
		v.add("CI_PIPELINE_URL", sc.site.URL+"/"+sc.project.FullPath+"/-/pipelines/"+strconv.FormatInt(p.ID, 10))
		v.add("CI_PIPELINE_IID", strconv.FormatInt(p.IID, 10))
		v.addSome("CI_PIPELINE_NAME", p.Name)
	}
	v.add("CI_PIPELINE_SOURCE", string(p.Source))
	v.add("CI_PIPELINE_CREATED_AT", p.CreatedAt.UTC().Format(time.RFC3339))
	v.addTrue("CI_PIPELINE_TRIGGERED", p.Source == FromTrigger)
	v.addSome("CI_TRIGGER_SHORT_TOKEN", p.facts.TriggerToken)
	v.addSome("CI_PIPELINE_SCHEDULE_DESCRIPTION", p.facts.Schedule)
	if up := p.facts.Upstream; up != nil {
		v.add("CI_UPSTREAM_PROJECT_ID", strconv.FormatInt(up.ProjectID, 10))
		v.add("CI_UPSTREAM_PIPELINE_ID", strconv.FormatInt(up.PipelineID, 10))
		v.add("CI_UPSTREAM_JOB_ID", strconv.FormatInt(up.JobID, 10))
	}
}

func (sc *variableContext) userVariables(v *variables) {
	if sc.user == nil {
		return
	}
	v.add("GITLAB_USER_ID", strconv.FormatInt(sc.user.ID, 10))
	v.add("GITLAB_USER_LOGIN", sc.user.Username)
	v.add("GITLAB_USER_NAME", sc.user.Name)
	v.add("GITLAB_USER_EMAIL", sc.user.Email)
}

// job returns the predefined variables of a job, except those with its token.
func (sc *variableContext) job(j *Job, env *deployment.Environment) []config.Variable {
	var v variables
	id := strconv.FormatInt(j.ID, 10)
	v.add("CI_JOB_ID", id)
	v.add("CI_JOB_URL", sc.site.URL+"/"+sc.project.FullPath+"/-/jobs/"+id)
	v.add("CI_JOB_NAME", j.Name)
	v.add("CI_JOB_NAME_SLUG", slug(j.Name))
	v.add("CI_JOB_GROUP_NAME", j.Options.Group)
	v.add("CI_JOB_STAGE", j.Stage)
	v.addTrue("CI_JOB_MANUAL", j.When == "manual")
	v.add("CI_JOB_TIMEOUT", strconv.FormatInt(int64(j.Timeout/time.Second), 10))
	if j.StartedAt != nil {
		v.add("CI_JOB_STARTED_AT", j.StartedAt.UTC().Format(time.RFC3339))
	}
	if j.Options.Image != nil {
		v.add("CI_JOB_IMAGE", j.Options.Image.Name)
	}
	total := "1"
	if p := j.Options.Parallel; p != nil {
		v.add("CI_NODE_INDEX", strconv.Itoa(p.Index))
		total = strconv.Itoa(p.Total)
	}
	v.add("CI_NODE_TOTAL", total)
	if e := j.Options.Environment; e != nil {
		v.add("CI_ENVIRONMENT_NAME", e.Name)
		v.add("CI_ENVIRONMENT_ACTION", e.Action)
		if e.URL != "" { // the runner expands the variables of the job
			v = append(v, config.Variable{Key: "CI_ENVIRONMENT_URL", Value: e.URL})
		}
		if env != nil {
			v.add("CI_ENVIRONMENT_SLUG", env.Slug)
			v.add("CI_ENVIRONMENT_TIER", env.Tier)
		}
	}
	// Old names that scripts still use.
	v.add("CI_BUILD_ID", id)
	v.add("CI_BUILD_REF", sc.pipeline.SHA)
	v.add("CI_BUILD_BEFORE_SHA", sc.pipeline.BeforeSHA)
	v.add("CI_BUILD_REF_NAME", j.Ref)
	v.add("CI_BUILD_REF_SLUG", slug(j.Ref))
	v.add("CI_BUILD_NAME", j.Name)
	v.add("CI_BUILD_STAGE", j.Stage)
	if j.Tag {
		v.add("CI_BUILD_TAG", j.Ref)
	}
	return v
}

var notSlug = regexp.MustCompile(`[^a-z0-9]`)

// slug converts a name to a host name label: lower case, at most 63 bytes, only
// letters, digits and inner dashes.
func slug(name string) string {
	text := notSlug.ReplaceAllString(strings.ToLower(name), "-")
	return strings.Trim(text[:min(63, len(text))], "-")
}
