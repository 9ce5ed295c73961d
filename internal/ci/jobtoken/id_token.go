package jobtoken

import (
	"context"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// IDClaims are the claims of the ID token of a job:
// https://docs.gitlab.com/ci/secrets/id_token_authentication/#token-payload
type IDClaims struct {
	ID        string `json:"jti"`
	Issuer    string `json:"iss"`
	Subject   string `json:"sub"`
	Audience  any    `json:"aud"` // a text, or several
	IssuedAt  int64  `json:"iat"`
	NotBefore int64  `json:"nbf"`
	Expires   int64  `json:"exp"`

	NamespaceID       string         `json:"namespace_id"`
	NamespacePath     string         `json:"namespace_path"`
	ProjectID         string         `json:"project_id"`
	ProjectPath       string         `json:"project_path"`
	ProjectVisibility string         `json:"project_visibility"`
	UserID            string         `json:"user_id"`
	UserLogin         string         `json:"user_login"`
	UserEmail         string         `json:"user_email"`
	UserAccessLevel   *string        `json:"user_access_level"`
	GroupsDirect      []string       `json:"groups_direct,omitempty"`
	UserIdentities    []UserIdentity `json:"user_identities,omitempty"` // if the user has chosen that
	JobProjectID      string         `json:"job_project_id"`
	JobProjectPath    string         `json:"job_project_path"`
	JobNamespaceID    string         `json:"job_namespace_id"`
	JobNamespacePath  string         `json:"job_namespace_path"`
	PipelineID        string         `json:"pipeline_id"`
	PipelineSource    string         `json:"pipeline_source"`
	JobID             string         `json:"job_id"`
	Ref               string         `json:"ref"`
	RefType           string         `json:"ref_type"`
	RefPath           string         `json:"ref_path"`
	RefProtected      string         `json:"ref_protected"`
	SHA               string         `json:"sha"`
	ConfigRefURI      string         `json:"ci_config_ref_uri,omitempty"`
	ConfigSHA         string         `json:"ci_config_sha,omitempty"`
	RunnerID          int64          `json:"runner_id"`
	RunnerEnvironment string         `json:"runner_environment"`

	Environment          string `json:"environment,omitempty"`
	EnvironmentProtected string `json:"environment_protected,omitempty"`
	DeploymentTier       string `json:"deployment_tier,omitempty"`
	EnvironmentAction    string `json:"environment_action,omitempty"`
}

// UserIdentity is an external identity of the user of a job.
type UserIdentity struct {
	Provider  string `json:"provider"`
	ExternUID string `json:"extern_uid"`
}

// maxGroupsListed is the number of groups of a user up to which a token lists them.
const maxGroupsListed = 200

// IDToken returns a signed ID token with the claims for an audience.
func (s *Service) IDToken(ctx context.Context, c *IDClaims, audience []string) (string, error) {
	c.ID, c.Audience = secret.Token(""), audience
	if len(audience) == 1 {
		c.Audience = audience[0]
	}
	return s.Signing.Sign(ctx, c)
}

// ClaimUser adds the claims about the user of a job.
func (s *Service) ClaimUser(ctx context.Context, c *IDClaims, userID, projectID int64) error {
	u, err := s.Users.Get(ctx, actor.System(), userID, false)
	if errs.Is(err, errs.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	c.UserID, c.UserLogin, c.UserEmail = strconv.FormatInt(u.ID, 10), u.Username, u.Email
	if u.Appearance.PassIdentities {
		for _, i := range u.Identities {
			c.UserIdentities = append(c.UserIdentities, UserIdentity{i.Provider, i.ExternUID})
		}
	}
	by, err := s.Users.As(ctx, u.ID)
	if errs.IsRefusal(err) { // the account may not be used
		return nil
	}
	if err != nil {
		return err
	}
	seen, err := s.Projects.Require(ctx, by, project.RefTo(projectID), project.NoAccess)
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
