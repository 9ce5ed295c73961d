package ci

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/ci/deployment"
	"svc/internal/ci/jobtoken"
	"svc/internal/errs"
)

// idTokenEarly is subtracted from the start of validity, for clocks that are
// slow.
const idTokenEarly = 5 * time.Second

// idTokens returns the ID tokens of a job as variables. They are valid for as
// long as the job may run.
func (s *Service) idTokens(ctx context.Context, a *Assignment) ([]JobVariable, error) {
	wanted := a.Job.Options.IDTokens
	if len(wanted) == 0 {
		return nil, nil
	}
	claims, err := s.idClaims(ctx, a)
	if err != nil {
		return nil, err
	}
	texts := a.expander(ctx)
	var out []JobVariable
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		var audience []string
		for _, text := range wanted[name].Audience {
			audience = append(audience, texts.Existing(text))
		}
		if err := texts.failed(); err != nil {
			return nil, err
		}
		token, err := s.JobTokens.IDToken(ctx, claims, audience)
		if err != nil {
			return nil, err
		}
		out = append(out, JobVariable{Key: name, Value: token, Masked: true, Raw: true})
	}
	return out, nil
}

func (s *Service) idClaims(ctx context.Context, a *Assignment) (*jobtoken.IDClaims, error) {
	j, p, now := a.Job, a.Project, s.Now()
	kind, at := "branch", "refs/heads/"+j.Ref
	if j.Tag {
		kind, at = "tag", "refs/tags/"+j.Ref
	}
	if a.Pipeline.facts.Request != nil {
		at = j.Ref
	}
	c := &jobtoken.IDClaims{
		Issuer: s.Site.URL, Subject: fmt.Sprintf("project_path:%s:ref_type:%s:ref:%s", p.FullPath, kind, j.Ref),
		IssuedAt: now.Unix(), NotBefore: now.Add(-idTokenEarly).Unix(), Expires: now.Add(j.Timeout).Unix(),
		NamespaceID: number(p.NamespaceID), NamespacePath: p.Namespace.FullPath, ProjectID: number(p.ID), ProjectPath: p.FullPath,
		ProjectVisibility: string(p.Visibility), JobProjectID: number(p.ID), JobProjectPath: p.FullPath,
		JobNamespaceID: number(p.NamespaceID), JobNamespacePath: p.Namespace.FullPath,
		PipelineID: number(a.Pipeline.ID), PipelineSource: string(a.Pipeline.Source), JobID: number(j.ID),
		Ref: j.Ref, RefType: kind, RefPath: at, RefProtected: strconv.FormatBool(j.Protected), SHA: a.Pipeline.SHA,
		RunnerID: a.Runner.ID, RunnerEnvironment: "self-hosted",
	}
	// A configuration in another project or at a URL has no path in this
	// repository.
	if path := a.Pipeline.facts.ConfigPath; path != "" && !strings.ContainsAny(path, "@:") {
		_, host, _ := strings.Cut(s.Site.URL, "://")
		c.ConfigRefURI, c.ConfigSHA = fmt.Sprintf("%s/%s//%s@%s", host, p.FullPath, path, at), a.Pipeline.SHA
	}
	if e := j.Options.Environment; e != nil {
		c.Environment, c.EnvironmentAction = e.Name, e.Action
		tier := cmp.Or(e.Tier, deployment.DefaultTier(e.Name))
		if j.EnvironmentID != nil {
			env, err := deployment.FindEnvironment(ctx, s.DB, j.ProjectID, *j.EnvironmentID)
			if err != nil && !errs.Is(err, errs.KindNotFound) {
				return nil, err
			}
			if err == nil {
				c.DeploymentTier, tier = env.Tier, env.Tier
			}
		}
		protections, err := s.Deployments.Protections(ctx, p, e.Name, tier)
		if err != nil {
			return nil, err
		}
		c.EnvironmentProtected = strconv.FormatBool(len(protections) > 0)
	}
	if j.UserID == nil {
		return c, nil
	}
	return c, s.JobTokens.ClaimUser(ctx, c, *j.UserID, p.ID)
}

func number(id int64) string { return strconv.FormatInt(id, 10) }
