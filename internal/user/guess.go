package user

import (
	"context"
	"strings"
	"time"

	"svc/internal/limit"
)

// Failed credentials are counted by IP address (for IPv6, by /64 network) across
// all interfaces. Passwords and one-time codes can be guessed, so an address that
// has reached its limit is refused before they are checked. Tokens are too long to
// be guessed, so a valid one always works; the limit bounds the work caused by
// invalid ones.

// mayGuess returns limit.Refused if there were too many wrong passwords from an IP
// address, for the login or in total.
func (s *Service) mayGuess(ctx context.Context, login, ip string) error {
	rates, err := s.guessRates(ctx, login, ip)
	if err != nil {
		return err
	}
	for _, r := range rates {
		if d := s.limits.Peek(r.key, r.rate); !d.OK {
			return limit.Refused{Decision: d}
		}
	}
	return nil
}

// guessed counts a wrong password or code.
func (s *Service) guessed(ctx context.Context, login, ip string) error {
	rates, err := s.guessRates(ctx, login, ip)
	if err != nil {
		return err
	}
	for _, r := range rates {
		s.limits.Allow(r.key, r.rate)
	}
	return nil
}

// FailedGuess counts an invalid token that was sent as a password. It returns
// limit.Refused if there were too many, otherwise refusal.
func (s *Service) FailedGuess(ctx context.Context, login, ip string, refusal error) error {
	if err := s.mayGuess(ctx, login, ip); err != nil {
		return err
	}
	if err := s.guessed(ctx, login, ip); err != nil {
		return err
	}
	return refusal
}

type guessRate struct {
	key  string
	rate limit.Rate
}

func (s *Service) guessRates(ctx context.Context, login, ip string) ([]guessRate, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	address := limit.AddressKey(ip)
	return []guessRate{
		{address + " " + strings.ToLower(login), limit.Rate{Name: "sign_in", Requests: settings.SignInsPerMinute, Period: time.Minute}},
		{address, limit.Rate{Name: "failed_passwords", Requests: settings.FailedPasswordsPerMinute, Period: time.Minute}},
	}, nil
}

// FailedToken counts an invalid token, code or link. It returns limit.Refused if
// there were too many, otherwise refusal. Features with their own tokens call it.
func (s *Service) FailedToken(ctx context.Context, ip string, refusal error) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	d := s.limits.Allow(limit.AddressKey(ip), limit.Rate{Name: "failed_tokens", Requests: settings.FailedTokensPerMinute, Period: time.Minute})
	if !d.OK {
		return limit.Refused{Decision: d}
	}
	return refusal
}
