package notify_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
	"svc/internal/notify"
	"svc/internal/waittest"
)

// fixture is a project with users who have different relations to it.
type fixture struct {
	*apptest.Server
	t    *testing.T
	mail *mailtest.Server
	ids  map[string]int64
	as   map[string]string // tokens

	group, project int64
	last           int64 // the last event that the test processed itself
}

func newFixture(t *testing.T, s *apptest.Server, m *mailtest.Server, users ...string) *fixture {
	f := &fixture{Server: s, t: t, mail: m, ids: map[string]int64{}, as: map[string]string{"root": apptest.RootToken}}
	for _, name := range users {
		f.ids[name], f.as[name] = s.User(t, name)
	}
	return f
}

// do sends a request as a user and returns the ID in the response.
func (f *fixture) do(who, what, json string, status int) int64 {
	f.t.Helper()
	a := f.Check(f.t, apptest.Call{Do: what, As: f.as[who], JSON: json, Status: status})
	var made struct{ ID any } // the ID of a discussion is a string
	if strings.HasPrefix(string(a.Body), "{") {
		a.JSON(f.t, &made)
	}
	id, _ := made.ID.(float64)
	return int64(id)
}

// member adds a user to a project or group.
func (f *fixture) member(place string, id int64, who string, level int) {
	f.t.Helper()
	f.do("root", fmt.Sprintf("POST /%s/%d/members", place, id), fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, f.ids[who], level), 201)
}

// level changes notification settings; at is empty for the global settings.
func (f *fixture) level(who, at, json string) {
	f.t.Helper()
	f.do(who, "PUT "+at+"/notification_settings", json, 200)
}

// settle waits until all notification jobs are done, and returns the emails
// that arrived, by username.
func (f *fixture) settle() map[string]mailtest.Email {
	f.t.Helper()
	waittest.For(f.t, "all notification jobs are done", func() bool {
		var left int
		err := f.DB.QueryRowContext(f.t.Context(), `
			SELECT count(*) FROM river_job WHERE kind LIKE 'notify.%' AND state IN ('available', 'running', 'retryable', 'scheduled', 'pending')`).Scan(&left)
		if err != nil {
			f.t.Fatal(err)
		}
		return left == 0
	})
	got := map[string]mailtest.Email{}
	for _, l := range f.mail.Take() {
		name, _, _ := strings.Cut(l.To, "@")
		if _, twice := got[name]; twice {
			f.t.Errorf("%s got two emails: %s", name, l.Subject)
		}
		got[name] = l
	}
	return got
}

// notified checks that exactly these users get emails: "bob mentioned, carol
// watching".
func (f *fixture) notified(what, want string) map[string]mailtest.Email {
	f.t.Helper()
	got := f.settle()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(got)) {
		list = append(list, name+" "+got[name].Header.Get("X-Svc-Notificationreason"))
	}
	if all := strings.Join(list, ", "); all != want {
		f.t.Errorf("%s: notified are %q, want %q", what, all, want)
	}
	return got
}

