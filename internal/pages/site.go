package pages

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// Site is a published site of a project: the artifacts of a job.
type Site struct {
	ID        int64
	ProjectID int64
	Prefix    string // path prefix below the URL of the project; empty for the main site
	JobID     int64
	Root      string // published directory of the artifacts
	Files     int64
	Size      int64
	ExpiresAt *time.Time
	CreatedAt time.Time

	URL  string
	blob string
}

// Settings are the Pages settings of a project.
type Settings struct {
	HTTPSOnly     bool // redirect HTTP requests to HTTPS where TLS is available
	UniqueDomain  bool // use a unique domain
	PrimaryDomain string
	Failure       string // why the last job could not publish; empty if it could
	FailedJobID   *int64
	FailedAt      *time.Time

	label string // subdomain of the unique domain
}

// Overview has the Pages settings and sites of a project.
type Overview struct {
	Settings
	URL   string
	Sites []*Site // by prefix
}

// Published reports whether there is a site.
func (o *Overview) Published() bool { return len(o.Sites) > 0 }

// Overview returns the settings and sites of a project. For permissions see
// Domains.
func (s *Service) Overview(ctx context.Context, by actor.Actor, ref project.Ref) (*Overview, error) {
	in, err := s.view(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	return s.overview(ctx, in)
}

func (s *Service) overview(ctx context.Context, in *project.Project) (*Overview, error) {
	t, err := findSettings(ctx, s.DB, in.ID)
	if err != nil {
		return nil, fmt.Errorf("pages of project %d: %w", in.ID, err)
	}
	o := &Overview{Settings: t, URL: s.address(in.FullPath, t)}
	if o.Sites, err = sitesOf(ctx, s.DB, in.ID); err != nil {
		return nil, fmt.Errorf("pages of project %d: %w", in.ID, err)
	}
	for _, one := range o.Sites {
		if one.URL = o.URL; one.Prefix != "" {
			one.URL = strings.TrimSuffix(o.URL, "/") + "/" + one.Prefix
		}
	}
	return o, nil
}

// address returns the URL of the site of a project.
func (s *Service) address(fullPath string, t Settings) string {
	if t.UniqueDomain && t.label != "" {
		return s.Place.Below(t.label)
	}
	top, rest, _ := strings.Cut(fullPath, "/")
	top = strings.ToLower(top)
	if s.rootSite(top, rest) {
		return s.Place.Below(top)
	}
	return s.Place.Below(top) + "/" + rest
}

// Address returns the URL of the site of a project, or "" if no site is published or
// Pages is disabled. The caller must check access to the project.
func (s *Service) Address(ctx context.Context, in *project.Project) (string, error) {
	if in.Settings.Pages == project.Disabled {
		return "", nil
	}
	if _, err := findSite(ctx, s.DB, in.ID, ""); errors.Is(err, db.ErrNoRows) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	t, err := findSettings(ctx, s.DB, in.ID)
	if err != nil {
		return "", err
	}
	return s.address(in.FullPath, t), nil
}

// Change has the settings that can be changed; nil keeps the value.
type Change struct {
	HTTPSOnly     *bool
	UniqueDomain  *bool
	PrimaryDomain *string // empty removes the primary domain
}

// Update changes the Pages settings of a project. For permissions see Domains. It
// returns Invalid if the primary domain is not a domain of the project.
func (s *Service) Update(ctx context.Context, by actor.Actor, ref project.Ref, c Change) (*Overview, error) {
	in, err := s.change(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", in.ID); err != nil {
			return err
		}
		t, err := findSettings(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		was := t
		if c.HTTPSOnly != nil {
			t.HTTPSOnly = *c.HTTPSOnly
		}
		if c.UniqueDomain != nil {
			if t.UniqueDomain = *c.UniqueDomain; t.UniqueDomain && t.label == "" {
				t.label = uniqueLabel(in.Path)
			}
		}
		if c.PrimaryDomain != nil {
			if t.PrimaryDomain, err = s.ownDomain(ctx, tx, in.ID, *c.PrimaryDomain); err != nil {
				return err
			}
		}
		if t == was {
			return nil
		}
		if err := saveSettings(ctx, tx, in.ID, t); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "pages_settings_updated", Entity: audit.Entity{Type: audit.ProjectEntity, ID: in.ID, Path: in.FullPath},
			Details: audit.Details{Change: "pages", From: was.String(), To: t.String()},
		})
	})
	if err != nil {
		return nil, fmt.Errorf("update pages of project %d: %w", in.ID, err)
	}
	return s.overview(ctx, in)
}

