package user

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

func TestFollow(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")
		bob, byBob := b.user("bob")
		eve, byEve := b.user("eve")
		_, byBoss := b.admin("boss")
		follow := func(by actor.Actor, id int64, want bool) {
			b.t.Helper()
			u, changed, err := b.Follow(ctx, by, id)
			b.ok(err)
			if changed != want || u.ID != id {
				b.t.Errorf("follow %d: changed %v", id, changed)
			}
		}
		follow(byAda, bob.ID, true)
		follow(byAda, bob.ID, false)
		follow(byAda, ada.ID, false)
		follow(byEve, bob.ID, true)
		followers := func(by actor.Actor, id int64) []string {
			b.t.Helper()
			page, err := b.Followers(ctx, by, id, db.Paging{Limit: 10, Totals: true})
			b.ok(err)
			if page.Total != len(page.Items) {
				b.t.Errorf("total %d of %d", page.Total, len(page.Items))
			}
			names := []string{}
			for _, u := range page.Items {
				names = append(names, u.Username)
			}
			return names
		}
		if got := followers(byBob, bob.ID); !slices.Equal(got, []string{"ada", "eve"}) {
			b.t.Errorf("followers %v", got)
		}
		page, err := b.Following(ctx, byAda, ada.ID, db.Paging{Limit: 10})
		b.ok(err)
		if len(page.Items) != 1 || page.Items[0].ID != bob.ID {
			b.t.Errorf("following %+v", page.Items)
		}

		// Banned users are left out, except for administrators.
		b.ok(b.Ban(ctx, byBoss, eve.ID))
		if got := followers(byBob, bob.ID); !slices.Equal(got, []string{"ada"}) {
			b.t.Errorf("followers %v", got)
		}
		if got := followers(byBoss, bob.ID); len(got) != 2 {
			b.t.Errorf("followers for administrators %v", got)
		}
		_, _, err = b.Follow(ctx, byAda, eve.ID)
		b.refused(err, errs.KindNotFound)
		_, err = b.Update(ctx, byBoss, bob.ID, Change{Fields: Fields{PrivateProfile: ptr(true)}})
		b.ok(err)
		_, err = b.Followers(ctx, byAda, bob.ID, db.Paging{Limit: 10})
		b.refused(err, errs.KindNotFound)

		for _, want := range []bool{true, false} {
			_, changed, err := b.Unfollow(ctx, byAda, bob.ID)
			b.ok(err)
			if changed != want {
				b.t.Errorf("unfollow: changed %v", changed)
			}
		}
		_, _, err = b.Follow(ctx, actor.Actor{}, ada.ID)
		b.refused(err, errs.KindUnauthorized)
	})
}

func TestLocalTime(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		winter, summer := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), time.Date(2026, 7, 2, 23, 4, 5, 0, time.UTC)
		ada, byAda := b.user("ada")
		for _, c := range []struct {
			zone           string
			winter, summer string
		}{
			{"UTC", "3:04 PM", "11:04 PM"},
			{"", "3:04 PM", "11:04 PM"},
			{"Europe/Berlin", "4:04 PM", "1:04 AM"},
			{"Asia/Kolkata", "8:34 PM", "4:34 AM"},
			{"Nowhere/Atall", "3:04 PM", "11:04 PM"},
		} {
			_, err := b.DB.ExecContext(ctx, `UPDATE users SET timezone = ? WHERE id = ?`, c.zone, ada.ID)
			b.ok(err)
			for range 2 { // the second time, the time zone is cached
				read, err := b.Get(ctx, byAda, ada.ID, false)
				b.ok(err)
				for _, u := range []*User{read, {Profile: Profile{Timezone: c.zone}}} {
					if w, s := u.LocalTime(winter), u.LocalTime(summer); w != c.winter || s != c.summer {
						b.t.Errorf("%q: %s, %s", c.zone, w, s)
					}
				}
			}
		}
	})
}

// TestFollowNumbers checks the follower counts of profiles, which are stored.
func TestFollowNumbers(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		_, err := b.Bootstrap(ctx, password, "") // creates the ghost user, which deletions require
		b.ok(err)
		ada, byAda := b.user("ada")
		bob, byBob := b.user("bob")
		eve, byEve := b.user("eve")
		_, byBoss := b.admin("boss")
		shown := func(want ...[2]int64) {
			b.t.Helper()
			for i, id := range []int64{ada.ID, bob.ID, eve.ID}[:len(want)] {
				u, err := b.Get(ctx, byAda, id, false)
				b.ok(err)
				if got := [2]int64{u.Followers, u.Following}; got != want[i] {
					b.t.Errorf("%s: followers and following %v, want %v", u.Username, got, want[i])
				}
				if follows := i == 1 && want[0][1] > 0; u.IsFollowed != follows {
					b.t.Errorf("%s: followed %v", u.Username, u.IsFollowed)
				}
			}
		}
		follow := func(by actor.Actor, id int64) {
			b.t.Helper()
			_, _, err := b.Follow(ctx, by, id)
			b.ok(err)
		}
		shown([2]int64{0, 0}, [2]int64{0, 0}, [2]int64{0, 0})
		follow(byAda, bob.ID)
		follow(byAda, bob.ID)
		follow(byBob, ada.ID)
		follow(byEve, bob.ID)
		follow(byEve, ada.ID)
		follow(byBob, eve.ID)
		shown([2]int64{2, 1}, [2]int64{2, 2}, [2]int64{1, 2})
		for range 2 {
			_, _, err := b.Unfollow(ctx, byBob, ada.ID)
			b.ok(err)
		}
		shown([2]int64{1, 1}, [2]int64{2, 1}, [2]int64{1, 2})
		b.ok(b.Delete(ctx, byBoss, eve.ID, false, nil))
		b.ok(b.finishDelete(ctx, deleteWork{UserID: eve.ID}))
		b.ok(b.finishDelete(ctx, deleteWork{UserID: eve.ID})) // retried after a crash
		shown([2]int64{0, 1}, [2]int64{1, 0})

		// Updating an account does not change the counts.
		_, err = b.Update(ctx, byBoss, bob.ID, Change{Name: ptr("Robert")})
		b.ok(err)
		shown([2]int64{0, 1}, [2]int64{1, 0})
	})
}

