package user

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/pquerna/otp/totp"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
)

// Enrollment is the data for setting up an authenticator.
type Enrollment struct {
	Secret string   // base32, for manual entry
	URL    string   // otpauth://…, for a QR code
	Codes  []string // recovery codes; set by EnrollTwoFactor only
}

const (
	otpPeriod = 30 // lifetime of a code in seconds
	otpSkew   = 1  // allowed clock skew in periods
	otpDigits = 6

	recoveryCodes = 10
)

// StartTwoFactor generates a new secret for the authenticator of the actor. It has
// no effect before EnableTwoFactor. issuer is the name shown by the authenticator.
// It requires a session, in which the caller has checked that the actor is present
// (ConfirmSelf): Forbidden with a token or for an impersonator. Invalid if two-factor
// authentication is enabled.
func (s *Service) StartTwoFactor(ctx context.Context, by actor.Actor, issuer string) (*Enrollment, error) {
	if err := by.RequireSession(); err != nil {
		return nil, err
	}
	var e *Enrollment
	err := s.changeTwoFactor(ctx, by.ID, func(tx *db.Tx, u *User) (err error) {
		e, err = s.newSecret(ctx, tx, u, issuer)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("start two-factor authentication: %w", err)
	}
	return e, nil
}

// EnableTwoFactor turns on two-factor authentication for the actor. The code
// proves that their authenticator has the secret. It returns the recovery codes,
// which are not shown again. It requires a session: Forbidden. Invalid if the code is
// wrong or StartTwoFactor was not called.
func (s *Service) EnableTwoFactor(ctx context.Context, by actor.Actor, code string) ([]string, error) {
	if err := by.RequireSession(); err != nil {
		return nil, err
	}
	var codes []string
	err := s.changeTwoFactor(ctx, by.ID, func(tx *db.Tx, u *User) error {
		o, err := findOTP(ctx, tx, u.ID)
		if err != nil {
			return err
		}
		if o.sealed == "" {
			return errs.Invalid("Two-factor authentication has not been set up")
		}
		step, ok, err := s.matchCode(o, u.ID, code)
		if err != nil {
			return err
		}
		if !ok {
			return errs.Invalid("Invalid two-factor code.")
		}
		codes, err = s.enable(ctx, tx, by, u, step)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("enable two-factor authentication: %w", err)
	}
	return codes, nil
}

// EnrollTwoFactor enables two-factor authentication for a user in one step. Only
// the system may call it, for `svc admin`. Invalid if it is enabled already.
func (s *Service) EnrollTwoFactor(ctx context.Context, by actor.Actor, userID int64, issuer string) (*Enrollment, error) {
	if by.ID != actor.SystemID {
		return nil, errs.Forbidden("")
	}
	var e *Enrollment
	err := s.changeTwoFactor(ctx, userID, func(tx *db.Tx, u *User) (err error) {
		if e, err = s.newSecret(ctx, tx, u, issuer); err != nil {
			return err
		}
		e.Codes, err = s.enable(ctx, tx, by, u, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("enroll user %d: %w", userID, err)
	}
	return e, nil
}

// DisableTwoFactor disables two-factor authentication for another user. Requires
// an administrator. Forbidden for administrators: use `svc admin` for those.
// Invalid if it is not enabled; NotFound.
func (s *Service) DisableTwoFactor(ctx context.Context, by actor.Actor, userID int64) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	return s.disableTwoFactor(ctx, by, userID, func(u *User) error {
		if u.Admin && by.ID != actor.SystemID {
			return errs.Forbidden("Two-factor authentication for admins cannot be disabled via the API")
		}
		return nil
	})
}

// DisableOwnTwoFactor disables two-factor authentication for the actor. It
// requires the password. Invalid if that is wrong, which counts like a failed
// sign-in, or if two-factor authentication is not enabled.
func (s *Service) DisableOwnTwoFactor(ctx context.Context, by actor.Actor, password string) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	_, err := s.checkLogin(ctx, by.Username, password, by.IP)
	if errs.Is(err, errs.KindUnauthorized) {
		return errs.InvalidField("password", "is invalid").Because(err)
	}
	if err != nil {
		return err
	}
	return s.disableTwoFactor(ctx, by, by.ID, func(*User) error { return nil })
}

func (s *Service) disableTwoFactor(ctx context.Context, by actor.Actor, userID int64, rule func(*User) error) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := lockUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		if err := rule(u); err != nil {
			return err
		}
		if !u.TwoFactorEnabled {
			return errs.Invalid("Two-factor authentication is not enabled for this user")
		}
		if err := saveOTP(ctx, tx, u.ID, "", nil, 0); err != nil {
			return err
		}
		if err := deleteRecoveryCodes(ctx, tx, u.ID); err != nil {
			return err
		}
		if err := s.record(ctx, tx, by, u, "user_disable_two_factor", audit.Details{Message: "Disabled two-factor authentication"}); err != nil {
			return err
		}
		return s.dropActor(ctx, tx, u.ID)
	})
	if err != nil {
		return fmt.Errorf("disable two-factor authentication of user %d: %w", userID, err)
	}
	return nil
}

