package user

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

func TestChangePassword(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		u, by := b.user("ada")
		keep, _, err := b.SignIn(ctx, SignInRequest{Login: "ada", Password: password})
		if err != nil {
			b.t.Fatal(err)
		}
		other, _, err := b.SignIn(ctx, SignInRequest{Login: "ada", Password: password})
		if err != nil {
			b.t.Fatal(err)
		}
		for _, try := range []struct{ present, next, field string }{
			{"wrong", "another good one", "current_password"},
			{password, password, "password"},
			{password, "short", "password"},
			{password, "", "password"},
		} {
			err := b.ChangePassword(ctx, by, try.present, try.next, keep.ID)
			if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != errs.KindInvalid || len(e.Fields[try.field]) == 0 {
				b.t.Errorf("from %q to %q: %v", try.present, try.next, err)
			}
		}
		if err := b.ChangePassword(ctx, by, password, "another good one", keep.ID); err != nil {
			b.t.Fatal(err)
		}
		if _, _, err := b.Session(ctx, keep.Token, ""); err != nil {
			b.t.Errorf("the session that goes on: %v", err)
		}
		if _, _, err := b.Session(ctx, other.Token, ""); !errs.Is(err, errs.KindUnauthorized) {
			b.t.Errorf("the other session: %v", err)
		}
		if b.again(u).MustChangePassword {
			b.t.Error("it has to be changed again")
		}
	})
}

// TestPersonalToken checks that creating a personal access token requires a session,
// and that only administrators may request admin scopes.
func TestPersonalToken(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		_, by := b.user("ada")
		_, admin := b.admin("root")
		token := by
		token.Scopes, token.TokenID = []string{"api"}, 1
		sudo := by
		sudo.Impersonator = &admin
		oauth, job := by, by
		oauth.OAuthTokenID = 1
		job.Job = &actor.Job{ID: 1}
		for name, who := range map[string]actor.Actor{"token": token, "sudo": sudo, "an application": oauth, "a job": job} {
			if _, err := b.CreatePersonalToken(ctx, who, NewToken{Name: "x", Scopes: []string{"api"}}); !errs.Is(err, errs.KindForbidden) {
				b.t.Errorf("by %s: %v", name, err)
			}
		}
		if _, err := b.CreatePersonalToken(ctx, actor.Actor{}, NewToken{Name: "x", Scopes: []string{"api"}}); !errs.Is(err, errs.KindUnauthorized) {
			b.t.Errorf("by nobody: %v", err)
		}
		if _, err := b.CreatePersonalToken(ctx, by, NewToken{Name: "x", Scopes: []string{"api", "sudo"}}); !errs.Is(err, errs.KindInvalid) {
			b.t.Errorf("sudo: %v", err)
		}
		if _, err := b.CreatePersonalToken(ctx, admin, NewToken{Name: "x", Scopes: []string{"sudo"}}); err != nil {
			b.t.Errorf("sudo of an administrator: %v", err)
		}
		made, err := b.CreatePersonalToken(ctx, by, NewToken{Name: "x", Scopes: []string{"api"}})
		if err != nil {
			b.t.Fatal(err)
		}
		if got, err := b.Authenticate(ctx, made.Secret, ""); err != nil || got.ID != by.ID {
			b.t.Errorf("the token is of %d: %v", got.ID, err)
		}
		if slices.Contains(OwnScopes(by), "sudo") || !slices.Contains(OwnScopes(admin), "sudo") {
			b.t.Error("the wrong people are offered sudo")
		}
	})
}

