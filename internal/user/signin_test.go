package user

import (
	"errors"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
	"svc/internal/secret"
	"svc/internal/setting"
)

func (b *bench) signIn(login, password string) (*Session, *User, error) {
	return b.SignIn(b.t.Context(), SignInRequest{Login: login, Password: password, IP: "192.0.2.7", UserAgent: "Test/1.0"})
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, _ := b.user("ada")
		first := b.Now()
		session, u, err := b.signIn("Ada@example.com", password)
		b.ok(err)
		if u.SignInCount != 1 || !u.CurrentSignInAt.Equal(first) || !u.LastSignInAt.Equal(first) || u.LastActivityOn != "2026-03-04" {
			b.t.Errorf("after the first sign-in: %+v", u)
		}
		b.clock.add(time.Hour)
		_, u, err = b.signIn("ADA", password)
		b.ok(err)
		if u.SignInCount != 2 || !u.CurrentSignInAt.Equal(b.Now()) || !u.LastSignInAt.Equal(first) || u.LastSignInIP != "192.0.2.7" {
			b.t.Errorf("after the second sign-in: %+v", u)
		}
		if got := b.again(ada); *got.CurrentSignInAt != *u.CurrentSignInAt || *got.LastSignInAt != *u.LastSignInAt ||
			got.SignInCount != 2 || got.LastSignInIP != u.LastSignInIP || got.LastActivityOn != u.LastActivityOn {
			b.t.Errorf("stored %+v, returned %+v", got, u)
		}
		by, _, err := b.Session(ctx, session.Token, "192.0.2.8")
		b.ok(err)
		if by.ID != ada.ID || by.Scopes != nil || by.IP != "192.0.2.8" {
			b.t.Errorf("actor %+v", by)
		}

		_, err = b.AddOwnEmail(ctx, by, "second@example.com")
		b.ok(err)
		for _, c := range []struct{ name, login, password string }{
			{"wrong password", "ada", "correct horsf"},
			{"no password", "ada", ""},
			{"nobody", "eve", password},
			{"nobody's address", "eve@example.com", password},
			{"unconfirmed address", "second@example.com", password},
			{"not text", "ada\x00\xff", password},
		} {
			_, _, err := b.signIn(c.login, c.password)
			if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != errs.KindUnauthorized || e.Text != "Invalid login or password." {
				b.t.Errorf("%s: %v", c.name, err)
			}
		}
		if n := b.count("failed_login"); n != 5 { // the two failures of ada are one event
			b.t.Errorf("%d events of failed sign-ins, want 5", n)
		}
		if e := b.event("failed_login"); e.Entity.Type != audit.InstanceEntity || e.IP != "192.0.2.7" || e.By.Class != "UnauthenticatedAuthor" {
			b.t.Errorf("event %+v", e)
		}
	})
}

// TestSignInCost checks that each failed sign-in computes one hash, so that its
// response time does not reveal whether the account exists.
func TestSignInCost(t *testing.T) {
	t.Parallel()
	hasher := secret.NewHasher(secret.Params{Memory: 64, Time: 1, Threads: 1}, 4)
	b := newBench(t, dbtest.SQLite(t).Open(t), hasher)
	ada, _ := b.user("ada")
	b.user("locked")
	if _, err := b.DB.ExecContext(t.Context(), `UPDATE users SET locked_until = ? WHERE username = 'locked'`, b.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	b.user("nopass")
	if _, err := b.DB.ExecContext(t.Context(), `UPDATE users SET password_hash = '' WHERE username = 'nopass'`); err != nil {
		t.Fatal(err)
	}
	for _, login := range []string{ada.Username, "eve", "eve@example.com", "locked", "nopass", "not\x00text"} {
		before := hasher.Count()
		_, _, err := b.signIn(login, "wrong password")
		b.refused(err, errs.KindUnauthorized)
		if n := hasher.Count() - before; n != 1 {
			t.Errorf("%q is refused after %d hashes, want 1", login, n)
		}
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, _ := b.user("ada")
		_, err := b.Settings.Update(ctx, actor.System(), func(s *setting.Settings) { s.MaxLoginAttempts, s.UnlockMinutes = 3, 10 })
		b.ok(err)
		fail := func() {
			b.t.Helper()
			_, _, err := b.signIn("ada", "wrong")
			b.refused(err, errs.KindUnauthorized)
		}
		fail()
		fail()
		_, _, err = b.signIn("ada", password) // resets the count
		b.ok(err)
		fail()
		_, err = b.CheckPassword(ctx, ForGit, "ada", password, "") // also resets the count
		b.ok(err)
		fail()
		fail()
		if b.again(ada).Locked(b.Now()) {
			b.t.Fatal("locked too early")
		}
		fail()
		if !b.again(ada).Locked(b.Now()) || b.count("user_access_locked") != 1 {
			b.t.Fatal("not locked after three failures")
		}
		_, _, err = b.signIn("ada", password)
		b.refused(err, errs.KindUnauthorized) // the lock is not revealed, even with the correct password
		_, err = b.CheckPassword(ctx, ForGit, "ada", password, "")
		b.refused(err, errs.KindUnauthorized)
		b.clock.add(9 * time.Minute)
		fail() // does not extend the lock
		b.clock.add(time.Minute)
		fail() // the first failure of a new count
		if b.again(ada).Locked(b.Now()) {
			b.t.Fatal("one failure locks an account whose lock was over")
		}
		_, _, err = b.signIn("ada", password)
		b.ok(err)

		// Wrong codes are counted too, because the password may be known to an attacker.
		enrolled, err := b.EnrollTwoFactor(ctx, actor.System(), ada.ID, "svc")
		b.ok(err)
		for range 3 {
			_, _, err = b.SignIn(ctx, SignInRequest{Login: "ada", Password: password, Code: "000000"})
			b.refused(err, errs.KindUnauthorized)
		}
		_, _, err = b.SignIn(ctx, SignInRequest{Login: "ada", Password: password, Code: b.code(enrolled.Secret)})
		b.refused(err, errs.KindUnauthorized)
	})
}

