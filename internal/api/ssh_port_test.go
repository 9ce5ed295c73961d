package api_test

import (
	"testing"

	"svc/internal/app/apptest"
)

// TestSSHPort checks that clone URLs have the port that clients connect to.
func TestSSHPort(t *testing.T) {
	t.Parallel()
	for port, want := range map[int]string{22: "git@127.0.0.1:root/p.git", 2200: "ssh://git@127.0.0.1:2200/root/p.git"} {
		apptest.Each(t, func(t *testing.T, s *apptest.Server) {
			s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: `{"name":"p"}`, Status: 201, Want: `{"ssh_url_to_repo":"` + want + `"}`})
		}, apptest.SSH, apptest.SSHPort(port))
	}
}
