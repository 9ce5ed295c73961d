package api

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/bind"
	"svc/internal/ci"
	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/secret"
	"svc/internal/setting"
	"svc/internal/user"
)

// access says who may come in to an endpoint. What they may do there is for
// the feature to say.
type access struct {
	scopes []string // a token needs one of them
	nobody bool     // also without signing in
	job    bool     // also with the token of a CI job
	runner bool     // for runners and SDKs: what they bring is not a user's, and the feature looks at it
}

// The usual ways in.
var (
	readAPI  = access{scopes: []string{"api", "read_api"}}
	writeAPI = access{scopes: []string{"api"}}
	readUser = access{scopes: []string{"api", "read_api", "read_user"}}
	// anyToken is for what a token may do to itself, whatever its scopes.
	anyToken = access{}
	// runnerCall is for what runners ask, by a token of their own or of a job.
	runnerCall = access{runner: true, nobody: true}
	// sdkCall is for what programs send by a client key of a project.
	sdkCall = access{runner: true, nobody: true}
)

// orNobody opens an endpoint to those who have not signed in.
func (a access) orNobody() access {
	a.nobody = true
	return a
}

// orJob opens an endpoint to CI jobs.
func (a access) orJob() access {
	a.job = true
	return a
}

// admit finds out who asks and whether this endpoint is open to him.
func (a *API) admit(c *call, e *endpoint) error {
	ip := remoteIP(c.r)
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
		if e.access.nobody {
			return nil
		}
		return errs.Unauthorized("")
	}
	if by.Job != nil {
		return nil // the endpoint is open to jobs
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

// authenticate finds out who asks. A credential that does not open anything
// is an error even where nobody needs to sign in.
func (a *API) authenticate(c *call, e *endpoint, ip string) (actor.Actor, error) {
	found := credentialOf(c.r)
	if found.kind == credentialToken && strings.HasPrefix(found.token, a.Site.Name+"cbt-") {
		found.kind = credentialJob
	}
	switch found.kind {
	case credentialToken:
		return a.Users.Authenticate(c, found.token, ip)
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

// credential is what a request brought to say who asks.
type credential struct {
	kind  credentialKind
	token string
}

type credentialKind int

const (
	credentialNone credentialKind = iota
	credentialToken
	credentialJob
	credentialUnknown // a form that we do not know
)

// credentialOf reads a request's credentials, in the order in which they win:
// headers before the query.
func credentialOf(r *http.Request) credential {
	// The names are written as net/http keeps them, which saves it the work.
	if token := r.Header.Get("Private-Token"); token != "" {
		return credential{credentialToken, token}
	}
	if token := r.Header.Get("Job-Token"); token != "" {
		return credential{credentialJob, token}
	}
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, rest, _ := strings.Cut(header, " ")
		if token := strings.TrimSpace(rest); strings.EqualFold(scheme, "Bearer") && token != "" {
			return credential{credentialToken, token}
		}
		// A token may stand in for the password.
		if _, password, ok := r.BasicAuth(); ok && password != "" {
			return credential{credentialToken, password}
		}
		return credential{kind: credentialUnknown}
	}
	for _, name := range []string{"private_token", "access_token"} {
		if token := queryValue(r.URL.RawQuery, name); token != "" {
			return credential{credentialToken, token}
		}
	}
	if token := queryValue(r.URL.RawQuery, "job_token"); token != "" {
		return credential{credentialJob, token}
	}
	return credential{}
}

// session reads the cookie of the web application. A cookie that is no longer
// good counts as none. A write needs the CSRF token as well: without it the
// cookie may have been sent by a page of somebody else.
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
	if session.User.MustChangePassword && session.Behind == nil { // what holds for the pages holds here
		return actor.Actor{}, errs.Forbidden("Your password has to be changed first: open any page in the browser")
	}
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead && !secret.EqualMasked(c.r.Header.Get("X-CSRF-Token"), session.CSRF) {
		return actor.Actor{}, errs.Unauthorized("")
	}
	return by, a.Users.Visited(c, session)
}

// reader authenticates the caller of a request again while its answer goes on,
// by the same credential. It neither prolongs a session nor counts failures. It
// knows tokens of users and sessions: what an endpoint that streams is open to.
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
		if err != nil || first.Behind == nil {
			return by, err
		}
		return a.Users.Become(ctx, by, user.Ref(strconv.FormatInt(first.ID, 10)))
	}
}

func (a *API) sessionCookie() string { return "_" + a.Site.Name + "_session" }

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
	if c.actor.TokenID == 0 && c.actor.LentID == 0 {
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

// throttle holds the caller to the rates of the settings, if there are any.
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
	return hold(c, a.Limits.Allow, key, rate)
}

// hold holds a key to a rate: by taking a request of it, or by looking whether
// one is left.
func hold(c *call, ask func(string, limit.Rate) limit.Decision, key string, rate limit.Rate) error {
	decision := ask(key, rate)
	decision.Headers(c.w.Header())
	if !decision.OK {
		return errThrottled
	}
	return nil
}

// queryValue finds one parameter without parsing the whole query.
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

// remoteIP is the address that the request came from. The server has put the
// client's there when it came through a proxy that is trusted.
func remoteIP(r *http.Request) string {
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return at.Addr().Unmap().String()
	}
	return r.RemoteAddr
}