func TestSignInStates(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, _ := b.user("ada")
		for _, c := range []struct {
			state  State
			kind   errs.Kind // 0: the sign-in succeeds
			wanted State
		}{
			{Blocked, errs.KindForbidden, Blocked},
			{Banned, errs.KindForbidden, Banned},
			{PendingApproval, errs.KindForbidden, PendingApproval},
			{Deactivated, 0, Active},
			{Active, 0, Active},
		} {
			_, err := b.DB.ExecContext(ctx, `UPDATE users SET state = ? WHERE id = ?`, string(c.state), ada.ID)
			b.ok(err)
			_, _, err = b.signIn("ada", "wrong")
			b.refused(err, errs.KindUnauthorized) // the state is only revealed with the correct password
			if _, err = b.CheckPassword(ctx, ForGit, "ada", password, ""); c.state != Active {
				b.refused(err, errs.KindForbidden)
			} else {
				b.ok(err)
			}
			_, _, err = b.signIn("ada", password)
			if errs.KindOf(err) != c.kind || c.kind == 0 && err != nil {
				b.t.Errorf("%s: %v", c.state, err)
			}
			if got := b.again(ada).State; got != c.wanted {
				b.t.Errorf("%s became %s, want %s", c.state, got, c.wanted)
			}
		}
		if b.count("user_activated") != 1 {
			b.t.Error("coming back is not recorded")
		}
	})
}

// TestUnready checks sign-ins with a password that an administrator has set, and of
// an account with an unconfirmed address.
func TestUnready(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")
		given := "given by another"
		_, err := b.Update(ctx, actor.System(), ada.ID, Change{Password: &given})
		b.ok(err)
		_, err = b.CheckPassword(ctx, ForGit, "ada", given, "")
		b.refused(err, errs.KindForbidden)
		_, err = b.CheckPassword(ctx, ForGit, "ada", "wrong", "")
		b.refused(err, errs.KindUnauthorized) // only the correct password reveals that it must be changed
		_, u, err := b.signIn("ada", given)
		b.ok(err) // the web interface requires a new password
		if !u.MustChangePassword {
			b.t.Error("he need not change it")
		}
		b.ok(b.ChangePassword(ctx, byAda, given, password, 0))
		_, err = b.CheckPassword(ctx, ForGit, "ada", password, "")
		b.ok(err)

		_, err = b.Create(ctx, actor.System(), NewUser{Username: "bob", Name: "Bob", Email: "bob@example.com", Password: password})
		b.ok(err)
		demand := func(c setting.Confirmation, kind errs.Kind) { // 0: the sign-in succeeds
			b.t.Helper()
			_, err := b.Settings.Update(ctx, actor.System(), func(s *setting.Settings) { s.Confirmation = c })
			b.ok(err)
			_, _, atDoor := b.signIn("bob", password)
			_, checked := b.CheckPassword(ctx, ForGit, "bob", password, "")
			for _, err := range []error{atDoor, checked} {
				if errs.KindOf(err) != kind || kind == 0 && err != nil {
					b.t.Errorf("%s after %s: %v", c, b.Now().Sub(u.CreatedAt), err)
				}
			}
			_, _, err = b.signIn("bob", "wrong")
			b.refused(err, errs.KindUnauthorized)
			_, _, err = b.signIn("ada", password)
			b.ok(err)
		}
		demand(setting.ConfirmOff, 0)
		demand(setting.ConfirmSoft, 0)
		demand(setting.ConfirmHard, errs.KindForbidden)
		b.clock.add(setting.SoftDays*24*time.Hour - time.Second)
		demand(setting.ConfirmSoft, 0)
		b.clock.add(time.Second)
		demand(setting.ConfirmSoft, errs.KindForbidden)
		demand(setting.ConfirmOff, 0)
		_, err = b.Settings.Update(ctx, actor.System(), func(s *setting.Settings) { s.Confirmation = "later" })
		b.refused(err, errs.KindInvalid)
		_, err = b.DB.ExecContext(ctx, `UPDATE users SET confirmed_at = ? WHERE username = 'bob'`, b.Now())
		b.ok(err)
		demand(setting.ConfirmHard, 0)
	})
}

func TestRehash(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, _ := b.user("ada")
		was, _, err := findHash(b, ada.ID)
		b.ok(err)
		b.Hasher = secret.NewHasher(secret.Params{Memory: 128, Time: 1, Threads: 1}, 4)
		_, _, err = b.signIn("ada", password)
		b.ok(err)
		now, stale, err := findHash(b, ada.ID)
		b.ok(err)
		if now == was || stale {
			b.t.Errorf("hash was not made anew: %s", now)
		}
		b.Hasher = secret.NewHasher(secret.Params{Memory: 256, Time: 1, Threads: 1}, 4)
		_, err = b.CheckPassword(ctx, ForGit, "ada", password, "")
		b.ok(err)
		if _, stale, _ := findHash(b, ada.ID); stale {
			b.t.Error("hash was not made anew by CheckPassword")
		}
		_, _, err = b.signIn("ada", password)
		b.ok(err)
	})
}

func findHash(b *bench, id int64) (hash string, stale bool, err error) {
	err = b.DB.QueryRowContext(b.t.Context(), `SELECT password_hash FROM users WHERE id = ?`, id).Scan(&hash)
	return hash, b.Hasher.NeedsRehash(hash), err
}
