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

// stage is a project with people around it.
type stage struct {
	*apptest.Server
	t    *testing.T
	mail *mailtest.Server
	ids  map[string]int64
	as   map[string]string // tokens

	group, project int64
	last           int64 // act that was worked off by hand
}

func newStage(t *testing.T, s *apptest.Server, m *mailtest.Server, people ...string) *stage {
	st := &stage{Server: s, t: t, mail: m, ids: map[string]int64{}, as: map[string]string{"root": apptest.RootToken}}
	for _, name := range people {
		st.ids[name], st.as[name] = s.User(t, name)
	}
	return st
}

// do sends a request as somebody and gives the id in the answer.
func (st *stage) do(who, what, json string, status int) int64 {
	st.t.Helper()
	a := st.Check(st.t, apptest.Call{Do: what, As: st.as[who], JSON: json, Status: status})
	var made struct{ ID any } // of a discussion it is a text
	if strings.HasPrefix(string(a.Body), "{") {
		a.JSON(st.t, &made)
	}
	id, _ := made.ID.(float64)
	return int64(id)
}

// member adds somebody to a place.
func (st *stage) member(place string, id int64, who string, level int) {
	st.t.Helper()
	st.do("root", fmt.Sprintf("POST /%s/%d/members", place, id), fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, st.ids[who], level), 201)
}

// level says what somebody wants to be told of; at is empty for everywhere.
func (st *stage) level(who, at, json string) {
	st.t.Helper()
	st.do(who, "PUT "+at+"/notification_settings", json, 200)
}

// settle waits until all work for letters is done, and gives those that arrived,
// by the names of the readers.
func (st *stage) settle() map[string]mailtest.Email {
	st.t.Helper()
	waittest.For(st.t, "all work for letters is done", func() bool {
		var left int
		err := st.DB.QueryRowContext(st.t.Context(), `
			SELECT count(*) FROM river_job WHERE kind LIKE 'notify.%' AND state IN ('available', 'running', 'retryable', 'scheduled', 'pending')`).Scan(&left)
		if err != nil {
			st.t.Fatal(err)
		}
		return left == 0
	})
	got := map[string]mailtest.Email{}
	for _, l := range st.mail.Take() {
		name, _, _ := strings.Cut(l.To, "@")
		if _, twice := got[name]; twice {
			st.t.Errorf("%s got two letters: %s", name, l.Subject)
		}
		got[name] = l
	}
	return got
}

// told wants letters to exactly these people: "bob mentioned, carol watching".
func (st *stage) told(what, want string) map[string]mailtest.Email {
	st.t.Helper()
	got := st.settle()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(got)) {
		list = append(list, name+" "+got[name].Header.Get("X-Svc-Notificationreason"))
	}
	if all := strings.Join(list, ", "); all != want {
		st.t.Errorf("%s: told are %q, want %q", what, all, want)
	}
	return got
}

