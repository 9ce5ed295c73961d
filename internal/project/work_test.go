package project

import (
	"context"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
)

// TestExpire checks that only expired memberships and shares are deleted, and that
// expired memberships are audited.
func TestExpire(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newService(t, d)
		alice, bob := newUser(t, s, "alice"), newUser(t, s, "bob")
		by := actor.Actor{ID: alice.ID, Username: "alice", Admin: true}
		made, err := s.Create(t.Context(), by, NewProject{Path: "p"})
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.CreateGroup(t.Context(), by, NewGroup{Name: "G", Path: "g"})
		if err != nil {
			t.Fatal(err)
		}
		at := Place{Ref: RefTo(made.ID)}
		if _, err := s.AddMember(t.Context(), by, at, NewMember{UserID: bob.ID, Level: Developer, ExpiresAt: "2026-03-05"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ShareWith(t.Context(), by, at, NewShare{GroupID: g.ID, Level: Developer, ExpiresAt: "2026-03-05"}); err != nil {
			t.Fatal(err)
		}
		rows := func() (n int) {
			t.Helper()
			err := d.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM members) + (SELECT count(*) FROM group_shares)`).Scan(&n)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if err := s.expireMembers(t.Context()); err != nil || rows() != 4 {
			t.Fatalf("before the day: %d rows, %v, want 4", rows(), err)
		}
		now := s.Now().AddDate(0, 0, 1)
		s.Now = func() time.Time { return now }
		if err := s.expireMembers(t.Context()); err != nil || rows() != 2 {
			t.Fatalf("on the day: %d rows, %v, want 2", rows(), err)
		}
		page, err := s.Audit.Of(t.Context(), made.Entity(), 0, audit.Filter{}, db.Paging{Limit: 1})
		if err != nil || len(page.Items) != 1 || page.Items[0].Type != "member_expired" || page.Items[0].Target.ID != bob.ID {
			t.Errorf("recorded: %+v, %v", page.Items, err)
		}
	})
}

// TestUpdateAfterOwner checks that a Maintainer cannot undo what an Owner changes during the
// request, with values that the project had at its beginning.
func TestUpdateAfterOwner(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newService(t, d)
		alice, bob := newUser(t, s, "alice"), newUser(t, s, "bob")
		owner, maintainer := actor.Actor{ID: alice.ID, Username: "alice"}, actor.Actor{ID: bob.ID, Username: "bob"}
		made, err := s.Create(t.Context(), owner, NewProject{Path: "p"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AddMember(t.Context(), owner, Place{Ref: RefTo(made.ID)}, NewMember{UserID: bob.ID, Level: Maintainer}); err != nil {
			t.Fatal(err)
		}
		public, private, branch := Public, Private, "next"
		if _, err := s.Update(t.Context(), owner, RefTo(made.ID), Change{Visibility: &public}); err != nil {
			t.Fatal(err)
		}
		s.OnDefaultBranch(func(ctx context.Context, p *Project, _ string) error {
			_, err := s.Update(ctx, owner, RefTo(p.ID), Change{Visibility: &private})
			return err
		})
		_, err = s.Update(t.Context(), maintainer, RefTo(made.ID), Change{Visibility: &public, Fields: Fields{DefaultBranch: &branch}})
		if !errs.Is(err, errs.KindForbidden) {
			t.Errorf("the update of the Maintainer: %v", err)
		}
		p, err := s.Get(t.Context(), owner, RefTo(made.ID))
		if err != nil || p.Visibility != Private {
			t.Errorf("the project is %s: %v", p.Visibility, err)
		}
	})
}
