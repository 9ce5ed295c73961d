package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
)

// TestActivityPages checks the activity of a project on the pages of the project, of
// its group, of the author and of its members.
func TestActivityPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newPlanProject(t, s)
		b, guest := st.b, newBrowser(t, s)
		b.get("/g/p/-/activity").want(200, "created the project")
		s.Clock.Move(24 * time.Hour)
		st.api("POST /projects/g%2Fp/milestones", url.Values{"title": {"Goal"}})
		st.issue("Wheel")
		s.Check(t, apptest.Call{Do: "POST /projects/g%2Fp/repository/files/a.txt", As: st.token, Form: url.Values{"branch": {"main"}, "content": {"x"}, "commit_message": {"Begin it"}}, Status: 201})
		note := st.api("POST /projects/g%2Fp/issues/1/notes", url.Values{"body": {"It turns.\n\n<b>Well</b> " + strings.Repeat("x ", 200)}})
		b = newBrowser(t, s).signIn("ada", password) // the session has expired
		b.submit("/g/p/-/issues/1", "/g/p/-/issues/1/turn", "event", "close").leads("/g/p/-/issues/1")
		want := []string{"opened", `<a href="/g/p/-/issues/1">issue #1</a>`, "“Wheel”", `<a href="/g/p/-/milestones/1">milestone %1</a>`, "closed", "commented on",
			fmt.Sprintf(`<a href="/g/p/-/issues/1#note_%d">issue #1</a>`, note), "It turns. &lt;b&gt;Well&lt;/b&gt;", "Begin it", `href="/g/p/-/commits/main"`, `href="/g/p"`}
		for _, page := range []string{"/g/p/-/activity", "/groups/g/-/activity", "/ada?tab=activity"} {
			guest.get(page).want(200, want...)
		}
		b.get("/dashboard/activity").want(200, want...)
		guest.get("/users/ada/activity").leads("/ada?tab=activity")
		for kind, texts := range map[string][2]string{"push": {"Begin it", "Wheel"}, "issue": {"Wheel", "Begin it"}, "comment": {"It turns", "Begin it"}, "merge": {"No events match", "Wheel"}, "nonsense": {"Wheel", "Nothing"}} {
			guest.get("/g/p/-/activity?event_filter="+kind).want(200, texts[0]).not(texts[1])
		}

		// The calendar: a push, a milestone, an issue, a note and the closing of the
		// issue.
		day := s.Clock.Now().UTC()
		profile := guest.get("/ada").want(200, "5 contributions in the last year", fmt.Sprintf("<title>%s: 5</title>", day.Format("2 Jan 2006")), "<th scope=\"row\">"+day.Format("January 2006")+"</th><td>5</td>")
		if len(profile.body) > 50<<10 {
			t.Errorf("the profile has %d bytes", len(profile.body))
		}
		s.Clock.Move(364 * 24 * time.Hour)
		guest.get("/ada").want(200, "5 contributions")
		s.Clock.Move(24 * time.Hour)
		guest.get("/ada").want(200, "0 contributions")
		s.Clock.Move(-365 * 24 * time.Hour)

		// A private profile has no activity for other users.
		const settings = "/-/user_settings/profile"
		b.submit(settings, settings, "name", "Ada", "private_profile", "1").leads(settings)
		guest.get("/ada?tab=activity").want(200, "This profile is private").not("Wheel", "contribution")
		b.get("/ada?tab=activity").want(200, "Wheel", "5 contributions")

		// A link to a branch disappears with the branch.
		s.Check(t, apptest.Call{Do: "POST /projects/g%2Fp/repository/branches", As: st.token, Form: url.Values{"branch": {"side"}, "ref": {"main"}}, Status: 201})
		guest.get("/g/p/-/activity?event_filter=push").want(200, `href="/g/p/-/commits/side"`)
		s.Check(t, apptest.Call{Do: "DELETE /projects/g%2Fp/repository/branches/side", As: st.token, Status: 204})
		guest.get("/g/p/-/activity?event_filter=push").want(200, "side", `href="/g/p/-/commits/main"`).not(`href="/g/p/-/commits/side"`)
	})
}

// TestBadges shows the badges of a project on its page: images of this site, and
// of others by the image proxy.
func TestBadges(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	st := newPlanProject(t, s)
	const at, group = "/g/p/-/settings/badges", "/groups/g/-/settings/badges"
	st.b.get(at).want(200, "No badges")
	st.b.submit(at, at, "name", "x", "link_url", "javascript:alert(1)", "image_url", "https://example.org/x.svg").want(422, "must be a valid URL")
	st.b.submit(at, at, "name", "Elsewhere", "link_url", "https://example.org/%{project_path}", "image_url", "https://example.org/x.svg").leads(at)
	st.b.submit(group, group, "name", "Pipeline", "link_url", s.URL+"/%{project_path}", "image_url", s.URL+"/%{project_path}/-/badges/main/pipeline.svg").leads(group)
	page := newBrowser(t, s).get("/g/p").want(200, `href="https://example.org/g/p"`, `<img src="/-/image_proxy/`, `alt="Elsewhere"`, `<img src="/g/p/-/badges/main/pipeline.svg" alt="Pipeline"`)
	page.not(`src="https://example.org`)
	list := st.b.get(at).want(200, "Inherited from group").body
	_, rest, _ := strings.Cut(list, `href="`+at+`/`)
	edit, _, _ := strings.Cut(rest, `/edit"`)
	st.b.get(at+"/"+edit+"/edit").want(200, `value="Elsewhere"`)
	st.b.submit(at, at+"/"+edit, "name", "Other", "link_url", "https://example.org", "image_url", "https://example.org/x.svg").leads(at)
	st.b.submit(at, at+"/"+edit+"/delete").leads(at)
	newBrowser(t, s).get("/g/p").want(200, "Pipeline").not("Other", "Elsewhere")
}
