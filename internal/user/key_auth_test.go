package user

import (
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/errs"
)

func TestAuthenticateKey(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")
		end := b.clock.Now().Add(time.Hour)
		k, err := b.AddOwnKey(ctx, byAda, NewKey{Title: "laptop", Key: ed25519Key(), ExpiresAt: &end})
		b.ok(err)
		signing, err := b.AddOwnKey(ctx, byAda, NewKey{Title: "signing", Key: ecdsaKey(), Usage: SigningKey})
		b.ok(err)

		by, err := b.AuthenticateKey(ctx, k.SHA256, "192.0.2.7")
		b.ok(err)
		if by.ID != ada.ID || by.Username != "ada" || by.IP != "192.0.2.7" || by.Scopes != nil || by.TokenID != 0 {
			b.t.Errorf("%+v", by)
		}
		used := func() time.Time {
			b.t.Helper()
			again, err := b.OwnKey(ctx, byAda, k.ID)
			b.ok(err)
			if again.LastUsedAt == nil {
				b.t.Fatal("the use of the key was not noted")
			}
			return *again.LastUsedAt
		}
		first := used()
		if b.again(ada).LastActivityOn != "2026-03-04" {
			b.t.Error("the day was not noted")
		}
		b.clock.add(time.Minute)
		_, err = b.AuthenticateKey(ctx, k.SHA256, "")
		b.ok(err)
		if !used().Equal(first) {
			b.t.Error("each use is written")
		}
		b.clock.add(tokenTouch)
		_, err = b.AuthenticateKey(ctx, k.SHA256, "")
		b.ok(err)
		if !used().After(first) {
			b.t.Error("a later use is not written")
		}

		for _, fingerprint := range []string{signing.SHA256, "SHA256:none", "", k.Fingerprint} {
			_, err = b.AuthenticateKey(ctx, fingerprint, "")
			b.refused(err, errs.KindUnauthorized)
		}
		_, err = b.Block(ctx, actor.System(), ada.ID)
		b.ok(err)
		_, err = b.AuthenticateKey(ctx, k.SHA256, "")
		b.refused(err, errs.KindForbidden)
		b.ok(b.Unblock(ctx, actor.System(), ada.ID))
		b.clock.add(time.Hour)
		_, err = b.AuthenticateKey(ctx, k.SHA256, "")
		b.refused(err, errs.KindUnauthorized)
	})
}
