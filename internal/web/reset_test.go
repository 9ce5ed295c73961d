package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
	"svc/internal/user"
)

// TestOldResetLinks checks that a link to set a password ends with a new password of an
// administrator, and with another primary address.
func TestOldResetLinks(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, post *mailtest.Server) {
		id, ada := s.User(t, "ada")
		b := newBrowser(t, s)
		address := fmt.Sprintf("/users/%d", id)
		link := func() string {
			t.Helper()
			b.submit("/users/password/new", "/users/password", "login", "ada").leads("/users/sign_in")
			u, err := s.Users.Get(t.Context(), actor.System(), id, false)
			if err != nil {
				t.Fatal(err)
			}
			link := post.Wait(t, u.Email).Link(t, "reset_password_token")
			b.get(link).want(200, "Set a new password")
			return link
		}
		old := link()
		s.Check(t, apptest.Call{Do: "PUT " + address, As: apptest.RootToken, JSON: `{"password":"chosen by root"}`, Status: 200})
		b.get(old).leads("/users/password/new")
		old = link()
		for _, email := range []string{"lovelace@example.org", "augusta@example.org"} {
			s.Check(t, apptest.Call{Do: "POST " + address + "/emails", As: apptest.RootToken, JSON: `{"email":"` + email + `","skip_confirmation":true}`, Status: 201})
		}
		s.Check(t, apptest.Call{Do: "PUT " + address, As: apptest.RootToken, JSON: `{"email":"lovelace@example.org"}`, Status: 200})
		b.get(old).leads("/users/password/new")
		old = link()
		var list []struct{ ID int64 } // the former address and the other one
		s.Check(t, apptest.Call{Do: "GET /user/emails", As: ada, Status: 200}).JSON(t, &list)
		if _, err := s.Users.SetOwnPrimary(t.Context(), actor.Actor{ID: id, Username: "ada"}, list[len(list)-1].ID); err != nil {
			t.Fatal(err)
		}
		b.get(old).leads("/users/password/new")
	})
}

// TestReclaimAccount signs up with the address of someone else, who then resets the
// password: all credentials of the first one are revoked.
func TestReclaimAccount(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, post *mailtest.Server) {
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, JSON: `{"signup_enabled":true,"require_admin_approval_after_user_signup":false}`, Status: 200})
		u, err := s.Users.SignUp(t.Context(), user.NewUser{Email: "ada@example.org", Name: "Ada", Username: "ada", Password: password}, "")
		if err != nil {
			t.Fatal(err)
		}
		post.Wait(t, "ada@example.org")
		ada := actor.Actor{ID: u.ID, Username: "ada"}
		k, err := s.Users.CreatePersonalToken(t.Context(), ada, user.NewToken{Name: "k", Scopes: []string{"api"}})
		if err != nil {
			t.Fatal(err)
		}
		var grant struct {
			Token string `json:"access_token"`
		}
		s.Check(t, apptest.Call{Do: "POST //oauth/token", Form: url.Values{"grant_type": {"password"}, "username": {"ada"}, "password": {password}}, Status: 200}).JSON(t, &grant)
		s.Table(t, []apptest.Call{
			{Do: "POST /user/keys", As: k.Secret, JSON: `{"title":"k","key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"}`, Status: 201},
			{Do: "POST /user/emails", As: k.Secret, JSON: `{"email":"other@example.org"}`, Status: 201},
			{Do: "GET /user", Header: map[string]string{"Authorization": "Bearer " + grant.Token}, Status: 200},
		})
		at := fmt.Sprintf("/users/%d", u.ID)
		s.Check(t, apptest.Call{Do: "PUT " + at, As: apptest.RootToken, JSON: `{"provider":"p","extern_uid":"x"}`, Status: 200})
		b := newBrowser(t, s)
		b.submit("/users/password/new", "/users/password", "login", "ada@example.org").leads("/users/sign_in")
		link := post.Wait(t, "ada@example.org").Link(t, "reset_password_token")
		_, token, _ := strings.Cut(link, "reset_password_token=")
		b.submit(link, "/users/password/edit", "reset_password_token", token, "password", "her own password", "password_confirmation", "her own password").leads("/users/sign_in")
		newBrowser(t, s).signIn("ada@example.org", "her own password")
		s.Table(t, []apptest.Call{
			{Name: "token", Do: "GET /user", As: k.Secret, Status: 401},
			{Name: "grant", Do: "GET /user", Header: map[string]string{"Authorization": "Bearer " + grant.Token}, Status: 401},
			{Name: "keys", Do: "GET " + at + "/keys", As: apptest.RootToken, Status: 200, Want: `[]`},
			{Name: "addresses", Do: "GET " + at + "/emails", As: apptest.RootToken, Status: 200, Want: `[]`},
			{Name: "identities", Do: "GET " + at, As: apptest.RootToken, Status: 200, Want: `{"identities":[]}`},
		})
	})
}
