package pages

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/pages/cert"
)

// Pair returns the certificate of a domain with its key, for the TLS server. It
// returns NotFound if there is none.
func (s *Service) Pair(ctx context.Context, name string) (*tls.Certificate, error) {
	pair, err := s.certs.Get(name, func() (*tls.Certificate, bool, error) {
		pair, err := s.readPair(ctx, name)
		return pair, true, err
	})
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	if pair == nil {
		return nil, errs.NotFound("Certificate")
	}
	return pair, nil
}

// readPair returns the certificate of a domain with its key from the database, or
// nil if there is none.
func (s *Service) readPair(ctx context.Context, name string) (*tls.Certificate, error) {
	d, err := findDomainByName(ctx, s.DB, name)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := s.fill(ctx, d); err != nil {
		return nil, err
	}
	if d.Certificate == "" || !s.enabled(d) {
		return nil, nil
	}
	key, err := s.Keys.Open(d.sealedKey, d.place())
	if err != nil {
		return nil, err
	}
	return cert.Pair(d.Certificate, string(key))
}
