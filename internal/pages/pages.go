// Package pages implements Pages: sites that projects publish from the artifacts
// of a job, on a unique domain or on the domain of the namespace, and on custom
// domains with certificates.
package pages

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/blob"
	"svc/internal/ci"
	"svc/internal/db"
	"svc/internal/limit"
	"svc/internal/notice"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/secret"
	"svc/internal/setting"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Blobs    blob.Store
	Keys     *secret.Keyring
	Notices  *notice.Bus
	Settings *setting.Service
	Projects *project.Service
	CI       *ci.Service
	Log      *slog.Logger
	Now      func() time.Time

	Place    Place
	ACME     ACME
	Name     string // of the service, in the names of DNS records
	CacheDir string // for local copies of archives in object storage
	// LookupTXT returns DNS TXT records; nil uses the resolver of the system.
	LookupTXT func(ctx context.Context, name string) ([]string, error)
}

// Place defines the domain and the URLs of sites.
type Place struct {
	URL      string // sites are on subdomains of its host; without a trailing slash
	External string // URL of the instance
	Served   bool   // sites are served
	TLS      bool   // custom domains are served over TLS too
	TLSPort  string // of custom domains; empty means the default port
}

// Host returns the parent domain of the sites.
func (p Place) Host() string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// Secure reports whether sites on subdomains are served over TLS.
func (p Place) Secure() bool { return strings.HasPrefix(p.URL, "https://") }

// Below returns the URL of a subdomain.
func (p Place) Below(label string) string {
	scheme, rest, _ := strings.Cut(p.URL, "://")
	return scheme + "://" + label + "." + rest
}

// AuthHost returns the host to which visitors of private sites return after
// signing in. No namespace can have its name.
func (p Place) AuthHost() string { return "projects." + p.Host() }

// Service implements Pages.
type Service struct {
	Deps
	// Orders limits how many certificates are requested for the domains of one
	// project: ACME servers limit the requests of an account, and all projects of the
	// instance share one. Only tests change it.
	Orders limit.Rate

	hosts  *notice.Cache[string, *host] // by name
	packs  packs
	certs  *notice.Cache[string, *tls.Certificate] // by name, nil if there is none
	issuer issuer
	limits *limit.Limiter
}

// lane is the queue lane for background jobs that wait for the name servers and the
// ACME challenges of custom domains. Other background jobs do not wait for them.
const (
	lane        = "pages"
	laneWorkers = 2
)

const (
	// hostTTL limits how long a cached host or certificate is used even if no
	// notice of a change arrives.
	hostTTL = 10 * time.Second
	// hostsMax is the number of hosts, and of certificates, that are cached.
	hostsMax = 5000
)

// topic is the topic of notices about changed sites, domains and certificates.
// A notice drops all cached hosts and certificates: they are few, and are read
// again on demand.
const topic = "pages"

// New returns the service, registers its background jobs and subscribes to
// notices.
func New(d Deps) *Service {
	s := &Service{Deps: d, Orders: orders, limits: limit.New(limit.Deps{Now: d.Now})}
	if s.LookupTXT == nil {
		s.LookupTXT = net.DefaultResolver.LookupTXT
	}
	s.packs.open = map[string]*opened{}
	s.Queue.Lane(lane, laneWorkers)
	queue.Handle(s.Queue, s.publish, queue.Timeout(time.Hour))
	queue.Handle(s.Queue, s.obtain, queue.Timeout(10*time.Minute))
	queue.Handle(s.Queue, s.checkDomain)
	s.Queue.Every("pages_sweep", time.Minute, s.Sweep)
	s.Queue.Every("pages_certificates", leastWait, s.RenewCertificates)
	s.Queue.Every("pages_domains", 6*time.Hour, s.CheckDomains)
	s.hosts = notice.NewCache[string](notice.CacheOptions[*host]{Bus: d.Notices, TTL: hostTTL, Now: d.Now, Max: hostsMax})
	s.certs = notice.NewCache[string](notice.CacheOptions[*tls.Certificate]{Bus: d.Notices, TTL: hostTTL, Now: d.Now, Max: hostsMax})
	drop := func() { s.hosts.Drop(); s.certs.Drop() }
	d.Notices.Subscribe(topic, func(string) { drop() })
	d.Projects.OnChange(drop)
	d.Notices.SendOnWrite(topic, "pages_domains", "pages_projects", "pages_sites")
	return s
}

// view returns a project with Pages enabled. Requires Maintainer.
func (s *Service) view(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	return s.Projects.RequireView(ctx, by, ref, project.PagesPart)
}

// change is like view, for changes. It returns Forbidden if the project is archived.
func (s *Service) change(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	return s.Projects.RequireChange(ctx, by, ref, project.PagesPart, project.Maintainer)
}
