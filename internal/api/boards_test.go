package api_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

func TestBoards(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		top := group(t, s, alice, "top", `,"visibility":"public"`)
		id := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, top))
		enlist(t, s, id, bobID, project.Guest)
		at, above := fmt.Sprintf("/projects/%d", id), fmt.Sprintf("/groups/%d", top)
		doing := made(t, s, alice, "POST "+above+"/labels", `{"name":"doing","color":"red"}`)
		ready := made(t, s, alice, "POST "+at+"/labels", `{"name":"ready","color":"blue"}`)
		goal := made(t, s, alice, "POST "+at+"/milestones", `{"title":"v1"}`)
		b := made(t, s, alice, "POST "+at+"/boards", `{"name":"Work"}`)
		shared := made(t, s, alice, "POST "+above+"/boards", `{"name":"All"}`)
		board := fmt.Sprintf("%s/boards/%d", at, b)
		first := made(t, s, alice, "POST "+board+"/lists", fmt.Sprintf(`{"label_id":%d}`, doing))
		second := made(t, s, alice, "POST "+board+"/lists", fmt.Sprintf(`{"label_id":%d}`, ready))
		third := made(t, s, alice, "POST "+board+"/lists", fmt.Sprintf(`{"assignee_id":%d}`, aliceID))
		s.Table(t, []apptest.Call{
			{Name: "one", Do: "GET " + board, Status: 200, Want: fmt.Sprintf(`{"id":%d,"name":"Work","hide_backlog_list":false,"hide_closed_list":false,"milestone":null,"assignee":null,"labels":[],"weight":null,
				"project":{"path_with_namespace":"top/p"},"lists":[{"id":%d,"label":{"name":"doing","color":"#ff0000"},"position":0,"list_type":"label"},{"id":%d,"position":1},{"id":%d,"position":2,"list_type":"assignee","assignee":{"username":"alice"},"label":null}]}`, b, first, second, third)},
			{Name: "of the group", Do: "GET " + above + "/boards", Status: 200, Want: fmt.Sprintf(`[{"id":%d,"name":"All","project":null,"group":{"id":%d},"lists":[]}]`, shared, top)},
			{Name: "not of the project", Do: fmt.Sprintf("GET %s/boards/%d", at, shared), Status: 404},
			{Name: "a label of elsewhere", Do: fmt.Sprintf("POST %s/boards/%d/lists", above, shared), As: alice, JSON: fmt.Sprintf(`{"label_id":%d}`, ready), Status: 400, Want: `{"message":"Label not found!"}`},
			{Name: "twice", Do: "POST " + board + "/lists", As: alice, JSON: fmt.Sprintf(`{"label_id":%d}`, ready), Status: 400},
			{Name: "of nothing", Do: "POST " + board + "/lists", As: alice, JSON: `{}`, Status: 400},
			{Name: "as a guest", Do: "POST " + board + "/lists", As: bob, JSON: fmt.Sprintf(`{"milestone_id":%d}`, goal), Status: 403},
			{Name: "move", Do: fmt.Sprintf("PUT %s/lists/%d", board, third), As: alice, JSON: `{"position":0}`, Status: 200, Want: `{"position":0}`},
			{Name: "moved", Do: "GET " + board + "/lists", Status: 200, Want: fmt.Sprintf(`[{"id":%d},{"id":%d,"position":1},{"id":%d,"position":2}]`, third, first, second)},
			{Name: "far", Do: fmt.Sprintf("PUT %s/lists/%d", board, third), As: alice, JSON: `{"position":99}`, Status: 200, Want: `{"position":2}`},
			{Name: "change", Do: "PUT " + board, As: alice, JSON: fmt.Sprintf(`{"name":"Work!","milestone_id":%d,"labels":"ready","weight":2,"hide_closed_list":true}`, goal), Status: 200,
				Want: `{"name":"Work!","milestone":{"title":"v1"},"labels":[{"name":"ready"}],"weight":2,"hide_closed_list":true}`},
			{Name: "the same label twice", Do: "PUT " + board, As: alice, JSON: `{"labels":"ready,ready"}`, Status: 200, Want: `{"labels":[{"name":"ready"}]}`},
			{Name: "too many labels", Do: "PUT " + board, As: alice, JSON: fmt.Sprintf(`{"labels":%q}`, manyNames(101)), Status: 400},
			{Name: "and back", Do: "PUT " + board, As: alice, JSON: `{"milestone_id":null,"labels":"","weight":null}`, Status: 200, Want: `{"milestone":null,"labels":[],"weight":null}`},
			{Name: "list", Do: fmt.Sprintf("GET %s/lists/%d", board, first), Status: 200, Want: `{"label":{"name":"doing"}}`},
			{Name: "delete a list", Do: fmt.Sprintf("DELETE %s/lists/%d", board, first), As: alice, Status: 204},
			{Name: "gone", Do: fmt.Sprintf("GET %s/lists/%d", board, first), Status: 404},
			{Name: "with its label", Do: "DELETE " + at + "/labels/ready", As: alice, Status: 204},
			{Do: "GET " + board + "/lists", Status: 200, Want: fmt.Sprintf(`[{"id":%d}]`, third)},
			{Name: "delete", Do: "DELETE " + board, As: alice, Status: 204},
			{Do: "GET " + at + "/boards", Status: 200, Want: `[]`},
		})
	})
}

