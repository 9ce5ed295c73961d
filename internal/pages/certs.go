package pages

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/pages/cert"
)

// certsMax bounds the certificates that are kept, about 10 KiB each.
const certsMax = 5000

// certs are the certificates that were asked for last, nil for a name without
// one.
type certs struct {
	mu      sync.RWMutex
	known   map[string]knownCert
	dropped int
}

type knownCert struct {
	pair   *tls.Certificate
	loaded time.Time
}

func (c *certs) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = nil
	c.dropped++
}

// Pair gives the certificate of a domain with its key, for the TLS server.
// NotFound when there is none.
func (s *Service) Pair(ctx context.Context, name string) (*tls.Certificate, error) {
	now := s.Now()
	s.certs.mu.RLock()
	have, ok := s.certs.known[name]
	drops := s.certs.dropped
	s.certs.mu.RUnlock()
	if ok && s.Notices.Healthy() && now.Sub(have.loaded) < routesTTL {
		if have.pair == nil {
			return nil, errs.NotFound("Certificate")
		}
		return have.pair, nil
	}
	pair, err := s.readPair(ctx, name)
	if err != nil && !errs.Is(err, errs.KindNotFound) {
		return nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	s.certs.mu.Lock()
	defer s.certs.mu.Unlock()
	if s.certs.dropped == drops {
		if s.certs.known == nil || len(s.certs.known) >= certsMax {
			s.certs.known = map[string]knownCert{}
		}
		s.certs.known[name] = knownCert{pair, now}
	}
	return pair, err
}

func (s *Service) readPair(ctx context.Context, name string) (*tls.Certificate, error) {
	d, err := findDomainByName(ctx, s.DB, name)
	if errors.Is(err, db.ErrNoRows) {
		return nil, errs.NotFound("Certificate")
	}
	if err != nil {
		return nil, err
	}
	if err := s.fill(ctx, d); err != nil {
		return nil, err
	}
	if d.Certificate == "" || !s.enabled(d) {
		return nil, errs.NotFound("Certificate")
	}
	key, err := s.Keys.Open(d.sealedKey, d.place())
	if err != nil {
		return nil, err
	}
	return cert.Pair(d.Certificate, string(key))
}