// changeTwoFactor calls f with a user without two-factor authentication.
func (s *Service) changeTwoFactor(ctx context.Context, userID int64, f func(tx *db.Tx, u *User) error) error {
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := lockUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		if u.TwoFactorEnabled {
			return errs.Invalid("Two-factor authentication is already enabled for this user")
		}
		return f(tx, u)
	})
}

// newSecret generates and stores a secret that is not active yet.
func (s *Service) newSecret(ctx context.Context, tx *db.Tx, u *User, issuer string) (*Enrollment, error) {
	key, err := totp.Generate(totp.GenerateOpts{Issuer: issuer, AccountName: u.Email, Period: otpPeriod, Digits: otpDigits})
	if err != nil {
		return nil, err
	}
	if err := saveOTP(ctx, tx, u.ID, s.Keys.Seal([]byte(key.Secret()), otpPlace(u.ID)), nil, 0); err != nil {
		return nil, err
	}
	return &Enrollment{Secret: key.Secret(), URL: key.URL()}, nil
}

// enable activates the stored secret. step is that of the code that was entered,
// which is thereby used up.
func (s *Service) enable(ctx context.Context, tx *db.Tx, by actor.Actor, u *User, step int64) ([]string, error) {
	o, err := findOTP(ctx, tx, u.ID)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	if err := saveOTP(ctx, tx, u.ID, o.sealed, &now, step); err != nil {
		return nil, err
	}
	codes, err := s.newCodes(ctx, tx, u.ID)
	if err != nil {
		return nil, err
	}
	if err := s.record(ctx, tx, by, u, "user_enable_two_factor", audit.Details{Message: "Enabled two-factor authentication"}); err != nil {
		return nil, err
	}
	return codes, s.dropActor(ctx, tx, u.ID)
}

// newCodes replaces the recovery codes of a user.
func (s *Service) newCodes(ctx context.Context, tx *db.Tx, userID int64) ([]string, error) {
	if err := deleteRecoveryCodes(ctx, tx, userID); err != nil {
		return nil, err
	}
	codes := make([]string, recoveryCodes)
	for i := range codes {
		codes[i] = newRecoveryCode()
		if err := insertRecoveryCode(ctx, tx, userID, recoveryDigest(codes[i])); err != nil {
			return nil, err
		}
	}
	return codes, nil
}

// useCode uses up a one-time code or recovery code. It returns false if the code
// is wrong or was used before. The caller has locked the user.
func (s *Service) useCode(ctx context.Context, tx *db.Tx, userID int64, code string) (bool, error) {
	o, err := findOTP(ctx, tx, userID)
	if err != nil {
		return false, err
	}
	step, ok, err := s.matchCode(o, userID, code)
	if err != nil {
		return false, err
	}
	if ok {
		return used(useStep(ctx, tx, userID, step))
	}
	return used(deleteRecoveryCode(ctx, tx, userID, recoveryDigest(code)))
}

// used converts the result of a compare-and-set to a bool.
func used(err error) (bool, error) {
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// matchCode finds the time step of a code, among those around now and after the
// last one used, so that a code cannot be used twice.
func (s *Service) matchCode(o otpRow, userID int64, code string) (step int64, ok bool, err error) {
	code = strings.ReplaceAll(strings.TrimSpace(code), " ", "")
	if len(code) != otpDigits || !allDigits(code) {
		return 0, false, nil
	}
	key, err := s.Keys.Open(o.sealed, otpPlace(userID))
	if err != nil {
		return 0, false, err
	}
	now := s.Now().Unix() / otpPeriod
	for at := now - otpSkew; at <= now+otpSkew; at++ {
		want, err := hotp.GenerateCodeCustom(string(key), uint64(at), hotp.ValidateOpts{Digits: otpDigits, Algorithm: otp.AlgorithmSHA1})
		if err != nil {
			return 0, false, err
		}
		if secret.Equal(want, code) && at > o.lastStep {
			step, ok = at, true
		}
	}
	return step, ok, nil
}

// newRecoveryCode returns 80 random bits in groups that are easy to copy.
func newRecoveryCode() string {
	text := strings.ToLower(rand.Text()[:16])
	return text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
}

// recoveryDigest returns the stored form of a recovery code, ignoring case and
// separators.
func recoveryDigest(code string) string {
	return secret.Digest(strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(code)))
}

// otpPlace binds a sealed secret to its user.
func otpPlace(userID int64) string { return fmt.Sprintf("users/otp_secret/%d", userID) }

// otpRow has the two-factor columns of a user.
type otpRow struct {
	sealed   string
	lastStep int64
}
