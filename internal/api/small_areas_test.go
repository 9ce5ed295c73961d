package api_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func TestBroadcastMessages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		const at = "/broadcast_messages"
		s.Table(t, []apptest.Call{
			{Name: "blank", Do: "POST " + at, As: root, JSON: `{"message":" "}`, Status: 400},
			{Name: "odd theme", Do: "POST " + at, As: root, JSON: `{"message":"x","theme":"pink"}`, Status: 400},
			{Name: "odd color", Do: "POST " + at, As: root, JSON: `{"message":"x","color":"white"}`, Status: 400, Want: `{"message":{"color":["must be a valid color code"]}}`},
			{Name: "odd font", Do: "POST " + at, As: root, JSON: `{"message":"x","font":"#12"}`, Status: 400, Want: `{"message":{"font":["must be a valid color code"]}}`},
			{Name: "odd role", Do: "POST " + at, As: root, JSON: `{"message":"x","target_access_levels":[7]}`, Status: 400},
			{Name: "ends before it starts", Do: "POST " + at, As: root, JSON: `{"message":"x","starts_at":"2030-01-02T00:00:00Z","ends_at":"2030-01-01T00:00:00Z"}`, Status: 400},
			{Name: "create", Do: "POST " + at, As: root, JSON: `{"message":"**Maintenance**","target_access_levels":[10,30],"target_path":"*/welcome","dismissable":true}`, Status: 201,
				Want: `{"id":1,"message":"**Maintenance**","active":true,"broadcast_type":"banner","theme":"indigo","target_access_levels":[10,30],"target_path":"*/welcome","dismissable":true,"color":"#E75E40","font":"#FFFFFF"}`},
			{Name: "for everyone", Do: "GET " + at, Status: 200, Want: `[{"id":1}]`},
			{Name: "one", Do: "GET " + at + "/1", Status: 200},
			{Name: "change", Do: "PUT " + at + "/1", As: root, JSON: `{"broadcast_type":"notification","target_access_levels":[],"ends_at":"2020-01-01T00:00:00Z","starts_at":"2019-01-01T00:00:00Z"}`, Status: 200,
				Want: `{"active":false,"broadcast_type":"notification","target_access_levels":[]}`},
			{Name: "colors", Do: "PUT " + at + "/1", As: root, JSON: `{"color":"#E75","font":"#ffffff"}`, Status: 200, Want: `{"color":"#E75","font":"#ffffff"}`},
			{Name: "delete", Do: "DELETE " + at + "/1", As: root, Status: 204},
			{Name: "gone", Do: "GET " + at + "/1", Status: 404},
		})
		for _, c := range []struct {
			pattern, path string
			levels        string
			level         int64
			want          int
		}{
			{"", "/any", "", 0, 1}, {"/a/*", "/a/b", "", 0, 1}, {"/a/*", "/b", "", 0, 0}, {"a", "/a", "", 0, 1}, {"*/edit", "/x/y/edit", "", 0, 1},
			{"", "/any", "30", 30, 1}, {"", "/any", "30", 40, 0}, {"", "/any", "30", 0, 0},
		} {
			body := `{"message":"x","target_path":"` + c.pattern + `","target_access_levels":[` + c.levels + `]}`
			var made struct{ ID int64 }
			s.Check(t, apptest.Call{Do: "POST " + at, As: root, JSON: body, Status: 201}).JSON(t, &made)
			shown, err := s.Broadcasts.Shown(t.Context(), c.path, c.level)
			if err != nil || len(shown) != c.want {
				t.Errorf("%+v: %d messages, %v", c, len(shown), err)
			}
			s.Check(t, apptest.Call{Do: "DELETE " + at + "/" + itoa(made.ID), As: root, Status: 204})
		}
		s.Check(t, apptest.Call{Do: "POST " + at, As: root, JSON: `{"message":"x"}`, Status: 201})
		s.Clock.Move(2 * time.Hour)
		if shown, err := s.Broadcasts.Shown(t.Context(), "/", 0); err != nil || len(shown) != 0 {
			t.Errorf("a message that has ended is shown: %v", err)
		}
	})
}

