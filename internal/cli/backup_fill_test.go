package cli_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

// filled is a server with data of most features.
type filled struct {
	*apptest.Server
	alice     string // tokens
	bob       string
	project   int64
	group     int64
	questions []apptest.Call
}

// fill creates data of most features with the API.
func fill(t *testing.T, s *apptest.Server) *filled {
	t.Helper()
	f := &filled{Server: s}
	_, f.alice = s.User(t, "alice")
	_, f.bob = s.User(t, "bob")
	f.project = f.made(t, "POST /projects", `{"path":"p","initialize_with_readme":true,"description":"é <b>"}`)
	f.group = f.made(t, "POST /groups", `{"path":"top","name":"Top"}`)
	at, group := fmt.Sprintf("/projects/%d", f.project), fmt.Sprintf("/groups/%d", f.group)
	for _, c := range [][2]string{
		{"POST " + at + "/repository/branches", `{"branch":"side","ref":"main"}`},
		{"POST " + at + "/repository/files/side.txt", `{"branch":"side","content":"more","commit_message":"side"}`},
		{"POST " + at + "/repository/tags", `{"tag_name":"v1","ref":"main","message":"tagged"}`},
		{"POST " + at + "/protected_branches", `{"name":"v*"}`},
		{"POST " + at + "/issues", `{"title":"An issue","description":"text","labels":"bug"}`},
		{"POST " + at + "/issues/1/notes", `{"body":"A word"}`},
		{"POST " + at + "/variables", `{"key":"SECRET","value":"sealed under the key"}`},
		{"POST " + at + "/wikis", `{"title":"home","content":"wiki"}`},
		{"POST " + group + "/wikis", `{"title":"home","content":"ours"}`},
		{"POST " + group + "/milestones", `{"title":"m1","due_date":"2030-01-01"}`},
		{"POST " + at + "/merge_requests", `{"source_branch":"side","target_branch":"main","title":"A request"}`},
		{"POST " + at + "/merge_requests/1/notes", `{"body":"Looks good"}`},
		{"POST " + at + "/triggers", `{"description":"t"}`},
		{"POST " + at + "/pages/domains", `{"domain":"www.example.org"}`},
		{"POST " + at + "/hooks", `{"url":"https://hooks.example.org/{x}","url_variables":[{"key":"x","value":"sealed"}],"token":"sealed","push_events":false}`},
	} {
		s.Check(t, apptest.Call{Name: c[0], Do: c[0], As: f.alice, JSON: c[1], Status: 201})
	}
	snippet := f.made(t, "POST /snippets", `{"title":"snip","content":"text","file_name":"a.txt","visibility":"public"}`)
	f.ask(f.alice, at, at+"/issues", at+"/issues/1/notes", at+"/variables/SECRET", at+"/repository/commits?all=true", at+"/repository/branches",
		at+"/repository/tags", at+"/repository/files/README.md/raw", at+"/wikis?with_content=1", group+"/wikis?with_content=1",
		at+"/merge_requests/1/changes", at+"/merge_requests/1/notes", at+"/labels", at+"/protected_branches", at+"/triggers", at+"/pages/domains", at+"/hooks",
		at+"/members", at+"/audit_events", at+"/events", group+"/milestones", group, "/user", "/personal_access_tokens",
		fmt.Sprintf("/snippets/%d/raw", snippet))
	f.ask(apptest.RootToken, "/users?per_page=100", "/application/settings", "/projects?repository_storage=second&simple=true", "/runners/all")
	f.ask("", fmt.Sprintf("/snippets/%d/raw", snippet))
	f.files(t, at)
	f.watch(t, at)
	f.jobs(t, at)
	s.Check(t, apptest.Call{Do: "POST " + group + "/export", As: f.alice, Status: 202})
	s.Check(t, apptest.Call{Do: "POST " + at + "/repository_storage_moves", As: apptest.RootToken, JSON: `{"destination_storage_name":"second"}`, Status: 201})
	f.idle(t)
	f.ask(f.alice, group+"/export", group+"/export/download")
	f.ask(apptest.RootToken, at+"/repository_storage_moves")
	for _, q := range f.questions { // some data is created on the first request
		answerOf(t, s, q)
	}
	return f
}

