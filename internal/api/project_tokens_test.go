package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/project"
)

// secretToken is the response to the creation of a token.
type secretToken struct {
	ID       int64
	UserID   int64 `json:"user_id"`
	Token    string
	Username string
}

func secretOf(t testing.TB, s *apptest.Server, as, do, body string, status int) secretToken {
	t.Helper()
	var made secretToken
	s.Check(t, apptest.Call{Do: do, As: as, JSON: body, Status: status, Want: `{"token":"<any>"}`}).JSON(t, &made)
	return made
}

func TestProjectAccessToken(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		id := newProject(t, s, alice, "p", "")
		at := fmt.Sprintf("/projects/%d", id)
		tokens := at + "/access_tokens"
		s.Check(t, apptest.Call{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, bobID), Status: 201})
		in := func(days int) string { return s.Clock.Now().AddDate(0, 0, days).Format(time.DateOnly) }

		s.Table(t, []apptest.Call{
			{Name: "all that is needed", Do: "POST " + tokens, As: bob, JSON: `{}`, Status: 400, Want: `{"error":"name is missing, scopes is missing"}`},
			{Name: "scopes of persons", Do: "POST " + tokens, As: bob, JSON: `{"name":"t","scopes":["sudo"]}`, Status: 400, Want: `{"error":"scopes does not have a valid value"}`},
			{Name: "no such level", Do: "POST " + tokens, As: bob, JSON: `{"name":"t","scopes":["api"],"access_level":5}`, Status: 400},
			{Name: "too late", Do: "POST " + tokens, As: bob, JSON: `{"name":"t","scopes":["api"],"expires_at":"` + in(366) + `"}`, Status: 400, Want: `{"message":{"expires_at":"<any>"}}`},
			{Name: "over", Do: "POST " + tokens, As: bob, JSON: `{"name":"t","scopes":["api"],"expires_at":"` + in(-1) + `"}`, Status: 400},
			{Name: "more than their own role", Do: "POST " + tokens, As: bob, JSON: `{"name":"t","scopes":["api"],"access_level":50}`, Status: 400},
			{Name: "none so far", Do: "GET " + tokens, As: bob, Status: 200, Want: `[]`},
			{Name: "no bot so far", Do: "GET /users?search=_bot_", As: root, Status: 200, Want: `[]`},
		})
		made := secretOf(t, s, bob, "POST "+tokens, `{"name":"Deployer","description":"of things","scopes":["api","read_repository"],"expires_at":"`+in(20)+`"}`, 201)
		one := fmt.Sprintf("%s/%d", tokens, made.ID)
		bot := made.Token
		if !strings.HasPrefix(bot, "svcpat-") {
			t.Errorf("token %q", bot)
		}
		s.Table(t, []apptest.Call{
			{Do: "GET " + one, As: bob, Status: 200, Not: []string{bot, `"token"`}, Want: fmt.Sprintf(`{"id":%d,"name":"Deployer","description":"of things","revoked":false,"created_at":"<any>",
				"scopes":["api","read_repository"],"user_id":%d,"last_used_at":null,"active":true,"expires_at":"%s","access_level":40}`, made.ID, made.UserID, in(20))},
			{Name: "who it is", Do: "GET /user", As: bot, Status: 200, Want: fmt.Sprintf(`{"id":%d,"name":"Deployer","bot":true,"can_create_group":false,"can_create_project":false}`, made.UserID)},
			{Name: "the token in use", Do: "GET /personal_access_tokens/self", As: bot, Status: 200, Want: fmt.Sprintf(`{"id":%d}`, made.ID)},
			{Name: "not personal", Do: "POST /personal_access_tokens/self/rotate", As: bot, Status: 405},
			{Name: "a member", Do: fmt.Sprintf("GET %s/members/%d", at, made.UserID), As: alice, Status: 200, Want: `{"access_level":40,"expires_at":"` + in(20) + `","created_by":{"username":"bob"}}`},
			{Name: "it works", Do: "PUT " + at, As: bot, JSON: `{"description":"by a bot"}`, Status: 200},
			{Name: "no more than a Maintainer", Do: "PUT " + at, As: bot, JSON: `{"name":"x"}`, Status: 403},
			{Name: "makes no others", Do: "POST " + tokens, As: bot, JSON: `{"name":"t","scopes":["api"],"access_level":10}`, Status: 403},
			{Name: "rotates no others", Do: "POST " + one + "/rotate", As: bot, Status: 401},
			{Name: "reads them", Do: "GET " + tokens, As: bot, Status: 200, Want: `["<any>"]`},
			{Name: "no person", Do: "GET /users?humans=true&search=_bot_", As: root, Status: 200, Want: `[]`},
			{Name: "a bot", Do: "GET /users?search=_bot_", As: root, Status: 200, Want: fmt.Sprintf(`[{"id":%d,"email":"<any>"}]`, made.UserID)},
			{Name: "without bots", Do: "GET /users?without_project_bots=true&search=_bot_", As: root, Status: 200, Want: `[]`},
			{Name: "not of another project", Do: fmt.Sprintf("GET /projects/%d/access_tokens/%d", newProject(t, s, bob, "q", ""), made.ID), As: bob, Status: 404},
			{Name: "not added elsewhere", Do: fmt.Sprintf("POST /projects/%d/members", newProject(t, s, bob, "r", "")), As: bob,
				JSON: fmt.Sprintf(`{"user_id":%d,"access_level":10}`, made.UserID), Status: 400},
		})
		owner := secretOf(t, s, alice, "POST "+tokens, `{"name":"Boss","scopes":"read_api","access_level":50}`, 201)
		s.Table(t, []apptest.Call{
			{Name: "as late as allowed", Do: fmt.Sprintf("GET %s/%d", tokens, owner.ID), As: alice, Status: 200, Want: `{"expires_at":"` + in(365) + `","access_level":50,"description":null}`},
			{Name: "scopes hold", Do: "PUT " + at, As: owner.Token, JSON: `{"description":"x"}`, Status: 403, Want: `{"error":"insufficient_scope"}`},
			{Name: "not above oneself", Do: fmt.Sprintf("POST %s/%d/rotate", tokens, owner.ID), As: bob, Status: 403},
			{Name: "search", Do: "GET " + tokens + "?search=depl", As: bob, Status: 200, Want: fmt.Sprintf(`[{"id":%d}]`, made.ID)},
			{Name: "sorted", Do: "GET " + tokens + "?sort=name_asc", As: bob, Status: 200, Want: `[{"name":"Boss"},{"name":"Deployer"}]`},
			{Name: "expiring", Do: "GET " + tokens + "?expires_before=" + in(30), As: bob, Status: 200, Want: `[{"name":"Deployer"}]`},
			{Name: "used", Do: "GET " + tokens + "?last_used_after=2000-01-01T00:00:00Z&sort=last_used_desc", As: bob, Status: 200, Want: `["<any>","<any>"]`},
			{Name: "never revoked", Do: "GET " + tokens + "?revoked=true", As: bob, Status: 200, Want: `[]`},
			{Name: "wrong state", Do: "GET " + tokens + "?state=dead", As: bob, Status: 400},
			{Name: "totals", Do: "GET " + tokens + "?per_page=1", As: bob, Status: 200, Want: `["<any>"]`, WantHeader: map[string]string{"X-Total": "2", "X-Next-Page": "2"}},
		})

		rotated := secretOf(t, s, bot, "POST "+tokens+"/self/rotate", `{}`, 200)
		s.Table(t, []apptest.Call{
			{Name: "the old one is over", Do: "GET /user", As: bot, Status: 401},
			{Name: "the same bot", Do: "GET /user", As: rotated.Token, Status: 200, Want: fmt.Sprintf(`{"id":%d}`, made.UserID)},
			{Name: "a week", Do: fmt.Sprintf("GET %s/%d", tokens, rotated.ID), As: bob, Status: 200, Want: `{"expires_at":"` + in(7) + `","access_level":40,"name":"Deployer"}`},
			{Name: "the member too", Do: fmt.Sprintf("GET %s/members/%d", at, made.UserID), As: alice, Status: 200, Want: `{"expires_at":"` + in(7) + `"}`},
			{Name: "ended ones", Do: "GET " + tokens + "?state=inactive", As: bob, Status: 200, Want: fmt.Sprintf(`[{"id":%d,"revoked":true,"active":false,"access_level":40}]`, made.ID)},
			{Name: "with another day", Do: fmt.Sprintf("POST %s/%d/rotate", tokens, rotated.ID), As: alice, JSON: `{"expires_at":"` + in(9) + `"}`, Status: 200, Want: `{"expires_at":"` + in(9) + `"}`},
			{Name: "rotated twice ends all", Do: fmt.Sprintf("POST %s/%d/rotate", tokens, rotated.ID), As: alice, Status: 400},
			{Name: "nothing of it works", Do: "GET " + tokens + "?state=active", As: bob, Status: 200, Want: fmt.Sprintf(`[{"id":%d}]`, owner.ID)},
			{Name: "changed since", Do: fmt.Sprintf("DELETE %s/%d", tokens, owner.ID), As: bob, Header: map[string]string{"If-Unmodified-Since": "Mon, 02 Jan 2006 15:04:05 GMT"}, Status: 412},
			{Name: "revoke", Do: fmt.Sprintf("DELETE %s/%d", tokens, owner.ID), As: bob, Status: 204},
			{Name: "again", Do: fmt.Sprintf("DELETE %s/%d", tokens, owner.ID), As: bob, Status: 204},
			{Name: "it is over", Do: "GET " + at, As: owner.Token, Status: 401},
			{Name: "no member", Do: fmt.Sprintf("GET %s/members/%d", at, owner.UserID), As: alice, Status: 404},
			{Name: "what it was", Do: fmt.Sprintf("GET %s/%d", tokens, owner.ID), As: alice, Status: 200, Want: `{"access_level":50,"active":false,"revoked":true}`},
		})
		events(t, s, alice, at, fmt.Sprintf("project_access_token_revoked by %d", bobID), fmt.Sprintf("project_access_token_rotated by %d", aliceID),
			fmt.Sprintf("project_access_token_rotated by %d", made.UserID), fmt.Sprintf("project_access_token_created by %d", bobID))
	})
}

