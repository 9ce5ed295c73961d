package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/bind"
	"svc/internal/ci"
	"svc/internal/errs"
	"svc/internal/httpreq"
	"svc/internal/limit"
	"svc/internal/secret"
	"svc/internal/setting"
	"svc/internal/user"
)

// access is the set of callers that may use an endpoint. Permissions on the
// resource are checked by the feature.
type access struct {
	scopes    []string // a token needs one of them
	anonymous bool     // anonymous callers too
	job       bool     // CI/CD jobs too, by job token
	deploy    bool     // deploy tokens too: the feature checks their scopes
	runner    bool     // runners and SDKs only: the feature checks their credential
}

// The usual access rules.
var (
	readAPI  = access{scopes: []string{"api", "read_api"}}
	writeAPI = access{scopes: []string{"api"}}
	readUser = access{scopes: []string{"api", "read_api", "read_user"}}
	// anyToken is for operations of a token on itself, with any scopes.
	anyToken = access{}
	// runnerCall is for requests of runners, with a runner token or a job token.
	runnerCall = access{runner: true, anonymous: true}
	// sdkCall is for events of error tracking SDKs, with a client key.
	sdkCall = access{runner: true, anonymous: true}
)

// orAnonymous also allows anonymous callers.
func (a access) orAnonymous() access {
	a.anonymous = true
	return a
}

// orJob also allows CI/CD jobs.
func (a access) orJob() access {
	a.job = true
	return a
}

// orDeploy also allows deploy tokens.
func (a access) orDeploy() access {
	a.deploy = true
	return a
}

// admit authenticates the caller and checks the access rule of the endpoint.
func (a *API) admit(c *call, e *endpoint) error {
	ip := httpreq.IP(c.r)
	if e.access.runner {
		c.actor = actor.Actor{IP: ip}
		return nil
	}
	by, err := a.authenticate(c, e, ip)
	if refused, ok := errors.AsType[limit.Refused](err); ok {
		refused.Headers(c.w.Header())
	}
	if err != nil {
		return err
	}
	c.actor = by
	c.actor.IP = ip
	limit.Identify(c, by.Account())
	if err := a.throttle(c); err != nil {
		return err
	}
	if by.Anonymous() {
		if e.access.anonymous || by.Deploy != nil { // authenticate has checked e.access.deploy
			return nil
		}
		return errs.Unauthorized("")
	}
	if by.Job != nil {
		return nil // authenticate has checked e.access.job
	}
	if err := a.sudo(c); err != nil {
		return err
	}
	if !allowed(by, e.access.scopes) {
		return scopeError(e.access.scopes)
	}
	return nil
}

func allowed(by actor.Actor, scopes []string) bool {
	return len(scopes) == 0 || slices.ContainsFunc(scopes, by.Has)
}

// authenticate returns the caller. An invalid credential is an error even on
// endpoints that allow anonymous callers.
func (a *API) authenticate(c *call, e *endpoint, ip string) (actor.Actor, error) {
	found := credentialOf(c.r)
	if found.kind == credentialToken && a.CI.IsJobToken(found.token) {
		found.kind = credentialJob
	}
	switch found.kind {
	case credentialToken:
		if e.access.deploy {
			return a.tokenOrDeploy(c, found, ip)
		}
		return a.Users.Authenticate(c, found.token, ip)
	case credentialDeploy:
		if e.access.deploy {
			return a.deployToken(c, found, ip)
		}
		return actor.Actor{}, errs.Unauthorized("")
	case credentialJob:
		if e.access.job {
			return a.CI.JobActor(c, found.token, ip)
		}
		return actor.Actor{}, errs.Unauthorized("")
	case credentialUnknown:
		return actor.Actor{}, errs.Unauthorized("")
	}
	return a.session(c, ip)
}

// tokenOrDeploy returns the caller of an endpoint that also allows deploy tokens.
func (a *API) tokenOrDeploy(c *call, found credential, ip string) (actor.Actor, error) {
	by, err := a.Users.TryToken(c, found.token, ip)
	if refused, ok := errors.AsType[*errs.Error](err); ok && refused.Kind == errs.KindUnauthorized && refused.Text == "" {
		return a.deployToken(c, found, ip) // no user has this token
	}
	if errs.Is(err, errs.KindUnauthorized) {
		return actor.Actor{}, a.Users.FailedToken(c, ip, err)
	}
	return by, err
}

// deployToken returns the caller of a deploy token. With basic authentication the
// username must be that of the token.
func (a *API) deployToken(c *call, found credential, ip string) (actor.Actor, error) {
	var by actor.Actor
	var err error
	if found.login == "" {
		by, err = a.Projects.AuthenticateDeployTokenAlone(c, found.token)
	} else {
		by, err = a.Projects.AuthenticateDeployToken(c, found.login, found.token)
	}
	if errs.Is(err, errs.KindUnauthorized) {
		return actor.Actor{}, a.Users.FailedToken(c, ip, err)
	}
	return by, err
}

// credential is the credential of a request.
type credential struct {
	kind  credentialKind
	token string
	login string // of basic authentication
}

type credentialKind int

const (
	credentialNone credentialKind = iota
	credentialToken
	credentialJob
	credentialDeploy
	credentialUnknown // an unsupported scheme
)

