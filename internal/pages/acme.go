package pages

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/pages/cert"
	"svc/internal/project"
	"svc/internal/queue"
)

// ACME is the configuration of automatic certificates.
type ACME struct {
	Directory string // URL of the ACME directory; empty disables automatic certificates
	Email     string
	RootFile  string // root certificates of the ACME server; empty means the system's root certificates
	Host      string // listen address of the Pages server
	Port      int
}

// On reports whether automatic certificates are enabled.
func (a ACME) On() bool { return a.Directory != "" }

// renewal returns when a certificate must be renewed: 30 days before it
// expires, or after two thirds of its lifetime if that is shorter than 90 days.
func renewal(chain cert.Chain) time.Time {
	leaf := chain.Leaf()
	return chain.ExpiresAt().Add(-min(30*24*time.Hour, leaf.NotAfter.Sub(leaf.NotBefore)/3))
}

// The minimum and maximum time between two attempts to obtain a certificate.
const (
	leastWait = 10 * time.Minute
	mostWait  = 24 * time.Hour
)

// obtainTime is the timeout for obtaining a certificate.
const obtainTime = 5 * time.Minute

// orders is the default of Service.Orders.
var orders = limit.Rate{Name: "pages_certificates", Requests: 50, Period: 3 * time.Hour}

// certificateWork is the background job that obtains or renews the certificate
// of a domain.
type certificateWork struct {
	DomainID int64 `json:"domain_id"`
}

// Kind implements queue.Work.
func (certificateWork) Kind() string { return "pages_certificate" }

// issuer is the ACME client. It is created on first use.
type issuer struct {
	once   sync.Once
	err    error
	config *certmagic.Config
	acme   *certmagic.ACMEIssuer
	cache  *certmagic.Cache
}

// client returns the ACME client. It stores its data in the database, so that
// every node can respond to challenges that other nodes started.
func (s *Service) client() (*issuer, error) {
	i := &s.issuer
	i.once.Do(func() {
		template := certmagic.ACMEIssuer{
			CA: s.ACME.Directory, TestCA: s.ACME.Directory, Email: s.ACME.Email, Agreed: true, DisableTLSALPNChallenge: true,
			ListenHost: s.ACME.Host, AltHTTPPort: s.ACME.Port, Logger: zap.NewNop(), CertObtainTimeout: obtainTime,
		}
		if s.ACME.RootFile != "" {
			roots, err := os.ReadFile(s.ACME.RootFile)
			if err != nil {
				i.err = fmt.Errorf("roots of the ACME server: %w", err)
				return
			}
			template.TrustedRoots = x509.NewCertPool()
			if !template.TrustedRoots.AppendCertsFromPEM(roots) {
				i.err = errors.New("roots of the ACME server: the file holds no certificates")
				return
			}
		}
		// The client requires a cache, but certificates are not served from it:
		// they are read from the rows of their domains.
		i.cache = certmagic.NewCache(certmagic.CacheOptions{
			GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return i.config, nil },
			Logger:           zap.NewNop(),
		})
		i.config = certmagic.New(i.cache, certmagic.Config{
			Storage: &acmeStorage{s: s}, Logger: zap.NewNop(), DisableARI: true,
			OCSP: certmagic.OCSPConfig{DisableStapling: true},
		})
		i.acme = certmagic.NewACMEIssuer(i.config, template)
		i.config.Issuers = []certmagic.Issuer{i.acme}
	})
	return i, i.err
}

// StopACME stops the background jobs of the ACME client.
func (s *Service) StopACME() {
	s.issuer.once.Do(func() {}) // waits if it is being created
	if s.issuer.cache != nil {
		s.issuer.cache.Stop()
	}
}

// ChallengePath is the path of ACME HTTP challenges.
const ChallengePath = "/.well-known/acme-challenge/"

// Challenge responds to an ACME HTTP challenge that any node has started. It
// returns false for other requests.
func (s *Service) Challenge(w http.ResponseWriter, r *http.Request) bool {
	if !s.ACME.On() {
		return false
	}
	i, err := s.client()
	return err == nil && i.acme.HandleHTTPChallenge(w, r)
}

// obtain runs a certificateWork.
func (s *Service) obtain(ctx context.Context, w certificateWork) error {
	d, err := findDomainByID(ctx, s.DB, w.DomainID)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.fill(ctx, d); err != nil {
		return err
	}
	if !d.AutoSSL || !s.certificateDue(d) || !s.enabled(d) || !s.ACME.On() {
		return nil
	}
	if order := s.limits.Allow(strconv.FormatInt(d.ProjectID, 10), s.Orders); !order.OK {
		return delayCertificate(ctx, s.DB, d.ID, s.Now().Add(order.RetryAfter))
	}
	c, err := s.issue(ctx, d)
	if err != nil {
		return s.noteFailure(ctx, d, err)
	}
	return s.takeIssued(ctx, d, c)
}

