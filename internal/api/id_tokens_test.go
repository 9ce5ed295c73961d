package api_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

const withTokens = `
tok:
  id_tokens:
    ONE: {aud: "https://one.example.com"}
    MANY: {aud: ["https://a.example.com", "$PLACE/x"]}
  variables: {PLACE: "https://$HOST_NAME", HOST_NAME: b.example.com, ONE: mine}
  environment: {name: production}
  script: [x]
`

// TestIDTokens verifies the ID tokens of a job with the keys that the server
// publishes, as other services do.
func TestIDTokens(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, withTokens)
		pipeline := b.pipeline(b.project)
		j := b.run()
		found := map[string]string{}
		for _, v := range j.Variables {
			if _, twice := found[v.Key]; twice {
				t.Errorf("%s comes twice", v.Key)
			}
			if found[v.Key] = v.Value; (v.Key == "ONE" || v.Key == "MANY") && !v.Masked {
				t.Errorf("%s is not masked", v.Key)
			}
		}
		var discovery struct {
			Issuer string
			Keys   string `json:"jwks_uri"`
		}
		published(t, s, s.URL+"/.well-known/openid-configuration", &discovery)
		if discovery.Issuer != s.URL {
			t.Errorf("issuer is %q, want %q", discovery.Issuer, s.URL)
		}
		one := checkedToken(t, s, discovery.Keys, found["ONE"])
		from, _ := one["iat"].(float64)
		want := map[string]any{
			"iss": s.URL, "aud": "https://one.example.com", "sub": "project_path:alice/code:ref_type:branch:ref:main", "nbf": from - 5, "exp": from + time.Hour.Seconds(),
			"namespace_path": "alice", "project_id": strconv.FormatInt(b.project, 10), "project_path": "alice/code",
			"user_login": "alice", "user_access_level": "owner", "pipeline_id": strconv.FormatInt(pipeline, 10), "pipeline_source": "api",
			"job_id": strconv.FormatInt(j.ID, 10), "ref": "main", "ref_type": "branch", "ref_path": "refs/heads/main", "sha": j.GitInfo.SHA,
			"environment": "production", "environment_protected": "false", "deployment_tier": "production", "environment_action": "start",
			"runner_environment": "self-hosted", "ci_config_ref_uri": strings.TrimPrefix(s.URL, "http://") + "/alice/code//.gitlab-ci.yml@refs/heads/main",
			"project_visibility": "private", "ci_config_sha": j.GitInfo.SHA,
		}
		for claim, value := range want {
			if one[claim] != value {
				t.Errorf("%s is %v, want %v", claim, one[claim], value)
			}
		}
		many := checkedToken(t, s, discovery.Keys, found["MANY"])
		if got := fmt.Sprint(many["aud"]); got != "[https://a.example.com https://b.example.com/x]" {
			t.Errorf("audiences are %s", got)
		}
		if one["jti"] == many["jti"] || one["jti"] == "" {
			t.Error("two tokens have one name")
		}
		s.Check(t, apptest.Call{Do: "POST " + b.at("/protected_environments"), As: b.owner,
			JSON: `{"name":"production","deploy_access_levels":[{"access_level":40}]}`, Status: 201})
		b.pipeline(b.project)
		b.settled()
		for _, v := range b.run().Variables {
			if v.Key != "ONE" {
				continue
			}
			if got := checkedToken(t, s, discovery.Keys, v.Value)["environment_protected"]; got != "true" {
				t.Errorf("environment_protected is %v for a protected environment", got)
			}
		}
	})
}

// published decodes a public JSON document.
func published(t *testing.T, s *apptest.Server, address string, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := s.Exchange(t, r)
	if a.Status != 200 || a.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s: %d %v", address, a.Status, a.Header)
	}
	a.JSON(t, into)
}