// TestFinishSignIn checks the second step of a sign-in, mostly with invalid tickets.
func TestFinishSignIn(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		u, by := b.user("ada")
		e, err := b.EnrollTwoFactor(ctx, actor.System(), u.ID, "svc")
		if err != nil {
			b.t.Fatal(err)
		}
		half := func() string {
			_, _, err := b.SignIn(ctx, SignInRequest{Login: "ada", Password: password, Remember: true})
			needed, ok := errors.AsType[TwoFactorRequired](err)
			if !ok || needed.Ticket == "" {
				b.t.Fatalf("the first step: %v", err)
			}
			return needed.Ticket
		}
		finish := func(ticket, code string) (*Session, error) {
			s, _, err := b.FinishSignIn(ctx, ticket, SignInRequest{Code: code})
			return s, err
		}
		ticket := half()
		for name, bad := range map[string]string{"none": "", "made up": "x", "of another use": b.Keys.Seal([]byte(`{"user":1}`), "else")} {
			if _, err := finish(bad, e.Codes[0]); !errs.Is(err, errs.KindGone) {
				b.t.Errorf("a ticket that is %s: %v", name, err)
			}
		}
		if _, err := finish(ticket, ""); !errs.Is(err, errs.KindUnauthorized) {
			b.t.Errorf("no code: %v", err)
		}
		gone, stop := context.WithCancel(ctx)
		stop()
		if _, _, err := b.FinishSignIn(gone, ticket, SignInRequest{Code: e.Codes[0]}); err == nil || errs.Is(err, errs.KindGone) {
			b.t.Errorf("a fault is told as a late sign-in: %v", err)
		}
		s, err := finish(ticket, e.Codes[0])
		if err != nil || !s.Remember {
			b.t.Fatalf("%+v: %v", s, err)
		}
		b.clock.add(halfwayLife)
		if _, err := finish(ticket, e.Codes[1]); !errs.Is(err, errs.KindGone) {
			b.t.Errorf("an old ticket: %v", err)
		}
		ticket = half()
		if err := b.ChangePassword(ctx, by, password, "another good one", 0); err != nil {
			b.t.Fatal(err)
		}
		if _, err := finish(ticket, e.Codes[1]); !errs.Is(err, errs.KindGone) {
			b.t.Errorf("a ticket of the password before: %v", err)
		}
		if _, err := b.Update(ctx, actor.System(), u.ID, Change{}); err != nil {
			b.t.Fatal(err)
		}
		_, _, err = b.SignIn(ctx, SignInRequest{Login: "ada", Password: "another good one"})
		needed, _ := errors.AsType[TwoFactorRequired](err)
		if _, err := b.Block(ctx, actor.System(), u.ID); err != nil {
			b.t.Fatal(err)
		}
		if _, err := finish(needed.Ticket, e.Codes[1]); !errs.Is(err, errs.KindForbidden) {
			b.t.Errorf("a blocked account: %v", err)
		}
	})
}

// TestTickets checks that a ticket is valid only for its purpose, for a limited time
// and once.
func TestTickets(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		u, _ := b.user("ada")
		add := func(p purpose) string {
			token := ""
			if err := b.DB.Tx(ctx, func(tx *db.Tx) (err error) { token, err = b.addTicket(ctx, tx, u.ID, p); return err }); err != nil {
				b.t.Fatal(err)
			}
			return token
		}
		unlock, reset, second := add(unlockTicket), add(setPasswordTicket), add(setPasswordTicket)
		if _, err := b.TakeReset(ctx, unlock, "another good one", ""); !errs.Is(err, errs.KindInvalid) {
			b.t.Errorf("a password by an unlock letter: %v", err)
		}
		if err := b.TakeUnlock(ctx, reset, ""); !errs.Is(err, errs.KindInvalid) {
			b.t.Errorf("unlock by a password letter: %v", err)
		}
		if _, err := b.TakeReset(ctx, reset, "another good one", ""); err != nil {
			b.t.Fatal(err)
		}
		for _, used := range []string{reset, second} { // using one invalidates all of them
			if _, err := b.TakeReset(ctx, used, "a third good one", ""); !errs.Is(err, errs.KindInvalid) {
				b.t.Errorf("a second use: %v", err)
			}
		}
		if err := b.TakeUnlock(ctx, unlock, ""); err != nil {
			b.t.Errorf("unlock: %v", err)
		}
		old := add(setPasswordTicket)
		b.clock.add(ticketLife + time.Second)
		if err := b.CheckReset(ctx, old); !errs.Is(err, errs.KindInvalid) {
			b.t.Errorf("an old letter: %v", err)
		}
		if err := b.purgeTickets(ctx); err != nil {
			b.t.Fatal(err)
		}
		var left int
		if err := b.DB.QueryRowContext(ctx, `SELECT count(*) FROM user_tickets`).Scan(&left); err != nil || left != 0 {
			b.t.Errorf("%d tickets are left: %v", left, err)
		}
	})
}