// ProjectChanged enables a unique domain for a new project if the application
// setting is enabled. The project whose path is the host of its namespace is
// excluded: its site is at the root of that host.
func (s *Service) ProjectChanged(ctx context.Context, tx *db.Tx, e project.Event) error {
	if e.Kind != project.ProjectCreated {
		return nil
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil || !settings.PagesUniqueDomains {
		return err
	}
	fullPath, err := projectPath(ctx, tx, e.ProjectID)
	if err != nil {
		return fmt.Errorf("unique domain of new project: %w", err)
	}
	if top, rest, _ := strings.Cut(fullPath, "/"); s.rootSite(top, rest) {
		return nil
	}
	t := Settings{HTTPSOnly: true, UniqueDomain: true, label: uniqueLabel(path.Base(fullPath))}
	if err := saveSettings(ctx, tx, e.ProjectID, t); err != nil {
		return fmt.Errorf("unique domain of new project: %w", err)
	}
	return nil
}

// rootSite reports whether the site of a project is at the root of the host of
// its namespace.
func (s *Service) rootSite(top, rest string) bool {
	return strings.EqualFold(rest, top+"."+s.Place.Host())
}

// String returns the settings for audit events.
func (t Settings) String() string {
	return fmt.Sprintf("https only: %t, unique domain: %t, primary domain: %q", t.HTTPSOnly, t.UniqueDomain, t.PrimaryDomain)
}

// uniqueLabel returns a DNS label with a random suffix, so that it cannot be guessed
// and does not collide with a namespace.
func uniqueLabel(name string) string {
	name = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
	name = strings.Trim(name[:min(len(name), 40)], "-")
	if name == "" {
		name = "site"
	}
	return name + "-" + secret.Digest(secret.Token(""))[:16]
}

// ownDomain returns a domain of a project by its name or URL.
func (s *Service) ownDomain(ctx context.Context, tx *db.Tx, projectID int64, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	for _, scheme := range []string{"https://", "http://"} {
		name = strings.TrimPrefix(name, scheme)
	}
	name = strings.TrimSuffix(name, "/")
	d, err := findDomain(ctx, tx, projectID, lookedUp(name))
	if errors.Is(err, db.ErrNoRows) {
		return "", errs.InvalidField("pages_primary_domain", "is not a domain of the project")
	}
	if err != nil {
		return "", err
	}
	return d.Name, nil
}

// keptAfter is how long an archive is kept after it was replaced, because
// responses may still be reading from it.
const keptAfter = 10 * time.Minute

// Unpublish removes the sites of a project. For permissions see Domains.
// Domains and settings are kept.
func (s *Service) Unpublish(ctx context.Context, by actor.Actor, ref project.Ref) error {
	in, err := s.change(ctx, by, ref)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		list, err := sitesOf(ctx, tx, in.ID)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := s.leaveAll(ctx, tx, list); err != nil {
			return err
		}
		if err := deleteSites(ctx, tx, in.ID); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "pages_unpublished", Entity: audit.Entity{Type: audit.ProjectEntity, ID: in.ID, Path: in.FullPath}, Details: audit.Details{Remove: "pages"},
		})
	})
	if err != nil {
		return fmt.Errorf("unpublish pages of project %d: %w", in.ID, err)
	}
	return nil
}

func (s *Service) leaveAll(ctx context.Context, tx *db.Tx, list []*Site) error {
	for _, one := range list {
		if err := leave(ctx, tx, one.blob, s.Now().Add(keptAfter)); err != nil {
			return err
		}
	}
	return nil
}

// ProjectsDeleted adds background jobs that remove the Pages sites of deleted
// projects.
func (s *Service) ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	for _, p := range gone {
		list, err := sitesOf(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if err := s.leaveAll(ctx, tx, list); err != nil {
			return err
		}
	}
	return nil
}
