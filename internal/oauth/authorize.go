package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
)

const (
	// maxState is the maximum length of the state parameter.
	maxState = 4096
	maxNonce = 512
	// freshly is the maximum age of a sign-in that counts as current.
	freshly = 2 * time.Minute
)

// Request is a valid authorization request of a known client.
type Request struct {
	Application *Application
	Scopes      []string
	RedirectURI string
	State       string
	Challenge   string
	Nonce       string
	Prompt      []string
	MaxAge      time.Duration // since the sign-in; negative: any
}

// Begin parses the parameters of an authorization request. It does not
// authenticate the user. Errors are *Error; those without a Redirect are shown to
// the user, because the request cannot be trusted.
func (s *Service) Begin(ctx context.Context, values url.Values) (*Request, error) {
	if name := repeated(values); name != "" {
		return nil, refuse(InvalidRequest, "The request has the parameter "+name+" more than once.")
	}
	app, err := findByUID(ctx, s.DB, values.Get("client_id"))
	if errs.Is(err, errs.KindNotFound) || err == nil && app.Disabled {
		return nil, refuse(InvalidClient, "There is no application with this client_id.")
	}
	if err != nil {
		return nil, fmt.Errorf("begin authorization: %w", err)
	}
	r := &Request{
		Application: app, RedirectURI: values.Get("redirect_uri"), State: values.Get("state"), Challenge: values.Get("code_challenge"),
		Nonce: values.Get("nonce"), Scopes: scopeList(values.Get("scope")), Prompt: strings.Fields(values.Get("prompt")), MaxAge: -1,
	}
	if !allowedRedirect(app.RedirectURIs, r.RedirectURI) {
		return nil, refuse(InvalidRequest, "The redirect URI is not one of those that the application has registered.")
	}
	if refused := r.check(values); refused != nil {
		return nil, r.back(refused)
	}
	return r, nil
}

// repeated returns a parameter that occurs more than once, which different parsers
// would interpret differently.
func repeated(values url.Values) string {
	for name, list := range values {
		if len(list) > 1 {
			return name
		}
	}
	return ""
}

// check validates the parameters whose errors can be sent to the client.
func (r *Request) check(values url.Values) *Error {
	method := values.Get("code_challenge_method")
	mode := values.Get("response_mode")
	switch {
	case values.Get("response_type") == "":
		return missing("response_type")
	case values.Get("response_type") != "code":
		return refuse(UnsupportedResponse, "The response type must be code.")
	case values.Has("request") || values.Has("request_uri"):
		return refuse(RequestNotSupported, "Request objects are not supported.")
	case mode != "" && mode != "query":
		return refuse(InvalidRequest, "The response mode must be query.")
	case len(r.Scopes) == 0:
		return missing("scope")
	case !within(r.Scopes, r.Application.Scopes):
		return refuse(InvalidScope, textInvalidScope)
	case len(r.State) > maxState || len(r.Nonce) > maxNonce:
		return refuse(InvalidRequest, "The state or nonce is too long.")
	case r.Challenge == "" && method != "":
		return missing("code_challenge")
	case r.Challenge == "" && !r.Application.Confidential:
		return refuse(InvalidRequest, "A public application must send a code_challenge.")
	case r.Challenge != "" && method != "S256":
		return refuse(InvalidRequest, "The code challenge method must be S256.")
	case r.Challenge != "" && !isChallenge(r.Challenge):
		return refuse(InvalidRequest, "The code challenge must be the SHA-256 of the verifier in URL-safe base64 without padding.")
	case slices.Contains(r.Prompt, "none") && len(r.Prompt) > 1:
		return refuse(InvalidRequest, "The prompt none cannot be combined with others.")
	}
	if age := values.Get("max_age"); age != "" {
		seconds, err := strconv.ParseInt(age, 10, 32)
		if err != nil || seconds < 0 {
			return refuse(InvalidRequest, "max_age must be a number of seconds.")
		}
		r.MaxAge = time.Duration(seconds) * time.Second
	}
	return nil
}

// back returns an error with the redirect that reports it to the client.
func (r *Request) back(e *Error) *Error {
	values := url.Values{"error": {e.Code}, "error_description": {e.Description}}
	return &Error{Code: e.Code, Description: e.Description, Redirect: r.answer(values), Silent: r.Unattended()}
}

func (r *Request) answer(values url.Values) string {
	if r.State != "" {
		values.Set("state", r.State)
	}
	return withQuery(r.RedirectURI, values)
}

