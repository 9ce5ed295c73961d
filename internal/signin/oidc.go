package signin

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"svc/internal/secret"
	"svc/internal/setting"
)

const (
	requestTime = 10 * time.Second // of one request to a provider
	maxResponse = 1 << 20
	maxGroups   = 10_000 // of one user
	maxUID      = 255
)

// client talks to one OpenID provider.
type client struct {
	Provider
	OpenID
	settings *setting.Service
	now      func() time.Time
	roots    *x509.CertPool
	redirect string
	document *document[endpoints]
}

// endpoints is a provider that was discovered.
type endpoints struct {
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	config   oauth2.Config
	userinfo bool
	issParam bool
}

// context returns a context whose requests go to the provider.
func (c *client) context(ctx context.Context) (context.Context, error) {
	out, err := outboundClient(ctx, c.settings, c.Issuer, c.roots)
	if err != nil {
		return nil, err
	}
	return oidc.ClientContext(ctx, out), nil
}

// discover returns the endpoints of the discovery document.
func (c *client) discover(ctx context.Context) (*endpoints, error) {
	return c.document.get(ctx, rediscover, c.read)
}

func (c *client) read(ctx context.Context) (*endpoints, error) {
	ctx, err := c.context(ctx) // the key set keeps it for later requests
	if err != nil {
		return nil, err
	}
	p, err := oidc.NewProvider(ctx, c.Issuer)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	var more struct {
		Methods  []string `json:"token_endpoint_auth_methods_supported"`
		UserInfo string   `json:"userinfo_endpoint"`
		IssParam bool     `json:"authorization_response_iss_parameter_supported"`
	}
	if err := p.Claims(&more); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	endpoint := p.Endpoint()
	if endpoint.AuthURL == "" || endpoint.TokenURL == "" {
		return nil, errors.New("discovery: the document has no endpoints")
	}
	for _, address := range []string{endpoint.AuthURL, endpoint.TokenURL} {
		if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
			u.Scheme == "http" && strings.HasPrefix(c.Issuer, "https:") {
			return nil, errors.New("discovery: an endpoint is not an address that can be used")
		}
	}
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if len(more.Methods) > 0 && !slices.Contains(more.Methods, "client_secret_basic") && slices.Contains(more.Methods, "client_secret_post") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &endpoints{
		provider: p, verifier: p.VerifierContext(ctx, &oidc.Config{ClientID: c.ClientID, Now: c.now}),
		config:   oauth2.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, Endpoint: endpoint, RedirectURL: c.redirect, Scopes: c.Scopes},
		userinfo: more.UserInfo != "", issParam: more.IssParam,
	}, nil
}

func (c *client) options() *Provider { return &c.Provider }

// start returns the URL at the provider to which the browser is redirected.
func (c *client) start(ctx context.Context, a *attempt) (string, error) {
	at, err := c.discover(ctx)
	if err != nil {
		return "", err
	}
	a.Nonce, a.Verifier = secret.Token(""), oauth2.GenerateVerifier()
	return at.config.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// person is a user as a provider describes them.
type person struct {
	uid           string
	username      string
	name          string
	email         string
	emailVerified bool
	groups        []string
}

// exchange gets the tokens for a code and checks the ID token.
func (c *client) exchange(ctx context.Context, a *attempt, query url.Values) (*person, error) {
	at, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	// RFC 9207: the answer of one provider must not be taken for that of another.
	if iss := query.Get("iss"); iss != "" && iss != c.Issuer || iss == "" && at.issParam {
		return nil, errors.New("the answer comes from another issuer")
	}
	if fault := query.Get("error"); fault != "" {
		return nil, fmt.Errorf("the provider answers with the error %q", clip(fault))
	}
	if query.Get("code") == "" {
		return nil, errors.New("the answer has no code")
	}
	if ctx, err = c.context(ctx); err != nil {
		return nil, err
	}
	token, err := at.config.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return nil, fmt.Errorf("token request: %s", tokenFault(err))
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok || raw == "" {
		return nil, errors.New("the token response has no ID token")
	}
	id, err := at.verifier.Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("ID token: %w", err)
	}
	if id.Nonce == "" || !secret.Equal(id.Nonce, a.Nonce) {
		return nil, errors.New("ID token: the nonce does not match")
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(token.AccessToken); err != nil {
			return nil, fmt.Errorf("ID token: %w", err)
		}
	}
	claims := make(map[string]any)
	if err := id.Claims(&claims); err != nil {
		return nil, fmt.Errorf("ID token: %w", err)
	}
	if azp, _ := claims["azp"].(string); azp != c.ClientID && (azp != "" || len(id.Audience) > 1) {
		return nil, errors.New("ID token: it was issued to another party")
	}
	if at.userinfo {
		if err := c.addUserInfo(ctx, at, token, id.Subject, claims); err != nil {
			return nil, err
		}
	}
	return c.person(id.Subject, claims)
}