// uploadSecure uploads a secure file.
func uploadSecure(t *testing.T, s *apptest.Server, at, token, name, content string) int {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("name", name)
	part, err := form.CreateFormFile("file", "upload.bin")
	if err == nil {
		_, err = part.Write([]byte(content))
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/api/v4"+at, &body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Private-Token", token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

func TestSecureFiles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		at := b.at("/secure_files")
		content := strings.Repeat("secret key ", 20_000)
		for _, c := range []struct {
			name, content string
			status        int
		}{
			{"upload-keystore.jks", content, 201}, {"upload-keystore.jks", "other", 400}, {"../x", "x", 400}, {"a b", "x", 400}, {"..", "x", 400}, {"empty", "", 400},
			{"large.bin", strings.Repeat("x", 5<<20+1), 413},
		} {
			if got := uploadSecure(t, s, at, b.owner, c.name, c.content); got != c.status {
				t.Errorf("%s: status %d, want %d", c.name, got, c.status)
			}
		}
		b.pipeline(b.project)
		j := b.run()
		job := map[string]string{"JOB-TOKEN": j.Token}
		s.Table(t, []apptest.Call{
			{Name: "list", Do: "GET " + at, As: b.owner, Status: 200, Want: `[{"id":1,"name":"upload-keystore.jks","checksum_algorithm":"sha256","checksum":"<any>","file_extension":"jks","expires_at":null,"metadata":null}]`},
			{Name: "job", Do: "GET " + at + "/1", Header: job, Status: 200, Want: `{"name":"upload-keystore.jks"}`},
			{Name: "download by a job", Do: "GET " + at + "/1/download", Header: job, Status: 200, Text: content},
			{Name: "none", Do: "GET " + at + "/2", As: b.owner, Status: 404},
			{Name: "delete", Do: "DELETE " + at + "/1", As: b.owner, Status: 204},
			{Name: "gone", Do: "GET " + at + "/1/download", As: b.owner, Status: 404},
		})
	})
}

