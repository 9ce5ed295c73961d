package user

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/secret"
	"svc/internal/setting"
)

// SignInRequest is the input of SignIn.
type SignInRequest struct {
	Login    string // username or confirmed email address
	Password string
	Code     string // one-time code or recovery code

	IP        string
	UserAgent string
	Remember  bool // persistent cookie
}

// TwoFactorRequired is the error if the password is correct but a code is needed.
type TwoFactorRequired struct {
	// Ticket is passed to FinishSignIn with the code, instead of login and password.
	// It is set by SignIn only.
	Ticket string
}

func (TwoFactorRequired) Error() string { return "two-factor code required" }

// Unwrap returns Unauthorized, for interfaces without a second step.
func (TwoFactorRequired) Unwrap() error {
	return errs.Unauthorized("Two-factor authentication code is required.")
}

// badLogin is the error for all failed sign-ins, so that it does not reveal which
// accounts exist.
func badLogin() *errs.Error { return errs.Unauthorized("Invalid login or password.") }

// SignIn creates a session; its Token is the value of the cookie. Unauthorized if
// the login, password or code is wrong or the account is locked, without
// distinction; TwoFactorRequired if a code is needed; Forbidden if the account may
// not be used. A deactivated account is activated.
func (s *Service) SignIn(ctx context.Context, r SignInRequest) (*Session, *User, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !settings.PasswordForWeb {
		return nil, nil, passwordsOff()
	}
	a, err := s.checkLogin(ctx, r.Login, r.Password, r.IP)
	if err != nil {
		return nil, nil, err
	}
	if err := a.user.mayEnter(); err != nil {
		return nil, nil, err
	}
	if err := a.user.unconfirmed(settings.Confirmation, s.Now()); err != nil {
		return nil, nil, err
	}
	if a.user.TwoFactorEnabled && r.Code == "" {
		return nil, nil, TwoFactorRequired{Ticket: s.halfway(a, r)}
	}
	return s.openSession(ctx, settings, a, r)
}

// openSession checks the two-factor code, if required, and creates the session.
func (s *Service) openSession(ctx context.Context, settings setting.Settings, a *account, r SignInRequest) (*Session, *User, error) {
	if err := s.mayGuess(ctx, r.Login, r.IP); err != nil {
		return nil, nil, err
	}
	session := newSession(a.user.ID, r, settings, s.Now())
	var u *User
	wrongCode := false
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		var err error
		if u, err = s.enter(ctx, tx, a, r); err != nil {
			return err
		}
		if u.TwoFactorEnabled {
			ok, err := s.useCode(ctx, tx, u.ID, r.Code)
			if err != nil {
				return err
			}
			if wrongCode = !ok; wrongCode {
				// In this transaction, so that concurrent guesses are counted.
				return s.countFailure(ctx, tx, settings, u, r.Login, r.IP)
			}
		}
		return s.signedIn(ctx, tx, a, u, session)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("sign in: %w", err)
	}
	if wrongCode {
		if err := s.guessed(ctx, r.Login, r.IP); err != nil {
			return nil, nil, err
		}
		return nil, nil, errs.Unauthorized("Invalid two-factor code.")
	}
	return session, u, nil
}

// PasswordUse is the purpose of a password check. Each has its own setting.
type PasswordUse int

// The purposes: sign-in to the web interface or an equivalent, such as the OAuth
// password grant, and Git over HTTP.
const (
	ForWeb PasswordUse = iota
	ForGit
)

func passwordsOff() error {
	return errs.Forbidden("Password authentication is disabled on this instance. Sign in with an identity provider, or use an access token.")
}

