package signing

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"svc/internal/db"
)

func (s *Service) read(ctx context.Context) ([]*key, error) {
	keys, err := db.All(ctx, s.DB, s.scan, `SELECT kid, sealed FROM signing_keys ORDER BY id DESC`)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	return keys, nil
}

func (s *Service) scan(row db.Scanner) (*key, error) {
	var id, sealed string
	if err := row.Scan(&id, &sealed); err != nil {
		return nil, err
	}
	raw, err := s.Keys.Open(sealed, place(id))
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", id, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(raw)
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", id, err)
	}
	private, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("signing key " + id + " is not an RSA key")
	}
	return &key{id, private}, nil
}

func insertKey(ctx context.Context, q db.Q, id, sealed string, now time.Time) error {
	_, err := q.ExecContext(ctx, `INSERT INTO signing_keys (kid, sealed, created_at) VALUES (?, ?, ?)`, id, sealed, now)
	return err
}
