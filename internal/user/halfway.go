package user

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"svc/internal/errs"
	"svc/internal/secret"
)

// halfwayLife is how long the second step of a sign-in is possible.
const halfwayLife = 10 * time.Minute

// halfwayPlace binds the sealed ticket to its purpose.
const halfwayPlace = "sign_in/halfway"

// halfwayTicket identifies a user who has entered the correct password, or whom an
// identity provider has authenticated. It becomes invalid if the password changes.
type halfwayTicket struct {
	UserID   int64     `json:"user"`
	Password string    `json:"password"` // digest of the hash
	Provider string    `json:"provider,omitempty"`
	Remember bool      `json:"remember"`
	Until    time.Time `json:"until"`
}

func (s *Service) halfway(a *account, r SignInRequest) string {
	// Marshaling these types cannot fail.
	text, _ := json.Marshal(halfwayTicket{
		UserID: a.user.ID, Password: secret.Digest(a.hash), Provider: a.provider, Remember: r.Remember, Until: s.Now().Add(halfwayLife),
	})
	return s.Keys.Seal(text, halfwayPlace)
}

// FinishSignIn is the second step of SignIn, with the ticket of TwoFactorRequired.
// Only the code of the request is used. Gone if the user must start again;
// Unauthorized if the code is wrong, which counts like a wrong password.
func (s *Service) FinishSignIn(ctx context.Context, ticket string, r SignInRequest) (*Session, *User, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	late := errs.Gone("Your sign-in took too long. Please start again.")
	text, err := s.Keys.Open(ticket, halfwayPlace)
	if err != nil {
		return nil, nil, late.Because(err)
	}
	var h halfwayTicket
	if err := json.Unmarshal(text, &h); err != nil || !s.Now().Before(h.Until) {
		return nil, nil, late
	}
	u, err := findUser(ctx, s.DB, h.UserID)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil, late.Because(err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("finish sign-in: %w", err)
	}
	a := &account{user: u, provider: h.Provider}
	if a.hash, err = passwordHash(ctx, s.DB, u.ID); err != nil {
		return nil, nil, fmt.Errorf("finish sign-in: %w", err)
	}
	if !secret.Equal(secret.Digest(a.hash), h.Password) {
		return nil, nil, late
	}
	a.rehashed = a.hash
	if err := u.mayEnter(); err != nil {
		return nil, nil, err
	}
	if r.Code == "" {
		return nil, nil, errs.Unauthorized("Invalid two-factor code.")
	}
	r.Login, r.Remember = u.Username, h.Remember
	return s.openSession(ctx, settings, a, r)
}
