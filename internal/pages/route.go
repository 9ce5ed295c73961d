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

// Route contains the sites of a project on a host.
type Route struct {
	ProjectID int64
	Base      string // path of the site on the host: /group/project, or empty
	HTTPS     bool   // HTTP requests are redirected to HTTPS
	// Elsewhere is the URL that requests are redirected to, without a trailing
	// slash; empty if the site is served here.
	Elsewhere string

	access     project.Feature
	visibility project.Visibility
	sites      map[string]*Version // by prefix
}

// Version is the published version of a site.
type Version struct {
	At   time.Time // publication time
	blob string
}

// Open reports whether the site is public.
func (r *Route) Open() bool {
	return r.access == project.Everyone || r.access == project.Enabled && r.visibility == project.Public
}

// Pick returns the version for a path below the base, or nil if there is no such
// site. If the path is in a site with a path prefix, base is the prefix and rest the
// path below it.
func (r *Route) Pick(path string) (v *Version, base, rest string) {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if v = r.sites[first]; v != nil && first != "" {
		base = "/" + first
		return v, base, strings.TrimPrefix(path, base)
	}
	return r.sites[""], "", path
}

// routeRow is a site with the data that is needed to serve it.
type routeRow struct {
	site       Site
	path       string // full path of the project
	visibility project.Visibility
	features   string // settings of the project as JSON
	settings   Settings

	primary       Domain // the name is empty if there is none
	primarySecure bool   // the primary domain has a certificate
}

// host is the set of routes of a host.
type host struct {
	routes  map[string]*Route // by base, in lower case
	deep    int               // maximum number of path segments of a base
	private bool              // some route is not public
}

// Match is the result of Resolve.
type Match struct {
	// Routes are the sites that contain the path, longest base first.
	Routes []*Route
	// Private reports whether some site of the host is not public.
	Private bool
}

// Resolve returns the sites of a host for a path. The name must be in lower case and
// without a port. Resolve does not check the access of the visitor; see Admit.
func (s *Service) Resolve(ctx context.Context, name, path string) (Match, error) {
	h, err := s.host(ctx, name)
	if err != nil {
		return Match{}, err
	}
	// Longest base first, because the site at the root of the host matches every
	// path.
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

// lower converts the ASCII characters of a path to lower case. Project paths are
// ASCII. Other characters are not converted, because that could change the length of
// the path.
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
			return h, s.addRoute(h, "", rows, s.Place.Secure(), name, verification)
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
			if err := s.addRoute(h, rest, rows, s.Place.Secure(), name, verification); err != nil {
				return nil, err
			}
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
	return h, s.addRoute(h, "", rows, s.Place.TLS && d.Certificate != "", name, verification)
}

// enabled reports whether a domain serves its site.
func (s *Service) enabled(d *Domain) bool {
	return !d.Verification || d.Verified() && d.EnabledUntil != nil && s.Now().Before(*d.EnabledUntil)
}

// addRoute adds the sites of a project to a host. They all have the same
// settings.
func (s *Service) addRoute(h *host, base string, rows []routeRow, secure bool, name string, verification bool) error {
	if len(rows) == 0 {
		return nil
	}
	first := rows[0]
	access, err := first.access()
	if err != nil || access == project.Disabled {
		return err
	}
	r := &Route{
		ProjectID: first.site.ProjectID, Base: base, HTTPS: secure && first.settings.HTTPSOnly,
		access: access, visibility: first.visibility, sites: map[string]*Version{},
	}
	for _, row := range rows {
		r.sites[row.site.Prefix] = &Version{At: row.site.CreatedAt, blob: row.site.blob}
	}
	label := first.settings.label + "." + s.Place.Host()
	primary := first.primary
	primary.Verification = verification
	led := primary.Name != "" && s.enabled(&primary) // do not redirect to a domain that is not served
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
	return nil
}

func portOf(port string) string {
	if port == "" {
		return ""
	}
	return ":" + port
}

// Admit returns NotFound if the actor may not see a site. A site for members
// requires Guest.
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

// Access returns NotFound if the actor may not see the site of a project.
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
