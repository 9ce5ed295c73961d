package ci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"svc/internal/actor"
	"svc/internal/ci/config"
	"svc/internal/ci/variable"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/outbound"
	"svc/internal/project"
	"svc/internal/repo"
)

// pipelineDraft is a pipeline that is being created.
type pipelineDraft struct {
	by        actor.Actor
	src       *repo.Source
	pipeline  *Pipeline // filled in step by step
	commit    *git.Commit
	variables []variable.Given
	inputs    map[string]any
	payload   string // see NewPipeline
	skip      bool   // skip the jobs (ci.skip, or the commit message of a merge request)
	// content is the configuration of a child pipeline, and parent its trigger
	// job: the configuration can include artifacts of the parent pipeline.
	content []byte
	parent  *Job
	origin  *string
	// outsider excludes the variables of the project, because the caller may not see them.
	outsider bool
}

// defaultConfigPath is the default path of the CI/CD configuration.
const defaultConfigPath = ".gitlab-ci.yml"

// errNoConfig means that the commit has no CI/CD configuration.
var errNoConfig = errors.New("no CI configuration")

// configSource returns the source of the CI/CD configuration of a pipeline;
// errNoConfig if there is none.
func (s *Service) configSource(ctx context.Context, m *pipelineDraft) (config.Source, error) {
	files := &projectFiles{service: s, by: m.by, known: map[string]*repo.Source{m.src.Project.FullPath: m.src}}
	src := config.Source{Inputs: m.inputs, Templates: s.templates(), Input: config.Input{
		At:     config.Place{Project: m.src.Project.FullPath, Commit: m.pipeline.SHA},
		Files:  files,
		Source: string(m.pipeline.Source),
		Ref:    m.pipeline.Ref,
		Tag:    m.pipeline.Tag,

		MergeRequest: m.pipeline.facts.Request != nil,
	}}
	src.Host, src.Component = s.host(), files.Component
	public := &projectFiles{service: s, known: map[string]*repo.Source{}} // by an anonymous user
	src.PublicFiles, src.PublicComponent = public, public.Component
	set, err := s.Settings.Current(ctx)
	if err != nil {
		return src, err
	}
	if set.RemoteIncludes {
		src.Remote = outbound.New(set.AllowLocalRequests).Get
	}
	if m.content != nil {
		src.Content = m.content
		if m.parent != nil {
			src.Artifact = s.parentArtifacts(m.parent)
		}
		return src, nil
	}
	path := m.src.Project.Settings.CIConfigPath
	if path == "" {
		for _, name := range []string{"." + s.Site.Name + "-ci.yml", defaultConfigPath} {
			_, err := m.src.Read(ctx, m.pipeline.SHA, name, 0)
			if err == nil {
				src.Path, m.pipeline.facts.ConfigPath = name, name
				return src, nil
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return src, err
			}
		}
		return src, errNoConfig
	}
	m.pipeline.facts.ConfigPath = path
	file, place, elsewhere := strings.Cut(path, "@")
	switch {
	case strings.HasPrefix(path, "http://"), strings.HasPrefix(path, "https://"):
		src.Content = fmt.Appendf(nil, `{"include":[{"remote":%q}]}`, path)
		return src, nil
	case elsewhere:
		in, ref, _ := strings.Cut(place, ":")
		src.Content = fmt.Appendf(nil, `{"include":[{"project":%q,"file":%q}]}`, in, file)
		if ref != "" {
			src.Content = fmt.Appendf(nil, `{"include":[{"project":%q,"file":%q,"ref":%q}]}`, in, file, ref)
		}
		return src, nil
	}
	src.Path = strings.TrimPrefix(path, "/")
	_, err = m.src.Read(ctx, m.pipeline.SHA, src.Path, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return src, errNoConfig
	}
	return src, err
}