// checkedToken verifies the signature of a token and returns its claims.
func checkedToken(t *testing.T, s *apptest.Server, keys, token string) map[string]any {
	t.Helper()
	var set struct {
		Keys []struct{ Kid, Kty, Alg, N, E string }
	}
	published(t, s, keys, &set)
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(set.Keys) != 1 {
		t.Fatalf("a token of %d parts, and %d keys", len(parts), len(set.Keys))
	}
	part := func(text string) []byte {
		t.Helper()
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	var head struct{ Alg, Kid string }
	if err := json.Unmarshal(part(parts[0]), &head); err != nil || head.Alg != "RS256" || head.Kid != set.Keys[0].Kid {
		t.Fatalf("head %+v, %v", head, err)
	}
	key := &rsa.PublicKey{N: new(big.Int).SetBytes(part(set.Keys[0].N)), E: int(new(big.Int).SetBytes(part(set.Keys[0].E)).Int64())}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], part(parts[2])); err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(part(parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

const withSecrets = `
vault:
  stage: build
  id_tokens: {VT: {aud: v}}
  variables: {VAULT_SERVER_URL: "https://vault.example.com", VAULT_AUTH_ROLE: ro}
  secrets: {DB: {vault: production/db/password@ops, file: false}}
  script: [x]
gcp:
  stage: build
  id_tokens: {A: {aud: v}, B: {aud: v}}
  variables: {GCP_PROJECT_NUMBER: "12"}
  secrets: {KEY: {gcp_secret_manager: {name: n, version: 3}, token: $B}}
  script: [x]
nowhere:
  stage: build
  id_tokens: {VT: {aud: v}}
  secrets: {DB: {vault: a/b@ops}}
  script: [x]
which:
  stage: build
  id_tokens: {A: {aud: v}, B: {aud: v}}
  variables: {VAULT_SERVER_URL: "https://vault.example.com"}
  secrets: {DB: {vault: a/b@ops}}
  script: [x]
unknown:
  stage: build
  id_tokens: {VT: {aud: v}}
  secrets: {DB: {gitlab_secrets_manager: {name: x}}}
  script: [x]
`

func TestSecrets(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, withSecrets)
		pipeline := b.pipeline(b.project)
		ask := func(want string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "POST /jobs/request", Status: 201, Want: want,
				JSON: fmt.Sprintf(`{"token":%q,"system_id":"s_1","info":{"features":{"vault_secrets":true,"artifacts_exclude":true,"upload_multiple_artifacts":true}}}`, b.runner)})
		}
		ask(`{"job_info":{"name":"vault"},"secrets":{"DB":{"file":false,"vault":{"engine":{"name":"kv-v2","path":"ops"},"path":"production/db","field":"password",
			"server":{"url":"https://vault.example.com","namespace":"","auth":{"name":"jwt","path":"jwt","data":{"jwt":"<any>","role":"ro"}}}}}}}`)
		ask(`{"job_info":{"name":"gcp"},"secrets":{"KEY":{"gcp_secret_manager":{"name":"n","version":"3","server":{"project_number":"12","jwt":"<any>"}}}}}`)
		b.take(b.runner, 204, "")
		for name, why := range map[string]string{
			"nowhere": "the variable VAULT_SERVER_URL is missing",
			"which":   "token: name one of the id_tokens, because the job does not have exactly one",
			"unknown": "gitlab_secrets_manager is not supported here",
		} {
			var jobs []struct {
				ID            int64
				Name          string
				FailureReason string `json:"failure_reason"`
			}
			s.Check(t, apptest.Call{Do: "GET " + b.at("/pipelines/%d/jobs?scope=failed", pipeline), As: b.owner, Status: 200}).JSON(t, &jobs)
			for _, j := range jobs {
				if j.Name != name {
					continue
				}
				log := s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d/trace", j.ID), As: b.owner, Status: 200})
				if j.FailureReason != "unmet_prerequisites" || !strings.Contains(string(log.Body), why) {
					t.Errorf("%s failed for %s: %q", name, j.FailureReason, log.Body)
				}
				why = ""
			}
			if why != "" {
				t.Errorf("%s did not fail", name)
			}
		}
	})
}

// TestSecretsOfOldRunner assigns a job with secrets to a runner that does not
// support them.
func TestSecretsOfOldRunner(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a:\n  id_tokens: {VT: {aud: v}}\n  variables: {VAULT_SERVER_URL: \"https://vault.example.com\"}\n  secrets: {DB: {vault: a/b@ops}}\n  script: [x]\n")
		pipeline := b.pipeline(b.project)
		b.take(b.runner, 204, `,"info":{"features":{"cancelable":true}}`)
		s.Check(t, apptest.Call{Do: "GET " + b.at("/pipelines/%d/jobs", pipeline), As: b.owner, Status: 200, Want: `[{"status":"failed","failure_reason":"runner_unsupported"}]`})
	})
}
