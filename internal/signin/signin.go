// Package signin signs users in with identity providers that the operator
// configures: OpenID Connect, SAML and LDAP. It finds or creates the account of an identity
// and applies the groups of the provider.
package signin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/secret"
	"svc/internal/setting"
	"svc/internal/user"
)

// Provider is an identity provider.
type Provider struct {
	Name  string // in URLs and identities
	Label string // on pages

	OpenID *OpenID // one of these is set
	SAML   *SAML
	LDAP   *LDAP
	CAFile string // empty: the roots of the system

	AutoCreate      bool
	RequireApproval bool
	LinkByEmail     bool
	TrustEmail      bool
	TrustTwoFactor  bool

	RequiredGroups []string
	AdminGroups    []string
	AuditorGroups  []string
	GroupSync      []GroupSync
}

// OpenID is how to reach an OpenID provider, and what to read from its claims.
type OpenID struct {
	Issuer        string
	ClientID      string
	ClientSecret  string
	Scopes        []string
	UsernameClaim string
	GroupsClaim   string
}

// SAML is how to reach a SAML identity provider, and what to read from its
// assertions.
type SAML struct {
	// The provider: the address of its metadata, the metadata, or what is needed of
	// them. With metadata, IDPEntityID says which provider of several it is.
	MetadataURL     string
	Metadata        []byte
	IDPEntityID     string
	IDPSSOURL       string
	IDPCertificates []*x509.Certificate

	EntityID string           // of this instance; empty: the address of its metadata
	KeyPair  *tls.Certificate // signs requests and decrypts assertions; nil: neither

	NameIDFormat      string // that is requested; empty: as the provider likes
	IDAttribute       string // has the identity; empty: the name ID
	UsernameAttribute string
	NameAttribute     string
	EmailAttribute    string
	GroupsAttribute   string
}

// LDAP is how to reach an LDAP directory, and what to read from its entries.
type LDAP struct {
	URL      string
	StartTLS bool
	// BindDN is the account that searches; empty: anonymous.
	BindDN       string
	BindPassword string
	Base         string
	UserFilter   string

	UsernameAttribute string
	NameAttribute     string
	EmailAttribute    string

	// GroupsAttribute of a user has the DNs of their groups. If GroupBase is set,
	// the groups below it are searched with GroupFilter instead, and named by their
	// GroupAttribute.
	GroupsAttribute string
	GroupBase       string
	GroupFilter     string
	GroupAttribute  string
}

// GroupSync gives users with a value in their groups claim a role in a group.
type GroupSync struct {
	Claim string
	Group string // full path
	Level project.Level
}

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Keys     *secret.Keyring
	Settings *setting.Service
	Users    *user.Service
	Projects *project.Service
	Log      *slog.Logger
	Now      func() time.Time

	Providers []Provider
	URL       string // of this instance
}

// Service signs users in with identity providers.
type Service struct {
	Deps
	remotes     map[string]remote     // by name
	directories map[string]*directory // by name
}

// remote is a provider that the browser is sent to, and comes back from with an
// answer.
type remote interface {
	options() *Provider
	// start completes an attempt, and returns the URL at the provider.
	start(ctx context.Context, a *attempt) (string, error)
	// exchange verifies the answer to an attempt.
	exchange(ctx context.Context, a *attempt, query url.Values) (*person, error)
}