// input adds the variables and the function for changed paths to the source.
func (s *Service) input(ctx context.Context, m *pipelineDraft, src *config.Source) error {
	sc, err := s.newVariableContext(ctx, m.src.Project, m.pipeline, m.commit)
	if err != nil {
		return err
	}
	if m.by.ID > 0 {
		if sc.user, err = s.person(ctx, m.by.ID); err != nil {
			return err
		}
	}
	src.Input.Predefined = sc.predefined()
	given := variable.Config(m.variables)
	src.Input.Variables = given
	if !m.outsider {
		all, err := s.Variables.Available(ctx, m.src.Project, m.pipeline.Protected)
		if err != nil {
			return err
		}
		of := func(environment string) ([]config.Variable, error) {
			kept, err := all.For(environment)
			return append(kept, given...), err
		}
		if src.Input.Variables, err = of(""); err != nil {
			return err
		}
		if all.Scoped() {
			src.Input.Scoped = of
		}
	}
	src.Input.Changed = func(ctx context.Context, compareTo string) ([]string, bool, error) {
		if compareTo != "" {
			ref, err := m.src.Find(ctx, compareTo)
			from := string(ref.Commit)
			if errs.Is(err, errs.KindNotFound) {
				c, err := m.src.Commit(ctx, compareTo)
				if errs.Is(err, errs.KindNotFound) {
					return nil, false, fs.ErrNotExist
				}
				if err != nil {
					return nil, false, err
				}
				from = string(c.ID)
			} else if err != nil {
				return nil, false, err
			}
			return m.src.Changed(ctx, from, m.pipeline.SHA, false)
		}
		if r := m.pipeline.facts.Request; r != nil {
			return m.src.Changed(ctx, r.Base, m.pipeline.SHA, true)
		}
		if m.pipeline.Tag || m.pipeline.BeforeSHA == string(git.ZeroOID) {
			return nil, false, nil
		}
		return m.src.Changed(ctx, m.pipeline.BeforeSHA, m.pipeline.SHA, true)
	}
	return nil
}

// plan compiles the configuration of a pipeline. Errors: errNoConfig,
// config.Errors, config.NoPipeline and errs.Busy.
func (s *Service) plan(ctx context.Context, m *pipelineDraft) (*config.Config, *config.Plan, error) {
	src, err := s.configSource(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	if err := s.input(ctx, m, &src); err != nil {
		return nil, nil, err
	}
	var c *config.Config
	var p *config.Plan
	err = s.compile(ctx, func(ctx context.Context) error {
		var err error
		if c, err = config.Load(ctx, src); err != nil {
			return err
		}
		p, err = c.Plan(ctx, src.Input)
		return err
	})
	return c, p, err
}

// projectFiles reads the files of a configuration from repositories, with the
// permissions of the user who starts the pipeline.
type projectFiles struct {
	service *Service
	by      actor.Actor
	known   map[string]*repo.Source
}

// Read implements config.Files.
func (f *projectFiles) Read(ctx context.Context, at config.Place, path string, limit int) ([]byte, error) {
	src, err := f.source(ctx, at.Project)
	if err != nil {
		return nil, err
	}
	return src.Read(ctx, at.Commit, path, limit)
}

// Paths implements config.Files.
func (f *projectFiles) Paths(ctx context.Context, at config.Place) ([]string, error) {
	src, err := f.source(ctx, at.Project)
	if err != nil {
		return nil, err
	}
	return src.Paths(ctx, at.Commit, "")
}

// Find implements config.Files.
func (f *projectFiles) Find(ctx context.Context, in, ref string) (config.Place, error) {
	src, err := f.source(ctx, in)
	if err != nil {
		return config.Place{}, err
	}
	at := config.Place{Project: src.Project.FullPath}
	if ref == "" {
		ref = "HEAD"
	}
	found, err := src.Find(ctx, ref)
	if err == nil {
		at.Commit = string(found.Commit)
		return at, nil
	}
	if !errs.Is(err, errs.KindNotFound) {
		return at, err
	}
	c, err := src.Commit(ctx, ref)
	if errs.Is(err, errs.KindNotFound) {
		return at, nil
	}
	if err != nil {
		return at, err
	}
	at.Commit = string(c.ID)
	return at, nil
}

func (f *projectFiles) source(ctx context.Context, in string) (*repo.Source, error) {
	if src := f.known[in]; src != nil {
		return src, nil
	}
	src, err := f.service.Repos.Source(ctx, f.by, project.Ref(in))
	switch errs.KindOf(err) {
	case errs.KindNotFound, errs.KindForbidden, errs.KindUnauthorized, errs.KindInvalid:
		return nil, fmt.Errorf("project %s: %w", in, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	f.known[in], f.known[src.Project.FullPath] = src, src
	return src, nil
}
