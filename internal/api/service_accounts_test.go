package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/errs"
	"svc/internal/user"
)

func TestServiceAccounts(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bob, bobToken := s.User(t, "bob")
		var group struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: `{"name":"G","path":"g"}`, Status: 201}).JSON(t, &group)
		s.Table(t, []apptest.Call{
			{Do: "POST /groups", As: alice, JSON: fmt.Sprintf(`{"name":"S","path":"s","parent_id":%d}`, group.ID), Status: 201},
			{Do: "POST /groups", As: bobToken, JSON: `{"name":"H","path":"h"}`, Status: 201},
		})
		var instance, ours, token, rotated struct {
			ID       int64
			Username string
			Token    string
		}
		// Service accounts of the instance.
		s.Check(t, apptest.Call{Name: "instance", Do: "POST /service_accounts", As: root, Status: 201,
			Want: `{"name":"Service account user","email":"<any>"}`}).JSON(t, &instance)
		s.Table(t, []apptest.Call{
			{Name: "named", Do: "POST /service_accounts", As: root, JSON: `{"name":"Robot","username":"robot","email":"robot@example.org"}`, Status: 201, Want: `{"name":"Robot","username":"robot","email":"robot@example.org"}`},
			{Name: "taken", Do: "POST /service_accounts", As: root, JSON: `{"username":"ROBOT"}`, Status: 400},
			{Name: "taken address", Do: "POST /service_accounts", As: root, JSON: `{"email":"robot@example.org"}`, Status: 400},
			{Name: "odd username", Do: "POST /service_accounts", As: root, JSON: `{"username":"../x"}`, Status: 400},
			{Name: "list", Do: "GET /service_accounts?order_by=username&sort=asc", As: root, Status: 200, Want: `[{"username":"robot"},{"id":"<any>"}]`},
			{Name: "rename", Do: fmt.Sprintf("PATCH /service_accounts/%d", instance.ID), As: root, JSON: `{"name":"N","email":"n@example.org"}`, Status: 200, Want: `{"name":"N","email":"n@example.org"}`},
			{Name: "a human", Do: fmt.Sprintf("PATCH /service_accounts/%d", bob), As: root, JSON: `{"name":"N"}`, Status: 404},
			{Name: "not for others", Do: "POST /service_accounts", As: alice, Status: 403},
			{Name: "no human", Do: "GET /users?humans=true&search=robot", As: root, Status: 200, Want: `[]`},
			{Name: "a bot", Do: "GET /users?username=robot", As: root, Status: 200, Want: `[{"bot":true,"using_license_seat":false}]`},
		})
		// Service accounts of a group.
		const at = "/groups/g/service_accounts"
		s.Table(t, []apptest.Call{
			{Name: "not by default", Do: "POST " + at, As: alice, Status: 403},
			{Do: "PUT /application/settings", As: root, JSON: `{"allow_top_level_group_owners_to_create_service_accounts":true}`, Status: 200},
			{Name: "address", Do: "POST " + at, As: alice, JSON: `{"email":"ceo@example.org"}`, Status: 400},
			{Name: "in a subgroup", Do: "POST /groups/g%2Fs/service_accounts", As: alice, Status: 400},
		})
		s.Check(t, apptest.Call{Name: "create", Do: "POST " + at, As: alice, JSON: `{"name":"Ours"}`, Status: 201, Want: `{"name":"Ours"}`}).JSON(t, &ours)
		one := fmt.Sprintf("%s/%d", at, ours.ID)
		tokens := one + "/personal_access_tokens"
		s.Check(t, apptest.Call{Name: "token", Do: "POST " + tokens, As: alice, JSON: `{"name":"t","scopes":["api"]}`, Status: 201, Want: `{"name":"t","scopes":["api"],"active":true}`}).JSON(t, &token)
		s.Table(t, []apptest.Call{
			{Name: "acts", Do: "GET /user", As: token.Token, Status: 200, Want: fmt.Sprintf(`{"id":%d,"bot":true}`, ours.ID)},
			{Name: "becomes a member", Do: "POST /groups/g/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":50}`, ours.ID), Status: 201},
			{Name: "makes no account", Do: "POST " + at, As: token.Token, Status: 403},
			{Name: "makes no token", Do: "POST " + tokens, As: token.Token, JSON: `{"name":"t","scopes":["api"]}`, Status: 403},
			{Name: "list", Do: "GET " + at, As: alice, Status: 200, Want: fmt.Sprintf(`[{"id":%d}]`, ours.ID)},
			{Name: "instance list", Do: "GET /service_accounts?sort=asc", As: root, Status: 200, Want: `[{"name":"N"},{"username":"robot"}]`},
			{Name: "sudo", Do: "POST " + tokens, As: alice, JSON: `{"name":"t","scopes":["sudo"]}`, Status: 400},
			{Name: "tokens", Do: "GET " + tokens, As: alice, Status: 200, Want: `[{"name":"t"}]`, Not: []string{token.Token}},
			{Name: "another group", Do: fmt.Sprintf("GET /groups/h/service_accounts/%d/personal_access_tokens", ours.ID), As: bobToken, Status: 404},
			{Name: "token through another group", Do: fmt.Sprintf("POST /groups/h/service_accounts/%d/personal_access_tokens", ours.ID), As: bobToken, JSON: `{"name":"t","scopes":["api"]}`, Status: 404},
			{Name: "an account of the instance", Do: fmt.Sprintf("DELETE %s/%d", at, instance.ID), As: alice, Status: 404},
			{Name: "a member", Do: fmt.Sprintf("DELETE %s/%d", at, bob), As: alice, Status: 404},
			{Name: "update", Do: "PATCH " + one, As: alice, JSON: `{"name":"Ours too","username":"ours-too"}`, Status: 200, Want: `{"name":"Ours too","username":"ours-too"}`},
			{Name: "update the address", Do: "PATCH " + one, As: alice, JSON: `{"email":"ceo@example.org"}`, Status: 400},
			{Name: "audited", Do: "GET /groups/g/audit_events", As: alice, Status: 200},
		})
		s.Check(t, apptest.Call{Name: "rotate", Do: fmt.Sprintf("POST %s/%d/rotate", tokens, token.ID), As: alice, Status: 200}).JSON(t, &rotated)
		s.Table(t, []apptest.Call{
			{Name: "the old one", Do: "GET /user", As: token.Token, Status: 401},
			{Name: "the new one", Do: "GET /user", As: rotated.Token, Status: 200},
			{Name: "blocked", Do: fmt.Sprintf("POST /users/%d/block", ours.ID), As: root, Status: 201},
			{Name: "of a blocked account", Do: "GET /user", As: rotated.Token, Status: 403},
			{Name: "unblocked", Do: fmt.Sprintf("POST /users/%d/unblock", ours.ID), As: root, Status: 201},
			{Name: "made an administrator", Do: fmt.Sprintf("PUT /users/%d", ours.ID), As: root, JSON: `{"admin":true,"password":"correct horse battery"}`, Status: 200},
			{Name: "token of an administrator", Do: "POST " + tokens, As: alice, JSON: `{"name":"t","scopes":["api"]}`, Status: 403},
			{Name: "rotation of an administrator", Do: fmt.Sprintf("POST %s/%d/rotate", tokens, rotated.ID), As: alice, Status: 403},
			{Name: "no longer", Do: fmt.Sprintf("PUT /users/%d", ours.ID), As: root, JSON: `{"admin":false}`, Status: 200},
		})
		if _, _, err := s.Users.SignIn(t.Context(), user.SignInRequest{Login: "ours-too", Password: "correct horse battery"}); !errs.Is(err, errs.KindUnauthorized) {
			t.Errorf("a service account signs in: %v", err)
		}
		s.Table(t, []apptest.Call{
			{Name: "revoke", Do: fmt.Sprintf("DELETE %s/%d", tokens, rotated.ID), As: alice, Status: 204},
			{Name: "revoked", Do: "GET /user", As: rotated.Token, Status: 401},
			{Name: "delete", Do: "DELETE " + one, As: alice, Status: 204},
			{Name: "deleted", Do: "GET " + at, As: alice, Status: 200, Want: `[]`},
		})
	})
}
