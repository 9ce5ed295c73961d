package user

import (
	"errors"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/errs"
)

// TestConfirmSelf checks when a session needs the password.
func TestConfirmSelf(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		_, by := b.user("ada")
		session, _, err := b.SignIn(ctx, SignInRequest{Login: "ada", Password: password})
		b.ok(err)
		b.clock.add(confirmedFor)
		b.ok(b.ConfirmSelf(ctx, by, session, ""))
		b.clock.add(time.Second)
		if _, ok := errors.AsType[PasswordRequired](b.ConfirmSelf(ctx, by, session, "")); !ok {
			b.t.Error("an old session needs no password")
		}
		b.wrong(b.ConfirmSelf(ctx, by, session, "wrong"), "current_password", "is wrong")
		b.ok(b.ConfirmSelf(ctx, by, session, password))

		u, err := b.CreateFromIdentity(ctx, NewIdentityUser{
			Identity: Identity{Provider: "corp", ExternUID: "1"}, Usernames: []string{"cleo"}, Name: "Cleo", Email: "cleo@example.com", EmailVerified: true,
		})
		b.ok(err)
		session, _, err = b.SignInIdentity(ctx, u.ID, "corp", true, SignInRequest{})
		b.ok(err)
		b.ok(b.ConfirmSelf(ctx, b.toActor(u, ""), session, ""))
		b.clock.add(confirmedFor + time.Second)
		b.refused(b.ConfirmSelf(ctx, b.toActor(u, ""), session, ""), errs.KindForbidden)
	})
}

// TestSignInIdentityWithCode checks the audit event of a sign-in with two steps.
func TestSignInIdentityWithCode(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		u, _ := b.user("ada")
		e, err := b.EnrollTwoFactor(ctx, actor.System(), u.ID, "svc")
		b.ok(err)
		_, _, err = b.SignInIdentity(ctx, u.ID, "corp", false, SignInRequest{})
		half, ok := errors.AsType[TwoFactorRequired](err)
		if !ok || b.count("user_signed_in_with_provider") != 0 {
			b.t.Fatalf("the first step: %v", err)
		}
		_, _, err = b.FinishSignIn(ctx, half.Ticket, SignInRequest{Code: e.Codes[0]})
		b.ok(err)
		if e := b.event("user_signed_in_with_provider"); e.Details.Message != "Signed in with corp" || e.Entity.ID != u.ID {
			b.t.Errorf("%+v", e)
		}
	})
}

// TestFindByConfirmedEmail checks that PostgreSQL does not make one address of two.
func TestFindByConfirmedEmail(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		kate, _ := b.user("kate")
		for address, found := range map[string]bool{"kate@example.com": true, "KATE@Example.com": true, "\u212aate@example.com": false, "nobody@example.com": false} {
			u, err := b.FindByConfirmedEmail(b.t.Context(), address)
			if found && (err != nil || u.ID != kate.ID) || !found && !errs.Is(err, errs.KindNotFound) {
				b.t.Errorf("%s: %v, %v", address, u, err)
			}
		}
	})
}
