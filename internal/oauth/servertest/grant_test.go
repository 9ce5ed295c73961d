package servertest

import (
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
	"svc/internal/oauth"
	"svc/internal/waittest"
)

// exchange authorizes the application and returns its tokens.
func exchange(t *testing.T, s *apptest.Server, app *oauth.Application, by actor.Actor, scope string) *oauth.Tokens {
	t.Helper()
	r, err := s.OAuth.Begin(t.Context(), request(app, "scope", scope))
	if err != nil {
		t.Fatal(err)
	}
	to, err := s.OAuth.Approve(t.Context(), by, s.Clock.Now(), r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := s.OAuth.Exchange(t.Context(), oauth.TokenRequest{
		GrantType: "authorization_code", ClientID: app.UID, ClientSecret: app.Secret, Code: back.Query().Get("code"), RedirectURI: callback,
	})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func TestAuthorizations(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		other, _ := s.User(t, "bob")
		alice, bob := actor.Actor{ID: id, Username: "alice"}, actor.Actor{ID: other, Username: "bob"}
		one, two := newApplication(t, s, oauth.NewApplication{Confidential: true}), newApplication(t, s, oauth.NewApplication{Confidential: true})
		first := exchange(t, s, one, alice, "api")
		exchange(t, s, one, alice, "openid")
		second := exchange(t, s, two, alice, "read_user")
		ofBob := exchange(t, s, one, bob, "api")
		password, err := s.OAuth.Exchange(t.Context(), oauth.TokenRequest{GrantType: "password", Username: "alice", Password: "a good password"})
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.OAuth.Authorizations(t.Context(), alice)
		if err != nil || len(list) != 3 || list[0].Application != nil || list[1].Application.ID != two.ID || list[2].Application.ID != one.ID ||
			!slices.Equal(list[2].Scopes, []string{"openid", "api"}) {
			t.Fatalf("authorizations: %+v, %v", list, err)
		}
		works := func(token string, want bool) {
			t.Helper()
			if _, err := s.Users.Authenticate(t.Context(), token, ""); (err == nil) != want {
				t.Errorf("authenticate: %v", err)
			}
		}
		works(first.AccessToken, true) // the result is cached
		if err := s.OAuth.RevokeAuthorization(t.Context(), alice, one.ID); err != nil {
			t.Fatal(err)
		}
		works(first.AccessToken, false)
		works(second.AccessToken, true)
		works(ofBob.AccessToken, true)
		works(password.AccessToken, true)
		if err := s.OAuth.RevokeAuthorization(t.Context(), alice, 0); err != nil {
			t.Fatal(err)
		}
		works(password.AccessToken, false)
		if list, err = s.OAuth.Authorizations(t.Context(), alice); err != nil || len(list) != 1 {
			t.Errorf("authorizations: %+v, %v", list, err)
		}
		for _, id := range []int64{0, one.ID, 99999} {
			if err := s.OAuth.RevokeAuthorization(t.Context(), alice, id); !errs.Is(err, errs.KindNotFound) {
				t.Errorf("revoke %d again: %v", id, err)
			}
		}
		if _, err := s.OAuth.Authorizations(t.Context(), actor.Actor{}); !errs.Is(err, errs.KindUnauthorized) {
			t.Errorf("nobody: %v", err)
		}
	})
}

