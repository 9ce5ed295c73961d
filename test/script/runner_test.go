package script_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runner runs jobs with the API calls of the public runner. The scripts of the CI/CD
// configuration are run by sh in a directory of the job, with only its variables and
// the artifacts that it depends on.
type runner struct {
	url   string // URL of the API
	token string
	dir   string
	held  []*work // running jobs
	seen  map[string]*work
}

// work is a job as returned by the API.
type work struct {
	ID      int64
	Token   string
	JobInfo struct {
		Name, Stage string
		ProjectID   int64 `json:"project_id"`
	} `json:"job_info"`
	GitInfo struct {
		Ref, SHA string
		RefType  string `json:"ref_type"`
	} `json:"git_info"`
	Variables []struct {
		Key, Value                string
		Public, File, Masked, Raw bool
	}
	Steps []struct {
		Name   string
		Script []string
	}
	Artifacts []struct {
		Name     *string
		Paths    []string
		When     *string
		ExpireIn *string `json:"expire_in"`
		Type     string  `json:"artifact_type"`
		Format   string  `json:"artifact_format"`
	}
	Dependencies []struct {
		ID    int64
		Name  string
		Token string
	}
}

// send sends a request with the token of a job and returns the response if it has
// one of the expected statuses.
func (r *runner) send(method, path string, j *work, header http.Header, body io.Reader, status ...int) ([]byte, int, error) {
	req, err := http.NewRequest(method, r.url+path, body)
	if err != nil {
		return nil, 0, err
	}
	if header != nil {
		req.Header = header
	}
	if j != nil {
		req.Header.Set("JOB-TOKEN", j.Token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, 0, err
	}
	for _, want := range status {
		if res.StatusCode == want {
			return text, want, nil
		}
	}
	return nil, res.StatusCode, fmt.Errorf("%s %s: status %d, want %v: %s", method, path, res.StatusCode, status, text)
}

func asJSON() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// takeJobs requests jobs until none is pending. The jobs are running then.
func (r *runner) takeJobs() error {
	for {
		body := fmt.Sprintf(`{"token":%q,"system_id":"s_script","info":{"name":"script","executor":"shell"}}`, r.token)
		text, status, err := r.send("POST", "/jobs/request", nil, asJSON(), strings.NewReader(body), 201, 204)
		if err != nil || status == http.StatusNoContent {
			return err
		}
		j := &work{}
		if err := json.Unmarshal(text, j); err != nil {
			return err
		}
		r.held = append(r.held, j)
		r.seen[j.JobInfo.Name] = j
	}
}

// drop removes a job from the running ones and returns it, or nil if there is none
// with the name.
func (r *runner) drop(name string) *work {
	for i, j := range r.held {
		if j.JobInfo.Name == name {
			r.held = append(r.held[:i:i], r.held[i+1:]...)
			return j
		}
	}
	return nil
}

// run runs a job and reports its result to the server.
func (r *runner) run(j *work) error {
	dir, err := os.MkdirTemp(r.dir, "job-")
	if err != nil {
		return err
	}
	for _, d := range j.Dependencies {
		text, _, err := r.send("GET", fmt.Sprintf("/jobs/%d/artifacts", d.ID), &work{Token: d.Token}, nil, nil, 200)
		if err == nil {
			err = unzip(dir, text)
		}
		if err != nil {
			return fmt.Errorf("artifacts of %s: %w", d.Name, err)
		}
	}
	env, err := j.environment(dir)
	if err != nil {
		return err
	}
	var log bytes.Buffer
	code := 0
	for _, step := range j.Steps {
		cmd := exec.Command("sh", "-e", "-c", strings.Join(step.Script, "\n"))
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &log, &log
		err := cmd.Run()
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit) && step.Name == "script":
			code = exit.ExitCode()
		case err != nil && exit == nil:
			return err
		}
	}
	if err := r.upload(j, dir, code == 0); err != nil {
		return err
	}
	return r.finish(j, log.String(), code, "")
}

