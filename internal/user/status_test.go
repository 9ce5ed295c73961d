package user

import (
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/errs"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")
		is := func(got Status, emoji, message string, a Availability, clearIn time.Duration) {
			b.t.Helper()
			ok := got.Emoji == emoji && got.Message == message && got.Availability == a && (got.ClearAt != nil) == (clearIn != 0)
			if ok && clearIn != 0 {
				ok = got.ClearAt.Equal(b.Now().Add(clearIn))
			}
			if !ok {
				b.t.Errorf("status %+v", got)
			}
		}
		st, err := b.SetStatus(ctx, byAda, StatusChange{Emoji: ptr("coffee"), Message: ptr("out"), Availability: ptr(Busy), ClearAfter: ptr(ClearAfter("3_hours"))})
		b.ok(err)
		is(st, "coffee", "out", Busy, 3*time.Hour)
		st, err = b.UpdateStatus(ctx, byAda, StatusChange{Message: ptr("back soon")})
		b.ok(err)
		is(st, "coffee", "back soon", Busy, 3*time.Hour)
		st, err = b.UpdateStatus(ctx, byAda, StatusChange{ClearAfter: ptr(ClearAfter(""))})
		b.ok(err)
		is(st, "coffee", "back soon", Busy, 0)
		st, err = b.SetStatus(ctx, byAda, StatusChange{Message: ptr("here"), ClearAfter: ptr(ClearAfter("30_minutes"))})
		b.ok(err)
		is(st, "speech_balloon", "here", NotSet, 30*time.Minute)

		// An expired status reads as empty, and clearStatuses deletes it.
		b.clock.add(30 * time.Minute)
		st, err = b.StatusOf(ctx, actor.Actor{}, "ada")
		b.ok(err)
		is(st, "", "", NotSet, 0)
		if b.again(ada).Message != "here" {
			b.t.Fatal("the row should still have it")
		}
		b.ok(b.clearStatuses(ctx))
		if u := b.again(ada); u.Message != "" || u.ClearAt != nil {
			b.t.Errorf("row after clean-up: %+v", u.Status)
		}
		st, err = b.SetStatus(ctx, byAda, StatusChange{})
		b.ok(err)
		is(st, "", "", NotSet, 0)

		long := strings.Repeat("ä", 100)
		_, err = b.SetStatus(ctx, byAda, StatusChange{Message: &long})
		b.ok(err)
		_, err = b.SetStatus(ctx, byAda, StatusChange{Message: ptr(long + "x")})
		b.wrong(err, "message", "is too long (maximum is 100 characters)")
		_, err = b.SetStatus(ctx, byAda, StatusChange{Emoji: ptr("<b>")})
		b.wrong(err, "emoji", "is not a valid emoji name")
		_, err = b.SetStatus(ctx, byAda, StatusChange{ClearAfter: ptr(ClearAfter("2_days"))})
		b.refused(err, errs.KindInvalid)
		_, err = b.SetStatus(ctx, actor.Actor{}, StatusChange{})
		b.refused(err, errs.KindUnauthorized)
	})
}
