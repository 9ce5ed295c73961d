package api_test

import (
	"fmt"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

func TestUserEmails(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		reader := s.Token(t, id, "read_user")
		of := fmt.Sprintf("/users/%d/emails", id)
		var first, second struct{ ID int64 }

		s.Table(t, []apptest.Call{
			{Do: "GET /user/emails", Status: 401},
			{Name: "the primary is not listed", Do: "GET /user/emails", As: alice, Status: 200, Want: `[]`},
			{Name: "read_user reads", Do: "GET /user/emails", As: reader, Status: 200},
			{Name: "read_user does not write", Do: "POST /user/emails?email=a@example.org", As: reader, Status: 403, Want: `{"error":"insufficient_scope"}`},
			{Name: "missing", Do: "POST /user/emails", As: alice, Status: 400, Want: `{"error":"email is missing"}`},
			{Name: "invalid", Do: "POST /user/emails", As: alice, JSON: `{"email":"no address"}`, Status: 400, Want: `{"message":{"email":["is invalid"]}}`},
			{Name: "taken", Do: "POST /user/emails", As: alice, JSON: `{"email":"BOB@example.org"}`, Status: 400,
				Want: `{"message":{"email":["has already been taken"]}}`},
		})
		s.Check(t, apptest.Call{Name: "add", Do: "POST /user/emails", As: alice, JSON: `{"email":"alice@work.example"}`, Status: 201,
			Want: `{"id":"<any>","email":"alice@work.example","confirmed_at":null}`, Not: []string{"oken"}}).JSON(t, &first)
		s.Check(t, apptest.Call{Name: "add for a user", Do: "POST " + of, As: root, JSON: `{"email":"alice@home.example","skip_confirmation":true}`, Status: 201,
			Want: `{"confirmed_at":"<any>"}`}).JSON(t, &second)
		own := fmt.Sprintf("/user/emails/%d", first.ID)
		s.Table(t, []apptest.Call{
			{Name: "list", Do: "GET /user/emails", As: alice, Status: 200, Want: `[{"email":"alice@work.example"},{"email":"alice@home.example"}]`,
				WantHeader: map[string]string{"X-Total": "2"}},
			{Name: "a page", Do: "GET /user/emails?per_page=1&page=2", As: alice, Status: 200, Want: `[{"email":"alice@home.example"}]`},
			{Name: "get", Do: "GET " + own, As: alice, Status: 200, Want: `{"email":"alice@work.example"}`},
			{Name: "get another's", Do: "GET " + own, As: bob, Status: 404, Want: `{"message":"404 Email Not Found"}`},
			{Name: "list as administrator", Do: "GET " + of, As: root, Status: 200, Want: `[{"email":"alice@work.example"},{"email":"alice@home.example"}]`},
			{Name: "list as another", Do: "GET " + of, As: bob, Status: 403, Want: `{"message":"403 Forbidden"}`},
			{Name: "list one's own the administrators' way", Do: "GET " + of, As: alice, Status: 403},
			{Name: "add as another", Do: "POST " + of, As: bob, JSON: `{"email":"x@example.org"}`, Status: 403},
			{Name: "list as anonymous", Do: "GET /users/99999/emails", As: root, Status: 404, Want: `{"message":"404 User Not Found"}`},
			{Name: "delete another's", Do: "DELETE " + own, As: bob, Status: 404},
			{Name: "delete", Do: "DELETE " + own, As: alice, Status: 204},
			{Name: "delete again", Do: "DELETE " + own, As: alice, Status: 404},
			{Name: "delete as another", Do: fmt.Sprintf("DELETE %s/%d", of, second.ID), As: bob, Status: 403},
			{Name: "delete as administrator", Do: fmt.Sprintf("DELETE %s/%d", of, second.ID), As: root, Status: 204},
			{Name: "all gone", Do: "GET " + of, As: root, Status: 200, Want: `[]`},
		})
	})
}

// TestReservedAddresses checks that users cannot reserve the addresses of others for
// long, or very many.
func TestReservedAddresses(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		for n := range 19 {
			s.Check(t, apptest.Call{Do: "POST /user/emails", As: alice, JSON: fmt.Sprintf(`{"email":"other%d@example.org"}`, n), Status: 201})
		}
		user := func(n int, status int) apptest.Call {
			return apptest.Call{Do: "POST /users", As: root, Status: status,
				JSON: fmt.Sprintf(`{"email":"other%d@example.org","username":"other%[1]d","name":"Other","password":"a good password"}`, n)}
		}
		s.Table(t, []apptest.Call{
			{Name: "too many", Do: "POST /user/emails", As: alice, JSON: `{"email":"another@example.org"}`, Status: 400},
			{Name: "taken", Do: "POST /user/emails", As: bob, JSON: `{"email":"other0@example.org"}`, Status: 400},
			user(1, 409),
		})
		s.Clock.Move(73 * time.Hour)
		s.Table(t, []apptest.Call{
			{Name: "free", Do: "POST /user/emails", As: bob, JSON: `{"email":"OTHER0@example.org"}`, Status: 201},
			user(1, 201),
			{Name: "room for another", Do: "POST /user/emails", As: alice, JSON: `{"email":"another@example.org"}`, Status: 201},
		})
	})
}

// TestConfirmationLimit adds and deletes an address again and again: each time it would get
// an email.
func TestConfirmationLimit(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"sign_in_attempts_per_minute":3}`, Status: 200})
		add := apptest.Call{Do: "POST /user/emails", As: alice, JSON: `{"email":"victim@example.org"}`, Status: 201}
		for range 3 {
			var e struct{ ID int64 }
			s.Check(t, add).JSON(t, &e)
			s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /user/emails/%d", e.ID), As: alice, Status: 204})
		}
		add.JSON, add.Status = `{"email":"Victim@example.org"}`, 429
		s.Check(t, add)
		s.Check(t, apptest.Call{Name: "another address", Do: "POST /user/emails", As: alice, JSON: `{"email":"other@example.org"}`, Status: 201})
		s.Clock.Move(time.Minute)
		add.Status = 201
		s.Check(t, add)
	})
}