// credentialOf returns the credential of a request. Headers take precedence over
// the query.
func credentialOf(r *http.Request) credential {
	// The names are in canonical form, so that Get does not convert them.
	if token := r.Header.Get("Private-Token"); token != "" {
		return credential{kind: credentialToken, token: token}
	}
	if token := r.Header.Get("Job-Token"); token != "" {
		return credential{kind: credentialJob, token: token}
	}
	if token := r.Header.Get("Deploy-Token"); token != "" {
		return credential{kind: credentialDeploy, token: token}
	}
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, rest, _ := strings.Cut(header, " ")
		if token := strings.TrimSpace(rest); strings.EqualFold(scheme, "Bearer") && token != "" {
			return credential{kind: credentialToken, token: token}
		}
		// A token is also accepted as the password of basic authentication.
		if login, password, ok := r.BasicAuth(); ok && password != "" {
			return credential{kind: credentialToken, token: password, login: login}
		}
		return credential{kind: credentialUnknown}
	}
	for _, name := range []string{"private_token", "access_token"} {
		if token := queryValue(r.URL.RawQuery, name); token != "" {
			return credential{kind: credentialToken, token: token}
		}
	}
	if token := queryValue(r.URL.RawQuery, "job_token"); token != "" {
		return credential{kind: credentialJob, token: token}
	}
	return credential{}
}

// session authenticates by the session cookie of the web interface. Without a
// cookie, or with an expired one, the caller is anonymous. A write also requires
// the CSRF token, because the request may come from another site.
func (a *API) session(c *call, ip string) (actor.Actor, error) {
	cookie, err := c.r.Cookie(a.sessionCookie())
	if err != nil || cookie.Value == "" {
		return actor.Actor{}, nil
	}
	by, session, err := a.Users.Session(c, cookie.Value, ip)
	if errs.Is(err, errs.KindUnauthorized) {
		return actor.Actor{}, nil
	}
	if err != nil {
		return actor.Actor{}, err
	}
	if session.User.MustChangePassword && session.Impersonator == nil { // the web interface requires it too
		return actor.Actor{}, errs.Forbidden("Your password has to be changed first: open any page in the browser")
	}
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead && !secret.EqualMasked(c.r.Header.Get("X-CSRF-Token"), session.CSRF) {
		return actor.Actor{}, errs.Unauthorized("")
	}
	return by, a.Users.Visited(c, session)
}

// reader returns a function that authenticates the caller again with the same
// credential while a response is streamed. The function neither extends a session
// nor counts failures. It supports user tokens and sessions, the only credentials
// that streaming endpoints allow.
func (a *API) reader(c *call) ci.Reader {
	first, found := c.actor, credentialOf(c.r)
	return func(ctx context.Context) (actor.Actor, error) {
		if first.Anonymous() {
			return first, nil
		}
		if found.kind != credentialToken {
			cookie, err := c.r.Cookie(a.sessionCookie())
			if err != nil {
				return actor.Actor{}, errs.Unauthorized("")
			}
			return a.Users.RecheckSession(ctx, cookie.Value, first.IP)
		}
		by, err := a.Users.TryToken(ctx, found.token, first.IP)
		if err != nil || first.Impersonator == nil {
			return by, err
		}
		return a.Users.Become(ctx, by, user.Ref(strconv.FormatInt(first.ID, 10)))
	}
}

func (a *API) sessionCookie() string { return "_" + a.Site.Cookies + "_session" }

// sudo lets an administrator act as another user.
func (a *API) sudo(c *call) error {
	target := c.r.Header.Get("Sudo")
	if target == "" {
		target = queryValue(c.r.URL.RawQuery, "sudo")
	}
	if target == "" {
		return nil
	}
	if !c.actor.Admin {
		return errs.Forbidden("Must be admin to use sudo")
	}
	if c.actor.TokenID == 0 && c.actor.OAuthTokenID == 0 {
		return errs.Forbidden("Must be authenticated using an OAuth or personal access token to use sudo")
	}
	if !c.actor.Has("sudo") {
		return scopeError{"sudo"}
	}
	if !bind.Clean(target) {
		return bind.Invalid("sudo is invalid")
	}
	by, err := a.Users.Become(c, c.actor, user.Ref(target))
	if err != nil {
		return err
	}
	c.actor = by
	return nil
}

// throttle enforces the rate limits of the application settings.
func (a *API) throttle(c *call) error {
	settings, err := a.Settings.Current(c)
	if err != nil {
		return err
	}
	if c.actor.Anonymous() {
		if rate := settings.UnauthenticatedAPI; rate.Enabled {
			return a.takeToken(c, "ip:"+limit.AddressKey(c.actor.IP), rateOf("throttle_unauthenticated_api", rate))
		}
		return nil
	}
	if rate := settings.AuthenticatedAPI; rate.Enabled {
		return a.takeToken(c, "user:"+c.actor.Username, rateOf("throttle_authenticated_api", rate))
	}
	return nil
}

func rateOf(name string, t setting.Throttle) limit.Rate {
	return limit.Rate{Name: name, Requests: t.Requests, Period: time.Duration(t.Seconds) * time.Second}
}

func perMinute(name string, requests int) limit.Rate {
	return limit.Rate{Name: name, Requests: requests, Period: time.Minute}
}

func (a *API) takeToken(c *call, key string, rate limit.Rate) error {
	return enforce(c, a.Limits.Allow, key, rate)
}

// enforce applies a rate limit to a key and writes the rate limit headers. ask
// either consumes a request or only checks whether one remains. enforce returns
// errThrottled if the limit is exceeded.
func enforce(c *call, ask func(string, limit.Rate) limit.Decision, key string, rate limit.Rate) error {
	decision := ask(key, rate)
	decision.Headers(c.w.Header())
	if !decision.OK {
		return errThrottled
	}
	return nil
}

// queryValue returns one query parameter without parsing the whole query.
func queryValue(query, name string) string {
	for query != "" {
		var part string
		part, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(part, "=")
		if key != name {
			continue
		}
		text, err := url.QueryUnescape(value)
		if err != nil {
			return value
		}
		return text
	}
	return ""
}
