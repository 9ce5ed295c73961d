package app_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestSecretsInLog sends secrets in paths, by every route that takes one, and in
// queries: the log has none of them.
func TestSecretsInLog(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		for _, want := range []string{
			"/-/sent_notifications/{token}/unsubscribe", "/-/project/{id}/uploads/{secret}/{name}", "/api/v4/projects/{id}/uploads/{secret}/{filename}",
		} {
			if !slices.Contains(s.SecretRoutes, want) {
				t.Errorf("%s is not among %v", want, s.SecretRoutes)
			}
		}
		const secret = "0123456789abcdef0123456789abcdef"
		param := regexp.MustCompile(`\{[^}]*\}`)
		for _, pattern := range s.SecretRoutes {
			for _, other := range []string{"17", "group%2Fproject"} {
				path := strings.NewReplacer("{token}", secret, "{secret}", secret).Replace(pattern)
				path = param.ReplaceAllString(path, other)
				for _, method := range []string{"GET", "POST", "PATCH"} {
					for _, tail := range []string{"", "/", "/more"} {
						s.Send(t, apptest.Call{Do: method + " /" + path + tail})
					}
				}
			}
		}
		for _, path := range []string{
			"/users/password/edit?reset_password_token=", "/users/unlock?unlock_token=", "/users/confirmation?confirmation_token=",
			"/oauth/authorize?state=", "/api/v4/user?private_token=", "/api/v4/user?access_token=", "/api/v4/job?job_token=",
			"/alice/p/alerts/notify.json?token=", "/api/v4/error_tracking/collector/1/envelope/?sentry_key=",
		} {
			s.Send(t, apptest.Call{Do: "GET /" + path + secret})
		}
		if !strings.Contains(s.Log(), `"path":"/-/sent_notifications/[secret]"`) {
			t.Error("the log has no masked path")
		}
		for line := range strings.Lines(s.Log()) {
			if strings.Contains(line, secret) {
				t.Errorf("the log has a secret: %s", line)
			}
		}
	})
}
