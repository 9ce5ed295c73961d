package pages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Route is a site as it is shown on a host.
type Route struct {
	ProjectID int64
	Base      string // where the site begins on the host: /group/project, or empty
	HTTPS     bool   // visitors are sent there over TLS
	// Elsewhere is the address that shows the site instead, without a slash at
	// its end; empty when this one does.
	Elsewhere string

	access     project.Feature
	visibility project.Visibility
	sites      map[string]*Version // by prefix
}

// Version is what a site shows now.
type Version struct {
	At   time.Time // it was published
	blob string
}

// Open reports whether everyone may see the site.
func (r *Route) Open() bool {
	return r.access == project.Everyone || r.access == project.Enabled && r.visibility == project.Public
}

// Pick returns the version for a path below the base, which it cuts where
// another site of the project begins; nil when there is none.
func (r *Route) Pick(path string) (v *Version, base, rest string) {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if v = r.sites[first]; v != nil && first != "" {
		base = "/" + first
		return v, base, strings.TrimPrefix(path, base)
	}
	return r.sites[""], "", path
}

// routeRow is a site with what is needed to show it.
type routeRow struct {
	site       Site
	path       string // full path of the project
	visibility project.Visibility
	access     project.Feature
	settings   Settings

	primary       Domain // its name is empty without one
	primarySecure bool   // it has a certificate
}

// host is all that is shown on a host.
type host struct {
	routes  map[string]*Route // by base, in lower case
	deep    int               // the most segments that a base has
	private bool              // a route is not open
}

// Match is what a host shows under a path.
type Match struct {
	// Routes holds the sites that the path is in, the one with the longest base
	// first.
	Routes []*Route
	// Private reports whether some site of the host is not open to everyone.
	Private bool
}

// Resolve returns the sites that a host, in lower case and without its port,
// has for a path. It does not check the visitor: see Admit.
func (s *Service) Resolve(ctx context.Context, name, path string) (Match, error) {
	h, err := s.host(ctx, name)
	if err != nil {
		return Match{}, err
	}
	// The longest base comes first: the site of a namespace itself is at the
	// root of the host.
	rest := lower(path)
	ends := make([]int, 1, 8)
	for i := 1; i <= len(rest) && len(ends) <= h.deep; i++ {
		if i == len(rest) || rest[i] == '/' {
			ends = append(ends, i)
		}
	}
	m := Match{Private: h.private}
	for i := len(ends) - 1; i >= 0; i-- {
		if r := h.routes[rest[:ends[i]]]; r != nil {
			m.Routes = append(m.Routes, r)
		}
	}
	return m, nil
}

// lower makes the letters small that paths of projects have. Others stay, so
// that the length does: some become ASCII.
func lower(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool { return r >= 'A' && r <= 'Z' }) {
		return path
	}
	text := []byte(path)
	for i, c := range text {
		if c >= 'A' && c <= 'Z' {
			text[i] = c + 'a' - 'A'
		}
	}
	return string(text)
}

func (s *Service) host(ctx context.Context, name string) (*host, error) {
	h, err := s.hosts.Get(name, func() (*host, bool, error) {
		h, err := s.findHost(ctx, name, s.Now())
		return h, true, err
	})
	if err != nil {
		return nil, fmt.Errorf("find host: %w", err)
	}
	return h, nil
}

func (s *Service) findHost(ctx context.Context, name string, now time.Time) (*host, error) {
	h := &host{routes: map[string]*Route{}}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	verification := settings.PagesVerification
	if label, below := strings.CutSuffix(name, "."+s.Place.Host()); below && label != "" {
		rows, err := routesLabeled(ctx, s.DB, label, now)
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			s.addRoute(h, "", rows, s.Place.Secure(), name, verification)
			return h, nil
		}
		if rows, err = routesBelow(ctx, s.DB, label, now); err != nil {
			return nil, err
		}
		byPath := map[string][]routeRow{}
		for _, row := range rows {
			byPath[row.path] = append(byPath[row.path], row)
		}
		for path, rows := range byPath {
			_, rest, _ := strings.Cut(path, "/")
			if strings.EqualFold(rest, name) {
				rest = ""
			} else {
				rest = "/" + rest
			}
			s.addRoute(h, rest, rows, s.Place.Secure(), name, verification)
		}
		return h, nil
	}
	d, err := findDomainByName(ctx, s.DB, name)
	if errors.Is(err, db.ErrNoRows) {
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	if d.Verification = verification; !s.enabled(d) {
		return h, nil
	}
	rows, err := routesOf(ctx, s.DB, d.ProjectID, now)
	if err != nil {
		return nil, err
	}
	s.addRoute(h, "", rows, s.Place.TLS && d.Certificate != "", name, verification)
	return h, nil
}

// enabled reports whether a domain shows its site.
func (s *Service) enabled(d *Domain) bool {
	return !d.Verification || d.Verified() && d.EnabledUntil != nil && s.Now().Before(*d.EnabledUntil)
}

// addRoute adds the sites of one project, which all have the same settings, to
// what is shown on a host.
func (s *Service) addRoute(h *host, base string, rows []routeRow, secure bool, name string, verification bool) {
	if len(rows) == 0 || rows[0].access == project.Disabled {
		return
	}
	first := rows[0]
	r := &Route{
		ProjectID: first.site.ProjectID, Base: base, HTTPS: secure && first.settings.HTTPSOnly,
		access: first.access, visibility: first.visibility, sites: map[string]*Version{},
	}
	for _, row := range rows {
		r.sites[row.site.Prefix] = &Version{At: row.site.CreatedAt, blob: row.site.blob}
	}
	label := first.settings.label + "." + s.Place.Host()
	primary := first.primary
	primary.Verification = verification
	led := primary.Name != "" && s.enabled(&primary) // no one is led to where nothing is shown
	switch {
	case led && primary.Name != name:
		r.Elsewhere = "http://" + primary.Name
		if s.Place.TLS && first.primarySecure {
			r.Elsewhere = "https://" + primary.Name + portOf(s.Place.TLSPort)
		}
	case !led && first.settings.UniqueDomain && strings.HasSuffix(name, "."+s.Place.Host()) && name != label:
		r.Elsewhere = s.Place.Below(first.settings.label)
	}
	h.routes[strings.ToLower(base)] = r
	h.private = h.private || !r.Open()
	h.deep = max(h.deep, strings.Count(base, "/"))
}

func portOf(port string) string {
	if port == "" {
		return ""
	}
	return ":" + port
}

// Admit refuses everyone who may not see a site: NotFound. A site of members is
// for Guests and above.
func (s *Service) Admit(ctx context.Context, by actor.Actor, r *Route) error {
	if r.Open() {
		return nil
	}
	p, err := s.Projects.Summary(ctx, by, project.RefTo(r.ProjectID))
	if err != nil {
		return err
	}
	if r.access == project.MembersOnly && p.Access.Level() < project.Guest && !by.Admin && !by.Auditor {
		return errs.NotFound("")
	}
	return nil
}

// Access refuses everyone who may not see the site of a project: NotFound.
func (s *Service) Access(ctx context.Context, by actor.Actor, ref project.Ref) error {
	p, err := s.Projects.Require(ctx, by, ref, project.NoAccess)
	if err != nil {
		return err
	}
	if p.Settings.Pages == project.Disabled {
		return errs.NotFound("")
	}
	return s.Admit(ctx, by, &Route{ProjectID: p.ID, access: p.Settings.Pages, visibility: p.Visibility})
}
