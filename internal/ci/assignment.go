package ci

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/ci/artifact"
	"svc/internal/ci/config"
	"svc/internal/ci/runners"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/expand"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// Assignment is a job that is assigned to a runner, with everything that the
// runner needs.
type Assignment struct {
	Job      *Job
	Token    string // of the job
	Runner   *runners.Runner
	Manager  *runners.Manager
	Project  *project.Project
	Pipeline *Pipeline

	RootNamespaceID int64
	RunningShared   int64 // jobs of the project that instance runners run
	RepositoryURL   string
	Refspecs        []string
	Depth           int64
	Variables       []JobVariable
	Dependencies    []Dependency
	Cache           []CacheUse
	Artifacts       []ArtifactUse
	Secrets         []SecretUse
}

// Dependency is a job whose artifacts are downloaded first.
type Dependency struct {
	Job  *Job
	File *artifact.File // the archive, nil if there is none
}

// CacheUse is a cache of a job, with its key resolved.
type CacheUse struct {
	config.Cache
	Key          string
	FallbackKeys []string
}

// ArtifactUse is a set of files that the runner uploads.
type ArtifactUse struct {
	Name      string
	Untracked bool
	Paths     []string
	Exclude   []string
	When      string
	Kind      artifact.Kind
	Format    artifact.Format
	ExpireIn  string
}

// prepare collects what a runner needs for a job. It returns unrunnable if the
// job cannot be run.
func (s *Service) prepare(ctx context.Context, a *Assignment) (err error) {
	j := a.Job
	if err := s.checkUser(ctx, j); err != nil {
		return err
	}
	if reason := unsupported(j, a.Manager); reason != "" {
		return &unrunnable{reason, "This runner is too old for what the job asks for."}
	}
	sc, err := s.variableContextOf(ctx, j.PipelineID)
	if err != nil {
		return err
	}
	a.Pipeline, a.Artifacts = sc.pipeline, artifactUses(j.Options.Artifacts)
	if a.RootNamespaceID, err = rootNamespace(ctx, s.DB, a.Project.NamespaceID); err != nil {
		return err
	}
	if a.RunningShared, err = runningShared(ctx, s.DB, a.Project.ID); err != nil {
		return err
	}
	deps, missing, err := s.dependenciesOf(ctx, j, sc)
	if err != nil {
		return fmt.Errorf("dependencies: %w", err)
	}
	if len(missing) > 0 {
		return &unrunnable{MissingDependency, "The job could not retrieve the artifacts that it needs: " + missing[0].describe()}
	}
	if err := s.prepareDependencies(a, deps); err != nil {
		return err
	}
	if err := s.prepareVariables(ctx, a, sc, deps); err != nil {
		return err
	}
	if err := a.prepareSecrets(ctx); err != nil {
		return err
	}
	a.prepareSources()
	return s.prepareCache(ctx, a)
}

// checkUser returns unrunnable if the user of a job is blocked or banned: the job
// has the permissions of the user.
func (s *Service) checkUser(ctx context.Context, j *Job) error {
	if j.UserID == nil {
		return nil
	}
	u, err := s.person(ctx, *j.UserID)
	if err != nil {
		return err
	}
	if u != nil && (u.State == user.Blocked || u.State == user.Banned) {
		return &unrunnable{UserBlocked, "The user of the job is blocked."}
	}
	return nil
}

// unsupported returns the failure reason if the runner manager lacks a feature
// that the job needs, else an empty string.
func unsupported(j *Job, m *runners.Manager) FailureReason {
	if j.Options.Release != nil && len(m.Info.Features) > 0 && !m.Info.Features["multi_build_steps"] {
		return RunnerUnsupported
	}
	wants := j.Options.Artifacts
	if wants == nil || len(m.Info.Features) == 0 {
		return ""
	}
	if len(wants.Exclude) > 0 && !m.Info.Features["artifacts_exclude"] ||
		len(wants.Reports) > 0 && !m.Info.Features["upload_multiple_artifacts"] {
		return RunnerUnsupported
	}
	return ""
}

func (s *Service) prepareDependencies(a *Assignment, deps []dependency) error {
	now := s.Now()
	for _, d := range deps {
		j, file := d.job, d.Archive
		if file == nil {
			gone := j.ErasedAt != nil || j.ArtifactsExpireAt != nil && !now.Before(*j.ArtifactsExpireAt)
			if gone && j.Options.Artifacts != nil {
				return &unrunnable{MissingDependency, fmt.Sprintf("The artifacts of the job %s (%d) were deleted or have expired.", j.Name, j.ID)}
			}
			continue
		}
		a.Dependencies = append(a.Dependencies, Dependency{Job: j, File: file})
	}
	return nil
}