func TestBadges(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		top := group(t, s, alice, "top", `,"visibility":"public"`)
		id := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, top))
		at, above := fmt.Sprintf("/projects/%d/badges", id), fmt.Sprintf("/groups/%d/badges", top)
		shared := made(t, s, alice, "POST "+above, `{"name":"all","link_url":"https://ci.example/%{project_path}","image_url":"https://ci.example/%{project_id}/%{default_branch}.svg"}`)
		own := made(t, s, alice, "POST "+at, `{"link_url":"https://a.example","image_url":"https://a.example/x.png"}`)
		s.Table(t, []apptest.Call{
			{Name: "all", Do: "GET " + at, Status: 200, Want: fmt.Sprintf(`[{"id":%d,"name":"all","kind":"group","link_url":"https://ci.example/%%{project_path}","rendered_link_url":"https://ci.example/top/p","rendered_image_url":"https://ci.example/%d/.svg"},
				{"id":%d,"name":null,"kind":"project"}]`, shared, id, own)},
			{Name: "of the group", Do: "GET " + above, Status: 200, Want: `[{"rendered_link_url":"https://ci.example/%{project_path}"}]`},
			{Name: "by name", Do: "GET " + at + "?name=all", Status: 200, Want: `[{"kind":"group"}]`},
			{Name: "no address", Do: "POST " + at, As: alice, JSON: `{"link_url":"javascript:alert(1)","image_url":"https://a.example"}`, Status: 400, Want: `{"message":{"link_url":["must be a valid URL"]}}`},
			{Name: "preview", Do: "GET " + at + "/render?link_url=https://x.example/%25{project_name}&image_url=https://x.example", As: alice, Status: 200, Want: `{"rendered_link_url":"https://x.example/p"}`},
			{Name: "change", Do: fmt.Sprintf("PUT %s/%d", at, own), As: alice, JSON: `{"name":"own"}`, Status: 200, Want: `{"name":"own"}`},
			{Name: "not one above", Do: fmt.Sprintf("PUT %s/%d", at, shared), As: alice, JSON: `{"name":"x"}`, Status: 404},
			{Name: "which is seen", Do: fmt.Sprintf("GET %s/%d", at, shared), Status: 200, Want: `{"kind":"group"}`},
			{Name: "delete", Do: fmt.Sprintf("DELETE %s/%d", at, own), As: alice, Status: 204},
			{Do: fmt.Sprintf("DELETE %s/%d", above, shared), As: alice, Status: 204},
			{Do: "GET " + at, Status: 200, Want: `[]`},
		})
	})
}

// uploadFile uploads a file to a project.
func uploadFile(t *testing.T, s *apptest.Server, as string, projectID int64, name, content string) apptest.Answer {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("%s/api/v4/projects/%d/uploads", s.URL, projectID), &body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	if as != "" {
		r.Header.Set("PRIVATE-TOKEN", as)
	}
	return s.Exchange(t, r)
}

