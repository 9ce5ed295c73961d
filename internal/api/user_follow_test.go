package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

func TestUserFollow(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		of := fmt.Sprintf("/users/%d", bobID)
		s.Table(t, []apptest.Call{
			{Do: "POST " + of + "/follow", Status: 401},
			{Name: "follow", Do: "POST " + of + "/follow", As: alice, Status: 201, Want: `{"username":"bob","state":"active","locked":false}`, Not: []string{"email"}},
			{Name: "twice", Do: "POST " + of + "/follow", As: alice, Status: 304},
			{Name: "oneself", Do: fmt.Sprintf("POST /users/%d/follow", aliceID), As: alice, Status: 304},
			{Name: "anonymous", Do: "POST /users/99999/follow", As: alice, Status: 404, Want: `{"message":"404 User Not Found"}`},
			{Name: "counted", Do: "GET " + of, As: alice, Status: 200, Want: `{"followers":1,"following":0,"is_followed":true}`},
			{Name: "followers", Do: "GET " + of + "/followers", As: bob, Status: 200, Want: `[{"username":"alice"}]`, WantHeader: map[string]string{"X-Total": "1"}},
			{Name: "following", Do: fmt.Sprintf("GET /users/%d/following", aliceID), As: bob, Status: 200, Want: `[{"username":"bob"}]`},
			{Name: "followers without signing in", Do: "GET " + of + "/followers", Status: 401},
			{Name: "private", Do: fmt.Sprintf("PUT /users/%d?private_profile=true", bobID), As: root, Status: 200},
			{Name: "followers of a private profile", Do: "GET " + of + "/followers", As: alice, Status: 404},
			{Name: "unfollow", Do: "POST " + of + "/unfollow", As: alice, Status: 201, Want: `{"username":"bob"}`},
			{Name: "unfollow twice", Do: "POST " + of + "/unfollow", As: alice, Status: 304},
			{Name: "no followers", Do: "GET " + of + "/followers", As: bob, Status: 200, Want: `[]`},
		})
	})
}
