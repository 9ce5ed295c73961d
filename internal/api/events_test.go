package api_test

import (
	"fmt"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		carolID, carol := s.User(t, "carol")
		_, dan := s.User(t, "dan")
		reader := s.Token(t, aliceID, "read_user")
		id := newProject(t, s, alice, "secret", "")
		open := newProject(t, s, alice, "open", `,"visibility":"public"`)
		at := fmt.Sprintf("/projects/%d", id)
		join := func(user int64, level project.Level) apptest.Call {
			return apptest.Call{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, user, level), Status: 201}
		}
		as := func(who string, c apptest.Call) apptest.Call { c.As = who; return c }
		s.Table(t, []apptest.Call{
			as(alice, commitFile(id, "main", "a", "x")),
			join(bobID, project.Guest), join(carolID, project.Developer),
			as(alice, commitFile(open, "main", "b", "x")),
			{Do: "DELETE " + at + "/members/" + fmt.Sprint(carolID), As: carol, Status: 204},
			join(carolID, project.Reporter),
		})
		pushed := fmt.Sprintf(`{"project_id":%d,"action_name":"pushed","target_id":null,"target_iid":null,"target_type":null,"target_title":null,"title":null,"data":null,
			"author_id":%d,"author_username":"alice","author":{"username":"alice","name":"alice","state":"active","id":%d},
			"push_data":{"commit_count":1,"action":"created","ref_type":"branch","commit_from":null,"commit_to":"<any>","ref":"main","commit_title":"m"}}`, id, aliceID, aliceID)
		created := fmt.Sprintf(`{"action_name":"created","target_type":"Project","target_id":%d,"target_title":"secret"}`, id)
		joined := func(who string) string {
			return fmt.Sprintf(`{"action_name":"joined","author_username":%q,"target_type":null}`, who)
		}
		left := `{"action_name":"left","author_username":"carol"}`
		s.Table(t, []apptest.Call{
			{Name: "of a project", Do: "GET " + at + "/events", As: alice, Status: 200, WantHeader: map[string]string{"X-Total": "6"},
				Want: `[` + joined("carol") + `,` + left + `,` + joined("carol") + `,` + joined("bob") + `,` + pushed + `,` + created + `]`},
			{Name: "the oldest first", Do: "GET " + at + "/events?sort=asc&per_page=2", As: alice, Status: 200, Want: `[` + created + `,` + pushed + `]`,
				WantHeader: map[string]string{"X-Total": "6", "X-Next-Page": "2"}},
			{Name: "and the next", Do: "GET " + at + "/events?sort=asc&per_page=2&page=2", As: alice, Status: 200, Want: `[` + joined("bob") + `,` + joined("carol") + `]`},
			{Name: "by action", Do: "GET " + at + "/events?action=pushed", As: alice, Status: 200, Want: `[` + pushed + `]`},
			{Name: "by target", Do: "GET " + at + "/events?target_type=project", As: alice, Status: 200, Want: `[` + created + `]`},
			{Name: "of no such kind", Do: "GET " + at + "/events?target_type=epic", As: alice, Status: 400, Want: `{"error":"target_type does not have a valid value"}`},
			{Name: "before today", Do: "GET " + at + "/events?before=" + s.Clock.Now().Format(time.DateOnly), As: alice, Status: 200, Want: `[]`},
			{Name: "after today", Do: "GET " + at + "/events?after=" + s.Clock.Now().Format(time.DateOnly), As: alice, Status: 200, Want: `[]`},
			{Name: "after yesterday", Do: "GET " + at + "/events?action=pushed&after=" + s.Clock.Now().AddDate(0, 0, -1).Format(time.DateOnly) +
				"&before=" + s.Clock.Now().AddDate(0, 0, 1).Format(time.DateOnly), As: alice, Status: 200, Want: `[` + pushed + `]`},
			{Name: "a guest does not read the code", Do: "GET " + at + "/events?action=pushed", As: bob, Status: 200, Want: `[]`},
			{Name: "a reporter does", Do: "GET " + at + "/events?action=pushed", As: carol, Status: 200, Want: `[` + pushed + `]`},
			{Name: "a stranger sees nothing", Do: "GET " + at + "/events", As: dan, Status: 404},
			{Name: "anonymous, private", Do: "GET " + at + "/events", Status: 404},
			{Name: "anonymous, public", Do: fmt.Sprintf("GET /projects/%d/events?action=pushed", open), Status: 200, Want: `[{"author_username":"alice"}]`},
			{Name: "one's own", Do: "GET /events?action=pushed", As: reader, Status: 200, Want: fmt.Sprintf(`[{"project_id":%d},{"project_id":%d}]`, open, id)},
			{Name: "and no other", Do: "GET /events", As: bob, Status: 200, Want: `[` + joined("bob") + `]`},
			{Name: "in one's projects", Do: "GET /events?scope=all", As: bob, Status: 200,
				Want: `[` + joined("carol") + `,` + left + `,` + joined("carol") + `,` + joined("bob") + `,` + created + `]`},
			{Name: "scope", Do: "GET /events?scope=none", As: bob, Status: 400},
			{Name: "without an account", Do: "GET /events", Status: 401},
			{Name: "of a user, as one who sees all", Do: "GET /users/alice/events?action=pushed", As: carol, Status: 200, Want: fmt.Sprintf(`[{"project_id":%d},{"project_id":%d}]`, open, id)},
			{Name: "as a guest", Do: fmt.Sprintf("GET /users/%d/events", aliceID), As: bob, Status: 200,
				Want: fmt.Sprintf(`[{"project_id":%d,"action_name":"pushed"},{"project_id":%[1]d,"action_name":"created"},%s]`, open, created)},
			{Name: "as a stranger", Do: "GET /users/ALICE/events?per_page=1&page=2", As: dan, Status: 200, Want: fmt.Sprintf(`[{"project_id":%d,"action_name":"created"}]`, open), Not: []string{"secret"},
				WantHeader: map[string]string{"X-Total": "2"}},
			{Name: "anonymous", Do: "GET /users/nobody/events", As: dan, Status: 404},
			{Name: "of a user, anonymous", Do: "GET /users/alice/events", Status: 401},
		})
		s.Table(t, []apptest.Call{
			{Name: "a new name", Do: "PUT " + at, As: alice, JSON: `{"name":"Renamed"}`, Status: 200},
			{Do: "GET " + at + "/events?target_type=project", As: alice, Status: 200, Want: `[{"target_title":"Renamed"}]`, Not: []string{`"secret"`}},
			{Name: "a profile for oneself", Do: fmt.Sprintf("PUT /users/%d", aliceID), As: root, JSON: `{"private_profile":true}`, Status: 200},
			{Do: "GET /users/alice/events", As: dan, Status: 200, Want: `[]`},
			{Do: "GET /users/alice/events?target_type=project", As: alice, Status: 200, Want: `["<any>","<any>"]`},
		})
		s.Clock.Move(48 * time.Hour)
		today := s.Clock.Now().Format(time.DateOnly)
		s.Check(t, apptest.Call{Do: "GET /events", As: bob, Status: 200})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", bobID), As: root, Status: 200, Want: fmt.Sprintf(`{"last_activity_on":%q}`, today)})
	})
}
