package api_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"svc/internal/app/apptest"
)

// metricForm returns a multipart form with a file, and its content type.
func metricForm(t testing.TB, name string, content []byte, fields ...string) (body *bytes.Buffer, contentType string) {
	t.Helper()
	body = &bytes.Buffer{}
	m := multipart.NewWriter(body)
	for i := 0; i < len(fields); i += 2 {
		if err := m.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	f, err := m.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return body, m.FormDataContentType()
}

func TestMetricImages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		const at = "/projects/alice%2Fp"
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p"}`, Status: 201})
		var made struct{ Token string }
		s.Check(t, apptest.Call{Do: "POST " + at + "/alert_management/http_integrations", As: alice, JSON: `{"name":"i","type":"http","active":true}`, Status: 201}).JSON(t, &made)
		for _, title := range []string{"a", "b"} {
			s.Check(t, apptest.Call{Do: "POST //alice/p/alerts/notify.json", Header: bearer(made.Token), JSON: fmt.Sprintf(`{"title":%q}`, title), Status: 200})
		}
		var picture bytes.Buffer
		if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 3, 3))); err != nil {
			t.Fatal(err)
		}
		send := func(iid int64, token, name string, content []byte, fields ...string) apptest.Answer {
			t.Helper()
			body, contentType := metricForm(t, name, content, fields...)
			r, err := http.NewRequestWithContext(t.Context(), "POST", fmt.Sprintf("%s/api/v4%s/alert_management_alerts/%d/metric_images", s.URL, at, iid), body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", contentType)
			r.Header.Set("Private-Token", token)
			return s.Exchange(t, r)
		}
		for _, c := range []struct {
			name    string
			iid     int64
			token   string
			file    string
			content []byte
			fields  []string
			status  int
		}{
			{"not by others", 1, bob, "a.png", picture.Bytes(), nil, 404},
			{"no such alert", 9, alice, "a.png", picture.Bytes(), nil, 404},
			{"no image", 1, alice, "a.png", []byte("<svg/>"), nil, 400},
			{"another extension", 1, alice, "a.html", picture.Bytes(), nil, 400},
			{"no web address", 1, alice, "a.png", picture.Bytes(), []string{"url", "javascript:alert(1)"}, 400},
			{"too large", 1, alice, "a.png", append(picture.Bytes(), make([]byte, 1<<20)...), nil, 413},
			{"upload", 1, alice, "a graph.png", picture.Bytes(), []string{"url", "http://example.com", "url_text", "Example website"}, 201},
			{"a second", 1, alice, "b.png", picture.Bytes(), nil, 201},
		} {
			if got := send(c.iid, c.token, c.file, c.content, c.fields...); got.Status != c.status {
				t.Errorf("%s: status %d, want %d: %s", c.name, got.Status, c.status, got.Body)
			}
		}
		images := at + "/alert_management_alerts/1/metric_images"
		var list []struct {
			ID       int64
			FilePath string `json:"file_path"`
		}
		s.Check(t, apptest.Call{Do: "GET " + images, As: alice, Status: 200, Want: `[
			{"filename":"a graph.png","url":"http://example.com","url_text":"Example website","created_at":"<any>"},{"filename":"b.png","url":null,"url_text":null}]`}).JSON(t, &list)
		if want := fmt.Sprintf("/uploads/-/system/alert_metric_image/file/%d/a%%20graph.png", list[0].ID); list[0].FilePath != want {
			t.Errorf("path %q, want %q", list[0].FilePath, want)
		}
		one := fmt.Sprintf("%s/%d", images, list[0].ID)
		s.Table(t, []apptest.Call{
			{Name: "change", Do: "PUT " + one, As: alice, JSON: `{"url":"https://example.org","url_text":""}`, Status: 200, Want: `{"filename":"a graph.png","url":"https://example.org","url_text":null}`},
			{Name: "change to no web address", Do: "PUT " + one, As: alice, JSON: `{"url":"example"}`, Status: 400, Want: `{"message":{"url":["must be a valid URL"]}}`},
			{Name: "of another alert", Do: "PUT " + strings.Replace(one, "alerts/1", "alerts/2", 1), As: alice, JSON: `{"url":""}`, Status: 404},
			{Name: "others", Do: "GET " + images, As: bob, Status: 404},
			{Name: "others delete", Do: "DELETE " + one, As: bob, Status: 404},
			{Name: "delete", Do: "DELETE " + one, As: alice, Status: 204},
			{Name: "deleted", Do: "DELETE " + one, As: alice, Status: 404},
			{Name: "left", Do: "GET " + images, As: alice, Status: 200, Want: `[{"filename":"b.png"}]`},
			{Name: "none", Do: "GET " + strings.Replace(images, "alerts/1", "alerts/2", 1), As: alice, Status: 200, Want: `[]`},
		})

		// One image can still be added, and several requests try to add it.
		for n := range 99 {
			if _, err := s.DB.ExecContext(t.Context(), `INSERT INTO alert_metric_images (alert_id, secret, name, url, url_text, created_at)
				SELECT id, ?, 'x.png', '', '', 0 FROM alerts WHERE title = 'b'`, fmt.Sprintf("secret%d", n)); err != nil {
				t.Fatal(err)
			}
		}
		var added atomic.Int64
		var senders sync.WaitGroup
		for range 4 {
			senders.Go(func() {
				if got := send(2, alice, "c.png", picture.Bytes()); got.Status == http.StatusCreated {
					added.Add(1)
				} else if got.Status != http.StatusBadRequest {
					t.Errorf("over the limit: %d %s", got.Status, got.Body)
				}
			})
		}
		senders.Wait()
		if added.Load() != 1 {
			t.Errorf("%d images were added to 99, want 1", added.Load())
		}
	})
}
