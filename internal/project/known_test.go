package project

import (
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/user"
)

// TestKnown checks that the cache of projects is cleared when the access to a
// project or its path changes.
func TestKnown(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		p := newPlot(t, d)
		if err := p.Notices.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Notices.Stop)
		ctx := t.Context()
		bob := newUser(t, p.Service, "bob")
		by := actor.Actor{ID: bob.ID, Username: "bob"}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		reads := func(when string, want bool) {
			t.Helper()
			for range 3 {
				if _, err := p.ReadCode(ctx, by, RefTo(p.inside.ID)); (err == nil) != want {
					t.Errorf("%s: %v, want %t", when, err, want)
				}
			}
		}
		inGroup, there := Place{Ref: RefTo(p.group.ID), Group: true}, Place{Ref: RefTo(p.inside.ID)}

		reads("at first", false)
		_, err := p.AddMember(ctx, p.by, inGroup, NewMember{UserID: bob.ID, Level: Reporter})
		must(err)
		reads("as a member of the group", true)
		must(p.RemoveMember(ctx, p.by, inGroup, bob.ID, false))
		reads("after he left the group", false)
		_, err = p.AddMember(ctx, p.by, there, NewMember{UserID: bob.ID, Level: Reporter, ExpiresAt: "2026-03-06"})
		must(err)
		reads("as a member for two days", true)
		p.later(3 * 24 * time.Hour)
		reads("after two days", false)

		_, err = p.AddMember(ctx, p.by, inGroup, NewMember{UserID: bob.ID, Level: Owner})
		must(err)
		first, err := p.ReadCode(ctx, by, "g/inside")
		must(err)
		first.Path = "changed by who has it"
		again, err := p.ReadCode(ctx, by, "g/inside")
		must(err)
		if again.Path != "inside" || again.Access.Level() != Owner || p.known.Len() == 0 {
			t.Errorf("known as %q, %v; %d known", again.Path, again.Access, p.known.Len())
		}
		glanced, err := p.Summary(ctx, by, "g/inside")
		must(err)
		same, err := p.Summary(ctx, by, "g/inside")
		must(err)
		if glanced.Edition == 0 || same.Edition != glanced.Edition || len(glanced.Topics) != 0 {
			t.Errorf("editions %d and %d with topics %v", glanced.Edition, same.Edition, glanced.Topics)
		}
		_, err = p.Update(ctx, by, RefTo(p.inside.ID), Change{Fields: Fields{Topics: &[]string{"steam"}}})
		must(err)
		if same, err = p.Summary(ctx, by, "g/inside"); err != nil || same.Edition == glanced.Edition || len(same.Topics) != 1 {
			t.Errorf("edition %d with topics %v after %d: %v", same.Edition, same.Topics, glanced.Edition, err)
		}
		if _, err := p.Summary(ctx, actor.Actor{}, "g/inside"); err == nil {
			t.Error("nobody sees it")
		}
		path := "other"
		_, err = p.Update(ctx, by, RefTo(p.inside.ID), Change{Path: &path})
		must(err)
		if _, err := p.ReadCode(ctx, by, "g/inside"); err == nil {
			t.Error("found where it was")
		}
		if again, err = p.ReadCode(ctx, by, "g/other"); err != nil || again.Path != path {
			t.Errorf("%v, %v", again, err)
		}

		// A sign-in writes to the account but must not clear the cache. Other tests on
		// the same PostgreSQL server may clear it, so one success is enough.
		carol, kept := newUser(t, p.Service, "carol"), false
		for i := 0; i < 20 && !kept; i++ {
			_, err = p.ReadCode(ctx, by, RefTo(p.inside.ID))
			must(err)
			_, _, err = p.Users.SignIn(ctx, user.SignInRequest{Login: "carol", Password: "correct horse"})
			must(err)
			kept = p.known.Len() > 0
		}
		if !kept {
			t.Error("dropped by a sign-in")
		}
		// Deleting an account deletes its memberships, which clears the cache.
		must(p.DB.Tx(ctx, func(tx *db.Tx) error {
			return p.UserDeleted(ctx, tx, user.Deletion{UserID: carol.ID, GhostID: p.by.ID})
		}))
		if p.known.Len() != 0 {
			t.Error("known though a member is gone")
		}
		must(p.Delete(ctx, by, RefTo(p.inside.ID), Deletion{}))
		reads("after it is gone", false)
	})
}
