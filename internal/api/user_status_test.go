package api_test

import (
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

func TestUserStatus(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		none := `{"emoji":null,"availability":null,"message":null,"message_html":"","clear_status_at":null}`
		s.Table(t, []apptest.Call{
			{Do: "GET /user/status", Status: 401},
			{Name: "none", Do: "GET /user/status", As: alice, Status: 200, Want: none},
			{Name: "set", Do: "PUT /user/status", As: alice, JSON: `{"emoji":"coffee","message":"I <3 it","availability":"busy","clear_status_after":"1_day"}`, Status: 200,
				Want: `{"emoji":"coffee","message":"I <3 it","message_html":"I &lt;3 it","availability":"busy","clear_status_at":"<any>"}`},
			{Name: "seen by anybody", Do: "GET /users/alice/status", Status: 200, Want: `{"emoji":"coffee","availability":"busy"}`},
			{Name: "anonymous", Do: "GET /users/nobody/status", Status: 404, Want: `{"message":"404 User Not Found"}`},
			{Name: "patch keeps the rest", Do: "PATCH /user/status?message=back+soon", As: alice, Status: 200,
				Want: `{"emoji":"coffee","message":"back soon","availability":"busy","clear_status_at":"<any>"}`},
			{Name: "patch takes the end away", Do: "PATCH /user/status", As: alice, JSON: `{"clear_status_after":null}`, Status: 200, Want: `{"clear_status_at":null}`},
			{Name: "patch takes the availability away", Do: "PATCH /user/status", As: alice, JSON: `{"availability":null}`, Status: 200,
				Want: `{"emoji":"coffee","availability":"not_set"}`},
			{Name: "put takes the rest away", Do: "PUT /user/status?message=here&clear_status_after=30_minutes", As: alice, Status: 200,
				Want: `{"emoji":"speech_balloon","message":"here","availability":"not_set","clear_status_at":"<any>"}`},
			{Name: "bad emoji", Do: "PUT /user/status?emoji=a%20b", As: alice, Status: 400, Want: `{"message":{"emoji":["is not a valid emoji name"]}}`},
			{Name: "long message", Do: "PUT /user/status?message=" + strings.Repeat("x", 101), As: alice, Status: 400,
				Want: `{"message":{"message":["is too long (maximum is 100 characters)"]}}`},
			{Name: "bad end", Do: "PUT /user/status?clear_status_after=soon", As: alice, Status: 400, Want: `{"error":"clear_status_after does not have a valid value"}`},
			{Name: "bad availability", Do: "PUT /user/status?availability=away", As: alice, Status: 400, Want: `{"error":"availability does not have a valid value"}`},
		})
		s.Clock.Move(30 * time.Minute)
		s.Check(t, apptest.Call{Name: "ended", Do: "GET /user/status", As: alice, Status: 200, Want: none})
	})
}
