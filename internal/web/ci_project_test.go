package web_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
)

// ciProject is a project of ada with a CI/CD configuration. The test runs its jobs by
// the API for runners.
type ciProject struct {
	t       *testing.T
	s       *apptest.Server
	owner   string // token of ada
	project int64
	runner  string
}

// newCIProject creates the project ada/p with the configuration on its branches main,
// which is protected, and dev.
func newCIProject(t *testing.T, s *apptest.Server, yaml string) *ciProject {
	t.Helper()
	_, token := s.User(t, "ada")
	st := &ciProject{t: t, s: s, owner: token}
	var made struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "POST /projects", As: token, Form: url.Values{"name": {"P"}, "path": {"p"}, "visibility": {"public"}}, Status: 201}).JSON(t, &made)
	st.project = made.ID
	r := s.Repository(t, made.ID, gittest.Commit{Seconds: 1_600_000_000, Message: "First", Changes: []gittest.Change{{Path: ".gitlab-ci.yml", Content: yaml}}})
	st.api("POST /projects/%d/protected_branches", 201, url.Values{"name": {"main"}})
	r.Git("branch", "dev", "main") // without a push event, so no pipeline is created
	var got struct{ Token string }
	s.Check(t, apptest.Call{Do: "POST /user/runners", As: apptest.RootToken, JSON: `{"runner_type":"instance_type","tag_list":["linux"],"run_untagged":true}`, Status: 201}).JSON(t, &got)
	st.runner = got.Token
	st.idle()
	return st
}

// api calls the API as ada; %d is the ID of the project.
func (st *ciProject) api(do string, status int, form url.Values) apptest.Answer {
	st.t.Helper()
	return st.s.Check(st.t, apptest.Call{Do: strings.Replace(do, "%d", fmt.Sprint(st.project), 1), As: st.owner, Form: form, Status: status})
}

func (st *ciProject) idle() {
	st.t.Helper()
	if err := st.s.Queue.Idle(st.t.Context()); err != nil {
		st.t.Fatal(err)
	}
}

// pipeline creates a pipeline on a branch and returns its ID.
func (st *ciProject) pipeline(branch string) int64 {
	st.t.Helper()
	var p struct{ ID int64 }
	st.api("POST /projects/%d/pipeline", 201, url.Values{"ref": {branch}}).JSON(st.t, &p)
	st.idle()
	return p.ID
}

// run is a job that a runner has.
type run struct {
	ID    int64
	Token string
	Info  struct{ Name string } `json:"job_info"`
}

// take requests the next job.
func (st *ciProject) take() run {
	st.t.Helper()
	a := st.s.Check(st.t, apptest.Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q,"system_id":"s_1"}`, st.runner), Status: 201})
	var r run
	a.JSON(st.t, &r)
	return r
}

// write appends to the log of a job.
func (st *ciProject) write(r run, at int, text string) {
	st.t.Helper()
	st.send(r, "PATCH", "trace", "text/plain", strings.NewReader(text), 202, fmt.Sprintf("%d-%d", at, at+len(text)-1))
}

func (st *ciProject) send(r run, method, what, kind string, body interface{ Read([]byte) (int, error) }, status int, at string) {
	st.t.Helper()
	req, err := http.NewRequestWithContext(st.t.Context(), method, fmt.Sprintf("%s/api/v4/jobs/%d/%s", st.s.URL, r.ID, what), body)
	if err != nil {
		st.t.Fatal(err)
	}
	req.Header.Set("JOB-TOKEN", r.Token)
	req.Header.Set("Content-Type", kind)
	if at != "" {
		req.Header.Set("Content-Range", at)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		st.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != status {
		st.t.Fatalf("%s %s: %s", method, what, res.Status)
	}
}

// upload uploads the archive of a job, or a report.
func (st *ciProject) upload(r run, query string, content []byte) {
	st.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	w, err := form.CreateFormFile("file", "artifacts.zip")
	if err == nil {
		_, err = w.Write(content)
	}
	if err != nil || form.Close() != nil {
		st.t.Fatal(err)
	}
	st.send(r, "POST", "artifacts?"+query, form.FormDataContentType(), &body, 201, "")
}

// end sets the final state of a job.
func (st *ciProject) end(r run, state string) {
	st.t.Helper()
	st.s.Check(st.t, apptest.Call{Do: fmt.Sprintf("PUT /jobs/%d", r.ID), Header: map[string]string{"JOB-TOKEN": r.Token}, JSON: fmt.Sprintf(`{"state":%q,"exit_code":3}`, state), Status: 200})
	st.idle()
}

// job finds a job of a pipeline by its name.
func (st *ciProject) job(pipeline int64, name string) int64 {
	st.t.Helper()
	var list []struct {
		ID   int64
		Name string
	}
	st.api(fmt.Sprintf("GET /projects/%%d/pipelines/%d/jobs?per_page=100", pipeline), 200, nil).JSON(st.t, &list)
	for _, j := range list {
		if j.Name == name {
			return j.ID
		}
	}
	st.t.Fatalf("there is no job %s", name)
	return 0
}

func zipped(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := 0; i+1 < len(files); i += 2 {
		w, err := z.Create(files[i])
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// read decodes a JSON response.
func read[T any](p answer) T {
	p.t.Helper()
	var v T
	if err := json.Unmarshal([]byte(p.want(200).body), &v); err != nil {
		p.t.Fatalf("%v: %s", err, p.body)
	}
	return v
}

func sqlite(t *testing.T) dbtest.Source { return dbtest.SQLite(t) }
