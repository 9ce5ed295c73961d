package api_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

func TestDeployTokens(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		g := group(t, s, alice, "g", "")
		p := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d`, g))
		inProject, inGroup := fmt.Sprintf("/projects/%d/deploy_tokens", p), fmt.Sprintf("/groups/%d/deploy_tokens", g)
		in := func(d time.Duration) string { return s.Clock.Now().Add(d).Format(time.RFC3339) }
		s.Table(t, []apptest.Call{
			{Name: "all that is needed", Do: "POST " + inProject, As: alice, JSON: `{}`, Status: 400, Want: `{"error":"name is missing, scopes is missing"}`},
			{Name: "no such scope", Do: "POST " + inProject, As: alice, JSON: `{"name":"t","scopes":["api"]}`, Status: 400, Want: `{"error":"scopes does not have a valid value"}`},
			{Name: "no scope", Do: "POST " + inProject, As: alice, JSON: `{"name":"t","scopes":[]}`, Status: 400},
			{Name: "a name that basic authentication can not send", Do: "POST " + inProject, As: alice, JSON: `{"name":"t","scopes":["read_repository"],"username":"a:b"}`, Status: 400,
				Want: `{"message":{"username":"<any>"}}`},
			{Name: "blank", Do: "POST " + inProject, As: alice, JSON: `{"name":" ","scopes":["read_repository"]}`, Status: 400, Want: `{"message":{"name":["can't be blank"]}}`},
		})
		made := secretOf(t, s, alice, "POST "+inProject, `{"name":"CI","scopes":["write_registry","read_repository","read_repository"],"username":"","expires_at":""}`, 201)
		named := secretOf(t, s, alice, "POST "+inGroup, `{"name":"All","scopes":["read_repository"],"username":"robot+1","expires_at":"`+in(time.Hour)+`"}`, 201)
		if !strings.HasPrefix(made.Token, "svcdt-") || made.Username != fmt.Sprintf("svc+deploy-token-%d", made.ID) {
			t.Errorf("made %+v", made)
		}
		one := fmt.Sprintf("%s/%d", inProject, made.ID)
		s.Table(t, []apptest.Call{
			{Do: "GET " + one, As: alice, Status: 200, Not: []string{made.Token}, Want: fmt.Sprintf(`{"id":%d,"name":"CI","username":"%s","expires_at":null,"revoked":false,"expired":false,
				"scopes":["read_repository","write_registry"]}`, made.ID, made.Username)},
			{Name: "of the project alone", Do: "GET " + inProject, As: alice, Status: 200, Want: `[{"name":"CI"}]`},
			{Name: "of the group alone", Do: "GET " + inGroup, As: alice, Status: 200, Want: `[{"name":"All","username":"robot+1","expires_at":"<any>"}]`},
			{Name: "not of another place", Do: fmt.Sprintf("GET %s/%d", inProject, named.ID), As: alice, Status: 404, Want: `{"message":"404 Deploy Token Not Found"}`},
			{Name: "all of them", Do: "GET /deploy_tokens", As: root, Status: 200, Want: `["<any>","<any>"]`, WantHeader: map[string]string{"X-Total": "2"}},
			{Name: "a day is a time", Do: "POST " + inGroup, As: alice, JSON: `{"name":"old","scopes":["read_repository"],"expires_at":"2020-01-02"}`, Status: 201,
				Want: `{"expires_at":"2020-01-02T00:00:00.000Z","expired":true}`},
			{Name: "which work", Do: "GET " + inGroup + "?active=true", As: alice, Status: 200, Want: `[{"name":"All"}]`},
			{Name: "which do not", Do: "GET /deploy_tokens?active=false", As: root, Status: 200, Want: `[{"name":"old"}]`},
			{Name: "opens nothing here", Do: "GET /projects", As: made.Token, Status: 401},
			{Name: "as a password", Do: "GET /version", Header: map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(made.Username+":"+made.Token))}, Status: 401},
		})
		s.Clock.Move(2 * time.Hour)
		s.Table(t, []apptest.Call{
			{Name: "expired", Do: fmt.Sprintf("GET %s/%d", inGroup, named.ID), As: alice, Status: 200, Want: `{"expired":true,"revoked":false}`},
			{Name: "delete", Do: "DELETE " + one, As: alice, Status: 204},
			{Name: "gone", Do: "GET " + one, As: alice, Status: 404},
			{Name: "once", Do: "DELETE " + one, As: alice, Status: 404},
		})
		if strings.Contains(s.Log(), made.Token) {
			t.Error("the log holds the secret")
		}
	})
}