// idle waits until the background jobs have run.
func (f *filled) idle(t *testing.T) {
	t.Helper()
	if err := f.Queue.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// made creates an object as alice and returns its ID.
func (f *filled) made(t *testing.T, do, body string) int64 {
	t.Helper()
	var thing struct{ ID int64 }
	f.Check(t, apptest.Call{Do: do, As: f.alice, JSON: body, Status: 201}).JSON(t, &thing)
	return thing.ID
}

// ask adds requests whose responses are compared after the restore.
func (f *filled) ask(as string, paths ...string) {
	for _, path := range paths {
		f.questions = append(f.questions, apptest.Call{Do: "GET " + path, As: as})
	}
}

// send uploads a file in a multipart form.
func (f *filled) send(t testing.TB, do string, header [2]string, field, name string, content []byte) apptest.Answer {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile(field, name)
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return f.raw(t, do, &body, header, [2]string{"Content-Type", form.FormDataContentType()})
}

func (f *filled) raw(t testing.TB, do string, body io.Reader, headers ...[2]string) apptest.Answer {
	t.Helper()
	method, path, _ := strings.Cut(do, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, f.URL+"/api/v4"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		r.Header.Set(h[0], h[1])
	}
	a := f.Exchange(t, r)
	if a.Status >= 300 {
		t.Fatalf("%s: %d %s", do, a.Status, a.Body)
	}
	return a
}

// files adds an avatar and an attachment.
func (f *filled) files(t *testing.T, at string) {
	t.Helper()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	token := [2]string{"PRIVATE-TOKEN", f.alice}
	var avatar struct {
		URL string `json:"avatar_url"`
	}
	f.send(t, "PUT /user/avatar", token, "avatar", "me.png", picture.Bytes()).JSON(t, &avatar)
	f.questions = append(f.questions, apptest.Call{Do: "GET //" + strings.TrimPrefix(avatar.URL, f.URL+"/")})
	var upload struct{ ID int64 }
	f.send(t, "POST "+at+"/uploads", token, "file", "a.txt", []byte("attached")).JSON(t, &upload)
	f.ask(f.alice, at+"/uploads", fmt.Sprintf("%s/uploads/%d", at, upload.ID))
}

// watch adds an alert and an error.
func (f *filled) watch(t *testing.T, at string) {
	t.Helper()
	var in struct{ URL, Token string }
	f.Check(t, apptest.Call{Do: "POST " + at + "/alert_management/http_integrations", As: f.alice, JSON: `{"name":"watch"}`, Status: 201}).JSON(t, &in)
	f.Check(t, apptest.Call{Do: "POST //" + strings.TrimPrefix(in.URL, f.URL+"/"), Header: map[string]string{"Authorization": "Bearer " + in.Token}, JSON: `{"title":"Disk full"}`, Status: 200})
	f.Check(t, apptest.Call{Do: "PUT " + at + "/error_tracking/settings", As: f.alice, JSON: `{"active":true,"integrated":true}`, Status: 200})
	var keys []struct {
		Public string `json:"public_key"`
	}
	f.Check(t, apptest.Call{Do: "GET " + at + "/error_tracking/client_keys", As: f.alice, Status: 200}).JSON(t, &keys)
	const event = `{"event_id":"00000000000000000000000000000001","platform":"go","exception":{"values":[{"type":"panic","value":"no"}]}}`
	f.raw(t, fmt.Sprintf("POST /error_tracking/collector/api/%d/envelope/", f.project), strings.NewReader("{}\n{\"type\":\"event\"}\n"+event+"\n"),
		[2]string{"X-Sentry-Auth", "Sentry sentry_version=7, sentry_client=test/1, sentry_key=" + keys[0].Public})
	f.ask(f.alice, at+"/alert_management_alerts", at+"/alert_management/http_integrations", at+"/error_tracking/client_keys")
}

// jobs runs three jobs: the log of the first is packed, the log of the second is
// live although the job has ended, and the third is still running.
func (f *filled) jobs(t *testing.T, at string) {
	t.Helper()
	var runner struct{ Token string }
	f.Check(t, apptest.Call{Do: "POST /user/runners", As: apptest.RootToken, JSON: `{"runner_type":"instance_type"}`, Status: 201}).JSON(t, &runner)
	const file = `{"branch":"main","commit_message":"ci","content":"stages: [a, b, c]\none: {stage: a, script: [x], artifacts: {paths: [a]}}\ntwo: {stage: b, script: [x]}\nthree: {stage: c, script: [x]}\n"}`
	f.Check(t, apptest.Call{Do: "POST " + at + "/repository/files/.gitlab-ci.yml", As: f.alice, JSON: file, Status: 201})
	for i, name := range []string{"one", "two", "three"} {
		var job struct {
			ID    int64
			Token string
		}
		f.idle(t)
		f.Check(t, apptest.Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q}`, runner.Token), Status: 201, Want: fmt.Sprintf(`{"job_info":{"name":%q}}`, name)}).JSON(t, &job)
		token, log := [2]string{"JOB-TOKEN", job.Token}, strings.Repeat("the log of "+name+"\n", 1000)
		f.raw(t, fmt.Sprintf("PATCH /jobs/%d/trace", job.ID), strings.NewReader(log), token, [2]string{"Content-Range", fmt.Sprintf("0-%d", len(log)-1)})
		f.ask(f.alice, fmt.Sprintf("%s/jobs/%d/trace", at, job.ID))
		if i == 2 {
			return
		}
		if i == 0 {
			f.send(t, fmt.Sprintf("POST /jobs/%d/artifacts?artifact_format=zip", job.ID), token, "file", "artifacts.zip", zipped(t))
			f.ask(f.alice, fmt.Sprintf("%s/jobs/%d/artifacts", at, job.ID), fmt.Sprintf("%s/jobs/%d/artifacts/a", at, job.ID))
		}
		f.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /jobs/%d", job.ID), JSON: fmt.Sprintf(`{"token":%q,"state":"success"}`, job.Token), Status: 200})
		f.ask(f.alice, fmt.Sprintf("%s/jobs/%d", at, job.ID))
		if i == 0 {
			f.Clock.Move(2 * time.Minute)
			if err := f.CI.Artifacts.SweepLogs(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func zipped(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.Create("a")
	if err == nil {
		_, err = w.Write([]byte("an artifact"))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// busy writes as bob until stop is called: commits, attachments and projects, of
// which some are deleted again. stop returns the number of rounds that were started.
func (f *filled) busy(t *testing.T) (stop func() int) {
	t.Helper()
	var kept struct{ ID int64 }
	f.Check(t, apptest.Call{Do: "POST /projects", As: f.bob, JSON: `{"path":"busy","initialize_with_readme":true}`, Status: 201}).JSON(t, &kept)
	at := fmt.Sprintf("/projects/%d", kept.ID)
	token := [2]string{"PRIVATE-TOKEN", f.bob}
	var wg sync.WaitGroup
	begun, end, n := make(chan struct{}), make(chan struct{}), 0
	wg.Go(func() {
		var uploads []int64
		for {
			select {
			case <-end:
				return
			default:
			}
			if n++; n == 2 {
				close(begun)
			}
			do := func(do, body string, good ...int) (id int64) {
				var thing struct{ ID any }
				a := f.Send(t, apptest.Call{Do: do, As: f.bob, JSON: body})
				if !slices.Contains(good, a.Status) {
					t.Errorf("%s: %d %s", do, a.Status, a.Body)
				}
				if a.Status == 201 {
					a.JSON(t, &thing)
				}
				number, _ := thing.ID.(float64)
				return int64(number)
			}
			do(fmt.Sprintf("POST %s/repository/files/f%d", at, n), `{"branch":"main","content":"x","commit_message":"c"}`, 201)
			do("POST "+at+"/issues", fmt.Sprintf(`{"title":"issue %d"}`, n), 201)
			var upload struct{ ID int64 }
			f.send(t, "POST "+at+"/uploads", token, "file", "u.txt", fmt.Appendf(nil, "upload %d", n)).JSON(t, &upload)
			if uploads = append(uploads, upload.ID); len(uploads) > 3 {
				do(fmt.Sprintf("DELETE %s/uploads/%d", at, uploads[0]), "", 204)
				uploads = uploads[1:]
			}
			if id := do("POST /projects", fmt.Sprintf(`{"path":"short%d","initialize_with_readme":true}`, n), 201); n%2 == 0 {
				do(fmt.Sprintf("DELETE /projects/%d", id), "", 202)
			}
		}
	})
	<-begun
	return func() int {
		close(end)
		wg.Wait()
		return n
	}
}
