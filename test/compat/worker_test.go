package compat

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// worker is a runner that the test controls: it requests and ends jobs when the test
// calls its methods.
type worker struct {
	url, token string
}

// task is a job as returned to a runner.
type task struct {
	ID        int64
	Token     string
	JobInfo   struct{ Name string } `json:"job_info"`
	Variables []struct {
		Key, Value   string
		File, Masked bool
	}
	Dependencies []struct{ Name string }
}

func (w worker) send(t *testing.T, method, path, token, kind, span string, body io.Reader, status ...int) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.url+"/api/v4"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("JOB-TOKEN", token)
	r.Header.Set("Content-Type", kind)
	if span != "" {
		r.Header.Set("Content-Range", span)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(status, res.StatusCode) {
		t.Fatalf("%s %s: status %d, want %v: %s", method, path, res.StatusCode, status, text)
	}
	return text
}

// take requests the next job, which must have the name. The job is then running.
func (w worker) take(t *testing.T, name string) *task {
	t.Helper()
	var j task
	waitFor(t, "a job waits: "+name, func() bool {
		body := fmt.Sprintf(`{"token":%q,"system_id":"s_compat","info":{"name":"compat","version":"1.0"}}`, w.token)
		text := w.send(t, "POST", "/jobs/request", "", "application/json", "", strings.NewReader(body), http.StatusCreated, http.StatusNoContent)
		if len(text) == 0 {
			return false
		}
		if err := json.Unmarshal(text, &j); err != nil {
			t.Fatal(err)
		}
		return true
	})
	same(t, "job of the runner", j.JobInfo.Name, name)
	return &j
}

// value returns the value of a variable of a job.
func (j *task) value(key string) string {
	for _, v := range j.Variables {
		if v.Key == key {
			return v.Value
		}
	}
	return ""
}

// write appends to the log at an offset.
func (w worker) write(t *testing.T, j *task, at int, text string) {
	t.Helper()
	w.send(t, "PATCH", fmt.Sprintf("/jobs/%d/trace", j.ID), j.Token, "text/plain", fmt.Sprintf("%d-%d", at, at+len(text)-1), strings.NewReader(text), http.StatusAccepted)
}

// end ends a job with its complete log and the status success or failed.
func (w worker) end(t *testing.T, j *task, state, log string) {
	t.Helper()
	body := fmt.Sprintf(`{"state":%q,"exit_code":1,"output":{"checksum":"crc32:%08x","bytesize":%d}}`, state, crc32.ChecksumIEEE([]byte(log)), len(log))
	w.send(t, "PUT", fmt.Sprintf("/jobs/%d", j.ID), j.Token, "application/json", "", strings.NewReader(body), http.StatusOK)
}

// run requests a job and ends it immediately.
func (w worker) run(t *testing.T, name, state string) *task {
	t.Helper()
	j := w.take(t, name)
	log := "the log of " + name + "\n"
	w.write(t, j, 0, log)
	w.end(t, j, state, log)
	return j
}

// upload sends an artifact of a job.
func (w worker) upload(t *testing.T, j *task, kind, format string, content []byte) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "artifacts."+format)
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/jobs/%d/artifacts?artifact_type=%s&artifact_format=%s", j.ID, kind, format)
	w.send(t, "POST", path, j.Token, form.FormDataContentType(), "", &body, http.StatusCreated)
}

func zipped(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		f, err := z.Create(files[i])
		if err == nil {
			_, err = io.WriteString(f, files[i+1])
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
