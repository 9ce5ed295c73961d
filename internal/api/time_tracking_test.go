package api_test

import (
	"testing"

	"svc/internal/app/apptest"
)

func TestTimeTracking(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		const at = "/projects/alice%2Fp/issues/1"
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"p","visibility":"public"}`, Status: 201},
			{Do: "POST /projects/alice%2Fp/issues", As: alice, JSON: `{"title":"one"}`, Status: 201, Want: `{"time_stats":{"time_estimate":0,"human_time_estimate":null}}`},
			{Name: "estimate", Do: "POST " + at + "/time_estimate", As: alice, JSON: `{"duration":"1d 2h"}`, Status: 200,
				Want: `{"time_estimate":36000,"total_time_spent":0,"human_time_estimate":"1d 2h","human_total_time_spent":null}`},
			{Name: "spend", Do: "POST " + at + "/add_spent_time", As: alice, JSON: `{"duration":"3h30m","summary":"read"}`, Status: 201,
				Want: `{"total_time_spent":12600,"human_total_time_spent":"3h 30m"}`},
			{Name: "subtract", Do: "POST " + at + "/add_spent_time", As: alice, JSON: `{"duration":"-30m"}`, Status: 201, Want: `{"total_time_spent":10800}`},
			{Name: "subtract too much", Do: "POST " + at + "/add_spent_time", As: alice, JSON: `{"duration":"-1w"}`, Status: 400},
			{Name: "not a duration", Do: "POST " + at + "/add_spent_time", As: alice, JSON: `{"duration":"soon"}`, Status: 400},
			{Name: "not a duration", Do: "POST " + at + "/time_estimate", As: alice, JSON: `{"duration":"-1h"}`, Status: 400},
			{Name: "not a planner", Do: "POST " + at + "/time_estimate", As: bob, JSON: `{"duration":"1h"}`, Status: 403},
			{Name: "not signed in", Do: "POST " + at + "/add_spent_time", JSON: `{"duration":"1h"}`, Status: 401},
			{Name: "stats", Do: "GET " + at + "/time_stats", As: bob, Status: 200, Want: `{"time_estimate":36000,"total_time_spent":10800}`},
			{Name: "in the issue", Do: "GET " + at, As: bob, Status: 200, Want: `{"time_stats":{"human_time_estimate":"1d 2h"}}`},
			{Name: "notes", Do: "GET " + at + "/notes?sort=asc", As: bob, Status: 200,
				Want: `[{"body":"changed time estimate to 1d 2h","system":true},{"body":"added 3h 30m of time spent"},{"body":"subtracted 30m of time spent"}]`},
			{Name: "reset estimate", Do: "POST " + at + "/reset_time_estimate", As: alice, Status: 200, Want: `{"time_estimate":0,"human_time_estimate":null}`},
			{Name: "reset spent", Do: "POST " + at + "/reset_spent_time", As: alice, Status: 200, Want: `{"total_time_spent":0}`},
			{Name: "no issue", Do: "GET /projects/alice%2Fp/issues/99/time_stats", As: alice, Status: 404},
		})
	})
}