// TestWho tells everybody of what happens to issues, and counts who learns of it
// and why.
func TestWho(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, m *mailtest.Server) {
		st := newStage(t, s, m, "alice", "bob", "carol", "cust", "dan", "dis", "gus", "men", "sub", "wat")
		st.group = st.do("alice", "POST /groups", `{"name":"Top","path":"top","visibility":"public"}`, 201)
		st.project = st.do("alice", "POST /projects", fmt.Sprintf(`{"name":"Plan","path":"plan","namespace_id":%d,"visibility":"public"}`, st.group), 201)
		at := fmt.Sprintf("/projects/%d", st.project)
		for _, who := range []string{"bob", "carol", "cust", "dis", "gus", "men", "wat"} {
			st.member("projects", st.project, who, 30)
		}
		st.level("wat", at, `{"level":"watch"}`)
		st.level("gus", "", `{"level":"watch"}`)
		st.level("carol", fmt.Sprintf("/groups/%d", st.group), `{"level":"watch"}`)
		st.level("cust", "", `{"level":"custom","new_issue":true,"close_issue":false}`)
		st.level("dis", "", `{"level":"disabled"}`)
		st.level("men", "", `{"level":"mention"}`)
		st.do("alice", "POST "+at+"/labels", `{"name":"bug","color":"red"}`, 201)
		st.do("sub", "POST "+at+"/labels/bug/subscribe", "", 201)
		issue := at + "/issues/1"
		for _, row := range []struct{ name, who, do, json, want string }{
			{"a new issue", "alice", "POST " + at + "/issues", fmt.Sprintf(`{"title":"First","description":"for @men and @dis, @nobody and @7, but not `+"`@dan`"+`","labels":"bug","assignee_ids":[%d]}`, st.ids["bob"]),
				"bob assigned, carol watching, cust watching, gus watching, men mentioned, sub subscribed, wat watching"},
			{"a note by somebody else", "dan", "POST " + issue + "/notes", `{"body":"hello"}`,
				"alice participated, bob assigned, carol watching, gus watching, wat watching"},
			{"who wrote takes part", "alice", "POST " + issue + "/notes", `{"body":"hello @dan"}`,
				"bob assigned, carol watching, dan mentioned, gus watching, wat watching"},
			{"who left is not told", "bob", "POST " + issue + "/unsubscribe", "", ""},
			{"of a close", "alice", "PUT " + issue, `{"state_event":"close"}`, "carol watching, dan participated, gus watching, wat watching"},
			{"but of a mention", "alice", "POST " + issue + "/notes", `{"body":"@bob look"}`, "bob mentioned, carol watching, dan participated, gus watching, wat watching"},
			{"asked although disabled", "dis", "POST " + issue + "/subscribe", "", ""},
			{"of what he asked for", "alice", "PUT " + issue, `{"state_event":"reopen"}`, "carol watching, dan participated, dis subscribed, gus watching, wat watching"},
			{"of another assignee also the old one, who left or not", "alice", "PUT " + issue, fmt.Sprintf(`{"assignee_ids":[%d]}`, st.ids["men"]),
				"bob participated, carol watching, dan participated, dis subscribed, gus watching, men assigned, wat watching"},
			{"a text that mentions more", "alice", "PUT " + issue, `{"description":"for @men and @dan"}`, "dan mentioned"},
			{"nobody of a title", "alice", "PUT " + issue, `{"title":"Second"}`, ""},
			{"all", "bob", "POST " + issue + "/notes", `{"body":"@all, a party"}`,
				"alice mentioned, carol mentioned, cust mentioned, dan participated, dis subscribed, gus mentioned, men mentioned, wat mentioned"},
			{"a group", "bob", "POST " + issue + "/notes", `{"body":"@top only"}`,
				"alice mentioned, carol participated, cust participated, dan participated, dis subscribed, gus participated, wat participated"},
		} {
			status := map[bool]int{true: 201, false: 200}[strings.HasPrefix(row.do, "POST")]
			st.do(row.who, row.do, row.json, status)
			st.told(row.name, row.want)
		}
		st.own(issue)
		st.relabel(at, issue)
	})
}

// own has somebody told of what he does himself.
func (st *stage) own(issue string) {
	st.t.Helper()
	want := true
	if _, err := st.Notify.SetEverywhere(st.t.Context(), actor.Actor{ID: st.ids["gus"]}, notify.Change{OwnActivity: &want}); err != nil {
		st.t.Fatal(err)
	}
	st.do("gus", "POST "+issue+"/notes", `{"body":"mine"}`, 201)
	if got := st.settle()["gus"]; got.Header.Get("X-Svc-Notificationreason") != "own_activity" {
		st.t.Errorf("he is not told of what he does himself: %v", got.Header)
	}
}

// relabel has those told who follow a label.
func (st *stage) relabel(at, issue string) {
	st.t.Helper()
	st.do("alice", "POST "+at+"/issues", `{"title":"Other"}`, 201)
	st.settle()
	other := strings.TrimSuffix(issue, "1") + "2"
	st.do("alice", "PUT "+other, `{"add_labels":"bug"}`, 200)
	st.told("a label", "sub subscribed")
}
