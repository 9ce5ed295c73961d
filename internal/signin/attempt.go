package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/secret"
	"svc/internal/user"
)

// AttemptLife is how long a user may take at the provider.
const AttemptLife = 15 * time.Minute

// attempt is a sign-in that was started. The browser keeps it, sealed, in a cookie:
// an answer of the provider counts only in the browser that asked for it.
type attempt struct {
	Provider string    `json:"provider"`
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`    // of OpenID providers
	Verifier string    `json:"verifier"` // of PKCE
	ReturnTo string    `json:"return_to"`
	LinkUser int64     `json:"link_user"` // the identity is linked to this user
	Session  int64     `json:"session"`   // in this session
	Until    time.Time `json:"until"`
}

// sealPlace ties a sealed attempt to its provider.
func sealPlace(provider string) string { return "sign_in/attempt/" + provider }

// StartRequest is the input of Start.
type StartRequest struct {
	Provider string
	ReturnTo string // a local path
	// By and Session are set to link the identity to a user who has signed in.
	By      actor.Actor
	Session int64
}

// Start begins a sign-in and returns the URL at the provider and the value
// of the cookie, which Finish needs. NotFound if there is no such provider,
// Unavailable if it does not answer.
func (s *Service) Start(ctx context.Context, r StartRequest) (address, cookie string, err error) {
	c, ok := s.remotes[r.Provider]
	if !ok {
		return "", "", errs.NotFound("")
	}
	a := attempt{Provider: r.Provider, State: secret.Token(""), ReturnTo: r.ReturnTo, Until: s.Now().Add(AttemptLife)}
	if !r.By.Anonymous() {
		if err := r.By.RequireSession(); err != nil {
			return "", "", err
		}
		a.LinkUser, a.Session = r.By.ID, r.Session
	}
	address, err = c.start(ctx, &a)
	if err != nil {
		s.Log.WarnContext(ctx, "identity provider is not available", "provider", r.Provider, "error", err)
		return "", "", errs.Unavailable("The identity provider does not respond. Try again later.")
	}
	text, _ := json.Marshal(a) // texts, numbers and times always encode
	return address, s.Keys.Seal(text, sealPlace(r.Provider)), nil
}

// Answer is what the browser brings back from the provider.
type Answer struct {
	Provider string
	Query    url.Values
	Cookie   string
	Session  *user.Session // of the browser; nil if it has none
	By       actor.Actor
	IP       string
	Agent    string
}

// Result is a finished sign-in.
type Result struct {
	Session  *user.Session // nil: an identity was linked
	ReturnTo string
	Label    string
}

// Refused is a sign-in that failed. The reason is logged; the browser gets the
// same text for all of them.
type Refused struct {
	Link    bool // an identity was to be linked
	Pending bool // the account waits for approval
	reason  error
}

// Error returns the reason, for logs.
func (r *Refused) Error() string { return r.reason.Error() }

// Unwrap returns the reason.
func (r *Refused) Unwrap() error { return r.reason }

// Finish takes the answer of a provider: it opens a session, or links the
// identity to the user who asked for it. Refused if the answer is not accepted;
// user.TwoFactorRequired if a code is needed; NotFound if there is no such provider.
func (s *Service) Finish(ctx context.Context, in Answer) (*Result, error) {
	c, ok := s.remotes[in.Provider]
	if !ok {
		return nil, errs.NotFound("")
	}
	a, err := s.open(ctx, in)
	if err != nil {
		return nil, s.refuse(ctx, in.Provider, in.IP, a != nil && a.LinkUser != 0, err)
	}
	p, err := c.exchange(ctx, a, in.Query)
	if err != nil {
		return nil, s.refuse(ctx, in.Provider, in.IP, a != nil && a.LinkUser != 0, err)
	}
	if a.LinkUser != 0 {
		if err := s.link(ctx, c.options(), in.By, p); err != nil {
			return nil, s.refuse(ctx, in.Provider, in.IP, a != nil && a.LinkUser != 0, err)
		}
		return &Result{ReturnTo: a.ReturnTo, Label: c.options().Label}, nil
	}
	session, err := s.enter(ctx, c.options(), p, user.SignInRequest{IP: in.IP, UserAgent: in.Agent})
	if half, ok := errors.AsType[user.TwoFactorRequired](err); ok {
		return &Result{ReturnTo: a.ReturnTo, Label: c.options().Label}, half
	}
	if err != nil {
		return nil, s.refuse(ctx, in.Provider, in.IP, a != nil && a.LinkUser != 0, err)
	}
	return &Result{Session: session, ReturnTo: a.ReturnTo, Label: c.options().Label}, nil
}

// open checks that the answer belongs to an attempt of this browser, and uses it
// up.
func (s *Service) open(ctx context.Context, in Answer) (*attempt, error) {
	text, err := s.Keys.Open(in.Cookie, sealPlace(in.Provider))
	if in.Cookie == "" || err != nil {
		return nil, errors.New("the browser has no attempt to sign in")
	}
	var a attempt
	if err := json.Unmarshal(text, &a); err != nil || a.Provider != in.Provider {
		return nil, errors.New("the attempt belongs to another provider")
	}
	if !s.Now().Before(a.Until) {
		return &a, errors.New("the attempt has expired")
	}
	if in.Query.Has(refusedParam) {
		return &a, errors.New("the answer was refused")
	}
	if state := in.Query.Get("state"); state == "" || !secret.Equal(state, a.State) {
		return &a, errors.New("the state does not match")
	}
	if len(in.Query["state"]) > 1 || len(in.Query["code"]) > 1 {
		return &a, errors.New("a parameter was given twice")
	}
	if a.LinkUser != 0 && (in.Session == nil || in.Session.ID != a.Session || !in.By.Is(a.LinkUser)) {
		return &a, errors.New("the session that asked to link an identity has ended")
	}
	fresh, err := saveUse(ctx, s.DB, secret.Digest(a.State), a.Until)
	if err != nil {
		return &a, err
	}
	if !fresh {
		return &a, errors.New("the state was used before")
	}
	return &a, nil
}

// refuse logs why a sign-in or a link failed, and returns the error for the browser.
// An outage is not a refusal and is returned as it is.
func (s *Service) refuse(ctx context.Context, provider, ip string, link bool, reason error) error {
	if errs.Is(reason, errs.KindUnavailable) {
		return fmt.Errorf("sign in with %s: %w", provider, reason)
	}
	s.Log.WarnContext(ctx, "sign-in refused", "provider", provider, "ip", ip, "reason", reason.Error())
	var p pending
	return &Refused{Link: link, Pending: errors.As(reason, &p), reason: reason}
}
