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
	Login    string // username or confirmed address
	Password string
	Code     string // of the authenticator, or a recovery code

	IP        string
	UserAgent string
	Remember  bool // a session that outlives the browser
}

// TwoFactorRequired says that the password was right and a code is needed.
type TwoFactorRequired struct {
	// Ticket is what FinishSignIn takes with the code, instead of login and
	// password. Only SignIn gives it.
	Ticket string
}

// Error returns the text for logs.
func (TwoFactorRequired) Error() string { return "two-factor code required" }

// Unwrap makes it a refusal for interfaces that have no second step.
func (TwoFactorRequired) Unwrap() error {
	return errs.Unauthorized("Two-factor authentication code is required.")
}

// badLogin is the one answer to everything that is wrong with a login, so that
// no one learns which accounts there are.
func badLogin() *errs.Error { return errs.Unauthorized("Invalid login or password.") }

// SignIn opens a session; its Token goes into the cookie. Unauthorized when
// login, password or code is wrong or the account is locked, which are not
// distinguished; TwoFactorRequired when a code is needed; Forbidden when the
// account may not be used. A deactivated account becomes active again.
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

// openSession is the part of signing in that follows the password.
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
				// In this transaction, so that no second guess slips by
				// before the first is counted.
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

// PasswordUse is what a password is given for. Each has its own setting.
type PasswordUse int

// The uses: programs that act like the web interface, and git over HTTP.
const (
	ForWeb PasswordUse = iota
	ForGit
)

func passwordsOff() error {
	return errs.Forbidden("Password authentication is disabled on this instance. Sign in with an identity provider, or use an access token.")
}

// CheckPassword returns the actor behind a login and password, for protocols
// without sessions. It refuses like SignIn; an account with two-factor
// authentication is always TwoFactorRequired, and a deactivated one Forbidden,
// like one whose user has to choose their own password first. Where passwords are
// disabled for the use it is Forbidden for everyone.
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
	if a.user.MustChangePassword { // someone else knows it, and there is no page here to change it on
		return actor.Actor{}, errs.Forbidden("You must change your password first: sign in with a browser.")
	}
	if a.user.TwoFactorEnabled {
		return actor.Actor{}, TwoFactorRequired{}
	}
	// Only what has changed is written: git asks for each of its requests.
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
	hash     string // of the password, as stored
	rehashed string // as it should be stored; the same most times
	failed   int64  // sign-ins in a row
}

// checkLogin finds the account of a login and checks its password. Whatever
// is wrong, the answer is the same and takes the time of one hash. An address
// with too many failures gets limit.Refused, whether the password was right or
// not.
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
	// Others may have failed meanwhile: guesses at the same time are not free.
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

// mayEnter refuses accounts that cannot be signed in to.
func (u *User) mayEnter() error {
	if u.State == Deactivated {
		return nil // signing in is how they come back
	}
	return u.State.refusal()
}

// unconfirmed refuses an account whose address is not confirmed, where the
// settings demand that.
func (u *User) unconfirmed(demand setting.Confirmation, now time.Time) error {
	if u.ConfirmedAt != nil || demand == setting.ConfirmOff ||
		demand == setting.ConfirmSoft && now.Before(u.CreatedAt.AddDate(0, 0, setting.SoftDays)) {
		return nil
	}
	return errs.Forbidden("You have to confirm your email address before you can sign in.")
}

// enter looks at the account again, now that no one else can change it: it may
// have been locked or blocked, or lost its password, while we computed.
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

// signedIn writes the sign-in and its session.
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
	return s.dropActor(ctx, tx, u.ID)
}

// countFailure records a failed sign-in and locks the account when there were
// too many; u is nil when no one has the login.
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

// lockAfter counts one more failure, and locks the account at the last one that
// the settings allow. A lock that is over starts the count again.
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
			return nil // someone else's failure has locked it just now
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

// PurgeFailedLogins removes old audit events of failed sign-ins, as the settings
// say. The queue calls it each hour.
func (s *Service) PurgeFailedLogins(ctx context.Context) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil || settings.FailedLoginDays == 0 {
		return err
	}
	return audit.PurgeFailedLogins(ctx, s.DB, s.Now().AddDate(0, 0, -settings.FailedLoginDays))
}

// clip keeps the first n bytes of outside text that is only shown.
func clip(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
}

// lockUser reads an account that no one else can change until tx ends.
func lockUser(ctx context.Context, tx *db.Tx, id int64) (*User, error) {
	if err := tx.Lock(ctx, "users", id); err != nil {
		return nil, err
	}
	return findUser(ctx, tx, id)
}

// newSession is the session before it is stored.
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
