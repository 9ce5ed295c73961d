package app_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestSecretsInLog sends secrets in paths of every route that takes one, in queries,
// and in paths that no route matches. The log must contain none of them.
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
		// Paths that no route matches, or that another route matches than the
		// intended one.
		secrets := []string{secret, "svcpat-ABCDEFGHIJKLMNOPQRSTUVWXYZ", "glpat-x_9-aB3dE_fGh-1jKl2M", "Z2345672345672345672345672", "svcptt-0123456789abcdef0123456789abcdef01234567"}
		for _, one := range secrets {
			for _, path := range []string{
				"/uploads/%s/a.png", "/group/project/uploads/%s/a.png", "/api/v4/projects/1/upload/%s", "/api/v4/projects/1/trigger/pipeline/%s",
				"/api/v4/projects/1/trigger/pipeline/extra%%3Ftoken=%s", "/api/v4/projects/1/trigger/pipeline/extra%%253Ftoken%%253D%s",
				"/api/v4/error_tracking/collector/%s/envelope", "/error_tracking/collector/1/envelope/sentry_key=%s", "/dashboard.atom/feed_token/%s",
				"/api/v4/jobs/%s/trace", "/group/project.git/%s/info/refs", "/http:/user:%s@127.0.0.1/group/project", "/-/sent_notification/%s", "/%s",
			} {
				s.Send(t, apptest.Call{Do: "GET /" + fmt.Sprintf(path, one)})
			}
		}
		s.Send(t, apptest.Call{Do: "GET //x%3Fpassword=correct-horse&x=1"})
		for _, kept := range []string{
			"/group/project/-/commit/a1b2c3d4e5f60718293a4b5c6d7e8f9001122334", "/group/project/-/tree/a-branch-with-a-long-name-2026",
			"/group/internationalization-of-documents", "/group/project.git/info/lfs/objects/" + secret + secret,
		} {
			s.Send(t, apptest.Call{Do: "GET /" + kept})
			if !strings.Contains(s.Log(), `"path":"`+kept+`"`) {
				t.Errorf("the log has no path %s", kept)
			}
		}
		if strings.Contains(s.Log(), "correct-horse") {
			t.Error("the log has the value of a parameter named password")
		}
		if !strings.Contains(s.Log(), `"path":"/-/sent_notifications/[secret]"`) {
			t.Error("the log has no masked path")
		}
		for line := range strings.Lines(s.Log()) {
			for _, one := range secrets {
				if strings.Contains(strings.ReplaceAll(line, secret+secret, ""), one) {
					t.Errorf("the log has a secret: %s", line)
				}
			}
		}
	})
}