// prepareVariables adds the variables of the job token and the runner to the
// variables of a job.
func (s *Service) prepareVariables(ctx context.Context, a *Assignment, sc *variableContext, deps []dependency) error {
	list, err := s.jobVariables(ctx, a.Job, sc, deps)
	if errs.Is(err, errs.KindInvalid) {
		return &unrunnable{DataIntegrityFailure, "The variables of the job cannot be read."}
	}
	if err != nil {
		return fmt.Errorf("variables: %w", err)
	}
	at, err := url.Parse(s.Site.URL)
	if err != nil {
		return fmt.Errorf("external address: %w", err)
	}
	at.User = url.UserPassword(ciLogin, a.Token)
	a.RepositoryURL = at.String() + "/" + a.Project.FullPath + ".git"
	own := []JobVariable{
		{Key: "CI_JOB_TOKEN", Value: a.Token, Masked: true},
		{Key: "CI_REPOSITORY_URL", Value: a.RepositoryURL},
		{Key: "CI_RUNNER_ID", Value: strconv.FormatInt(a.Runner.ID, 10), Public: true},
		{Key: "CI_RUNNER_DESCRIPTION", Value: a.Runner.Description, Public: true, Raw: true},
		{Key: "CI_RUNNER_TAGS", Value: tagsJSON(a.Runner.Tags), Public: true, Raw: true},
		{Key: "CI_JOB_STARTED_AT", Value: s.Now().UTC().Format(time.RFC3339), Public: true}, // the job starts immediately after this
		{Key: "CI_JOB_TIMEOUT", Value: strconv.FormatInt(int64(a.Job.Timeout.Seconds()), 10), Public: true},
	}
	keys := map[string]bool{}
	for _, v := range own {
		keys[v.Key] = true
	}
	list = slices.DeleteFunc(list, func(v JobVariable) bool { return keys[v.Key] })
	a.Variables = append(own, list...)
	tokens, err := s.idTokens(ctx, a)
	if err != nil {
		return fmt.Errorf("id tokens: %w", err)
	}
	for _, t := range tokens { // ID tokens cannot be overridden
		a.Variables = slices.DeleteFunc(a.Variables, func(v JobVariable) bool { return v.Key == t.Key })
	}
	a.Variables = append(a.Variables, tokens...)
	return a.resolveVariables(ctx)
}

// maxResolved is the number of bytes by which the variables of a job may grow when
// they are expanded.
const maxResolved = 4 << 20

// resolveVariables expands the values of the variables by each other. The runner
// expands each value again, but only by the values as it gets them. References to
// its own variables, to files and to raw values, which it must not expand, are left
// to it. Variables in a cycle stay as they are.
func (a *Assignment) resolveVariables(ctx context.Context) error {
	list := make([]config.Variable, len(a.Variables))
	for i, v := range a.Variables {
		list[i] = config.Variable{Key: v.Key, Value: v.Value, Raw: v.Raw, File: v.File || v.Raw}
	}
	resolved, err := config.Resolve(expand.NewBudget(ctx), list)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, expand.ErrLimit) {
		return &unrunnable{DataIntegrityFailure, fmt.Sprintf("The variables of the job cannot be expanded: %v.", err)}
	}
	if err != nil || len(resolved) != len(list) { // a cycle
		return nil
	}
	grown := 0
	for i, v := range resolved {
		grown += len(v.Value) - len(list[i].Value)
		a.Variables[i].Value = v.Value
	}
	if grown > maxResolved {
		return &unrunnable{DataIntegrityFailure, fmt.Sprintf("The variables of the job grow by more than %d MiB when they are expanded.", maxResolved>>20)}
	}
	return nil
}

// ciLogin is the user name that is used with job tokens.
const ciLogin = "gitlab-ci-token"