// Silent reports whether the client does not allow a page to be shown.
func (r *Request) Silent() bool { return slices.Contains(r.Prompt, "none") }

// Unattended reports whether the browser is redirected to the client without a page
// although no one is signed in. Only applications of the instance can request this:
// anyone can register an application with any redirect URI, which would otherwise
// make the instance an open redirector.
func (r *Request) Unattended() bool { return r.Silent() && r.Application.OwnerID == nil }

// NoLogin returns the error if no one is signed in and no page may be shown.
func (r *Request) NoLogin() *Error {
	return r.back(refuse(LoginRequired, "Not signed in."))
}

// Deny returns the redirect for a user who denies the authorization.
func (r *Request) Deny() string {
	return r.back(refuse(AccessDenied, "The user denied the request.")).Redirect
}

// Ask reports whether the user must be asked for consent. That is not the case for a
// trusted application, or if the user has granted the same scopes to a confidential
// application before. It returns an *Error with a Redirect if the sign-in is too old
// for the client or the client does not allow a page to be shown. Unauthorized if no
// one is signed in.
func (s *Service) Ask(ctx context.Context, by actor.Actor, signedInAt time.Time, r *Request) (bool, error) {
	if err := by.RequireSession(); err != nil {
		return false, err
	}
	age := s.Now().Sub(signedInAt)
	if r.MaxAge >= 0 && age > r.MaxAge+freshly || slices.Contains(r.Prompt, "login") && age > freshly {
		return false, r.back(refuse(LoginRequired, "The user must sign in again."))
	}
	ask := slices.Contains(r.Prompt, "consent")
	if !ask && !r.Application.Trusted {
		allowed, err := s.allowedBefore(ctx, by.ID, r)
		if err != nil {
			return false, fmt.Errorf("ask for consent: %w", err)
		}
		ask = !allowed
	}
	if ask && r.Silent() {
		return false, r.back(refuse(ConsentRequired, "The user must be asked."))
	}
	return ask, nil
}

// allowedBefore reports whether the user has granted all requested scopes to the
// application and has not revoked them. Consent is always required for
// public clients, because another program may use their ID.
func (s *Service) allowedBefore(ctx context.Context, userID int64, r *Request) (bool, error) {
	if !r.Application.Confidential {
		return false, nil
	}
	grants, err := grantedScopes(ctx, s.DB, userID, r.Application.ID)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(grants, func(scopes string) bool { return within(r.Scopes, scopeList(scopes)) }), nil
}

// Approve grants the request of a user who signed in at signedInAt. It returns the
// redirect URL with the code. Unauthorized; Forbidden.
func (s *Service) Approve(ctx context.Context, by actor.Actor, signedInAt time.Time, r *Request) (string, error) {
	if err := by.RequireSession(); err != nil {
		return "", err
	}
	now := s.Now()
	code := secret.Token("")
	g := &grant{
		applicationID: &r.Application.ID, userID: by.ID, scopes: r.Scopes, redirectURI: r.RedirectURI, pkce: r.Challenge != "",
		nonce: r.Nonce, authenticatedAt: signedInAt, createdAt: now, usedAt: now,
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		// The application may have been changed while the consent page was shown.
		if err := tx.Lock(ctx, "oauth_applications", r.Application.ID); err != nil {
			return err
		}
		app, err := findApplication(ctx, tx, r.Application.ID)
		if errs.Is(err, errs.KindNotFound) || err == nil && app.Disabled {
			return refuse(InvalidClient, "There is no application with this client_id.")
		}
		if err != nil {
			return err
		}
		if !allowedRedirect(app.RedirectURIs, r.RedirectURI) || !within(r.Scopes, app.Scopes) {
			return refuse(InvalidRequest, "The application has been changed. Please begin again.")
		}
		if err := insertGrant(ctx, tx, g); err != nil {
			return err
		}
		if err := insertCode(ctx, tx, secret.Digest(code), g.id, r.Challenge, now.Add(codeLife)); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, now, audit.Event{
			Type: "user_authorized_oauth_application", Entity: audit.Entity{Type: audit.UserEntity, ID: by.ID, Path: by.Username},
			Target:  audit.Target{Type: "OauthApplication", ID: app.ID, Details: app.Name},
			Details: audit.Details{Message: "User authorized an OAuth application: " + strings.Join(r.Scopes, " ")},
		})
	})
	if err != nil {
		if refused, ok := errors.AsType[*Error](err); ok {
			return "", refused
		}
		return "", fmt.Errorf("approve authorization: %w", err)
	}
	return r.answer(url.Values{"code": {code}}), nil
}
