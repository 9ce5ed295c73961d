package api_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"svc/internal/app/apptest"
)

// sshKey generates a key and returns its line without a comment, and the public key.
func sshKey(t *testing.T) (line string, key ssh.PublicKey) {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = ssh.NewPublicKey(public); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), key
}

func TestUserKeys(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		line, public := sshKey(t)
		other, _ := sshKey(t)
		of := fmt.Sprintf("/users/%d/keys", id)
		form := func(pairs ...string) url.Values {
			v := url.Values{}
			for i := 0; i < len(pairs); i += 2 {
				v.Set(pairs[i], pairs[i+1])
			}
			return v
		}
		s.Table(t, []apptest.Call{
			{Do: "GET /user/keys", Status: 401},
			{Do: "GET /user/keys", As: alice, Status: 200, Want: `[]`},
			{Name: "all missing", Do: "POST /user/keys", As: alice, Status: 400, Want: `{"error":"title is missing, key is missing"}`},
			{Name: "no key", Do: "POST /user/keys", As: alice, Form: form("title", "x", "key", "ssh-rsa xyz"), Status: 400, Want: `{"message":{"key":["is invalid"]}}`},
			{Name: "bad usage", Do: "POST /user/keys", As: alice, Form: form("title", "x", "key", line, "usage_type", "all"), Status: 400,
				Want: `{"error":"usage_type does not have a valid value"}`},
			{Name: "expired", Do: "POST /user/keys", As: alice, Form: form("title", "x", "key", line, "expires_at", "2020-01-01"), Status: 400,
				Want: `{"message":{"expires_at":["can't be in the past"]}}`},
			{Name: "for another", Do: "POST " + of, As: bob, Form: form("title", "x", "key", line), Status: 403},
		})
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Name: "add", Do: "POST /user/keys", As: alice, Form: form("title", "laptop", "key", line+" alice@laptop"), Status: 201,
			Want: fmt.Sprintf(`{"id":"<any>","title":"laptop","key":%q,"created_at":"<any>","expires_at":null,"last_used_at":null,"usage_type":"auth_and_signing"}`,
				line+" alice@laptop")}).JSON(t, &made)
		own, its := fmt.Sprintf("/user/keys/%d", made.ID), fmt.Sprintf("%s/%d", of, made.ID)
		withUser := `{"title":"laptop","user":{"username":"alice","email":"alice@example.org","is_admin":false}}`
		s.Table(t, []apptest.Call{
			{Name: "twice", Do: "POST /user/keys", As: bob, Form: form("title", "x", "key", line), Status: 400,
				Want: `{"message":{"fingerprint_sha256":["has already been taken"]}}`},
			{Name: "as administrator", Do: "POST " + of, As: root, Form: form("title", "from above", "key", other, "expires_at", "2999-12-31", "usage_type", "auth"), Status: 201,
				Want: `{"expires_at":"2999-12-31T00:00:00.000Z","usage_type":"auth"}`},
			{Name: "unknown user", Do: "POST /users/99999/keys", As: root, Form: form("title", "x", "key", other), Status: 404},

			{Name: "list", Do: "GET /user/keys", As: alice, Status: 200, Want: `[{"title":"laptop"},{"title":"from above"}]`},
			{Name: "get", Do: "GET " + own, As: alice, Status: 200, Want: `{"title":"laptop"}`},
			{Name: "get another's", Do: "GET " + own, As: bob, Status: 404, Want: `{"message":"404 Key Not Found"}`},
			{Name: "list without signing in", Do: "GET " + of, Status: 200, Want: fmt.Sprintf(`[{"key":%q},{}]`, line), Not: []string{"alice@laptop"}},
			{Name: "list by username", Do: "GET /users/ALICE/keys", As: bob, Status: 200, Want: `[{},{}]`},
			{Name: "list as anonymous", Do: "GET /users/nobody/keys", Status: 404, Want: `{"message":"404 User Not Found"}`},
			{Name: "get without signing in", Do: "GET " + its, Status: 200, Want: fmt.Sprintf(`{"key":%q}`, line)},
			{Name: "get as administrator", Do: "GET " + its, As: root, Status: 200, Want: fmt.Sprintf(`{"key":%q}`, line+" alice@laptop")},
			{Name: "a bad token where none is needed", Do: "GET " + of, As: "nonsense", Status: 401},

			{Name: "by SHA256", Do: "GET /keys?fingerprint=" + url.QueryEscape(ssh.FingerprintSHA256(public)), As: root, Status: 200, Want: withUser},
			{Name: "by MD5", Do: "GET /keys?fingerprint=" + ssh.FingerprintLegacyMD5(public), As: root, Status: 200, Want: withUser},
			{Name: "by number", Do: fmt.Sprintf("GET /keys/%d", made.ID), As: root, Status: 200, Want: withUser},
			{Name: "not public", Do: fmt.Sprintf("GET /keys/%d", made.ID), As: alice, Status: 403},
			{Name: "no fingerprint", Do: "GET /keys", As: root, Status: 400, Want: `{"error":"fingerprint is missing"}`},
			{Name: "half a fingerprint", Do: "GET /keys?fingerprint=SHA256:abc", As: root, Status: 400, Want: `{"message":"400 Bad request - Failed to return the key"}`},
			{Name: "unknown fingerprint", Do: "GET /keys?fingerprint=SHA256:" + strings.Repeat("A", 43), As: root, Status: 404, Want: `{"message":"404 Key Not Found"}`},

			{Name: "delete another's", Do: "DELETE " + own, As: bob, Status: 404},
			{Name: "delete as another", Do: "DELETE " + its, As: bob, Status: 403},
			{Name: "delete", Do: "DELETE " + own, As: alice, Status: 204},
			{Name: "delete again", Do: "DELETE " + its, As: root, Status: 404},
		})
	})
}
