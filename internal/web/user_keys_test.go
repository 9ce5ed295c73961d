package web_test

import (
	"net/url"
	"testing"

	"svc/internal/app/apptest"
)

// TestUserKeyPages reads the public keys of users as text.
func TestUserKeyPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEmCuvFJVORBi3Yc+2K4Bg7fvPIEP2v4Db0HblyNQPXQ"
		s.Table(t, []apptest.Call{
			{Do: "GET //ada.keys", Status: 200, WantHeader: map[string]string{"Content-Type": "text/plain; charset=utf-8"}},
			{Do: "POST /user/keys", As: ada, Form: url.Values{"title": {"laptop"}, "key": {key + " ada@laptop"}}, Status: 201},
			{Do: "GET //ada.gpg", Status: 200},
			{Name: "unknown", Do: "GET //eve.keys", Status: 404},
			{Name: "unknown", Do: "GET //eve.gpg", Status: 404},
			{Name: "an ID", Do: "GET //1.keys", Status: 404},
		})
		if got := string(s.Check(t, apptest.Call{Do: "GET //ada.keys", Status: 200}).Body); got != key+"\n" {
			t.Errorf("the keys are %q", got)
		}
	})
}
