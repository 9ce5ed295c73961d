package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/oauth"
)

// applicationRoles are the rows of OAuth applications.
var applicationRoles = map[string]role{
	"POST /applications":                   admin("POST /applications", `{"name":"a","redirect_uri":"https://a.example/cb","scopes":"api"}`, 201),
	"GET /applications":                    adminRead("GET /applications"),
	"DELETE /applications/{id}":            admin("DELETE /applications/99999", "", 404),
	"POST /applications/{id}/renew-secret": admin("POST /applications/99999/renew-secret", "", 404),
}

type applicationAnswer struct {
	ID     int64  `json:"id"`
	UID    string `json:"application_id"`
	Secret string `json:"secret"`
}

func TestOAuthApplications(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		good := func(more string) string {
			return `{"name":"App","redirect_uri":"https://a.example/cb","scopes":"api read_user"` + more + `}`
		}
		s.Table(t, []apptest.Call{
			{Name: "anonymous", Do: "POST /applications", JSON: good(""), Status: 401},
			{Name: "not an administrator", Do: "POST /applications", As: alice, JSON: good(""), Status: 403, Want: `{"message":"403 Forbidden"}`},
			{Name: "missing", Do: "POST /applications", As: root, Status: 400, Want: `{"error":"name is missing, redirect_uri is missing, scopes is missing"}`},
			{Name: "blank scopes", Do: "POST /applications", As: root, JSON: `{"name":"a","redirect_uri":"https://a.example","scopes":""}`, Status: 400, Want: `{"error":"scopes is empty"}`},
			{Name: "unknown scope", Do: "POST /applications", As: root, JSON: `{"name":"a","redirect_uri":"https://a.example","scopes":"api all"}`, Status: 400,
				Want: `{"message":{"scopes":["doesn't match configured on the server."]}}`},
			{Name: "no absolute address", Do: "POST /applications", As: root, JSON: `{"name":"a","redirect_uri":"/cb","scopes":"api"}`, Status: 400,
				Want: `{"message":{"redirect_uri":["must be an absolute URI."]}}`},
			{Name: "a script", Do: "POST /applications", As: root, JSON: `{"name":"a","redirect_uri":"https://a.example\njavascript://a/%0aalert(1)","scopes":"api"}`, Status: 400,
				Want: `{"message":{"redirect_uri":["is forbidden by the server."]}}`},
			{Name: "a long name", Do: "POST /applications", As: root, JSON: `{"name":"` + strings.Repeat("n", 256) + `","redirect_uri":"https://a.example","scopes":"api"}`, Status: 400},
			{Name: "by form", Do: "POST /applications", As: root, Form: url.Values{"name": {"F"}, "redirect_uri": {"https://a.example/1\r\nhttps://a.example/2"}, "scopes": {"openid email"}, "confidential": {"false"}},
				Status: 201, Want: `{"id":"<any>","application_id":"<any>","application_name":"F","secret":"<any>","callback_url":"https://a.example/1\nhttps://a.example/2","confidential":false}`},
		})
		var made, renewed applicationAnswer
		s.Check(t, apptest.Call{Do: "POST /applications", As: root, JSON: good(""), Status: 201, Want: `{"confidential":true}`}).JSON(t, &made)
		if !strings.HasPrefix(made.Secret, "svcoas-") {
			t.Errorf("secret %q", made.Secret)
		}
		// An application of a user is not an application of the instance.
		if _, err := s.OAuth.CreateOwn(t.Context(), actor.Actor{ID: id, Username: "alice"}, oauth.NewApplication{
			Name: "own", RedirectURIs: "https://a.example", Scopes: []string{"api"}, Trusted: true,
		}); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET /applications", As: root, Status: 200, Want: fmt.Sprintf(`[{"application_name":"F"},{"id":%d,"application_id":%q,"callback_url":"https://a.example/cb"}]`, made.ID, made.UID),
			Not: []string{"secret", made.Secret, "own"}})
		s.Check(t, apptest.Call{Do: "GET /applications?per_page=1", As: root, Status: 200, Want: `[{}]`, WantHeader: map[string]string{"X-Total": "2"}})
		one := fmt.Sprintf("/applications/%d", made.ID)
		s.Check(t, apptest.Call{Do: "POST " + one + "/renew-secret", As: root, Status: 201, Want: fmt.Sprintf(`{"application_id":%q}`, made.UID)}).JSON(t, &renewed)
		if renewed.Secret == made.Secret || renewed.Secret == "" {
			t.Error("the secret is the same")
		}
		revoke := func(secret string, status int) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "POST //oauth/revoke", Form: url.Values{"client_id": {made.UID}, "client_secret": {secret}, "token": {"x"}}, Status: status})
		}
		revoke(made.Secret, 401)
		revoke(renewed.Secret, 200)
		var stored int
		err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM oauth_applications WHERE secret_digest IN (?, ?)`, made.Secret, renewed.Secret).Scan(&stored)
		if err != nil || stored != 0 {
			t.Errorf("the secret is stored: %d, %v", stored, err)
		}
		s.Table(t, []apptest.Call{
			{Name: "another's eyes", Do: "DELETE " + one, As: alice, Status: 403},
			{Name: "delete", Do: "DELETE " + one, As: root, Status: 204},
			{Name: "again", Do: "DELETE " + one, As: root, Status: 404, Want: `{"message":"404 Application Not Found"}`},
			{Name: "renew", Do: "POST " + one + "/renew-secret", As: root, Status: 404},
		})
		revoke(renewed.Secret, 401)
		for i, kind := range []string{"deleted", "secret_renewed"} {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /audit_events?per_page=1&page=%d", i+1), As: root, Status: 200,
				Want: fmt.Sprintf(`[{"event_type":"oauth_application_%s","entity_type":"Svc::Audit::InstanceScope","details":{"target_id":%d}}]`, kind, made.ID)})
		}
	})
}
