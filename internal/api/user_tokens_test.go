package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

type tokenAnswer struct {
	ID        int64    `json:"id"`
	Token     string   `json:"token"`
	ExpiresAt string   `json:"expires_at"`
	Scopes    []string `json:"scopes"`
}

func TestCreateToken(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		path := fmt.Sprintf("POST /users/%d/personal_access_tokens", id)
		day := func(n int) string { return s.Clock.Now().AddDate(0, 0, n).Format(time.DateOnly) }
		s.Table(t, []apptest.Call{
			{Name: "anonymous", Do: path, Status: 401},
			{Name: "not an administrator", Do: path, As: alice, JSON: `{"name":"t","scopes":["api"]}`, Status: 403},
			{Name: "unknown user", Do: "POST /users/99/personal_access_tokens", As: root, JSON: `{"name":"t","scopes":["api"]}`, Status: 404, Want: `{"message":"404 User Not Found"}`},
			{Name: "missing", Do: path, As: root, Status: 400, Want: `{"error":"name is missing, scopes is missing"}`},
			{Name: "unknown scope", Do: path, As: root, JSON: `{"name":"t","scopes":["api","all"]}`, Status: 400, Want: `{"error":"scopes does not have a valid value"}`},
			{Name: "no scope", Do: path, As: root, JSON: `{"name":"t","scopes":[]}`, Status: 400},
			{Name: "in the past", Do: path, As: root, JSON: `{"name":"t","scopes":["api"],"expires_at":"2020-01-01"}`, Status: 400, Want: `{"message":{"expires_at":["can't be in the past"]}}`},
			{Name: "yesterday", Do: path, As: root, JSON: `{"name":"t","scopes":["api"],"expires_at":"` + day(-1) + `"}`, Status: 400},
			{Name: "too late", Do: path, As: root, JSON: `{"name":"t","scopes":["api"],"expires_at":"` + day(366) + `"}`, Status: 400, Want: `{"message":{"expires_at":["must expire in 365 days"]}}`},
			{Name: "not a day", Do: path, As: root, JSON: `{"name":"t","scopes":["api"],"expires_at":"soon"}`, Status: 400, Want: `{"error":"expires_at is invalid"}`},
			{Name: "the latest", Do: path, As: root, JSON: `{"name":"t","scopes":["api"],"expires_at":"` + day(365) + `"}`, Status: 201},
			{Name: "by form", Do: path, As: root, Form: url.Values{"name": {"t"}, "scopes[]": {"read_user", "api"}}, Status: 201,
				Want: fmt.Sprintf(`{"name":"t","revoked":false,"active":true,"scopes":["api","read_user"],"user_id":%d,"expires_at":"%s","last_used_at":null,"token":"<any>"}`, id, day(365))},
		})
		var made tokenAnswer
		s.Check(t, apptest.Call{Do: path, As: root, JSON: `{"name":"t","scopes":["read_user"]}`, Status: 201}).JSON(t, &made)
		if !strings.HasPrefix(made.Token, "svcpat-") {
			t.Errorf("token %q", made.Token)
		}
		s.Check(t, apptest.Call{Do: "GET /user", As: made.Token, Status: 200, Want: `{"username":"alice"}`})
		s.Check(t, apptest.Call{Name: "the secret is shown once", Do: fmt.Sprintf("GET /personal_access_tokens/%d", made.ID), As: root, Status: 200,
			Want: `{"scopes":["read_user"],"last_used_at":"<any>"}`, Not: []string{made.Token, `"token"`}})
		var stored int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM access_tokens WHERE digest = ? OR name = ?`, made.Token, made.Token).Scan(&stored); err != nil || stored != 0 {
			t.Errorf("the secret is stored: %d, %v", stored, err)
		}
	})
}

func TestOwnToken(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		path := "POST /user/personal_access_tokens"
		tomorrow := s.Clock.Now().AddDate(0, 0, 1).Format(time.DateOnly)
		s.Table(t, []apptest.Call{
			{Name: "anonymous", Do: path, Status: 401},
			{Name: "another scope", Do: path, As: alice, JSON: `{"name":"t","scopes":["api"]}`, Status: 400, Want: `{"error":"scopes does not have a valid value"}`},
			{Name: "too late", Do: path, As: alice, JSON: `{"name":"t","scopes":["k8s_proxy"],"expires_at":"2999-01-01"}`, Status: 400},
			{Name: "until the end of the day", Do: path, As: alice, JSON: `{"name":"t","scopes":["k8s_proxy"]}`, Status: 201, Want: `{"scopes":["k8s_proxy"],"token":"<any>","expires_at":"` + tomorrow + `"}`},
			{Name: "comma separated", Do: path, As: alice, Form: url.Values{"name": {"t"}, "scopes": {"k8s_proxy"}}, Status: 201},
		})
		var made tokenAnswer
		s.Check(t, apptest.Call{Do: path, As: alice, JSON: `{"name":"t","scopes":["k8s_proxy"]}`, Status: 201}).JSON(t, &made)
		s.Check(t, apptest.Call{Name: "it opens no endpoint", Do: "GET /user", As: made.Token, Status: 403, Want: `{"error":"insufficient_scope"}`})
	})
}

func TestTokenList(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		bob, bobToken := s.User(t, "bob")
		s.Token(t, id, "read_api")
		s.Table(t, []apptest.Call{
			{Name: "own", Do: "GET /personal_access_tokens", As: alice, Status: 200, Want: fmt.Sprintf(`[{"user_id":%[1]d},{"user_id":%[1]d}]`, id)},
			{Name: "another's", Do: fmt.Sprintf("GET /personal_access_tokens?user_id=%d", bob), As: alice, Status: 403},
			{Name: "all for administrators", Do: "GET /personal_access_tokens", As: root, Status: 200, WantHeader: map[string]string{"X-Total": "4"}},
			{Name: "of a user", Do: fmt.Sprintf("GET /personal_access_tokens?user_id=%d", bob), As: root, Status: 200, Want: fmt.Sprintf(`[{"user_id":%d,"active":true}]`, bob)},
			{Name: "active", Do: "GET /personal_access_tokens?state=inactive", As: alice, Status: 200, Want: `[]`},
			{Name: "bad state", Do: "GET /personal_access_tokens?state=x", As: alice, Status: 400, Want: `{"error":"state does not have a valid value"}`},
			{Name: "search", Do: "GET /personal_access_tokens?search=TEST&revoked=false", As: alice, Status: 200, WantHeader: map[string]string{"X-Total": "2"}},
			{Name: "created_after", Do: "GET /personal_access_tokens?created_after=2999-01-01", As: alice, Status: 200, Want: `[]`},
			{Name: "last_used_before", Do: "GET /personal_access_tokens?last_used_before=2000-01-01", As: alice, Status: 200, Want: `[]`},
			{Name: "expires_before", Do: "GET /personal_access_tokens?expires_before=2000-01-01", As: alice, Status: 200, Want: `[]`},
			{Name: "newest first", Do: "GET /personal_access_tokens?sort=created_desc", As: alice, Status: 200, Want: `[{"scopes":["read_api"]},{"scopes":["api"]}]`},
			{Name: "never used first", Do: "GET /personal_access_tokens?sort=last_used_asc", As: alice, Status: 200, Want: `[{"last_used_at":null},{"last_used_at":"<any>"}]`},
			{Name: "by name and expiry", Do: "GET /personal_access_tokens?sort=name_desc", As: alice, Status: 200, Want: `[{"scopes":["read_api"]},{"scopes":["api"]}]`},
			{Name: "by expiry", Do: "GET /personal_access_tokens?sort=expires_asc", As: alice, Status: 200, Want: `[{"scopes":["api"]},{"scopes":["read_api"]}]`},
			{Name: "bad order", Do: "GET /personal_access_tokens?sort=up", As: alice, Status: 400, Want: `{"error":"sort does not have a valid value"}`},
			{Name: "self", Do: "GET /personal_access_tokens/self", As: alice, Status: 200, Want: fmt.Sprintf(`{"user_id":%d,"active":true}`, id)},
			{Name: "self without a token", Do: "GET /personal_access_tokens/self", Status: 401},
		})
		var self tokenAnswer
		s.Check(t, apptest.Call{Do: "GET /personal_access_tokens/self", As: bobToken, Status: 200}).JSON(t, &self)
		one := fmt.Sprintf("/personal_access_tokens/%d", self.ID)
		s.Table(t, []apptest.Call{
			{Name: "another's token is not there", Do: "GET " + one, As: alice, Status: 404, Want: `{"message":"404 Not found"}`},
			{Name: "nor to be revoked", Do: "DELETE " + one, As: alice, Status: 404},
			{Name: "nor to be rotated", Do: "POST " + one + "/rotate", As: alice, Status: 404},
			{Name: "its owner", Do: "GET " + one, As: bobToken, Status: 200},
			{Name: "an administrator revokes it", Do: "DELETE " + one, As: root, Status: 204},
			{Name: "it works no more", Do: "GET /user", As: bobToken, Status: 401},
			{Name: "again", Do: "DELETE " + one, As: root, Status: 204},
			{Name: "inactive", Do: "GET /personal_access_tokens?state=inactive", As: root, Status: 200, Want: `[{"revoked":true,"active":false}]`},
		})
	})
}

func TestRotateToken(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		first := s.Token(t, id, "api")
		week := s.Clock.Now().AddDate(0, 0, 7).Format(time.DateOnly)
		var second, third tokenAnswer
		var self tokenAnswer
		s.Check(t, apptest.Call{Do: "GET /personal_access_tokens/self", As: first, Status: 200}).JSON(t, &self)
		s.Check(t, apptest.Call{Do: "POST /personal_access_tokens/self/rotate", As: first, Status: 200, Want: `{"name":"test","scopes":["api"],"expires_at":"` + week + `"}`}).JSON(t, &second)
		s.Check(t, apptest.Call{Name: "the old one works no more", Do: "GET /user", As: first, Status: 401})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /personal_access_tokens/%d/rotate", second.ID), As: second.Token, JSON: `{"expires_at":"2020-01-01"}`, Status: 400})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /personal_access_tokens/%d/rotate", second.ID), As: second.Token, Status: 200}).JSON(t, &third)
		s.Check(t, apptest.Call{Do: "GET /user", As: third.Token, Status: 200})
		s.Check(t, apptest.Call{Name: "a token that was rotated before", Do: fmt.Sprintf("POST /personal_access_tokens/%d/rotate", self.ID), As: root, Status: 400})
		s.Check(t, apptest.Call{Name: "takes its descendants along", Do: "GET /user", As: third.Token, Status: 401})
	})
}

func TestImpersonationTokens(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		base := fmt.Sprintf("/users/%d/impersonation_tokens", id)
		var made tokenAnswer
		s.Check(t, apptest.Call{Do: "POST " + base, As: root, JSON: `{"name":"imp","scopes":["api"]}`, Status: 201,
			Want: `{"impersonation":true,"active":true,"token":"<any>","expires_at":"<any>"}`}).JSON(t, &made)
		one := fmt.Sprintf("%s/%d", base, made.ID)
		s.Table(t, []apptest.Call{
			{Do: "POST " + base, As: alice, JSON: `{"name":"imp","scopes":["api"]}`, Status: 403},
			{Do: "GET " + base, As: alice, Status: 403},
			{Do: "GET " + base, Status: 401},
			{Do: "GET " + one, As: alice, Status: 403},
			{Do: "DELETE " + one, As: alice, Status: 403},
			{Do: "GET " + base, As: root, Status: 200, Want: `[{"name":"imp","impersonation":true}]`, Not: []string{made.Token}},
			{Do: "GET " + base + "?state=inactive", As: root, Status: 200, Want: `[]`},
			{Do: "GET " + one, As: root, Status: 200, Want: `{"name":"imp"}`},
			{Name: "of another user", Do: fmt.Sprintf("GET /users/1/impersonation_tokens/%d", made.ID), As: root, Status: 404},
			{Name: "it is no personal token", Do: fmt.Sprintf("GET /personal_access_tokens/%d", made.ID), As: root, Status: 404},
			{Name: "it acts as the user", Do: "GET /user", As: made.Token, Status: 200, Want: `{"username":"alice"}`},
			{Name: "unmodified since", Do: "DELETE " + one, As: root, Header: map[string]string{"If-Unmodified-Since": "Mon, 02 Jan 2006 15:04:05 GMT"}, Status: 412},
			{Do: "DELETE " + one, As: root, Status: 204},
			{Name: "it works no more", Do: "GET /user", As: made.Token, Status: 401},
			{Do: "GET " + base + "?state=inactive", As: root, Status: 200, Want: `[{"revoked":true}]`},
			{Do: "PUT /application/settings?impersonation_enabled=false", As: root, Status: 200},
			{Name: "while it is disabled", Do: "GET " + base, As: root, Status: 404},
		})
	})
}
