package ci

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/ci/deployment"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// idClaims are the claims of the ID token of a job:
// https://docs.gitlab.com/ci/secrets/id_token_authentication/#token-payload
type idClaims struct {
	ID        string `json:"jti"`
	Issuer    string `json:"iss"`
	Subject   string `json:"sub"`
	Audience  any    `json:"aud"` // a text, or several
	IssuedAt  int64  `json:"iat"`
	NotBefore int64  `json:"nbf"`
	Expires   int64  `json:"exp"`

	NamespaceID       string   `json:"namespace_id"`
	NamespacePath     string   `json:"namespace_path"`
	ProjectID         string   `json:"project_id"`
	ProjectPath       string   `json:"project_path"`
	ProjectVisibility string   `json:"project_visibility"`
	UserID            string   `json:"user_id"`
	UserLogin         string   `json:"user_login"`
	UserEmail         string   `json:"user_email"`
	UserAccessLevel   *string  `json:"user_access_level"`
	GroupsDirect      []string `json:"groups_direct,omitempty"`
	JobProjectID      string   `json:"job_project_id"`
	JobProjectPath    string   `json:"job_project_path"`
	JobNamespaceID    string   `json:"job_namespace_id"`
	JobNamespacePath  string   `json:"job_namespace_path"`
	PipelineID        string   `json:"pipeline_id"`
	PipelineSource    string   `json:"pipeline_source"`
	JobID             string   `json:"job_id"`
	Ref               string   `json:"ref"`
	RefType           string   `json:"ref_type"`
	RefPath           string   `json:"ref_path"`
	RefProtected      string   `json:"ref_protected"`
	SHA               string   `json:"sha"`
	ConfigRefURI      string   `json:"ci_config_ref_uri,omitempty"`
	ConfigSHA         string   `json:"ci_config_sha,omitempty"`
	RunnerID          int64    `json:"runner_id"`
	RunnerEnvironment string   `json:"runner_environment"`

	Environment          string `json:"environment,omitempty"`
	EnvironmentProtected string `json:"environment_protected,omitempty"`
	DeploymentTier       string `json:"deployment_tier,omitempty"`
	EnvironmentAction    string `json:"environment_action,omitempty"`
}

const (
	// idTokenEarly is for others whose clock is late.
	idTokenEarly = 5 * time.Second
	// maxGroupsListed is up to how many groups of a user a token names them.
	maxGroupsListed = 200
)

// idTokens makes the tokens that a job asked for, as variables. Each says who
// the job is, and is good for as long as the job may run.
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
		claims.ID, claims.Audience = secret.Token(""), audience
		if len(audience) == 1 {
			claims.Audience = audience[0]
		}
		token, err := s.Signing.Sign(ctx, claims)
		if err != nil {
			return nil, err
		}
		out = append(out, JobVariable{Key: name, Value: token, Masked: true, Raw: true})
	}
	return out, nil
}

func (s *Service) idClaims(ctx context.Context, a *Assignment) (*idClaims, error) {
	j, p, now := a.Job, a.Project, s.Now()
	kind, at := "branch", "refs/heads/"+j.Ref
	if j.Tag {
		kind, at = "tag", "refs/tags/"+j.Ref
	}
	if a.Pipeline.facts.Request != nil {
		at = j.Ref
	}
	c := &idClaims{
		Issuer: s.Site.URL, Subject: fmt.Sprintf("project_path:%s:ref_type:%s:ref:%s", p.FullPath, kind, j.Ref),
		IssuedAt: now.Unix(), NotBefore: now.Add(-idTokenEarly).Unix(), Expires: now.Add(j.Timeout).Unix(),
		NamespaceID: number(p.NamespaceID), NamespacePath: p.Namespace.FullPath, ProjectID: number(p.ID), ProjectPath: p.FullPath,
		ProjectVisibility: string(p.Visibility), JobProjectID: number(p.ID), JobProjectPath: p.FullPath,
		JobNamespaceID: number(p.NamespaceID), JobNamespacePath: p.Namespace.FullPath,
		PipelineID: number(a.Pipeline.ID), PipelineSource: string(a.Pipeline.Source), JobID: number(j.ID),
		Ref: j.Ref, RefType: kind, RefPath: at, RefProtected: strconv.FormatBool(j.Protected), SHA: a.Pipeline.SHA,
		RunnerID: a.Runner.ID, RunnerEnvironment: "self-hosted",
	}
	// A file that lies elsewhere has no place in this repository.
	if path := a.Pipeline.facts.ConfigPath; path != "" && !strings.ContainsAny(path, "@:") {
		_, host, _ := strings.Cut(s.Site.URL, "://")
		c.ConfigRefURI, c.ConfigSHA = fmt.Sprintf("%s/%s//%s@%s", host, p.FullPath, path, at), a.Pipeline.SHA
	}
	if e := j.Options.Environment; e != nil {
		c.Environment, c.EnvironmentProtected, c.EnvironmentAction = e.Name, "false", e.Action
		if j.EnvironmentID != nil {
			env, err := deployment.FindEnvironment(ctx, s.DB, j.ProjectID, *j.EnvironmentID)
			if err != nil && !errs.Is(err, errs.KindNotFound) {
				return nil, err
			}
			if err == nil {
				c.DeploymentTier = env.Tier
			}
		}
	}
	return c, s.claimUser(ctx, c, a)
}

// claimUser adds the claims about the user of the job.
func (s *Service) claimUser(ctx context.Context, c *idClaims, a *Assignment) error {
	if a.Job.UserID == nil {
		return nil
	}
	u, err := s.person(ctx, *a.Job.UserID)
	if u == nil || err != nil {
		return err
	}
	c.UserID, c.UserLogin, c.UserEmail = number(u.ID), u.Username, u.Email
	by, err := s.Users.As(ctx, u.ID)
	if errs.IsRefusal(err) { // the account may not be used
		return nil
	}
	if err != nil {
		return err
	}
	seen, err := s.Projects.Require(ctx, by, project.RefTo(a.Project.ID), project.NoAccess)
	if err == nil && seen.Access.Level() > project.NoAccess {
		level := strings.ReplaceAll(strings.ToLower(seen.Access.Level().String()), " ", "_")
		c.UserAccessLevel = &level
	}
	if err != nil && !errs.IsRefusal(err) {
		return err
	}
	groups, err := directGroups(ctx, s.DB, u.ID, s.Now(), maxGroupsListed+1)
	if len(groups) <= maxGroupsListed {
		c.GroupsDirect = groups
	}
	return err
}

func directGroups(ctx context.Context, q db.Q, userID int64, now time.Time, most int) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `
		SELECT n.full_path FROM members m JOIN namespaces n ON n.id = m.namespace_id
		WHERE m.user_id = ? AND m.requested_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > ?) ORDER BY n.full_path LIMIT ?`,
		userID, now.UTC().Format(time.DateOnly), most)
}

func number(id int64) string { return strconv.FormatInt(id, 10) }
