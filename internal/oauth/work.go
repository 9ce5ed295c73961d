package oauth

import (
	"context"
	"fmt"
	"time"
)

const (
	// keepCodes and keepTokens are how long what was used up is remembered, to
	// tell when it is used again.
	keepCodes  = 24 * time.Hour
	keepTokens = 30 * 24 * time.Hour
	// purgeBatch is how many rows one statement removes.
	purgeBatch = 1000
)

// Purge removes what no longer gives anything. The queue calls it each hour.
func (s *Service) Purge(ctx context.Context) error {
	now := s.Now()
	for _, old := range []struct {
		table, where string
		before       time.Time
	}{
		{"oauth_codes", "expires_at <= ?", now.Add(-keepCodes)},
		{"oauth_tokens", "revoked_at <= ?", now.Add(-keepTokens)},
		{"oauth_grants", "revoked_at <= ?", now.Add(-keepTokens)},
		{"oauth_grants", "used_at <= ?", now.Add(-refreshLife)},
		{"oauth_grants", "redirect_uri = '' AND used_at <= ?", now.Add(-keepCodes)},
	} {
		for more := true; more; {
			n, err := deleteOld(ctx, s.DB, old.table, old.where, old.before, purgeBatch)
			if err != nil {
				return fmt.Errorf("purge %s: %w", old.table, err)
			}
			more = n == purgeBatch
		}
	}
	return nil
}