func TestFileTemplates(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"p","visibility":"public"}`, Status: 201},
			{Name: "gitignore", Do: "GET /templates/gitignores/go", Status: 200, Want: `{"name":"Go"}`},
			{Name: "dockerfile", Do: "GET /templates/dockerfiles/Python", Status: 200, Want: `{"name":"Python"}`},
			{Name: "none", Do: "GET /templates/gitignores/none", Status: 404},
			{Name: "path", Do: "GET /templates/gitignores/..%2Flicenses%2Fmit", Status: 404},
			{Name: "popular", Do: "GET /templates/licenses?popular=true", Status: 200, Want: `[{"key":"apache-2.0"},{"key":"gpl-3.0","nickname":"GNU GPLv3"},{"key":"mit","nickname":null,"popular":true}]`},
			{Name: "license", Do: "GET /templates/licenses/mit?fullname=Ada", Status: 200, Want: `{"key":"mit","name":"MIT License"}`, Not: []string{"[fullname]", "[year]"}},
			{Name: "of a project", Do: "GET /projects/1/templates/licenses", Status: 200, Not: []string{`"name":"mit"`}},
			{Name: "one of a project", Do: "GET /projects/1/templates/licenses/mit", Status: 200, Want: `{"key":"mit"}`},
			{Name: "gitignore of a project", Do: "GET /projects/1/templates/gitignores/Go", Status: 200, Want: `{"name":"Go"}`},
			{Name: "ci of a project", Do: "GET /projects/1/templates/gitlab_ci_ymls", Status: 200},
			{Name: "odd type", Do: "GET /projects/1/templates/x", Status: 400},
			{Name: "no project", Do: "GET /projects/99/templates/licenses", Status: 404},
		})
		if page := s.Check(t, apptest.Call{Do: "GET /templates/gitignores?per_page=2&page=2", Status: 200}); page.Header.Get("X-Total-Pages") == "" {
			t.Error("the list has no pages")
		}
	})
}

func TestPlaceAttributes(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: `{"name":"G","path":"g"}`, Status: 201})
		for _, at := range []string{"/projects/alice%2Fp/custom_attributes", "/groups/g/custom_attributes"} {
			s.Table(t, []apptest.Call{
				{Name: "set", Do: "PUT " + at + "/cost%2Fcenter", As: root, JSON: `{"value":"7"}`, Status: 200, Want: `{"key":"cost/center","value":"7"}`},
				{Name: "again", Do: "PUT " + at + "/cost%2Fcenter", As: root, JSON: `{"value":"8"}`, Status: 200},
				{Name: "blank", Do: "PUT " + at + "/x", As: root, JSON: `{"value":""}`, Status: 400},
				{Name: "list", Do: "GET " + at, As: root, Status: 200, Want: `[{"key":"cost/center","value":"8"}]`},
				{Name: "get", Do: "GET " + at + "/cost%2Fcenter", As: root, Status: 200, Want: `{"value":"8"}`},
				{Name: "owner", Do: "GET " + at, As: alice, Status: 403},
				{Name: "delete", Do: "DELETE " + at + "/cost%2Fcenter", As: root, Status: 204},
				{Name: "gone", Do: "GET " + at + "/cost%2Fcenter", As: root, Status: 404},
			})
		}
	})
}

func TestInvitations(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bob, bobToken := s.User(t, "bob")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: `{"name":"G","path":"g"}`, Status: 201})
		for _, place := range []string{"/projects/alice%2Fp", "/groups/g"} {
			at := place + "/invitations"
			s.Table(t, []apptest.Call{
				{Name: "nobody", Do: "POST " + at, As: alice, JSON: `{"access_level":30}`, Status: 400},
				{Name: "some", Do: "POST " + at, As: alice, JSON: `{"email":"New@example.org, bad","access_level":30}`, Status: 201, Want: `{"status":"error","message":{"bad":"Invite email is invalid"}}`},
				{Name: "twice", Do: "POST " + at, As: alice, JSON: `{"email":"new@example.org","access_level":30}`, Status: 201, Want: `{"status":"error"}`},
				{Name: "no level of members", Do: "POST " + at, As: alice, JSON: `{"email":"x@example.org","access_level":60}`, Status: 400, Want: `{"message":{"access_level":["is not included in the list"]}}`},
				{Name: "no level", Do: "POST " + at, As: alice, JSON: `{"email":"x@example.org","access_level":7}`, Status: 400, Want: `{"message":{"access_level":["is not included in the list"]}}`},
				{Name: "no date", Do: "POST " + at, As: alice, JSON: `{"email":"x@example.org","access_level":30,"expires_at":"soon"}`, Status: 400, Want: `{"error":"expires_at is invalid"}`},
				{Name: "no user", Do: "POST " + at, As: alice, JSON: `{"user_id":"99999","access_level":30}`, Status: 201, Want: `{"status":"error","message":{"99999":"User not found"}}`},
				{Name: "in the past", Do: "POST " + at, As: alice, JSON: `{"email":"x@example.org","access_level":30,"expires_at":"2001-01-01"}`, Status: 400},
				{Name: "list", Do: "GET " + at, As: alice, Status: 200, Want: `[{"invite_email":"new@example.org","access_level":30,"created_by_name":"<any>","expires_at":null,"user_name":null}]`},
				{Name: "search", Do: "GET " + at + "?query=zz", As: alice, Status: 200, Want: `[]`},
				{Name: "a time", Do: "PUT " + at + "/new@example.org", As: alice, JSON: `{"expires_at":"2091-01-01T10:00:00Z"}`, Status: 200, Want: `{"expires_at":"2091-01-01T00:00:00.000Z"}`},
				{Name: "no expiration", Do: "PUT " + at + "/new@example.org", As: alice, JSON: `{"expires_at":""}`, Status: 200, Want: `{"expires_at":null}`},
				{Name: "change", Do: "PUT " + at + "/new@example.org", As: alice, JSON: `{"access_level":20,"expires_at":"2090-01-01"}`, Status: 200, Want: `{"access_level":20,"expires_at":"2090-01-01T00:00:00.000Z"}`},
				{Name: "change to no level", Do: "PUT " + at + "/new@example.org", As: alice, JSON: `{"access_level":-5}`, Status: 400},
				{Name: "change to no date", Do: "PUT " + at + "/new@example.org", As: alice, JSON: `{"expires_at":"2090"}`, Status: 400},
				{Name: "nothing to change", Do: "PUT " + at + "/new@example.org", As: alice, JSON: `{}`, Status: 400},
				{Name: "a user", Do: "POST " + at, As: alice, JSON: `{"user_id":"` + itoa(bob) + `","access_level":10}`, Status: 201, Want: `{"status":"success"}`},
				{Name: "is a member", Do: "GET " + place + "/members/" + itoa(bob), As: bobToken, Status: 200, Want: `{"access_level":10}`},
			})
		}
		carol, carolToken := s.User(t, "carol")
		s.Check(t, apptest.Call{Do: "PUT /groups/g", As: alice, JSON: `{"visibility":"public"}`, Status: 200})
		s.Check(t, apptest.Call{Name: "an invited user also asks", Do: "POST /groups/g/access_requests", As: carolToken, Status: 201})
		if err := s.Invites.AcceptAll(t.Context(), carol, []string{"new@example.org"}); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Name: "accepted", Do: "GET /groups/g/members/" + itoa(carol), As: carolToken, Status: 200, Want: `{"access_level":20,"expires_at":"2090-01-01"}`},
			{Name: "no longer pending", Do: "GET /groups/g/invitations", As: alice, Status: 200, Want: `[]`},
			{Name: "another", Do: "POST /groups/g/invitations", As: alice, JSON: `{"email":"z@example.org","access_level":30}`, Status: 201, Want: `{"status":"success"}`},
			{Name: "delete", Do: "DELETE /groups/g/invitations/Z@example.org", As: alice, Status: 204},
			{Name: "gone", Do: "DELETE /groups/g/invitations/z@example.org", As: alice, Status: 404},
		})
	})
}

// TestInvitationRates checks that inviting and revoking in a loop sends a limited number
// of emails.
func TestInvitationRates(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, post *mailtest.Server) {
		s.Clock.Stop()
		_, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p"}`, Status: 201})
		group(t, s, alice, "g", "")
		invite := func(place, emails string, status int, want string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "POST " + place + "/invitations", As: alice, JSON: `{"email":"` + emails + `","access_level":30}`, Status: status, Want: want})
		}
		const p, g, most = "/projects/alice%2Fp", "/groups/g", 5
		for range most {
			invite(p, "Victim@example.org", 201, `{"status":"success"}`)
			invite(p, "victim@example.org", 201, `{"status":"error"}`) // sends nothing
			s.Check(t, apptest.Call{Do: "DELETE " + p + "/invitations/victim@example.org", As: alice, Status: 204})
		}
		const refused = `{"message":{"error":"This endpoint has been requested too many times. Try again later."}}`
		for _, place := range []string{p, g} {
			invite(place, "victim@example.org", 429, refused)
			s.Check(t, apptest.Call{Do: "GET " + place + "/invitations", As: alice, Status: 200, Want: `[]`})
		}
		invite(p, "friend@example.org,victim@example.org", 201, `{"status":"error","message":{"victim@example.org":"Too many invitations were sent. Try again later."}}`)
		s.Settled(t)
		sent := map[string]int{}
		for _, e := range post.Emails() {
			sent[e.To]++
		}
		if sent["victim@example.org"] != most || sent["friend@example.org"] != 1 {
			t.Errorf("emails were sent to %v", sent)
		}
		s.Clock.Move(24 * time.Hour)
		invite(p, "victim@example.org", 201, `{"status":"success"}`)
	})
}
