package pages

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/pages/cert"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/secret"
)

// Source is the origin of a certificate.
type Source string

// The sources of certificates.
const (
	NoCertificate   Source = ""
	UserCertificate Source = "user"
	AutoCertificate Source = "acme"
)

// Domain is a custom domain of a site.
type Domain struct {
	ID            int64
	ProjectID     int64
	Name          string // ASCII, lower case
	AutoSSL       bool
	AutoSSLError  string // why no certificate could be obtained
	Certificate   string // PEM; empty if there is none
	Source        Source
	ExpiresAt     *time.Time // of the certificate
	Code          string     // verification code, for the DNS record
	VerifiedAt    *time.Time
	EnabledUntil  *time.Time
	RemoveAt      *time.Time // if the domain is not verified before; nil means never
	CreatedAt     time.Time
	UpdatedAt     time.Time
	ProjectPath   string
	Verification  bool // domains must be verified
	Expired       bool
	sealedKey     string
	renewAt       *time.Time // next attempt for an automatic certificate; nil means now
	verifyingName string
}

// URL returns the URL of the site on the domain.
func (d *Domain) URL() string {
	if d.Certificate != "" {
		return "https://" + d.Name
	}
	return "http://" + d.Name
}

// Verified reports whether the ownership of the domain was verified.
func (d *Domain) Verified() bool { return d.VerifiedAt != nil }

// Record returns the DNS TXT record that verifies the domain.
func (d *Domain) Record() (name, value string) {
	return "_" + d.verifyingName + "." + d.Name, d.verifyingName + "=" + d.Code
}

// Chain returns the parsed certificate, or nil if there is none.
func (d *Domain) Chain() cert.Chain {
	if d.Certificate == "" {
		return nil
	}
	chain, err := cert.Parse(d.Certificate)
	if err != nil {
		return nil
	}
	return chain
}

func (d *Domain) place() string { return "pages_domains/private_key/" + d.Name }

// fill sets the fields of domains that are not in their rows.
func (s *Service) fill(ctx context.Context, list ...*Domain) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	for _, d := range list {
		d.Verification = settings.PagesVerification
		d.Expired = d.ExpiresAt != nil && s.Now().After(*d.ExpiresAt)
		d.verifyingName = s.Name + "-pages-verification-code"
	}
	return nil
}

// AllDomains returns the domains of all projects, by name. Only administrators may
// call it.
func (s *Service) AllDomains(ctx context.Context, by actor.Actor, p db.Paging) (db.Page[*Domain], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[*Domain]{}, err
	}
	page, err := listDomains(ctx, s.DB, 0, p)
	if err != nil {
		return page, fmt.Errorf("list domains: %w", err)
	}
	return page, s.fill(ctx, page.Items...)
}

// Domains returns the domains of a project. Requires Maintainer. It returns NotFound
// also if Pages is disabled in the project.
func (s *Service) Domains(ctx context.Context, by actor.Actor, ref project.Ref, p db.Paging) (db.Page[*Domain], error) {
	in, err := s.view(ctx, by, ref)
	if err != nil {
		return db.Page[*Domain]{}, err
	}
	page, err := listDomains(ctx, s.DB, in.ID, p)
	if err != nil {
		return page, fmt.Errorf("list domains of project %d: %w", in.ID, err)
	}
	return page, s.fill(ctx, page.Items...)
}

