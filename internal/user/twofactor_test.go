package user

import (
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"svc/internal/actor"
	"svc/internal/errs"
)

// code returns the current one-time code for a secret.
func (b *bench) code(secret string) string {
	b.t.Helper()
	code, err := totp.GenerateCode(secret, b.Now())
	b.ok(err)
	return code
}

func (b *bench) signInWith(code string) error {
	_, _, err := b.SignIn(b.t.Context(), SignInRequest{Login: "ada", Password: password, Code: code})
	return err
}

func TestTwoFactor(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")

		_, err := b.EnableTwoFactor(ctx, byAda, "123456")
		b.refused(err, errs.KindInvalid) // StartTwoFactor was not called
		impersonated := byAda
		impersonated.Impersonator = &actor.Actor{ID: 1, Admin: true}
		_, err = b.StartTwoFactor(ctx, impersonated, "forge.example.com")
		b.refused(err, errs.KindForbidden)
		e, err := b.StartTwoFactor(ctx, byAda, "forge.example.com")
		b.ok(err)
		address, err := url.Parse(e.URL)
		b.ok(err)
		if address.Scheme != "otpauth" || address.Query().Get("secret") != e.Secret || address.Query().Get("issuer") != "forge.example.com" {
			b.t.Errorf("address %s", e.URL)
		}
		var stored string
		b.ok(b.DB.QueryRowContext(ctx, `SELECT otp_secret FROM users WHERE id = ?`, ada.ID).Scan(&stored))
		if stored == "" || strings.Contains(stored, e.Secret) {
			b.t.Errorf("the secret is stored as %q", stored)
		}
		b.ok(b.signInWith("")) // no code is required yet

		wrong := "000000"
		if wrong == b.code(e.Secret) {
			wrong = "000001"
		}
		_, err = b.EnableTwoFactor(ctx, byAda, wrong)
		b.refused(err, errs.KindInvalid)
		codes, err := b.EnableTwoFactor(ctx, byAda, b.code(e.Secret))
		b.ok(err)
		if len(codes) != 10 || !b.again(ada).TwoFactorEnabled {
			b.t.Fatalf("%d recovery codes", len(codes))
		}
		b.event("user_enable_two_factor")
		_, err = b.StartTwoFactor(ctx, byAda, "x")
		b.refused(err, errs.KindInvalid) // a new secret would invalidate the one in use

		if err := b.signInWith(""); !errors.As(err, &TwoFactorRequired{}) {
			b.t.Errorf("without a code: %v", err)
		}
		if _, err := b.CheckPassword(ctx, ForGit, "ada", password, ""); !errors.As(err, &TwoFactorRequired{}) {
			b.t.Errorf("password alone: %v", err)
		}

		// A code can be used once. It also invalidates all earlier codes.
		b.refused(b.signInWith(b.code(e.Secret)), errs.KindUnauthorized) // used by EnableTwoFactor
		b.clock.add(30 * time.Second)
		now := b.code(e.Secret)
		b.clock.add(30 * time.Second)
		later := b.code(e.Secret)
		b.ok(b.signInWith(later[:3] + " " + later[3:]))
		b.refused(b.signInWith(later), errs.KindUnauthorized)
		b.refused(b.signInWith(now), errs.KindUnauthorized)

		// The previous code is accepted, the one before is not.
		b.clock.add(5 * time.Minute)
		old := b.code(e.Secret)
		b.clock.add(60 * time.Second)
		b.refused(b.signInWith(old), errs.KindUnauthorized)
		late := b.code(e.Secret)
		b.clock.add(30 * time.Second)
		b.ok(b.signInWith(late))

		b.ok(b.signInWith(strings.ToUpper(strings.ReplaceAll(codes[3], "-", " "))))
		b.refused(b.signInWith(codes[3]), errs.KindUnauthorized)
		b.ok(b.signInWith(codes[4]))
		b.refused(b.signInWith(codes[4]), errs.KindUnauthorized)
	})
}

// TestTwoFactorRace checks that only one of several concurrent sign-ins with the
// same code succeeds.
func TestTwoFactorRace(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ada, _ := b.user("ada")
		e, err := b.EnrollTwoFactor(b.t.Context(), actor.System(), ada.ID, "svc")
		b.ok(err)
		for _, code := range []string{b.code(e.Secret), e.Codes[0]} {
			var in sync.WaitGroup
			results := make(chan error, 8)
			for range cap(results) {
				in.Go(func() { results <- b.signInWith(code) })
			}
			in.Wait()
			close(results)
			let := 0
			for err := range results {
				if err == nil {
					let++
				}
			}
			if let != 1 {
				b.t.Errorf("%d were let in by one code", let)
			}
		}
	})
}

func TestDisableTwoFactor(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")
		boss, byBoss := b.admin("boss")
		other, _ := b.admin("other")
		for _, u := range []*User{ada, boss, other} {
			_, err := b.EnrollTwoFactor(ctx, actor.System(), u.ID, "svc")
			b.ok(err)
		}
		_, err := b.EnrollTwoFactor(ctx, byBoss, ada.ID, "svc")
		b.refused(err, errs.KindForbidden)

		b.refused(b.DisableTwoFactor(ctx, actor.Actor{}, ada.ID), errs.KindUnauthorized)
		b.refused(b.DisableTwoFactor(ctx, byAda, ada.ID), errs.KindForbidden)
		b.refused(b.DisableTwoFactor(ctx, byBoss, boss.ID), errs.KindForbidden)
		b.refused(b.DisableTwoFactor(ctx, byBoss, other.ID), errs.KindForbidden)
		b.refused(b.DisableTwoFactor(ctx, byBoss, 999_999), errs.KindNotFound)
		b.ok(b.DisableTwoFactor(ctx, byBoss, ada.ID))
		err = b.DisableTwoFactor(ctx, byBoss, ada.ID)
		if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != errs.KindInvalid || e.Text != "Two-factor authentication is not enabled for this user" {
			b.t.Errorf("a second time: %v", err)
		}
		b.event("user_disable_two_factor")
		b.ok(b.DisableTwoFactor(ctx, actor.System(), other.ID))
		var left int
		b.ok(b.DB.QueryRowContext(ctx, `SELECT count(*) FROM recovery_codes WHERE user_id <> ?`, boss.ID).Scan(&left))
		if left != 0 {
			b.t.Errorf("%d recovery codes are left", left)
		}

		b.wrong(b.DisableOwnTwoFactor(ctx, byBoss, "wrong"), "password", "is invalid")
		b.ok(b.DisableOwnTwoFactor(ctx, byBoss, password))
		if b.again(boss).TwoFactorEnabled {
			b.t.Error("still on")
		}
	})
}