func tagsJSON(tags []string) string {
	quoted := make([]string, len(tags))
	for i, tag := range tags {
		quoted[i] = strconv.Quote(tag)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// prepareSources sets the refspecs and the depth for the runner's git fetch.
func (a *Assignment) prepareSources() {
	a.Depth = a.Project.Settings.CIDefaultGitDepth
	for _, v := range a.Variables {
		if n, err := strconv.ParseInt(v.Value, 10, 64); v.Key == "GIT_DEPTH" && err == nil && n >= 0 {
			a.Depth = n
		}
	}
	j, p := a.Job, a.Pipeline
	branch, tag := "*", "*"
	a.Refspecs = []string{fmt.Sprintf("+%s:refs/pipelines/%d", p.SHA, p.ID)}
	if a.Depth > 0 && j.Tag {
		tag, branch = j.Ref, ""
	}
	if a.Depth > 0 && !j.Tag {
		branch, tag = j.Ref, ""
	}
	if a.Depth > 0 && p.facts.Request != nil { // only the commit is known to exist
		branch, tag = "", ""
	}
	if branch != "" {
		a.Refspecs = append(a.Refspecs, fmt.Sprintf("+refs/heads/%s:refs/remotes/origin/%s", branch, branch))
	}
	if tag != "" {
		a.Refspecs = append(a.Refspecs, fmt.Sprintf("+refs/tags/%s:refs/tags/%s", tag, tag))
	}
}

// prepareCache resolves the cache keys, including those computed from files. It
// separates the caches of protected refs if the project is configured so. Every
// key then gets a suffix, because a key without one could name a cache of the
// other kind: unprotect moves a cache of a protected ref to the others.
func (s *Service) prepareCache(ctx context.Context, a *Assignment) error {
	for _, c := range a.Job.Options.Cache {
		key, err := s.cacheKey(ctx, a, c)
		if err != nil {
			return fmt.Errorf("cache key: %w", err)
		}
		suffix := ""
		if a.Project.Settings.CISeparatedCaches {
			suffix = "-non_protected"
			if a.Job.Protected && !c.Unprotect {
				suffix = "-protected"
			}
		}
		use := CacheUse{Cache: c, Key: key + suffix}
		for _, fallback := range c.FallbackKeys {
			use.FallbackKeys = append(use.FallbackKeys, fallback+suffix)
		}
		a.Cache = append(a.Cache, use)
	}
	return nil
}

func (s *Service) cacheKey(ctx context.Context, a *Assignment, c config.Cache) (string, error) {
	if len(c.KeyFiles) == 0 {
		if c.Key == "" {
			return "default", nil
		}
		return c.Key, nil
	}
	of := s.fileContents
	if c.KeyCommits {
		of = s.fileChanges
	}
	ids, err := of(ctx, a, c.KeyFiles)
	if err != nil {
		return "", err
	}
	key := "default"
	if len(ids) > 0 {
		sum := sha1.Sum([]byte(strings.Join(ids, "-")))
		key = hex.EncodeToString(sum[:])
	}
	if c.KeyPrefix != "" {
		key = c.KeyPrefix + "-" + key
	}
	return key, nil
}

// fileContents returns the IDs of the files that match patterns, in the order of the
// patterns and paths.
func (s *Service) fileContents(ctx context.Context, a *Assignment, patterns []string) ([]string, error) {
	src, err := s.Repos.Source(ctx, actor.System(), project.RefTo(a.Project.ID))
	if err != nil {
		return nil, err
	}
	var ids []string
	var files map[string]string // read once, if there is a wildcard
	for _, pattern := range patterns {
		glob := config.ParseGlob(pattern)
		if glob.Plain() {
			id, err := src.FileID(ctx, a.Pipeline.SHA, pattern)
			if err != nil {
				return nil, err
			}
			if id != "" {
				ids = append(ids, id)
			}
			continue
		}
		if files == nil {
			if files, err = src.FileIDs(ctx, a.Pipeline.SHA); err != nil {
				return nil, err
			}
		}
		for _, path := range glob.Select(slices.Sorted(maps.Keys(files))) {
			ids = append(ids, files[path])
		}
	}
	return ids, nil
}

// fileChanges returns the last commits that changed paths.
func (s *Service) fileChanges(ctx context.Context, a *Assignment, paths []string) ([]string, error) {
	var ids []string
	for _, path := range paths {
		filter := repo.CommitFilter{Ref: a.Pipeline.SHA, Path: path}
		_, page, err := s.Repos.Commits(ctx, actor.System(), project.RefTo(a.Project.ID), filter, db.Paging{Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(page.Items) > 0 {
			ids = append(ids, string(page.Items[0].ID))
		}
	}
	return ids, nil
}
