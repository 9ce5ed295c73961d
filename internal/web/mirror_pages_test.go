package web_test

import (
	"testing"

	"svc/internal/app/apptest"
)

// TestMirrorPages adds, updates and removes mirrors of a repository.
func TestMirrorPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		c := newRoleBrowsers(t, s)
		b := c.as["maintainer"]
		const at = "/g/p/-/settings/mirrors"
		b.get(at).want(200, "No mirrors", "Add a mirror")
		b.submit(at, at, "url", "file:///etc", "auth_method", "password", "password", "secret-word").want(422, "must be a URL that starts with").not("secret-word")
		b.submit(at, at, "url", "http://127.0.0.1/a.git", "auth_method", "password").want(422, "requests to the local network are not allowed")
		b.submit(at, at+"/detect", "url", "https://git.invalid/a.git", "auth_method", "password").want(422, "must start with ssh://")
		b.submit(at, at, "url", "https://git.invalid/a.git", "auth_method", "password", "user", "me", "password", "secret-word", "mirror_branch_regex", "^release-").leads(at)
		b.get(at).want(200, "https://*****:*****@git.invalid/a.git", "^release-", "Update now").not("secret-word")
		b.submit(at, at, "url", "ssh://git@git.invalid/a.git", "auth_method", "ssh_public_key", "only_protected_branches", "1").leads(at)
		b.get(at).want(200, "ssh-ed25519 AAAA", "The host keys of the server are not known.", "Detect host keys")
		c.press(t, "maintainer", at+"/1/enable").leads(at)
		b.get(at).want(200, "Disabled")
		c.press(t, "maintainer", at+"/1/enable", "enabled", "1").leads(at)
		b.get(at).not("Disabled")
		c.press(t, "maintainer", at+"/1/sync").leads(at)
		c.press(t, "maintainer", at+"/1/delete").leads(at)
		b.get(at).want(200, "ssh://").not("https://*****")
		b.submit(at, at, "direction", "pull", "url", "https://me:secret-word@git.invalid/upstream.git", "auth_method", "password", "mirror_trigger_builds", "1").leads(at)
		b.get(at).want(200, "https://*****:*****@git.invalid/upstream.git", "triggers pipelines").not("secret-word")
		b.get("/g/p").want(200, "Mirrored from", "https://git.invalid/upstream.git").not("secret-word")
		c.press(t, "maintainer", at+"/pull/sync").leads(at)
		c.press(t, "maintainer", at+"/pull/enable").leads(at)
		b.get("/g/p").want(200).not("Mirrored from")
		c.press(t, "maintainer", at+"/pull/delete").leads(at)
		b.get(at).not("upstream.git")
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"mirror_available":false}`})
		b.get(at).want(200, "ssh://").not("Add a mirror")
	})
}
