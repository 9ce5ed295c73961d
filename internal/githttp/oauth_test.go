package githttp_test

import (
	"net/url"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/oauth"
	"svc/internal/project"
)

// TestOAuthToken accesses repositories with OAuth tokens of an application.
func TestOAuthToken(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		alice := actor.Actor{ID: id, Username: "alice", Name: "alice"}
		if _, err := s.Projects.Create(t.Context(), alice, project.NewProject{Name: "secret", Path: "secret"}); err != nil {
			t.Fatal(err)
		}
		const callback = "https://app.example/cb"
		app, err := s.OAuth.Create(t.Context(), actor.System(), oauth.NewApplication{
			Name: "App", RedirectURIs: callback, Confidential: true, Scopes: []string{"api", "read_api", "read_user", "read_repository", "write_repository"},
		})
		if err != nil {
			t.Fatal(err)
		}
		token := func(scope string) string {
			t.Helper()
			r, err := s.OAuth.Begin(t.Context(), url.Values{"client_id": {app.UID}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {scope}})
			if err != nil {
				t.Fatal(err)
			}
			to, err := s.OAuth.Approve(t.Context(), alice, s.Clock.Now(), r)
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
			return tokens.AccessToken
		}
		const fetch, push = "/alice/secret.git/info/refs?service=git-upload-pack", "/alice/secret.git/info/refs?service=git-receive-pack"
		read, write := token("read_repository"), token("write_repository")
		for _, a := range []ask{
			{name: "fetch", login: "oauth2", password: read, path: fetch, status: 200},
			{name: "fetch by another name", login: "alice", password: read, path: fetch, status: 200},
			{name: "fetch by Bearer", header: map[string]string{"Authorization": "Bearer " + read}, path: fetch, status: 200},
			{name: "push with the scope to read", login: "oauth2", password: read, path: push, status: 403},
			{name: "push", login: "oauth2", password: write, path: push, status: 200},
			{name: "fetch with the scope to write", login: "oauth2", password: write, path: fetch, status: 200},
			{name: "fetch without a scope for it", login: "oauth2", password: token("read_user"), path: fetch, status: 403},
			{name: "an unknown token", login: "oauth2", password: "svcoat-x", path: fetch, status: 401},
			{name: "an unknown token is no password", login: "alice", password: "svcoat-x", path: fetch, status: 401, text: "token is invalid"},
		} {
			t.Run(a.name, func(t *testing.T) { a.check(t, s) })
		}
		if err := s.OAuth.Revoke(t.Context(), app.UID, app.Secret, read); err != nil {
			t.Fatal(err)
		}
		ask{login: "oauth2", password: read, path: fetch, status: 401}.check(t, s)
		s.Clock.Move(2 * time.Hour)
		ask{login: "oauth2", password: write, path: fetch, status: 401}.check(t, s)
	})
}