// TestWho checks who is notified of changes to issues, and why.
func TestWho(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		f := newFixture(t, s, m, "alice", "bob", "carol", "cust", "dan", "dis", "gus", "men", "sub", "wat")
		f.group = f.do("alice", "POST /groups", `{"name":"Top","path":"top","visibility":"public"}`, 201)
		f.project = f.do("alice", "POST /projects", fmt.Sprintf(`{"name":"Plan","path":"plan","namespace_id":%d,"visibility":"public"}`, f.group), 201)
		at := fmt.Sprintf("/projects/%d", f.project)
		for _, who := range []string{"bob", "carol", "cust", "dis", "gus", "men", "wat"} {
			f.member("projects", f.project, who, 30)
		}
		f.level("wat", at, `{"level":"watch"}`)
		f.level("gus", "", `{"level":"watch"}`)
		f.level("carol", fmt.Sprintf("/groups/%d", f.group), `{"level":"watch"}`)
		f.level("cust", "", `{"level":"custom","new_issue":true,"close_issue":false}`)
		f.level("dis", "", `{"level":"disabled"}`)
		f.level("men", "", `{"level":"mention"}`)
		f.do("alice", "POST "+at+"/labels", `{"name":"bug","color":"red"}`, 201)
		f.do("sub", "POST "+at+"/labels/bug/subscribe", "", 201)
		issue := at + "/issues/1"
		for _, row := range []struct{ name, who, do, json, want string }{
			{"a new issue", "alice", "POST " + at + "/issues", fmt.Sprintf(`{"title":"First","description":"for @men and @dis, @nobody and @7, but not `+"`@dan`"+`","labels":"bug","assignee_ids":[%d]}`, f.ids["bob"]),
				"bob assigned, carol watching, cust watching, gus watching, men mentioned, sub subscribed, wat watching"},
			{"a note by another user", "dan", "POST " + issue + "/notes", `{"body":"hello"}`,
				"alice participated, bob assigned, carol watching, gus watching, wat watching"},
			{"commenters participate", "alice", "POST " + issue + "/notes", `{"body":"hello @dan"}`,
				"bob assigned, carol watching, dan mentioned, gus watching, wat watching"},
			{"an unsubscribed user is not notified", "bob", "POST " + issue + "/unsubscribe", "", ""},
			{"of a close", "alice", "PUT " + issue, `{"state_event":"close"}`, "carol watching, dan participated, gus watching, wat watching"},
			{"except by a mention", "alice", "POST " + issue + "/notes", `{"body":"@bob look"}`, "bob mentioned, carol watching, dan participated, gus watching, wat watching"},
			{"subscribed although disabled", "dis", "POST " + issue + "/subscribe", "", ""},
			{"a subscriber is notified", "alice", "PUT " + issue, `{"state_event":"reopen"}`, "carol watching, dan participated, dis subscribed, gus watching, wat watching"},
			{"of another assignee also the old one, even if unsubscribed", "alice", "PUT " + issue, fmt.Sprintf(`{"assignee_ids":[%d]}`, f.ids["men"]),
				"bob participated, carol watching, dan participated, dis subscribed, gus watching, men assigned, wat watching"},
			{"a text that mentions more", "alice", "PUT " + issue, `{"description":"for @men and @dan"}`, "dan mentioned"},
			{"no one of a title", "alice", "PUT " + issue, `{"title":"Second"}`, ""},
			{"all", "bob", "POST " + issue + "/notes", `{"body":"@all, a party"}`,
				"alice mentioned, carol mentioned, cust mentioned, dan participated, dis subscribed, gus mentioned, men mentioned, wat mentioned"},
			{"a group", "bob", "POST " + issue + "/notes", `{"body":"@top only"}`,
				"alice mentioned, carol participated, cust participated, dan participated, dis subscribed, gus participated, wat participated"},
		} {
			status := map[bool]int{true: 201, false: 200}[strings.HasPrefix(row.do, "POST")]
			f.do(row.who, row.do, row.json, status)
			f.notified(row.name, row.want)
		}
		f.own(issue)
		f.relabel(at, issue)
	})
}

// own turns on notifications of a user's own activity.
func (f *fixture) own(issue string) {
	f.t.Helper()
	want := true
	if _, err := f.Notify.SetEverywhere(f.t.Context(), actor.Actor{ID: f.ids["gus"]}, notify.Change{OwnActivity: &want}); err != nil {
		f.t.Fatal(err)
	}
	f.do("gus", "POST "+issue+"/notes", `{"body":"mine"}`, 201)
	if got := f.settle()["gus"]; got.Header.Get("X-Svc-Notificationreason") != "own_activity" {
		f.t.Errorf("not notified of own activity: %v", got.Header)
	}
}

// relabel checks that subscribers of a label are notified.
func (f *fixture) relabel(at, issue string) {
	f.t.Helper()
	f.do("alice", "POST "+at+"/issues", `{"title":"Other"}`, 201)
	f.settle()
	other := strings.TrimSuffix(issue, "1") + "2"
	f.do("alice", "PUT "+other, `{"add_labels":"bug"}`, 200)
	f.notified("a label", "sub subscribed")
}
