package api_test

import (
	"fmt"
	"testing"

	"golang.org/x/crypto/ssh"

	"svc/internal/app/apptest"
	"svc/internal/errs"
)

// TestBotKeepsNoCredentials checks that the user of an access token cannot keep
// access after the token is revoked, by an SSH key, another token or another email
// address.
func TestBotKeepsNoCredentials(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		at := fmt.Sprintf("/projects/%d", newProject(t, s, alice, "p", ""))
		tokens := at + "/access_tokens"
		made := secretOf(t, s, alice, "POST "+tokens, `{"name":"Reader","scopes":["api"],"access_level":20}`, 201)
		bot, id := made.Token, made.UserID
		line, _ := sshKey(t)
		key := fmt.Sprintf(`{"title":"k","key":%q}`, line)
		asBot := map[string]string{"Sudo": fmt.Sprint(id)}
		s.Table(t, []apptest.Call{
			{Name: "key", Do: "POST /user/keys", As: bot, JSON: key, Status: 403, Want: `{"message":"403 Forbidden - Bot users cannot add SSH keys."}`},
			{Name: "token", Do: "POST /user/personal_access_tokens", As: bot, JSON: `{"name":"t","scopes":["k8s_proxy"]}`, Status: 403,
				Want: `{"message":"403 Forbidden - Bot users cannot create personal access tokens."}`},
			{Name: "address", Do: "POST /user/emails", As: bot, JSON: `{"email":"eve@example.org"}`, Status: 403,
				Want: `{"message":"403 Forbidden - Bot users cannot add email addresses."}`},
			{Name: "key by sudo", Do: "POST /user/keys", As: root, Header: asBot, JSON: key, Status: 403},
			{Name: "token by sudo", Do: "POST /user/personal_access_tokens", As: root, Header: asBot, JSON: `{"name":"t","scopes":["k8s_proxy"]}`, Status: 403},
			{Name: "key by an administrator", Do: fmt.Sprintf("POST /users/%d/keys", id), As: root, JSON: key, Status: 403,
				Want: `{"message":"403 Forbidden - Bot users cannot have SSH keys."}`},
			{Name: "no keys", Do: fmt.Sprintf("GET /users/%d/keys", id), As: root, Status: 200, Want: `[]`},
		})
	})
}

// TestBotEndsWithItsAccessToken revokes an access token whose bot has other
// credentials: a token that an administrator created, and an old SSH key.
func TestBotEndsWithItsAccessToken(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s *apptest.Server, as, tokens string, id int64){
		"revoked": func(t *testing.T, s *apptest.Server, as, tokens string, id int64) {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE %s/%d", tokens, id), As: as, Status: 204})
		},
		"rotated twice": func(t *testing.T, s *apptest.Server, as, tokens string, id int64) {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST %s/%d/rotate", tokens, id), As: as, Status: 200})
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST %s/%d/rotate", tokens, id), As: as, Status: 400})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apptest.Each(t, func(t *testing.T, s *apptest.Server) {
				_, alice := s.User(t, "alice")
				at := fmt.Sprintf("/projects/%d", newProject(t, s, alice, "p", ""))
				tokens := at + "/access_tokens"
				made := secretOf(t, s, alice, "POST "+tokens, `{"name":"Builder","scopes":["api"],"access_level":40}`, 201)
				other := secretOf(t, s, root, fmt.Sprintf("POST /users/%d/personal_access_tokens", made.UserID), `{"name":"t","scopes":["api"]}`, 201)
				line, public := sshKey(t)
				fingerprint := ssh.FingerprintSHA256(public)
				_, err := s.DB.ExecContext(t.Context(), `
					INSERT INTO ssh_keys (user_id, title, key, fingerprint, sha256, usage_type, created_at) VALUES (?, 'k', ?, ?, ?, 'auth', ?)`,
					made.UserID, line, ssh.FingerprintLegacyMD5(public), fingerprint, s.Clock.Now())
				if err != nil {
					t.Fatal(err)
				}
				s.Check(t, apptest.Call{Name: "the other token works", Do: "GET " + at, As: other.Token, Status: 200})
				if _, err := s.Users.AuthenticateKey(t.Context(), fingerprint, ""); !errs.Is(err, errs.KindUnauthorized) {
					t.Errorf("the key of a bot: %v", err)
				}
				end(t, s, alice, tokens, made.ID)
				s.Table(t, []apptest.Call{
					{Name: "the token is over", Do: "GET " + at, As: made.Token, Status: 401},
					{Name: "the other one too", Do: "GET " + at, As: other.Token, Status: 401},
					{Name: "no member", Do: fmt.Sprintf("GET %s/members/%d", at, made.UserID), As: alice, Status: 404},
					{Name: "blocked", Do: fmt.Sprintf("GET /users/%d", made.UserID), As: root, Status: 200, Want: `{"state":"blocked"}`},
					{Name: "no keys", Do: fmt.Sprintf("GET /users/%d/keys", made.UserID), As: root, Status: 200, Want: `[]`},
				})
			})
		})
	}
}