// Domain returns a domain of a project. For permissions see Domains.
func (s *Service) Domain(ctx context.Context, by actor.Actor, ref project.Ref, name string) (*Domain, error) {
	in, err := s.view(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	d, err := findDomain(ctx, s.DB, in.ID, lookedUp(name))
	if err != nil {
		return nil, db.NotFound(err, "PagesDomain")
	}
	return d, s.fill(ctx, d)
}

// Certificate is a certificate and its key in PEM. If both are empty, the
// current certificate is removed.
type Certificate struct{ PEM, Key string }

// NewDomain has the fields of a new domain.
type NewDomain struct {
	Name        string
	AutoSSL     bool
	Certificate *Certificate
}

// CreateDomain adds a domain to a project. For permissions see Domains. It returns
// Invalid if the name or the certificate is not valid, the domain already exists, or
// the project has the maximum number of domains.
func (s *Service) CreateDomain(ctx context.Context, by actor.Actor, ref project.Ref, n NewDomain) (*Domain, error) {
	in, err := s.change(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	wrong := errs.Fields{}
	now := s.Now()
	d := &Domain{
		ProjectID: in.ID, ProjectPath: in.FullPath, Name: s.domainName(wrong, n.Name), AutoSSL: n.AutoSSL,
		Code: secret.Token(""), CreatedAt: now, UpdatedAt: now,
	}
	if n.Certificate != nil {
		s.setCertificate(wrong, d, *n.Certificate)
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if err := s.fill(ctx, d); err != nil {
		return nil, err
	}
	if d.Verification {
		at := now.Add(unverifiedFor)
		d.RemoveAt = &at
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.mayAddDomain(ctx, tx, in.ID); err != nil {
			return err
		}
		if err := insertDomain(ctx, tx, d); err != nil {
			return err
		}
		if err := s.record(ctx, tx, by, in, d, "pages_domain_created", audit.Details{Add: "pages_domain"}); err != nil {
			return err
		}
		return s.follow(ctx, tx, d)
	})
	if db.IsUnique(err, "pages_domains_domain") {
		return nil, errs.InvalidField("domain", "has already been taken")
	}
	if err != nil {
		return nil, fmt.Errorf("create domain: %w", err)
	}
	return d, nil
}

// mayAddDomain returns Invalid if a project has the maximum number of domains.
func (s *Service) mayAddDomain(ctx context.Context, tx *db.Tx, projectID int64) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil || settings.MaxPagesDomains == 0 {
		return err
	}
	if err := tx.Lock(ctx, "projects", projectID); err != nil {
		return err
	}
	n, err := countDomains(ctx, tx, projectID)
	if err != nil {
		return err
	}
	if n >= settings.MaxPagesDomains {
		return errs.InvalidField("base", "This project reached the limit of custom domains. (Max %d)", settings.MaxPagesDomains)
	}
	return nil
}

// follow adds the background jobs that a new or changed domain needs.
func (s *Service) follow(ctx context.Context, tx *db.Tx, d *Domain) error {
	if d.Verification && d.VerifiedAt == nil {
		if err := s.Queue.Add(ctx, tx, domainWork{d.ID}, queue.In(lane), queue.Unique()); err != nil {
			return err
		}
	}
	if d.AutoSSL && s.ACME.On() && d.Source != AutoCertificate && s.certificateDue(d) {
		return s.Queue.Add(ctx, tx, certificateWork{DomainID: d.ID}, queue.In(lane), queue.Unique())
	}
	return nil
}

// DomainChange has the fields of a domain that can be changed; nil keeps the
// value.
type DomainChange struct {
	AutoSSL     *bool
	Certificate *Certificate
}

// UpdateDomain changes a domain. For permissions see Domains. Setting or removing a
// certificate disables automatic certificates, unless the change sets AutoSSL.
// Errors: NotFound, Invalid.
func (s *Service) UpdateDomain(ctx context.Context, by actor.Actor, ref project.Ref, name string, c DomainChange) (*Domain, error) {
	in, err := s.change(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	var d *Domain
	err = s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		if d, err = s.lockDomain(ctx, tx, in.ID, lookedUp(name)); err != nil {
			return err
		}
		d.Verification = settings.PagesVerification
		wrong := errs.Fields{}
		changed := ""
		if c.Certificate != nil {
			changed = "certificate"
			s.setCertificate(wrong, d, *c.Certificate)
			d.AutoSSL = false // the certificate of the user must not be replaced
		}
		if c.AutoSSL != nil && *c.AutoSSL != d.AutoSSL {
			d.AutoSSL = *c.AutoSSL
			// The owner may have fixed what made the last attempt fail.
			if soon := s.Now().Add(leastWait); d.Source != AutoCertificate && d.renewAt != nil && soon.Before(*d.renewAt) {
				d.renewAt = &soon
			}
			changed = joined(changed, "auto_ssl_enabled")
		}
		if err := wrong.Err(); err != nil {
			return err
		}
		if !d.AutoSSL {
			d.AutoSSLError = ""
		}
		d.UpdatedAt = s.Now()
		if err := saveDomain(ctx, tx, d); err != nil {
			return err
		}
		if err := s.record(ctx, tx, by, in, d, "pages_domain_updated", audit.Details{Change: joined("pages_domain", changed)}); err != nil {
			return err
		}
		return s.follow(ctx, tx, d)
	})
	if err != nil {
		return nil, fmt.Errorf("update domain %q: %w", name, err)
	}
	d.ProjectPath = in.FullPath
	return d, s.fill(ctx, d)
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

func (s *Service) lockDomain(ctx context.Context, tx *db.Tx, projectID int64, name string) (*Domain, error) {
	d, err := findDomain(ctx, tx, projectID, name)
	if err != nil {
		return nil, db.NotFound(err, "PagesDomain")
	}
	if err := tx.Lock(ctx, "pages_domains", d.ID); err != nil {
		return nil, err
	}
	d, err = findDomain(ctx, tx, projectID, name)
	return d, db.NotFound(err, "PagesDomain")
}

// setCertificate validates a certificate and sets it. If an automatic certificate is
// replaced, the next one is due immediately; the delay after a failed attempt stays.
func (s *Service) setCertificate(wrong errs.Fields, d *Domain, c Certificate) {
	renewed := d.Source == AutoCertificate && d.AutoSSLError == ""
	if c == (Certificate{}) {
		d.Certificate, d.sealedKey, d.Source, d.ExpiresAt = "", "", NoCertificate, nil
		if renewed {
			d.renewAt = nil
		}
		return
	}
	fault := func(field string, err error) {
		if f, ok := errors.AsType[cert.Fault](err); ok {
			wrong.Add(field, f.Error())
		}
	}
	chain, err := cert.Parse(c.PEM)
	fault("certificate", err)
	key, keyErr := cert.ParseKey(c.Key)
	fault("key", keyErr)
	if err != nil || keyErr != nil {
		return
	}
	fault("key", chain.Matches(key))
	fault("certificate", chain.CheckTime(s.Now()))
	s.putCertificate(d, c, chain, UserCertificate)
	if renewed {
		d.renewAt = nil
	}
}

func (s *Service) putCertificate(d *Domain, c Certificate, chain cert.Chain, from Source) {
	at := chain.ExpiresAt()
	d.Certificate, d.Source, d.ExpiresAt = c.PEM, from, &at
	d.sealedKey = s.Keys.Seal([]byte(c.Key), d.place())
}

// DeleteDomain deletes a domain of a project. For permissions see Domains. Errors:
// NotFound.
func (s *Service) DeleteDomain(ctx context.Context, by actor.Actor, ref project.Ref, name string) error {
	in, err := s.change(ctx, by, ref)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		d, err := s.lockDomain(ctx, tx, in.ID, lookedUp(name))
		if err != nil {
			return err
		}
		if err := deleteDomain(ctx, tx, d); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in, d, "pages_domain_deleted", audit.Details{Remove: "pages_domain"})
	})
	if err != nil {
		return fmt.Errorf("delete domain %q: %w", name, err)
	}
	return nil
}

// record writes an audit event about a domain of a project.
func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, d *Domain, kind string, details audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: audit.Entity{Type: audit.ProjectEntity, ID: in.ID, Path: in.FullPath},
		Target: audit.Target{Type: "PagesDomain", ID: d.ID, Details: d.Name}, Details: details,
	})
}
