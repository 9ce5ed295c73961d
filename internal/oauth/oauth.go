// Package oauth is an OAuth 2.0 authorization server (RFC 6749, 7009, 7636, 8252)
// and OpenID Connect provider: applications, authorizations and tokens.
package oauth

import (
	"slices"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/signing"
	"svc/internal/user"
)

const (
	// codeLife is the lifetime of an authorization code.
	codeLife = 10 * time.Minute
	// TokenLife is the lifetime of an access token.
	TokenLife = 2 * time.Hour
	// idTokenLife is the lifetime of an id_token.
	idTokenLife = 2 * time.Minute
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Signing  *signing.Service
	Users    *user.Service
	Projects *project.Service
	Now      func() time.Time

	URL         string // of the instance: the issuer of tokens
	ServiceName string
	TokenPrefix string // prefix of secrets and tokens; ServiceName if empty
}

// Service manages OAuth applications and their tokens.
type Service struct{ Deps }

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{d}
	s.Queue.Every("oauth_purge", time.Hour, s.Purge)
	return s
}

// Error is an error of the OAuth protocol. Redirect is where the browser is sent
// with it; empty if the client or its URI cannot be trusted, or there is no
// browser.
type Error struct {
	Code        string
	Description string
	Redirect    string
	// Silent is true if the browser may be redirected although no one is signed in:
	// see Request.Unattended.
	Silent bool
}

// Error implements error.
func (e *Error) Error() string { return e.Code + ": " + e.Description }

// The error codes of RFC 6749 and OpenID Connect.
const (
	InvalidRequest       = "invalid_request"
	InvalidClient        = "invalid_client"
	InvalidGrant         = "invalid_grant"
	InvalidScope         = "invalid_scope"
	UnauthorizedClient   = "unauthorized_client"
	AccessDenied         = "access_denied"
	UnsupportedGrant     = "unsupported_grant_type"
	UnsupportedResponse  = "unsupported_response_type"
	RequestNotSupported  = "request_not_supported"
	LoginRequired        = "login_required"
	ConsentRequired      = "consent_required"
	textInvalidClient    = "Client authentication failed: the client is unknown, or its credentials are wrong."
	textInvalidGrant     = "The provided authorization grant is invalid, expired or revoked, does not match the redirect URI of the authorization request, or was issued to another client."
	textInvalidPassword  = "The login or password is wrong, or the account cannot be used for this grant."
	textInvalidScope     = "The requested scope is unknown, or the application does not have it."
	textMissingParameter = "The request lacks the parameter "
)

func refuse(code, description string) *Error { return &Error{Code: code, Description: description} }

func missing(name string) *Error { return refuse(InvalidRequest, textMissingParameter+name+".") }

// Scope is an OAuth scope, with its description.
type Scope struct {
	Name  string
	Title string // for users
	Text  string
}

// Scopes returns all scopes.
func Scopes() []Scope {
	return []Scope{
		{"api", "Access the API on your behalf", "Read and write access to your groups, projects, repositories, pipelines and settings."},
		{"read_api", "Read the API", "Read access to everything that you can access."},
		{"read_user", "Read your personal information", "Read access to your profile and the profiles of other users."},
		{"create_runner", "Create runners", "Add runners to your projects and groups."},
		{"manage_runner", "Manage runners", "Change and remove runners of your projects and groups."},
		{"k8s_proxy", "Access clusters", "Call Kubernetes through the agents that you can use."},
		{"read_repository", "Read repositories", "Clone and fetch your projects over HTTP."},
		{"write_repository", "Write repositories", "Push to your projects over HTTP."},
		{"sudo", "Act as any user", "Perform API actions as any user of the instance, if you are an administrator."},
		{"admin_mode", "Administer the instance", "Perform API actions as an administrator, where Admin Mode is required."},
		{"openid", "Sign in with your account", "Read access to your identity and your group memberships."},
		{"profile", "Read your public profile", "Your name, username and avatar."},
		{"email", "Read your email address", "The primary email address of your account."},
	}
}

func known(scope string) bool {
	return slices.ContainsFunc(Scopes(), func(s Scope) bool { return s.Name == scope })
}

// scopeList parses scopes that are separated by spaces and removes duplicates.
func scopeList(text string) []string {
	var list []string
	for _, scope := range strings.Fields(text) {
		if !slices.Contains(list, scope) {
			list = append(list, scope)
		}
	}
	return list
}

// within reports whether all scopes are allowed.
func within(scopes, allowed []string) bool {
	for _, scope := range scopes {
		if !slices.Contains(allowed, scope) {
			return false
		}
	}
	return true
}