// TestFollowAtOnce checks that users can follow each other concurrently without
// deadlocks or lost updates of the counts.
func TestFollowAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		var users []*User
		var actors []actor.Actor
		for _, name := range []string{"ada", "bob", "eve", "joe"} {
			u, by := b.user(name)
			users, actors = append(users, u), append(actors, by)
		}
		var wg sync.WaitGroup
		for _, by := range actors {
			for _, u := range users {
				wg.Go(func() {
					if _, _, err := b.Follow(ctx, by, u.ID); err != nil {
						b.t.Errorf("%s follows %s: %v", by.Username, u.Username, err)
					}
				})
			}
		}
		wg.Wait()
		for _, u := range users {
			got, err := b.Get(ctx, actors[0], u.ID, false)
			b.ok(err)
			if got.Followers != 3 || got.Following != 3 {
				b.t.Errorf("%s has %d followers and follows %d", u.Username, got.Followers, got.Following)
			}
		}
	})
}

func TestIdentities(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")
		bob, _ := b.user("bob")
		_, byBoss := b.admin("boss")
		put := func(id int64, provider, uid string) error {
			_, err := b.Update(ctx, byBoss, id, Change{Fields: Fields{Provider: provider, ExternUID: uid}})
			return err
		}
		b.ok(put(ada.ID, "ldapmain", "uid=ada"))
		b.ok(put(ada.ID, "ldapmain", "uid=ada,dc=x")) // replaces the previous one
		b.ok(put(ada.ID, "saml", "ada"))
		b.refused(put(bob.ID, "saml", "ADA"), errs.KindNotFound) // taken: the specification requires 404

		of, err := identitiesOfAll(ctx, b.DB, []int64{ada.ID, bob.ID})
		b.ok(err)
		if !slices.Equal(of[ada.ID], []Identity{{Provider: "ldapmain", ExternUID: "uid=ada,dc=x"}, {Provider: "saml", ExternUID: "ada"}}) {
			b.t.Errorf("identities %+v", of)
		}
		if of[bob.ID] == nil || len(of[bob.ID]) != 0 {
			b.t.Errorf("nobody's identities %#v", of[bob.ID])
		}
		if u, err := b.Get(ctx, byBoss, ada.ID, false); err != nil || !slices.Equal(u.Identities, of[ada.ID]) {
			b.t.Errorf("identities of the profile %+v, %v", u.Identities, err)
		}
		b.refused(b.DeleteIdentity(ctx, byAda, ada.ID, "saml"), errs.KindForbidden)
		b.refused(b.DeleteIdentity(ctx, byBoss, ada.ID, "none"), errs.KindNotFound)
		b.refused(b.DeleteIdentity(ctx, byBoss, 999_999, "saml"), errs.KindNotFound)
		b.ok(b.DeleteIdentity(ctx, byBoss, ada.ID, "saml"))
		if u, err := b.Get(ctx, byBoss, ada.ID, false); err != nil || len(u.Identities) != 1 {
			b.t.Errorf("after deletion: %v, %v", u, err)
		}
		if u, err := b.Get(ctx, byBoss, bob.ID, false); err != nil || u.Identities == nil || len(u.Identities) != 0 {
			b.t.Errorf("nobody's identities %#v, %v", u.Identities, err)
		}
		b.event("user_identity_removed")
	})
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		ctx := b.t.Context()
		ada, byAda := b.user("ada")
		_, byBoss := b.admin("boss")
		put := func(key, value string) error {
			_, err := b.SetAttribute(ctx, byBoss, ada.ID, Attribute{key, value})
			return err
		}
		b.ok(put("role", "dev"))
		b.ok(put("place", "Bern"))
		b.ok(put("role", "ops"))
		// The index must accept a key and a value of the maximum length.
		b.ok(put(strings.Repeat("ß", 255), strings.Repeat("😀", 255)))
		b.wrong(put("x", ""), "value", "can't be blank")
		b.wrong(put(strings.Repeat("k", 256), "x"), "key", "is too long (maximum is 255 characters)")
		_, err := b.SetAttribute(ctx, byAda, ada.ID, Attribute{"a", "b"})
		b.refused(err, errs.KindForbidden)
		_, err = b.SetAttribute(ctx, byBoss, 999_999, Attribute{"a", "b"})
		b.refused(err, errs.KindNotFound)

		all, err := b.Attributes(ctx, byBoss, ada.ID)
		b.ok(err)
		if len(all) != 3 || all[0] != (Attribute{"place", "Bern"}) || all[1] != (Attribute{"role", "ops"}) {
			b.t.Errorf("attributes %v", all)
		}
		b.ok(b.DeleteAttribute(ctx, byBoss, ada.ID, "role"))
		b.refused(b.DeleteAttribute(ctx, byBoss, ada.ID, "role"), errs.KindNotFound)
		_, err = b.Attribute(ctx, byBoss, ada.ID, "role")
		b.refused(err, errs.KindNotFound)
	})
}