// TestInterruptedUploads checks that files whose row was not saved are removed.
func TestInterruptedUploads(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := newProject(t, s, alice, "p", "")
		_, hook, token := integration(t, s, alice, id, `{"name":"w"}`)
		s.Check(t, apptest.Call{Do: below(s, hook), Header: bearer(token), JSON: `{"title":"Disk full"}`, Status: 200})
		var picture bytes.Buffer
		if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 3, 3))); err != nil {
			t.Fatal(err)
		}
		upload := func(status int) {
			t.Helper()
			if got := uploadFile(t, s, alice, id, "a.png", "picture"); got.Status != status {
				t.Errorf("an upload: status %d, want %d", got.Status, status)
			}
			body, contentType := metricForm(t, "a.png", picture.Bytes())
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("%s/api/v4/projects/%d/alert_management_alerts/1/metric_images", s.URL, id), body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", contentType)
			r.Header.Set("PRIVATE-TOKEN", alice)
			if got := s.Exchange(t, r); got.Status != status {
				t.Errorf("an image: status %d, want %d", got.Status, status)
			}
		}
		files := func(want int) {
			t.Helper()
			for _, prefix := range []string{"uploads/", "alert_metric_images/"} {
				n := 0
				for _, err := range s.Blobs.List(t.Context(), prefix) {
					if err != nil {
						t.Fatal(err)
					}
					n++
				}
				if n != want {
					t.Errorf("%d files below %s, want %d", n, prefix, want)
				}
			}
		}
		rename := func(from, to string) {
			t.Helper()
			for _, table := range []string{"uploads", "alert_metric_images"} {
				if _, err := s.DB.ExecContext(t.Context(), "ALTER TABLE "+table+" RENAME COLUMN "+from+" TO "+to); err != nil {
					t.Fatal(err)
				}
			}
		}
		rename("name", "lost") // rows cannot be inserted
		upload(500)
		rename("lost", "name")
		files(1)
		upload(201)
		files(2)
		// The queue uses the clock of the database.
		later := `datetime(scheduled_at, '-25 hours')`
		if s.DB.Postgres() {
			later = `scheduled_at - INTERVAL '25 hours'`
		}
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE river_job SET scheduled_at = `+later+` WHERE state = 'scheduled' AND kind LIKE '%_drop_unused%'`); err != nil {
			t.Fatal(err)
		}
		s.Settled(t)
		files(1)
	})
}

func TestProjectUploads(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		_, dan := s.User(t, "dan")
		id := newProject(t, s, alice, "p", "")
		enlist(t, s, id, bobID, project.Guest)
		at := fmt.Sprintf("/projects/%d/uploads", id)
		var picture, page struct {
			ID                           int64
			URL, Alt, Markdown, FullPath string
		}
		uploadFile(t, s, bob, id, "../a [x].png", "picture").JSON(t, &picture)
		if want := "![a x](" + picture.URL + ")"; picture.Markdown != want || picture.Alt != "a x" {
			t.Errorf("markdown %q, want %q", picture.Markdown, want)
		}
		uploadFile(t, s, alice, id, "x.html", "<script>").JSON(t, &page)
		if want := "[x.html](" + page.URL + ")"; page.Markdown != want {
			t.Errorf("markdown %q, want %q", page.Markdown, want)
		}
		var shown struct{ HTML string }
		s.Check(t, apptest.Call{Do: "POST /markdown", As: bob, JSON: fmt.Sprintf(`{"text":%q,"gfm":true,"project":"%d"}`, picture.Markdown, id), Status: 201}).JSON(t, &shown)
		if want := fmt.Sprintf(`src="/-/project/%d%s"`, id, picture.URL); !strings.Contains(shown.HTML, want) {
			t.Errorf("no %s in %s", want, shown.HTML)
		}
		for who, status := range map[string]int{"": 401, dan: 404} {
			if got := uploadFile(t, s, who, id, "x", "x"); got.Status != status {
				t.Errorf("status %d, want %d", got.Status, status)
			}
		}
		secret := strings.Split(picture.URL, "/")[2]
		s.Table(t, []apptest.Call{
			{Name: "by secret", Do: "GET " + at + "/" + secret + "/x", As: bob, Status: 200, WantHeader: map[string]string{"Content-Type": "image/png", "Content-Length": "7"}},
			{Name: "a stranger with the secret", Do: "GET " + at + "/" + secret + "/x", As: dan, Status: 404},
			{Name: "another secret", Do: "GET " + at + "/" + strings.Repeat("0", 32) + "/x", As: bob, Status: 404},
			{Name: "a page is not shown as one", Do: fmt.Sprintf("GET %s/%d", at, page.ID), As: alice, Status: 200,
				WantHeader: map[string]string{"Content-Type": "application/octet-stream", "Content-Disposition": "attachment; filename=x.html"}},
			{Name: "by id as a guest", Do: fmt.Sprintf("GET %s/%d", at, page.ID), As: bob, Status: 403},
			{Name: "list", Do: "GET " + at, As: alice, Status: 200, Want: fmt.Sprintf(`[{"filename":"x.html","size":8,"uploaded_by_id":%d},{"filename":"a [x].png"}]`, aliceID)},
			{Name: "delete by id", Do: fmt.Sprintf("DELETE %s/%d", at, page.ID), As: alice, Status: 204},
			{Name: "delete by secret", Do: "DELETE " + at + "/" + secret + "/x", As: alice, Status: 204},
			{Name: "gone", Do: "GET " + at + "/" + secret + "/x", As: bob, Status: 404},
		})
		s.Check(t, apptest.Call{Do: "PUT /application/settings?deletion_adjourned_period=0", As: root, Status: 200})
		uploadFile(t, s, alice, id, "last.png", "x")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d", id), As: alice, Status: 202})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for left := range s.Blobs.List(t.Context(), "uploads/") {
			t.Errorf("%s is left", left.Key)
		}
	})
}

// manyNames returns different names, separated by commas.
func manyNames(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("name %d", i)
	}
	return strings.Join(names, ",")
}