// CheckPassword returns the actor for a login and password, for protocols without
// sessions. The errors are those of SignIn, but an account with two-factor
// authentication is always TwoFactorRequired, and a deactivated account or one
// that must change its password is Forbidden. It is also Forbidden if the settings
// disable passwords for the purpose.
func (s *Service) CheckPassword(ctx context.Context, use PasswordUse, login, password, ip string) (actor.Actor, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return actor.Actor{}, err
	}
	if use == ForWeb && !settings.PasswordForWeb || use == ForGit && !settings.PasswordForGit {
		return actor.Actor{}, passwordsOff()
	}
	a, err := s.checkLogin(ctx, login, password, ip)
	if err != nil {
		return actor.Actor{}, err
	}
	if err := a.user.State.refusal(); err != nil {
		return actor.Actor{}, err
	}
	if err := a.user.unconfirmed(settings.Confirmation, s.Now()); err != nil {
		return actor.Actor{}, err
	}
	if a.user.MustChangePassword { // an administrator knows the password, and it cannot be changed here
		return actor.Actor{}, errs.Forbidden("You must change your password first: sign in with a browser.")
	}
	if a.user.TwoFactorEnabled {
		return actor.Actor{}, TwoFactorRequired{}
	}
	// Only changes are saved, because git sends the password with each request.
	if a.failed > 0 {
		if err := forgiveFailures(ctx, s.DB, a.user.ID); err != nil {
			return actor.Actor{}, fmt.Errorf("check password: %w", err)
		}
	}
	if a.rehashed != a.hash {
		if err := replaceHash(ctx, s.DB, a.user.ID, a.hash, a.rehashed); err != nil {
			return actor.Actor{}, fmt.Errorf("check password: %w", err)
		}
	}
	if err := s.noteActivity(ctx, a.user.ID, a.user.LastActivityOn, s.Now()); err != nil {
		return actor.Actor{}, fmt.Errorf("check password: %w", err)
	}
	return s.toActor(a.user, ip), nil
}

// account is a user with their password.
type account struct {
	user     *User
	hash     string // stored password hash
	rehashed string // hash to store; usually the same
	failed   int64  // number of consecutive failed sign-ins
	provider string // that authenticated the user, instead of the password
}

// checkLogin finds the account of a login and checks its password. All failures
// return the same error and take the time of one hash. If there were too many
// failures from the IP address, it returns limit.Refused, even if the password is
// correct.
func (s *Service) checkLogin(ctx context.Context, login, password, ip string) (*account, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.mayGuess(ctx, login, ip); err != nil {
		return nil, err
	}
	a, err := findLogin(ctx, s.DB, login)
	if err != nil && !errs.Is(err, errs.KindNotFound) {
		return nil, fmt.Errorf("check login: %w", err)
	}
	ok := false
	if a.user == nil || a.user.Kind != Human || a.hash == "" || a.user.Locked(s.Now()) {
		err = s.Hasher.Burn(ctx, password)
	} else {
		ok, err = s.Hasher.Verify(ctx, a.hash, password)
	}
	if err != nil {
		return nil, fmt.Errorf("check login: %w", err)
	}
	// Checked again, so that concurrent guesses are counted.
	if err := s.mayGuess(ctx, login, ip); err != nil {
		return nil, err
	}
	if !ok {
		if err := s.guessed(ctx, login, ip); err != nil {
			return nil, err
		}
		err := s.DB.Tx(ctx, func(tx *db.Tx) error { return s.countFailure(ctx, tx, settings, a.user, login, ip) })
		if err != nil {
			return nil, fmt.Errorf("check login: %w", err)
		}
		return nil, badLogin()
	}
	a.rehashed = a.hash
	if s.Hasher.NeedsRehash(a.hash) {
		if a.rehashed, err = s.Hasher.Hash(ctx, password); err != nil {
			return nil, fmt.Errorf("check login: %w", err)
		}
	}
	return &a, nil
}

// mayEnter returns an error if the account cannot sign in.
func (u *User) mayEnter() error {
	if u.State == Deactivated {
		return nil // signing in activates the account
	}
	return u.State.refusal()
}

// unconfirmed returns an error if the address is not confirmed and the settings
// require that.
func (u *User) unconfirmed(demand setting.Confirmation, now time.Time) error {
	if u.ConfirmedAt != nil || demand == setting.ConfirmOff ||
		demand == setting.ConfirmSoft && now.Before(u.CreatedAt.AddDate(0, 0, setting.SoftDays)) {
		return nil
	}
	return errs.Forbidden("You have to confirm your email address before you can sign in.")
}

// enter locks the account and checks it again: it may have been locked or blocked,
// or its password may have been changed, while the hash was computed.
func (s *Service) enter(ctx context.Context, tx *db.Tx, a *account, r SignInRequest) (*User, error) {
	u, err := lockUser(ctx, tx, a.user.ID)
	if errs.Is(err, errs.KindNotFound) {
		return nil, badLogin()
	}
	if err != nil {
		return nil, err
	}
	if err := u.mayEnter(); err != nil {
		return nil, err
	}
	if u.Locked(s.Now()) {
		return nil, badLogin()
	}
	if u.TwoFactorEnabled && r.Code == "" {
		return nil, TwoFactorRequired{}
	}
	return u, nil
}

