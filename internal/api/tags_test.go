package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

func TestTags(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Seconds: 1_600_000_000, Changes: file("a", "a\n")})
		first := r.Tip("refs/heads/main")
		blob := r.Git("rev-parse", "main:a")
		second := r.Commit(gittest.Commit{Seconds: 1_600_000_300, Changes: file("b", "b\n")})
		at := fmt.Sprintf("/projects/%d/repository/tags", id)
		s.Table(t, []apptest.Call{
			{Do: "GET " + at, As: alice, Status: 200, Want: `[]`},
			{Do: "POST " + at, As: alice, JSON: `{"tag_name":"v1.10.0","ref":"main"}`, Status: 201, Want: `{"name":"v1.10.0","message":null,"target":"` + second + `",
				"commit":{"id":"` + second + `"},"release":null,"protected":false,"created_at":null}`},
			{Do: "POST " + at, As: alice, JSON: `{"tag_name":"v1.9.0","ref":"` + first + `","message":"Nine\n\nwith more"}`, Status: 201,
				Want: `{"name":"v1.9.0","message":"Nine\n\nwith more","commit":{"id":"` + first + `"},"created_at":"<any>"}`},
			{Do: "POST " + at, As: alice, JSON: `{"tag_name":"v1.9.0","ref":"main"}`, Status: 400, Want: `{"message":"Tag v1.9.0 already exists"}`},
			{Do: "POST " + at, As: alice, JSON: `{"tag_name":"x..y","ref":"main"}`, Status: 400, Want: `{"message":"Tag name invalid"}`},
			{Do: "POST " + at, As: alice, JSON: `{"tag_name":"x","ref":"nowhere"}`, Status: 400, Want: `{"message":"Target nowhere is invalid"}`},
			{Do: "POST " + at, As: alice, JSON: `{"tag_name":"main","ref":"main"}`, Status: 403},
			{Do: "POST " + at, As: alice, JSON: `{"tag_name":"` + first + `","ref":"main"}`, Status: 403},
			{Do: "POST " + at, As: alice, JSON: `{"tag_name":"a-blob","ref":"` + blob + `"}`, Status: 201, Want: `{"target":"` + blob + `","commit":null}`},

			{Do: "GET " + at + "?order_by=name&sort=asc", As: alice, Status: 200, Want: `[{"name":"a-blob"},{"name":"v1.10.0"},{"name":"v1.9.0"}]`},
			{Do: "GET " + at + "?order_by=version&search=^v", As: alice, Status: 200, Want: `[{"name":"v1.10.0"},{"name":"v1.9.0"}]`},
			{Do: "GET " + at + "?order_by=version&sort=asc&search=v", As: alice, Status: 200, Want: `[{"name":"v1.9.0"},{"name":"v1.10.0"}]`},
			{Do: "GET " + at, As: alice, Status: 200, Want: `[{"name":"v1.9.0"},{"name":"v1.10.0"},{"name":"a-blob"}]`},
			{Do: "GET " + at + "?order_by=version&sort=asc&search=v&pagination=keyset&per_page=1", As: alice, Status: 200, Want: `[{"name":"v1.9.0"}]`,
				WantHeader: map[string]string{"Link": "<" + s.URL + "/api/v4" + at + `?order_by=version&page_token=v1.9.0&pagination=keyset&per_page=1&search=v&sort=asc>; rel="next"`}},
			{Do: "GET " + at + "?order_by=version&sort=asc&search=v&page_token=v1.9.0&pagination=keyset&per_page=1", As: alice, Status: 200,
				Want: `[{"name":"v1.10.0"}]`, WantHeader: map[string]string{"Link": "-"}},

			{Do: "GET " + at + "/v1.9.0", As: alice, Status: 200, Want: `{"name":"v1.9.0"}`},
			{Do: "GET " + at + "/nope", As: alice, Status: 404, Want: `{"message":"404 Tag Not Found"}`},
			{Do: "GET " + at + "/v1.9.0/signature", As: alice, Status: 404, Want: `{"message":"404 Signature Not Found"}`},
			{Do: "DELETE " + at + "/v1.9.0", As: alice, Status: 204},
			{Do: "DELETE " + at + "/v1.9.0", As: alice, Status: 404},
		})
		r.Git("fsck", "--strict")
	})
}