// addUserInfo adds the claims that the ID token does not have.
func (c *client) addUserInfo(ctx context.Context, at *endpoints, token *oauth2.Token, subject string, claims map[string]any) error {
	info, err := at.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return fmt.Errorf("userinfo: %w", err)
	}
	if info.Subject != subject {
		return errors.New("userinfo: it is about another user")
	}
	more := make(map[string]any)
	if err := info.Claims(&more); err != nil {
		return fmt.Errorf("userinfo: %w", err)
	}
	// The address and whether it is verified belong together.
	if _, ok := claims["email"]; ok {
		delete(more, "email_verified")
	}
	for name, value := range more {
		if _, ok := claims[name]; !ok {
			claims[name] = value
		}
	}
	return nil
}

// person reads the claims.
func (c *client) person(subject string, claims map[string]any) (*person, error) {
	text := func(name string) string {
		value, _ := claims[name].(string)
		return strings.TrimSpace(value)
	}
	p := &person{uid: subject, username: text(c.UsernameClaim), name: text("name"), email: text("email")}
	if p.uid == "" || len(p.uid) > maxUID || strings.ContainsRune(p.uid, 0) {
		return nil, errors.New("the subject is empty or too long")
	}
	switch verified := claims["email_verified"].(type) {
	case nil:
		p.emailVerified = c.TrustEmail
	case bool:
		p.emailVerified = verified
	case string:
		p.emailVerified = verified == "true"
	}
	if len(c.RequiredGroups)+len(c.AdminGroups)+len(c.AuditorGroups)+len(c.GroupSync) == 0 {
		return p, nil
	}
	if claims[c.GroupsClaim] == nil {
		// OpenID Connect Core, 5.6.2: the claim is elsewhere. Entra ID does this if the
		// user is in too many groups.
		if elsewhere, _ := claims["_claim_names"].(map[string]any); elsewhere[c.GroupsClaim] != nil {
			return nil, errMoreGroups
		}
	}
	var err error
	if p.groups, err = groupList(claims[c.GroupsClaim]); err != nil {
		return nil, fmt.Errorf("claim %s: %w", c.GroupsClaim, err)
	}
	return p, nil
}

// errMoreGroups means that the groups of a user are not in the answer. Taken for no
// groups, it would remove rights and memberships.
var errMoreGroups = errors.New("the provider does not list all groups: the user is in too many")

// groupList reads the groups claim: a list of texts, one text, or nothing. Another
// type is refused: taken for no groups, it would remove memberships.
func groupList(claim any) ([]string, error) {
	switch value := claim.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{value}, nil
	case []any:
		if len(value) > maxGroups {
			return nil, fmt.Errorf("it has more than %d groups", maxGroups)
		}
		var groups []string
		for _, item := range value {
			text, ok := item.(string)
			if !ok {
				return nil, errors.New("it is not a list of texts")
			}
			groups = append(groups, text)
		}
		return groups, nil
	}
	return nil, errors.New("it is not a list of texts")
}

// tokenFault is the error of a token request without the response, which may
// have tokens in it.
func tokenFault(err error) string {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		return fmt.Sprintf("the provider answers with status %d and the error %q", refused.Response.StatusCode, clip(refused.ErrorCode))
	}
	var address *url.Error
	if errors.As(err, &address) {
		return address.Err.Error()
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return "the response is not JSON"
	}
	return clip(err.Error())
}

// clip bounds text of others that goes into the log.
func clip(text string) string {
	if len(text) > 200 {
		text = text[:200]
	}
	return strings.ToValidUTF8(text, "?")
}