// actorOf returns the actor of a token.
func actorOf(t testing.TB, s *apptest.Server, token string) actor.Actor {
	t.Helper()
	by, err := s.Users.Authenticate(t.Context(), token, "")
	if err != nil {
		t.Fatal(err)
	}
	return by
}

// events checks that these audit events are recorded, each as "type by author".
func events(t testing.TB, s *apptest.Server, as, at string, want ...string) {
	t.Helper()
	var list []struct {
		AuthorID  int64  `json:"author_id"`
		EventType string `json:"event_type"`
	}
	s.Check(t, apptest.Call{Do: "GET " + at + "/audit_events?per_page=100", As: as, Status: 200}).JSON(t, &list)
	found := map[string]bool{}
	for _, e := range list {
		found[fmt.Sprintf("%s by %d", e.EventType, e.AuthorID)] = true
	}
	for _, w := range want {
		if !found[w] {
			t.Errorf("%s is not recorded: %v", w, found)
		}
	}
}

func TestGroupAccessToken(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := group(t, s, alice, "g", "")
		below := group(t, s, alice, "h", fmt.Sprintf(`,"parent_id":%d`, id))
		p := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d`, below))
		tokens := fmt.Sprintf("/groups/%d/access_tokens", id)
		made := secretOf(t, s, alice, "POST "+tokens, `{"name":"All","scopes":["api"],"access_level":50}`, 201)
		one := fmt.Sprintf("%s/%d", tokens, made.ID)
		s.Table(t, []apptest.Call{
			{Name: "all in the group", Do: fmt.Sprintf("PUT /projects/%d", p), As: made.Token, JSON: `{"name":"By a bot"}`, Status: 200},
			{Name: "makes projects there", Do: "POST /projects", As: made.Token, JSON: fmt.Sprintf(`{"path":"n","namespace_id":%d}`, id), Status: 201},
			{Name: "and none of its own", Do: "POST /projects", As: made.Token, JSON: `{"path":"n"}`, Status: 400},
			{Name: "no groups at the top", Do: "POST /groups", As: made.Token, JSON: `{"name":"N","path":"n"}`, Status: 403},
			{Name: "not of the group below", Do: fmt.Sprintf("GET /groups/%d/access_tokens", below), As: alice, Status: 200, Want: `[]`},
			{Name: "nor rotated there", Do: fmt.Sprintf("POST /groups/%d/access_tokens/self/rotate", below), As: made.Token, Status: 401},
			{Name: "its name", Do: "GET /user", As: made.Token, Status: 200, Want: `{"name":"All","bot":true}`},
			{Name: "rotate", Do: "POST " + one + "/rotate", As: alice, Status: 200, Want: `{"access_level":50,"token":"<any>"}`},
			{Name: "revoke what is over", Do: "DELETE " + one, As: alice, Status: 204},
			{Name: "no such", Do: "DELETE " + tokens + "/99999", As: alice, Status: 404},
		})
		s.Check(t, apptest.Call{Do: "PUT /application/settings?deletion_adjourned_period=0", As: root, Status: 200})
		if err := s.Projects.DeleteGroup(t.Context(), actorOf(t, s, alice), "g", project.Deletion{}); err != nil {
			t.Fatal(err)
		}
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Name: "gone with the group", Do: fmt.Sprintf("GET /users/%d", made.UserID), As: root, Status: 404})
	})
}
