package user

import (
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/setting"
)

func TestSessionLife(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		b.user("ada")
		_, err := b.Settings.Update(ctx, actor.System(), func(s *setting.Settings) { s.SessionMinutes = 60 })
		b.ok(err)
		idle, _, err := b.signIn("ada", password)
		b.ok(err)
		kept, _, err := b.SignIn(ctx, SignInRequest{Login: "ada", Password: password, Remember: true})
		b.ok(err)
		seen := func(token string) *Session {
			b.t.Helper()
			_, s, err := b.Session(ctx, token, "192.0.2.9")
			b.ok(err)
			return s
		}

		// The last use is saved at most once per sessionTouch.
		b.clock.add(9 * time.Minute)
		if s := seen(idle.Token); !s.LastSeenAt.Equal(idle.CreatedAt) {
			b.t.Errorf("written after %v", s.LastSeenAt.Sub(idle.CreatedAt))
		}
		b.clock.add(time.Minute)
		if s := seen(idle.Token); !s.LastSeenAt.Equal(b.Now()) || !s.ExpiresAt.Equal(b.Now().Add(time.Hour)) || s.IP != "192.0.2.9" {
			b.t.Errorf("not written: %+v", s)
		}
		b.clock.add(59 * time.Minute)
		seen(idle.Token) // extends the session
		b.clock.add(time.Hour)
		_, _, err = b.Session(ctx, idle.Token, "")
		b.refused(err, errs.KindUnauthorized)

		b.clock.add(13 * 24 * time.Hour)
		seen(kept.Token)
		b.clock.add(13 * 24 * time.Hour)
		seen(kept.Token)
		b.ok(b.purgeSessions(ctx))
		var rows int
		b.ok(b.DB.QueryRowContext(ctx, `SELECT count(*) FROM sessions`).Scan(&rows))
		if rows != 1 {
			b.t.Errorf("%d sessions after the purge, want 1", rows)
		}
		b.clock.add(14 * 24 * time.Hour)
		_, _, err = b.Session(ctx, kept.Token, "")
		b.refused(err, errs.KindUnauthorized)
	})
}

// TestShortSession checks that a session in use does not end if its lifetime is
// shorter than sessionTouch.
func TestShortSession(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		b.user("ada")
		_, err := b.Settings.Update(ctx, actor.System(), func(s *setting.Settings) { s.SessionMinutes = 5 })
		b.ok(err)
		s, _, err := b.signIn("ada", password)
		b.ok(err)
		for range 10 {
			b.clock.add(4 * time.Minute)
			_, _, err = b.Session(ctx, s.Token, "")
			b.ok(err)
		}
	})
}

func TestSessionEnd(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")
		_, byBob := b.user("bob")
		open := func() *Session {
			b.t.Helper()
			s, _, err := b.signIn("ada", password)
			b.ok(err)
			return s
		}
		gone := func(s *Session, kind errs.Kind) {
			b.t.Helper()
			_, _, err := b.Session(ctx, s.Token, "")
			b.refused(err, kind)
		}

		s := open()
		if _, _, err := b.Session(ctx, s.CSRF, ""); !errs.Is(err, errs.KindUnauthorized) {
			b.t.Errorf("the CSRF token opens the session: %v", err)
		}
		b.ok(b.SignOut(ctx, s.Token))
		b.ok(b.SignOut(ctx, s.Token))
		gone(s, errs.KindUnauthorized)

		s = open()
		b.refused(b.RevokeSession(ctx, byBob, s.ID), errs.KindNotFound)
		list, err := b.Sessions(ctx, byAda)
		b.ok(err)
		if len(list) != 1 || list[0].ID != s.ID || list[0].UserAgent != "Test/1.0" || list[0].Token != "" {
			b.t.Errorf("sessions %+v", list)
		}
		b.ok(b.RevokeSession(ctx, byAda, s.ID))
		gone(s, errs.KindUnauthorized)

		// A blocked user is refused even if the session still exists.
		s = open()
		_, err = b.DB.ExecContext(ctx, `UPDATE users SET state = 'blocked' WHERE id = ?`, ada.ID)
		b.ok(err)
		gone(s, errs.KindForbidden)
		_, err = b.DB.ExecContext(ctx, `UPDATE users SET state = 'active' WHERE id = ?`, ada.ID)
		b.ok(err)

		s = open()
		_, err = b.Update(ctx, actor.System(), ada.ID, Change{Password: ptr("another password")})
		b.ok(err)
		gone(s, errs.KindUnauthorized)
	})
}
