package user

import (
	"context"
	"strings"
	"time"

	"svc/internal/limit"
)

// Failed credentials are counted for each address (for IPv6, its /64 network),
// whichever interface they come by. Passwords and one-time codes can be guessed:
// an address over its limit is refused before they are checked. Tokens are too
// long to be guessed, so a valid one always works; the limit is on the work that
// invalid ones cause.

// mayGuess refuses an address that has given too many wrong passwords, for the
// login or for all logins, with limit.Refused.
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

// FailedGuess counts a token that was given in place of a password and opened
// nothing. It returns limit.Refused when there were too many, else the given
// refusal.
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

// FailedToken counts a token, code or link of an address that opened nothing. It
// returns limit.Refused when there were too many, else the given refusal.
// Features that have tokens of their own call it.
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
