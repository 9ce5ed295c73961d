package api_test

import (
	"bytes"
	"net/http"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/user"
)

func TestAvatarAddress(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		body, kind := multipartBody(t, "me.png", picture(t))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+"/api/v4/user/avatar", bytes.NewReader(body.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		s.Check(t, apptest.Call{Do: "PUT /user/avatar", Status: 401})
		s.Check(t, apptest.Call{Name: "missing", Do: "PUT /user/avatar", As: alice, Status: 400, Want: `{"error":"avatar is missing"}`})
		s.Check(t, apptest.Call{Name: "text", Do: "PUT /user/avatar?avatar=x", As: alice, Status: 400, Want: `{"error":"avatar is invalid"}`})
		r.Header.Set("PRIVATE-TOKEN", alice)
		if a := s.Exchange(t, r); a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		hidden := `{"avatar_url":null}`
		s.Table(t, []apptest.Call{
			{Name: "not by an address that is not shown", Do: "GET /avatar?email=alice@example.org", As: root, Status: 200, Want: hidden},
			{Name: "anonymous", Do: "GET /avatar?email=nobody@example.org", Status: 200, Want: hidden},
			{Name: "missing address", Do: "GET /avatar", Status: 400, Want: `{"error":"email is missing"}`},
		})
		address := "alice@example.org"
		if _, err := s.Users.Update(t.Context(), actor.System(), id, user.Change{Fields: user.Fields{PublicEmail: &address}}); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Name: "shown", Do: "GET /avatar?email=Alice@example.org&size=32", Status: 200, Want: `{"avatar_url":"<any>"}`},
			{Name: "remove", Do: "PUT /user/avatar?avatar=", As: alice, Status: 200, Want: hidden},
			{Name: "removed", Do: "GET /avatar?email=alice@example.org", Status: 200, Want: hidden},
			{Name: "seen", Do: "GET /user", As: alice, Status: 200, Want: hidden},
		})
	})
}
