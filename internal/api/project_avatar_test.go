package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// Upload sends a form with an image.
func Upload(t *testing.T, s *apptest.Server, as, do string, image []byte, fields ...string) apptest.Answer {
	t.Helper()
	method, path, _ := strings.Cut(do, " ")
	body, kind := multipartBody(t, "Our face.png", image, fields...)
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/api/v4"+path, bytes.NewReader(body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("PRIVATE-TOKEN", as)
	return s.Exchange(t, r)
}

func TestPlaceAvatar(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		face := picture(t)
		for _, in := range []struct{ kind, many, fields string }{{"project", "projects", "path=face"}, {"group", "groups", "path=faces&name=Faces"}} {
			t.Run(in.kind, func(t *testing.T) {
				var fields []string
				for part := range strings.SplitSeq(in.fields, "&") {
					name, value, _ := strings.Cut(part, "=")
					fields = append(fields, name, value)
				}
				var thing struct {
					ID        int64
					AvatarURL string `json:"avatar_url"`
				}
				if bad := Upload(t, s, alice, "POST /"+in.many, []byte("<svg/>"), fields...); bad.Status != 400 || !bytes.Contains(bad.Body, []byte("avatar")) {
					t.Errorf("no picture: %d %s", bad.Status, bad.Body)
				}
				if big := Upload(t, s, alice, "POST /"+in.many, append(face, make([]byte, 200<<10)...), fields...); big.Status != 400 {
					t.Errorf("too big: %d %s", big.Status, big.Body)
				}
				answer := Upload(t, s, alice, "POST /"+in.many, face, fields...)
				if answer.Status != 201 {
					t.Fatalf("%d %s", answer.Status, answer.Body)
				}
				answer.JSON(t, &thing)
				at := fmt.Sprintf("/%s/%d", in.many, thing.ID)
				if !strings.HasPrefix(thing.AvatarURL, fmt.Sprintf("%s/uploads/-/system/%s/avatar/%d/Ourface-", s.URL, in.kind, thing.ID)) {
					t.Errorf("address %q", thing.AvatarURL)
				}
				first := strings.TrimPrefix(thing.AvatarURL, s.URL)
				for as, want := range map[string]int{alice: 200, root: 200, bob: 404, "": 404} {
					got := s.Send(t, apptest.Call{Do: "GET " + at + "/avatar", As: as})
					if got.Status != want || want == 200 && (!bytes.Equal(got.Body, face) || got.Header.Get("Content-Type") != "image/png") {
						t.Errorf("as %q: %d, %d bytes of %s", as, got.Status, len(got.Body), got.Header.Get("Content-Type"))
					}
				}
				if got := s.Send(t, apptest.Call{Do: "GET /" + first}); got.Status != 200 || !bytes.Equal(got.Body, face) || !strings.Contains(got.Header.Get("Cache-Control"), "immutable") {
					t.Errorf("by its address: %d %s", got.Status, got.Header)
				}
				other := append(bytes.Clone(face), 0)
				if got := Upload(t, s, alice, "PUT "+at, other); got.Status != 200 {
					t.Fatalf("%d %s", got.Status, got.Body)
				} else {
					got.JSON(t, &thing)
				}
				s.Table(t, []apptest.Call{
					{Name: "the old address", Do: "GET /" + first, Status: 404},
					{Name: "in the list", Do: fmt.Sprintf("GET /%s?owned=true", in.many), As: alice, Status: 200, Want: `[{"avatar_url":"` + thing.AvatarURL + `"}]`},
					{Name: "text is none", Do: "PUT " + at, As: alice, JSON: `{"avatar":"x"}`, Status: 400, Want: `{"error":"avatar is invalid"}`},
					{Name: "it stays", Do: "PUT " + at, As: alice, JSON: `{"description":"x"}`, Status: 200, Want: `{"avatar_url":"` + thing.AvatarURL + `"}`},
					{Name: "remove", Do: "PUT " + at, As: alice, JSON: `{"avatar":""}`, Status: 200, Want: `{"avatar_url":null}`},
					{Name: "gone", Do: "GET " + at + "/avatar", As: alice, Status: 404, Want: `{"message":"404 Avatar Not Found"}`},
					{Name: "and there", Do: "GET /" + strings.TrimPrefix(thing.AvatarURL, s.URL), Status: 404},
				})
				events(t, s, alice, at, fmt.Sprintf("%s_avatar_updated by %d", in.kind, actorOf(t, s, alice).ID))
			})
		}
		n := 0
		for _, err := range s.Blobs.List(t.Context(), "avatars/") {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 0 {
			t.Errorf("%d files are left", n)
		}
	})
}