// signedIn saves the sign-in and its session.
func (s *Service) signedIn(ctx context.Context, tx *db.Tx, a *account, u *User, session *Session) error {
	now := session.CreatedAt
	err := saveSignIn(ctx, tx, a, session.IP, now)
	if errors.Is(err, db.ErrNoRows) {
		return badLogin().Because(errors.New("the password was changed meanwhile"))
	}
	if err != nil {
		return err
	}
	if u.State == Deactivated {
		u.State, u.UpdatedAt = Active, now
		if err := saveUser(ctx, tx, u); err != nil {
			return err
		}
		err := s.record(ctx, tx, s.toActor(u, session.IP), u, "user_activated",
			audit.Details{Change: "state", From: string(Deactivated), To: string(Active)})
		if err != nil {
			return err
		}
	}
	if err := insertSession(ctx, tx, session); err != nil {
		return err
	}
	if err := insertSignIn(ctx, tx, session); err != nil {
		return err
	}
	u.SignInCount++
	u.LastSignInAt, u.LastSignInIP = u.CurrentSignInAt, u.CurrentSignInIP
	if u.LastSignInAt == nil {
		u.LastSignInAt, u.LastSignInIP = &now, session.IP
	}
	u.CurrentSignInAt, u.CurrentSignInIP = &now, session.IP
	u.LastActivityOn = now.UTC().Format(time.DateOnly)
	if a.provider != "" {
		err := s.record(ctx, tx, s.toActor(u, session.IP), u, "user_signed_in_with_provider", audit.Details{Message: "Signed in with " + a.provider})
		if err != nil {
			return err
		}
	}
	return s.dropActor(ctx, tx, u.ID)
}

// countFailure records a failed sign-in and locks the account if there were too
// many. u is nil if there is no such account.
func (s *Service) countFailure(ctx context.Context, tx *db.Tx, settings setting.Settings, u *User, login, ip string) error {
	target := audit.Target{Type: "User", Details: strings.ToLower(clip(login, 255))}
	if u != nil {
		target.ID = u.ID
	}
	err := audit.RecordFailedLogin(ctx, tx, actor.Actor{IP: limit.AddressKey(ip)}, s.Now(), target)
	if err != nil || u == nil {
		return err
	}
	if err := s.Events.Recorded.Publish(ctx, tx, Recorded{User: u, Kind: FailedLogin, Target: target}); err != nil || u.Locked(s.Now()) {
		return err
	}
	return s.lockAfter(ctx, tx, settings, u, ip)
}

// lockAfter increments the number of failures and locks the account at the limit
// of the settings. An expired lock resets the count.
func (s *Service) lockAfter(ctx context.Context, tx *db.Tx, settings setting.Settings, u *User, ip string) error {
	if err := tx.Lock(ctx, "users", u.ID); err != nil {
		return err
	}
	failed, until, err := findFailures(ctx, tx, u.ID)
	if err != nil {
		return err
	}
	now := s.Now()
	if until != nil {
		if now.Before(*until) {
			return nil // locked concurrently
		}
		failed, until = 0, nil
	}
	failed++
	if failed >= int64(settings.MaxLoginAttempts) {
		end := now.Add(time.Duration(settings.UnlockMinutes) * time.Minute)
		until = &end
		by := actor.System()
		by.IP = ip
		if err := s.record(ctx, tx, by, u, "user_access_locked", audit.Details{Message: "User access locked"}); err != nil {
			return err
		}
		if err := s.postUnlock(ctx, tx, u); err != nil {
			return err
		}
	}
	return saveFailures(ctx, tx, u.ID, failed, until)
}

// PurgeFailedLogins deletes old audit events of failed sign-ins according to the
// settings. It is an hourly job.
func (s *Service) PurgeFailedLogins(ctx context.Context) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil || settings.FailedLoginDays == 0 {
		return err
	}
	return audit.PurgeFailedLogins(ctx, s.DB, s.Now().AddDate(0, 0, -settings.FailedLoginDays))
}

// clip returns the first n bytes of an untrusted text for display.
func clip(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
}

// lockUser locks and returns an account.
func lockUser(ctx context.Context, tx *db.Tx, id int64) (*User, error) {
	if err := tx.Lock(ctx, "users", id); err != nil {
		return nil, err
	}
	return findUser(ctx, tx, id)
}

// newSession returns the session to insert.
func newSession(userID int64, r SignInRequest, settings setting.Settings, now time.Time) *Session {
	life := time.Duration(settings.SessionMinutes) * time.Minute
	if r.Remember {
		life = rememberFor
	}
	return &Session{
		UserID: userID, Token: secret.Token(""), CSRF: secret.Token(""), IP: r.IP, UserAgent: clip(r.UserAgent, 255),
		CreatedAt: now, LastSeenAt: now, ExpiresAt: now.Add(life), Remember: r.Remember,
	}
}
