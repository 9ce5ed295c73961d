package notify_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
)

// TestReleases checks that users are notified of new releases if they watch the
// project or have selected this event type, and may read the code.
func TestReleases(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		f := newFixture(t, s, m, "owner", "watch", "custom", "plain", "guest")
		f.project = f.do("owner", "POST /projects", `{"name":"Shop","path":"shop","initialize_with_readme":true}`, 201)
		at := fmt.Sprintf("/projects/%d", f.project)
		for who, level := range map[string]int{"watch": 30, "custom": 20, "plain": 30, "guest": 10} {
			f.member("projects", f.project, who, level)
		}
		f.level("watch", at, `{"level":"watch"}`)
		f.level("custom", at, `{"level":"custom","new_release":true}`)
		f.level("guest", at, `{"level":"custom","new_release":true}`)
		s.Check(t, apptest.Call{Do: "POST " + at + "/releases", As: f.as["owner"], Status: 201,
			JSON: `{"tag_name":"v1/a","ref":"main","name":"One","description":"**Notes** <script>x</script>"}`})
		l := f.notified("new release", "custom watching, watch watching")["custom"]
		if l.Subject != "Shop | New release: One" || !strings.Contains(l.Text, "**Notes**") || !strings.Contains(l.HTML, "<strong>Notes</strong>") ||
			strings.Contains(l.HTML, "<script") || !strings.Contains(l.Text, "/owner/shop/-/releases/v1%2Fa") {
			t.Errorf("the email: %s %s %s", l.Subject, l.Text, l.HTML)
		}
		s.Check(t, apptest.Call{Do: "PUT " + at + "/releases/v1%2Fa", As: f.as["owner"], Status: 200, JSON: `{"name":"Two"}`})
		f.notified("an update", "")
	})
}
