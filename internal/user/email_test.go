package user

import (
	"strings"
	"testing"

	"svc/internal/db"
	"svc/internal/errs"
)

func TestValidEmail(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"ada@example.com":                       true,
		"ada+x@localhost":                       true,
		"ådå@exämple.com":                       true,
		"":                                      false,
		"ada":                                   false,
		"@example.com":                          false,
		"ada@":                                  false,
		"Ada <ada@example.com>":                 false,
		"<ada@example.com>":                     false,
		"ada@example.com (home)":                false,
		" ada@example.com":                      false,
		"ada@example.com\r\nBcc: e@example.com": false,
		"ada@example.com\x00":                   false,
		"a@b, c@d":                              false,
		`"a b"@example.com`:                     false,
		strings.Repeat("a", 64) + "@" + strings.Repeat("b.", 100) + "c": false,
	} {
		if got := validEmail(address); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}

func TestEmails(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")
		bob, byBob := b.user("bob")
		_, byBoss := b.admin("boss")
		list := func() []Email {
			b.t.Helper()
			page, err := b.OwnEmails(ctx, byAda, db.Paging{Limit: 10})
			b.ok(err)
			return page.Items
		}
		if got := list(); len(got) != 0 {
			b.t.Errorf("the primary address is listed: %+v", got)
		}
		var primary int64
		b.ok(b.DB.QueryRowContext(ctx, `SELECT id FROM emails WHERE user_id = ?`, ada.ID).Scan(&primary))
		b.refused(b.DeleteOwnEmail(ctx, byAda, primary), errs.KindNotFound)
		b.refused(b.DeleteEmail(ctx, byBoss, ada.ID, primary), errs.KindNotFound)

		_, err := b.AddOwnEmail(ctx, byAda, "nonsense")
		b.wrong(err, "email", "is invalid")
		_, err = b.AddOwnEmail(ctx, byAda, "BOB@example.com")
		b.wrong(err, "email", "has already been taken")
		_, err = b.AddEmail(ctx, byAda, ada.ID, NewEmail{Address: "a@example.com", SkipConfirmation: true})
		b.refused(err, errs.KindForbidden)
		_, err = b.AddEmail(ctx, byBoss, 999_999, NewEmail{Address: "a@example.com"})
		b.refused(err, errs.KindNotFound)

		e, err := b.AddOwnEmail(ctx, byAda, "work@example.com")
		b.ok(err)
		if e.ConfirmedAt != nil || e.Token == "" {
			b.t.Errorf("new address %+v", e)
		}
		b.event("email_created")
		_, err = b.ConfirmEmail(ctx, "")
		b.refused(err, errs.KindInvalid) // confirmed addresses have an empty digest
		_, err = b.ConfirmEmail(ctx, e.Token)
		b.ok(err)
		_, err = b.ConfirmEmail(ctx, e.Token)
		b.refused(err, errs.KindInvalid)
		if got := list(); len(got) != 1 || got[0].ConfirmedAt == nil || !got[0].ConfirmedAt.Equal(b.Now()) || got[0].Token != "" {
			b.t.Errorf("after confirmation: %+v", got)
		}

		skipped, err := b.AddEmail(ctx, byBoss, bob.ID, NewEmail{Address: "bob2@example.com", SkipConfirmation: true})
		b.ok(err)
		if skipped.ConfirmedAt == nil || skipped.Token != "" {
			b.t.Errorf("confirmed address %+v", skipped)
		}

		// Deleting an address also removes it from the profile.
		_, err = b.Update(ctx, byBoss, ada.ID, Change{Fields: Fields{PublicEmail: ptr("work@example.com"), CommitEmail: ptr("work@example.com")}})
		b.ok(err)
		b.refused(b.DeleteOwnEmail(ctx, byBob, e.ID), errs.KindNotFound)
		b.refused(b.DeleteEmail(ctx, byAda, ada.ID, e.ID), errs.KindForbidden)
		b.ok(b.DeleteOwnEmail(ctx, byAda, e.ID))
		if u := b.again(ada); u.PublicEmail != "" || u.CommitEmail != "" {
			b.t.Errorf("profile still has %q and %q", u.PublicEmail, u.CommitEmail)
		}
		b.event("email_destroyed")

		// Confirming the primary address confirms the account.
		_, err = b.DB.ExecContext(ctx, `UPDATE users SET confirmed_at = NULL, email = 'bob2@example.com' WHERE id = ?`, bob.ID)
		b.ok(err)
		_, err = b.DB.ExecContext(ctx, `DELETE FROM emails WHERE id = ?`, skipped.ID)
		b.ok(err)
		again, err := b.AddOwnEmail(ctx, byBob, "Bob2@example.com")
		b.ok(err)
		u, err := b.ConfirmEmail(ctx, again.Token)
		b.ok(err)
		if u.ConfirmedAt == nil || b.again(bob).ConfirmedAt == nil {
			b.t.Error("the account is not confirmed")
		}
	})
}