// certificateDue reports whether an automatic certificate may be requested now.
func (s *Service) certificateDue(d *Domain) bool {
	return d.renewAt == nil || !s.Now().Before(*d.renewAt)
}

// issue obtains or renews a certificate and returns it from the storage of the
// client.
func (s *Service) issue(ctx context.Context, d *Domain) (Certificate, error) {
	i, err := s.client()
	if err != nil {
		return Certificate{}, err
	}
	keys := certmagic.StorageKeys
	name := keys.SiteCert(i.acme.IssuerKey(), d.Name)
	have, err := s.storedChain(ctx, name)
	switch {
	case err != nil:
		return Certificate{}, err
	case have == nil:
		err = i.config.ObtainCertSync(ctx, d.Name)
	case !s.Now().Before(renewal(have)):
		err = i.config.RenewCertSync(ctx, d.Name, true)
	}
	if err != nil {
		return Certificate{}, err
	}
	storage := &acmeStorage{s: s}
	chain, err := storage.Load(ctx, name)
	if err != nil {
		return Certificate{}, err
	}
	key, err := storage.Load(ctx, keys.SitePrivateKey(i.acme.IssuerKey(), d.Name))
	return Certificate{string(chain), string(key)}, err
}

// storedChain returns the certificate in the storage of the client, or nil if
// there is none.
func (s *Service) storedChain(ctx context.Context, name string) (cert.Chain, error) {
	text, err := (&acmeStorage{s: s}).Load(ctx, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	chain, err := cert.Parse(string(text))
	if err != nil {
		return nil, nil // an invalid certificate is replaced
	}
	return chain, nil
}

// takeIssued saves an issued certificate with its domain. All nodes use it
// immediately.
func (s *Service) takeIssued(ctx context.Context, d *Domain, c Certificate) error {
	chain, err := cert.Parse(c.PEM)
	if err != nil {
		return fmt.Errorf("issued certificate of %s: %w", d.Name, err)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := s.lockDomain(ctx, tx, d.ProjectID, d.Name)
		if errs.Is(err, errs.KindNotFound) || err == nil && !now.AutoSSL {
			return nil // the domain was deleted or automatic certificates were turned off
		}
		if err != nil {
			return err
		}
		s.putCertificate(now, c, chain, AutoCertificate)
		again := renewal(chain)
		now.AutoSSLError, now.renewAt, now.UpdatedAt = "", &again, s.Now()
		if err := saveDomain(ctx, tx, now); err != nil {
			return err
		}
		in := &project.Project{ID: now.ProjectID, FullPath: now.ProjectPath}
		return s.record(ctx, tx, actor.System(), in, now, "pages_certificate_issued", audit.Details{Change: "certificate", To: chain.ExpiresAt().Format(time.RFC3339)})
	})
	if err != nil {
		return fmt.Errorf("issued certificate of %s: %w", d.Name, err)
	}
	return nil
}

// noteFailure records the error of the ACME server with the domain. The time until
// the next attempt increases, because ACME servers limit the rate of failed
// requests.
func (s *Service) noteFailure(ctx context.Context, d *Domain, cause error) error {
	text := cause.Error()
	if len(text) > 1000 {
		text = text[:1000]
	}
	s.Log.WarnContext(ctx, "cannot obtain a certificate", "domain", d.Name, "error", cause)
	now := s.Now()
	return saveFailure(ctx, s.DB, d.ID, cleanText(text), now.Add(min(max(now.Sub(d.UpdatedAt), leastWait), mostWait)))
}

// RenewCertificates adds background jobs for certificates that are missing or
// must be renewed.
func (s *Service) RenewCertificates(ctx context.Context) error {
	if !s.ACME.On() {
		return nil
	}
	for after := int64(0); ; {
		ids, err := dueDomains(ctx, s.DB, after, s.Now())
		if err != nil || len(ids) == 0 {
			return err
		}
		after = ids[len(ids)-1]
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			for _, id := range ids {
				if err := s.Queue.Add(ctx, tx, certificateWork{DomainID: id}, queue.In(lane), queue.Unique(), queue.Priority(3), queue.Tries(3)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("renew certificates: %w", err)
		}
	}
}
