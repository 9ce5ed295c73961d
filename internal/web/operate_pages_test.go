package web_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestOperatePages uses the pages of Terraform states, feature flags, protected
// environments, broadcast messages and invitations.
func TestOperatePages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: `{"name":"App","path":"app","visibility":"public"}`, Status: 201})
		dev, _ := s.User(t, "dev")
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fapp/members", As: ada, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, dev), Status: 201})
		owner, developer := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("dev", password)
		s.User(t, "stranger")
		stranger := newBrowser(t, s).signIn("stranger", password)
		root := newBrowser(t, s).signIn("root", apptest.RootPassword)

		const states = "/ada/app/-/terraform"
		owner.get(states).want(200, "No Terraform states", "tofu init")
		s.Check(t, apptest.Call{Do: "POST /projects/1/terraform/state/a%26b", As: ada, JSON: `{"serial":1}`, Status: 200})
		developer.get(states).want(200, "a&amp;b", "Version 1", "Download JSON").not(">Delete<", "tofu init")
		stranger.get(states).want(403)
		owner.submit(states, states+"/lock", "state", "a&b").leads(states)
		owner.get(states).want(200, "Locked", "by ada")
		owner.submit(states, states+"/unlock", "state", "a&b").leads(states)
		owner.get(states+"/versions?state=a%26b").want(200, "Current")
		if got := developer.get(states + "/download?state=a%26b").want(200); got.body != `{"serial":1}` {
			t.Errorf("download: %s", got.body)
		}
		developer.get(states + "/download?state=a%26b&serial=9").want(404)

		const flags = "/ada/app/-/feature_flags"
		owner.get(flags).want(200, "No feature flags", "Instance ID")
		developer.get(flags).want(200).not("Instance ID")
		stranger.get(flags).want(403)
		developer.submit(flags+"/new", flags, "name", "checkout", "description", "d", "active", "1", "strategy_0", "flexibleRollout", "percent_0", "20",
			"stickiness_0", "random", "scopes_0", "production, review/*", "strategy_1", "").leads(flags)
		developer.get(flags).want(200, "checkout", "Percent rollout – 20% (random): production, review/*", "Active")
		developer.submit(flags+"/1/edit", flags+"/1/turn").leads(flags)
		developer.get(flags).want(200, "Inactive")
		developer.submit(flags+"/new", flags, "name", "Bad Name").want(422, "can contain only lowercase")

		const settings = "/ada/app/-/settings/environments"
		owner.get(settings).want(200, "No protected environments")
		developer.get(settings).want(403)
		owner.submit(settings, settings, "name", "production", "access_level", "40", "users", "dev", "required", "1", "approvers", "30").leads(settings)
		owner.get(settings).want(200, "Maintainers, dev", "1 approval")
		owner.submit(settings, settings+"/freezes", "freeze_start", "bad", "freeze_end", "0 7 * * 1").want(422, "is invalid syntax")
		owner.submit(settings, settings+"/freezes", "freeze_start", "0 23 * * 5", "freeze_end", "0 7 * * 1").leads(settings)
		owner.submit(settings, settings+"/unprotect", "name", "production").leads(settings)

		const messages = "/admin/broadcast_messages"
		owner.get(messages).want(404)
		root.submit(messages, messages, "message", "**Down** at <script>alert(1)</script>", "broadcast_type", "banner", "theme", "red", "dismissable", "1",
			"starts_at", "2001-01-01T00:00", "ends_at", "2100-01-01T00:00").leads(messages)
		page := stranger.get("/explore").want(200, `class="broadcast banner red"`, "<strong>Down</strong>").not("<script>alert")
		dismiss := regexp.MustCompile(`/-/broadcast_messages/\d+/dismiss`).FindString(page.body)
		stranger.submit("/explore", dismiss, "back", "/explore").leads("/explore")
		stranger.get("/explore").not("class=\"broadcast")
		developer.get("/explore").want(200, `class="broadcast banner red"`)

		const members = "/ada/app/-/settings/members"
		owner.submit(members, members, "username", "stranger.two@example.org", "access_level", "30").leads(members)
		owner.get(members).want(200, "stranger.two@example.org", "Revoke invitation")
		owner.submit(members, "/ada/app/-/settings/invitations/revoke", "email", "stranger.two@example.org").leads(members)
		if body := owner.get(members).want(200).body; strings.Contains(body, "stranger.two@example.org") {
			t.Error("the invitation is still listed")
		}
		owner.get("/-/invites/none").leads("/dashboard/projects")

		owner.submit(members, members, "username", "late@example.org", "access_level", "30").leads(members)
		late, _ := s.User(t, "late") // with a confirmed address
		newBrowser(t, s).signIn("late", password)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/1/members/%d", late), As: ada, Status: 200, Want: `{"access_level":30}`})
	})
}