// TestOwnApplications changes applications of users, and deletes them with their
// owner.
func TestOwnApplications(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		other, _ := s.User(t, "bob")
		alice, bob := actor.Actor{ID: id, Username: "alice"}, actor.Actor{ID: other, Username: "bob"}
		root := actor.Actor{ID: 1, Username: "root", Admin: true}
		app, err := s.OAuth.CreateOwn(t.Context(), alice, oauth.NewApplication{
			Name: "Own", RedirectURIs: callback, Scopes: []string{"api", "read_user"}, Confidential: true, Trusted: true,
		})
		if err != nil || app.Trusted {
			t.Fatalf("%+v, %v", app, err)
		}
		name, yes := "New", true
		for who, by := range map[string]actor.Actor{"another": bob, "an administrator": root} {
			for what, err := range map[string]error{
				"update": second(s.OAuth.Update(t.Context(), by, app.ID, oauth.Change{Name: &name})),
				"renew":  second(s.OAuth.RenewSecret(t.Context(), by, app.ID)),
				"get":    second(s.OAuth.Application(t.Context(), by, app.ID)),
				"delete": s.OAuth.Delete(t.Context(), by, app.ID),
			} {
				if !errs.Is(err, errs.KindNotFound) {
					t.Errorf("%s by %s: %v", what, who, err)
				}
			}
		}
		if err := second(s.OAuth.Update(t.Context(), alice, app.ID, oauth.Change{Trusted: &yes})); !errs.Is(err, errs.KindForbidden) {
			t.Errorf("he trusts himself: %v", err)
		}
		if err := s.OAuth.Delete(t.Context(), actor.Actor{}, app.ID); !errs.Is(err, errs.KindUnauthorized) {
			t.Errorf("nobody deletes: %v", err)
		}
		tokens := exchange(t, s, app, bob, "read_user")
		works := func(want bool) {
			t.Helper()
			if _, err := s.Users.Authenticate(t.Context(), tokens.AccessToken, ""); (err == nil) != want {
				t.Errorf("authenticate: %v", err)
			}
		}
		works(true)
		if _, err := s.OAuth.Update(t.Context(), alice, app.ID, oauth.Change{Name: &name}); err != nil {
			t.Fatal(err)
		}
		works(true)
		if got, err := s.OAuth.Update(t.Context(), alice, app.ID, oauth.Change{Scopes: []string{"api"}}); err != nil || got.Name != "New" {
			t.Fatalf("%+v, %v", got, err)
		}
		works(false) // the application has lost a scope

		app, err = s.OAuth.CreateOwn(t.Context(), alice, oauth.NewApplication{Name: "Next", RedirectURIs: callback, Scopes: []string{"api"}, Confidential: true})
		if err != nil {
			t.Fatal(err)
		}
		tokens = exchange(t, s, app, bob, "api")
		works(true)
		if err := s.Users.Delete(t.Context(), root, id, false, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		works(false) // the application was deleted with its owner
	})
}

func second[T any](_ T, err error) error { return err }

// TestOtherNode revokes a token on one node that another node has cached.
func TestOtherNode(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_POSTGRES") == "" {
		return // there is only one node
	}
	src := dbtest.Postgres(t)
	here := apptest.Start(t, src)
	there := apptest.Start(t, src, apptest.Beside(t, here))
	id, _ := here.User(t, "alice")
	app := newApplication(t, here, oauth.NewApplication{Confidential: true})
	tokens := exchange(t, here, app, actor.Actor{ID: id, Username: "alice"}, "api openid")
	there.Check(t, apptest.Call{Do: "GET /user", Header: map[string]string{"Authorization": "Bearer " + tokens.AccessToken}, Status: 200})
	if err := here.OAuth.Revoke(t.Context(), app.UID, app.Secret, tokens.AccessToken); err != nil {
		t.Fatal(err)
	}
	waittest.For(t, "the other node refuses the token", func() bool {
		return there.Send(t, apptest.Call{Do: "GET /user", Header: map[string]string{"Authorization": "Bearer " + tokens.AccessToken}}).Status == 401
	})
}

// TestPurge checks which rows are left as time passes.
func TestPurge(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		alice := actor.Actor{ID: id, Username: "alice"}
		app := newApplication(t, s, oauth.NewApplication{Confidential: true})
		live := exchange(t, s, app, alice, "api")
		gone := exchange(t, s, app, alice, "api")
		if err := s.OAuth.Revoke(t.Context(), app.UID, app.Secret, gone.AccessToken); err != nil {
			t.Fatal(err)
		}
		if _, err := s.OAuth.Exchange(t.Context(), oauth.TokenRequest{GrantType: "password", Username: "alice", Password: "a good password"}); err != nil {
			t.Fatal(err)
		}
		refresh := func() {
			t.Helper()
			next, err := s.OAuth.Exchange(t.Context(), oauth.TokenRequest{GrantType: "refresh_token", ClientID: app.UID, ClientSecret: app.Secret, RefreshToken: live.RefreshToken})
			if err != nil {
				t.Fatal(err)
			}
			live = next
		}
		refresh()
		left := func(codes, tokens, grants int) {
			t.Helper()
			if err := s.OAuth.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
			for table, want := range map[string]int{"oauth_codes": codes, "oauth_tokens": tokens, "oauth_grants": grants} {
				var n int
				if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil || n != want {
					t.Errorf("%s: %d rows, want %d, %v", table, n, want, err)
				}
			}
		}
		left(2, 4, 3)
		s.Clock.Move(25 * time.Hour)
		left(0, 3, 2) // the codes and the password grant were deleted
		s.Clock.Move(29 * 24 * time.Hour)
		refresh()
		left(0, 2, 1) // tokens revoked or replaced a month ago were deleted
		s.Clock.Move(179 * 24 * time.Hour)
		left(0, 1, 1)
		refresh()
		s.Clock.Move(181 * 24 * time.Hour)
		left(0, 0, 0)
	})
}