// finish sends the log, in two parts, and the result of a job.
func (r *runner) finish(j *work, log string, code int, reason string) error {
	for at := 0; at < len(log); {
		piece := log[at:]
		if half := len(log)/2 + 1; at == 0 && half < len(log) {
			piece = log[:half]
		}
		h := http.Header{"Content-Type": {"text/plain"}, "Content-Range": {fmt.Sprintf("%d-%d", at, at+len(piece)-1)}}
		if _, _, err := r.send("PATCH", fmt.Sprintf("/jobs/%d/trace", j.ID), j, h, strings.NewReader(piece), 202); err != nil {
			return err
		}
		at += len(piece)
	}
	state := "success"
	more := ""
	if code != 0 || reason != "" {
		if reason == "" {
			reason = "script_failure"
		}
		state, more = "failed", fmt.Sprintf(`,"failure_reason":%q,"exit_code":%d`, reason, code)
	}
	body := fmt.Sprintf(`{"state":%q%s,"output":{"checksum":"crc32:%08x","bytesize":%d}}`, state, more, crc32.ChecksumIEEE([]byte(log)), len(log))
	_, _, err := r.send("PUT", fmt.Sprintf("/jobs/%d", j.ID), j, asJSON(), strings.NewReader(body), 200)
	return err
}

// environment returns the environment of the scripts of a job. The runner expands
// references in values and writes file variables.
func (j *work) environment(dir string) ([]string, error) {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"}
	for _, v := range j.Variables {
		value := v.Value
		if !v.Raw {
			value = os.Expand(value, func(name string) string {
				if name == "$" {
					return "$"
				}
				return j.value(name)
			})
		}
		if v.File {
			path := filepath.Join(filepath.Dir(dir), filepath.Base(dir)+"-"+v.Key)
			if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
				return nil, err
			}
			value = path
		}
		env = append(env, v.Key+"="+value)
	}
	return env, nil
}

func (j *work) value(key string) string {
	for _, v := range j.Variables {
		if v.Key == key {
			return v.Value
		}
	}
	return ""
}

// upload sends the artifacts of a job that has ended with success or failure.
func (r *runner) upload(j *work, dir string, success bool) error {
	for _, a := range j.Artifacts {
		when := "on_success"
		if a.When != nil {
			when = *a.When
		}
		if when == "on_success" && !success || when == "on_failure" && success {
			continue
		}
		files := map[string][]byte{}
		for _, pattern := range a.Paths {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				return err
			}
			for _, root := range found {
				if err := collect(dir, root, files); err != nil {
					return err
				}
			}
		}
		if len(files) == 0 {
			continue
		}
		name, content, err := packed(a.Format, files)
		if err != nil {
			return err
		}
		q := url.Values{"artifact_type": {a.Type}, "artifact_format": {a.Format}}
		if a.ExpireIn != nil {
			q.Set("expire_in", *a.ExpireIn)
		}
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		w, err := form.CreateFormFile("file", name)
		if err == nil {
			_, err = w.Write(content)
		}
		if err := errors.Join(err, form.Close()); err != nil {
			return err
		}
		_, _, err = r.send("POST", fmt.Sprintf("/jobs/%d/artifacts?%s", j.ID, q.Encode()), j, http.Header{"Content-Type": {form.FormDataContentType()}}, &body, 201)
		if err != nil {
			return err
		}
	}
	return nil
}

// collect reads a file, or all files below a directory.
func collect(dir, root string, into map[string][]byte) error {
	return filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		into[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
}

// packed archives files in the format of an artifact.
func packed(format string, files map[string][]byte) (name string, content []byte, err error) {
	var out bytes.Buffer
	if format == "zip" {
		z := zip.NewWriter(&out)
		for name, text := range files {
			w, err := z.Create(name)
			if err == nil {
				_, err = w.Write(text)
			}
			if err != nil {
				return "", nil, err
			}
		}
		err = z.Close()
		return "artifacts.zip", out.Bytes(), err
	}
	if format != "gzip" {
		return "", nil, fmt.Errorf("unknown format %q", format)
	}
	z := gzip.NewWriter(&out)
	for _, text := range files {
		if _, err := z.Write(text); err != nil {
			return "", nil, err
		}
	}
	err = z.Close()
	return "report.gz", out.Bytes(), err
}

func unzip(dir string, content []byte) error {
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return err
	}
	return os.CopyFS(dir, z)
}

// TestRunnerPacks checks that the runner can unpack what it packs.
func TestRunnerPacks(t *testing.T) {
	t.Parallel()
	_, content, err := packed("zip", map[string][]byte{"a/b.txt": []byte("one")})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := unzip(dir, content); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a", "b.txt")); err != nil || string(text) != "one" {
		t.Errorf("%q, %v", text, err)
	}
}
