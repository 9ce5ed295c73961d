package deployment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/ci/config"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Agent is a cluster agent that jobs may use.
type Agent struct {
	ID        int64
	ProjectID int64
	Name      string
	CreatedBy *int64
	CreatedAt time.Time

	Project *project.Project // the project with its configuration
}

// agentName is the pattern of names: DNS labels, since names are parts of URLs.
var agentName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Agents lists the agents of a project, for Developers and above.
func (s *Service) Agents(ctx context.Context, by actor.Actor, ref project.Ref, pg db.Paging) (db.Page[*Agent], error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Developer)
	if err != nil {
		return db.Page[*Agent]{}, err
	}
	page, err := listAgents(ctx, s.DB, p.ID, pg)
	for _, a := range page.Items {
		a.Project = p
	}
	if err != nil {
		return page, fmt.Errorf("list agents: %w", err)
	}
	return page, nil
}

// Agent returns an agent of a project, for Developers and above; NotFound.
func (s *Service) Agent(ctx context.Context, by actor.Actor, ref project.Ref, id int64) (*Agent, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Developer)
	if err != nil {
		return nil, err
	}
	return findAgent(ctx, s.DB, p, id)
}

// CreateAgent registers an agent, for Maintainers and above. Invalid if the name is
// invalid or taken.
func (s *Service) CreateAgent(ctx context.Context, by actor.Actor, ref project.Ref, name string) (*Agent, error) {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.SettingsPart, project.Maintainer)
	if err != nil {
		return nil, err
	}
	if !agentName.MatchString(name) {
		return nil, errs.Invalid("Name can contain only lowercase letters, digits, and '-', but cannot start or end with '-'")
	}
	a := &Agent{ProjectID: p.ID, Name: name, CreatedAt: s.Now(), Project: p}
	if by.ID > 0 {
		a.CreatedBy = &by.ID
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertAgent(ctx, tx, a); err != nil {
			return err
		}
		return s.recordAgent(ctx, tx, by, a, "cluster_agent_created", audit.Details{Add: "cluster_agent"})
	})
	if err != nil {
		return nil, fmt.Errorf("create agent: %w", err)
	}
	return a, nil
}

// DeleteAgent deletes an agent, for Maintainers and above; NotFound.
func (s *Service) DeleteAgent(ctx context.Context, by actor.Actor, ref project.Ref, id int64) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.SettingsPart, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		a, err := findAgent(ctx, tx, p, id)
		if err != nil {
			return err
		}
		if err := deleteAgent(ctx, tx, a.ID); err != nil {
			return err
		}
		return s.recordAgent(ctx, tx, by, a, "cluster_agent_deleted", audit.Details{Remove: "cluster_agent"})
	})
	if err != nil {
		return fmt.Errorf("delete agent %d: %w", id, err)
	}
	return nil
}

func (s *Service) recordAgent(ctx context.Context, tx *db.Tx, by actor.Actor, a *Agent, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: a.Project.Entity(), Target: audit.Target{Type: "Clusters::Agent", ID: a.ID, Details: a.Name}, Details: d,
	})
}

// AgentsFor returns the agents that jobs of a project for an environment may
// use: those of the project, and those whose configuration names the project or
// a group above it. groups are the IDs of the groups above the project, the
// nearest first.
func (s *Service) AgentsFor(ctx context.Context, p *project.Project, environment string) (agents []*Agent, groups []int64, err error) {
	above, err := groupsAbove(ctx, s.DB, p.NamespaceID)
	if err != nil {
		return nil, nil, err
	}
	var paths []string
	for _, g := range above {
		groups, paths = append(groups, g.id), append(paths, g.path)
	}
	candidates, err := agentsBelowRoot(ctx, s.DB, p.NamespaceID)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range candidates {
		ok, err := s.agentAllows(ctx, a, p, environment, paths)
		if err != nil {
			return nil, nil, fmt.Errorf("agent %d: %w", a.ID, err)
		}
		if ok {
			agents = append(agents, a)
		}
	}
	return agents, groups, nil
}

// agentAccess is the part of an agent's configuration that grants access to it.
type agentAccess struct {
	CIAccess struct {
		Projects []agentGrant `yaml:"projects"`
		Groups   []agentGrant `yaml:"groups"`
	} `yaml:"ci_access"`
}

type agentGrant struct {
	ID           string   `yaml:"id"`
	Environments []string `yaml:"environments"`
}

func (s *Service) agentAllows(ctx context.Context, a *Agent, p *project.Project, environment string, groups []string) (bool, error) {
	var err error
	if a.Project, err = s.Projects.Require(ctx, actor.System(), project.RefTo(a.ProjectID), project.NoAccess); err != nil {
		return false, err
	}
	if a.ProjectID == p.ID {
		return true, nil
	}
	access, err := s.agentConfig(ctx, a)
	if err != nil {
		return false, err
	}
	for _, g := range access.CIAccess.Projects {
		if strings.EqualFold(g.ID, p.FullPath) && g.covers(environment) {
			return true, nil
		}
	}
	for _, g := range access.CIAccess.Groups {
		named := slices.ContainsFunc(groups, func(path string) bool { return strings.EqualFold(path, g.ID) })
		if named && g.covers(environment) {
			return true, nil
		}
	}
	return false, nil
}

// covers reports whether a grant includes an environment. A grant without
// environments includes all jobs.
func (g *agentGrant) covers(environment string) bool {
	return len(g.Environments) == 0 || slices.ContainsFunc(g.Environments, func(pattern string) bool { return config.ScopeCovers(pattern, environment) })
}

const maxAgentConfig = 1 << 20

// agentConfig reads the configuration of an agent. If it is missing or invalid, it
// grants nothing.
func (s *Service) agentConfig(ctx context.Context, a *Agent) (agentAccess, error) {
	var access agentAccess
	for _, place := range []string{".svc", ".gitlab"} {
		f, err := s.Repos.FileBlob(ctx, actor.System(), project.RefTo(a.ProjectID), place+"/agents/"+a.Name+"/config.yaml", "")
		if errs.Is(err, errs.KindNotFound) {
			continue
		}
		if err != nil || f.Size > maxAgentConfig {
			return access, err
		}
		content, err := f.Open(ctx)
		if err != nil {
			return access, err
		}
		text, err := io.ReadAll(content)
		if err := errors.Join(err, content.Close()); err != nil {
			return access, err
		}
		if err := yaml.Unmarshal(text, &access); err != nil {
			return agentAccess{}, nil
		}
		return access, nil
	}
	return access, nil
}