// New returns the service and registers its background jobs. The providers are
// not contacted: they may be away. It fails if a file that a provider names cannot be
// used.
func New(d Deps) (*Service, error) {
	s := &Service{Deps: d, remotes: make(map[string]remote), directories: make(map[string]*directory)}
	for _, p := range d.Providers {
		roots, err := readRoots(p.CAFile)
		if err != nil {
			return nil, fmt.Errorf("identity provider %s: %w", p.Name, err)
		}
		switch {
		case p.LDAP != nil:
			s.directories[p.Name] = newDirectory(p, roots)
			continue
		case p.SAML != nil:
			sp := newServiceProvider(d, p, roots)
			if err := sp.check(); err != nil {
				return nil, fmt.Errorf("identity provider %s: %w", p.Name, err)
			}
			s.remotes[p.Name] = sp
			continue
		}
		s.remotes[p.Name] = &client{
			Provider: p, OpenID: *p.OpenID, settings: d.Settings, now: d.Now, redirect: d.URL + CallbackPath(p.Name), roots: roots,
			document: newDocument[endpoints](d.Now),
		}
	}
	d.Queue.Every("sign_in_purge", time.Hour, s.purge)
	d.Queue.Every("sign_in_directories", time.Hour, s.SyncDirectories)
	return s, nil
}

// readRoots reads root certificates; nil without a file.
func readRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificates", file)
	}
	return roots, nil
}

// CallbackPath is where a provider sends the browser back to.
func CallbackPath(provider string) string { return "/users/auth/" + provider + "/callback" }

// names are the names of all providers.
func (s *Service) names() []string {
	var names []string
	for _, p := range s.Providers {
		names = append(names, p.Name)
	}
	return names
}

// Link is a provider as a user sees it.
type Link struct {
	Name, Label string
	ExternUID   string // empty: not linked
	Configured  bool
	Form        bool // it takes a username and a password, instead of a button
	Fixed       bool // only an administrator can unlink it
}

// Buttons lists the providers for the sign-in page.
func (s *Service) Buttons() []Link {
	var links []Link
	for _, p := range s.Providers {
		links = append(links, Link{Name: p.Name, Label: p.Label, Configured: true, Form: p.LDAP != nil})
	}
	return links
}

// Links lists the providers and whether the actor is linked to them, and the
// identities at providers that are no longer configured. Unauthorized.
func (s *Service) Links(ctx context.Context, by actor.Actor) ([]Link, error) {
	u, err := s.Users.Self(ctx, by)
	if err != nil {
		return nil, err
	}
	return s.linksOf(u), nil
}

// UserLinks is Links of another user, for an administrator. Forbidden; NotFound.
func (s *Service) UserLinks(ctx context.Context, by actor.Actor, userID int64) ([]Link, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	u, err := s.Users.Get(ctx, by, userID, false)
	if err != nil {
		return nil, err
	}
	return s.linksOf(u), nil
}

func (s *Service) linksOf(u *user.User) []Link {
	var links []Link
	linked := make(map[string]string)
	for _, i := range u.Identities {
		linked[i.Provider] = i.ExternUID
	}
	for _, l := range s.Buttons() {
		l.ExternUID, l.Fixed = linked[l.Name], s.directories[l.Name] != nil
		links = append(links, l)
		delete(linked, l.Name)
	}
	for _, i := range u.Identities {
		if _, ok := linked[i.Provider]; ok {
			links = append(links, Link{Name: i.Provider, Label: i.Provider, ExternUID: i.ExternUID})
		}
	}
	return links
}

// CheckSettings refuses to disable passwords on the web while no administrator
// can sign in without one. It is a guard of the settings.
func (s *Service) CheckSettings(ctx context.Context, tx *db.Tx, _ actor.Actor, was, now setting.Settings) error {
	if now.PasswordForWeb || !was.PasswordForWeb {
		return nil
	}
	ok, err := s.Users.AdminWithIdentity(ctx, tx, s.names())
	if err != nil {
		return err
	}
	if !ok {
		return errs.InvalidField("password_authentication_enabled_for_web", "cannot be disabled: no administrator is linked to an identity provider")
	}
	return nil
}

// purge removes the records of answers that have expired.
func (s *Service) purge(ctx context.Context) error {
	for _, purge := range []func(context.Context, db.Q, time.Time) error{deleteUses, deleteAnswers} {
		if err := purge(ctx, s.DB, s.Now()); err != nil {
			return fmt.Errorf("purge sign-ins: %w", err)
		}
	}
	return nil
}
