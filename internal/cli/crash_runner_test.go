package cli_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/waittest"
)

// fleet is a group of runners that keep running when the server is killed, like the
// public runner, and that record what the server has acknowledged.
type fleet struct {
	address atomic.Pointer[string] // of the running server
	token   string
	answers atomic.Int64
	losing  atomic.Bool // lose some responses that assign a job

	mu     sync.Mutex
	runs   map[int64]*jobRun
	first  map[int64]int64 // first run of the job "flaky", by pipeline
	faults []string
	resent int // log chunks that were stored although the response was lost
}

// jobRun is what the server has acknowledged about a job.
type jobRun struct {
	project  int64
	pipeline int64
	name     string
	state    string // last acknowledged state: "", running, success or failed
	log      string
}

// lease is a job as returned to a runner.
type lease struct {
	ID      int64
	Token   string
	JobInfo struct {
		Name       string
		ProjectID  int64 `json:"project_id"`
		PipelineID int64 `json:"pipeline_id"`
	} `json:"job_info"`
	Variables    []struct{ Key, Value string }
	Dependencies []struct {
		ID    int64
		Token string
	}
}

var errLeft = errors.New("the job is not the runner's any more")

// lives sets the address of the running server.
func (f *fleet) lives(address string) { f.address.Store(&address) }

func (f *fleet) fault(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// send sends a request until a running server responds. Some responses are lost, and
// the request is sent again.
func (f *fleet) send(ctx context.Context, method, path, token, kind, span string, body []byte) (*http.Response, []byte, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if res, text, err := f.once(ctx, method, path, token, kind, span, body); err == nil && res.StatusCode < 500 {
			if f.answers.Add(1)%23 != 0 {
				return res, text, nil
			}
			continue
		}
		waittest.Pause()
	}
}

func (f *fleet) once(ctx context.Context, method, path, token, kind, span string, body []byte) (*http.Response, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, *f.address.Load()+"/api/v4"+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("JOB-TOKEN", token)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if span != "" {
		r.Header.Set("Content-Range", span)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res, text, err
}

// work requests jobs and runs them until the test ends.
func (f *fleet) work(ctx context.Context, number int) {
	request := fmt.Appendf(nil, `{"token":%q,"system_id":"s_%d","info":{"features":{"two_phase_job_commit":true,"trace_checksum":true}}}`, f.token, number)
	for ctx.Err() == nil {
		// If the connection breaks, the runner does not know whether it got a job.
		// The server must assign that job again.
		res, text, err := f.once(ctx, "POST", "/jobs/request", "", "application/json", "", request)
		if err != nil || res.StatusCode != http.StatusCreated {
			if err == nil && res.StatusCode != http.StatusNoContent && res.StatusCode < 500 {
				f.fault("request: %d %s", res.StatusCode, text)
			}
			waittest.Pause()
			continue
		}
		if f.answers.Add(1)%19 == 0 && f.losing.Load() {
			continue
		}
		var l lease
		if err := json.Unmarshal(text, &l); err != nil {
			f.fault("request: %v", err)
			continue
		}
		if err := f.finish(ctx, &l); err != nil && !errors.Is(err, errLeft) && ctx.Err() == nil {
			f.fault("job %d %s: %v", l.ID, l.JobInfo.Name, err)
		}
	}
}

// finish runs a job, also after ctx has ended: the server may have recorded the last
// update, while its answer is still on the way. A server that is gone answers no more.
func (f *fleet) finish(ctx context.Context, l *lease) error {
	on, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(time.Minute, cancel) })()
	return f.run(on, l)
}

// run runs a job.
func (f *fleet) run(ctx context.Context, l *lease) error {
	run := f.given(l)
	if err := f.update(ctx, l, `{"state":"running"}`); err != nil {
		return err
	}
	f.reached(l, run, "running")
	for _, d := range l.Dependencies {
		if err := f.download(ctx, d.ID, d.Token); err != nil {
			return err
		}
	}
	half := len(run.log) / 2
	if err := f.append(ctx, l, run.log, 0, half); err != nil {
		return err
	}
	if run.name == "compile" {
		if err := f.upload(ctx, l); err != nil {
			return err
		}
	}
	if err := f.append(ctx, l, run.log, half, len(run.log)); err != nil {
		return err
	}
	state, more := "success", ""
	if f.fails(l) {
		state, more = "failed", `,"failure_reason":"script_failure","exit_code":3`
	}
	end := fmt.Sprintf(`{"state":%q%s,"output":{"checksum":"crc32:%08x","bytesize":%d}}`, state, more, crc32.ChecksumIEEE([]byte(run.log)), len(run.log))
	if err := f.update(ctx, l, end); err != nil {
		return err
	}
	f.reached(l, run, state)
	return nil
}

// given records that a runner has a job. No other runner may have started it.
func (f *fleet) given(l *lease) *jobRun {
	f.mu.Lock()
	defer f.mu.Unlock()
	run := f.runs[l.ID]
	if run == nil {
		run = &jobRun{project: l.JobInfo.ProjectID, pipeline: l.JobInfo.PipelineID, name: l.JobInfo.Name, log: logOf(l.ID)}
		f.runs[l.ID] = run
	}
	if run.state != "" {
		f.faults = append(f.faults, fmt.Sprintf("job %d %s was given out again after it was %s", l.ID, run.name, run.state))
	}
	if _, ok := f.first[run.pipeline]; !ok && run.name == "flaky" {
		f.first[run.pipeline] = l.ID
	}
	return run
}

func (f *fleet) reached(l *lease, run *jobRun, state string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before := map[string]string{"running": "", "success": "running", "failed": "running"}[state]; run.state != before {
		f.faults = append(f.faults, fmt.Sprintf("job %d %s became %s after it was %s", l.ID, run.name, state, run.state))
	}
	run.state = state
}

// fails reports whether a job must fail.
func (f *fleet) fails(l *lease) bool {
	switch l.JobInfo.Name {
	case "warn":
		return true
	case "flaky":
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.first[l.JobInfo.PipelineID] == l.ID
	case "unit":
		for _, v := range l.Variables {
			if v.Key == "FATE" && v.Value == "bad" || v.Key == "CI_COMMIT_BRANCH" && strings.HasSuffix(v.Value, "-bad") {
				return true
			}
		}
	}
	return false
}

// logOf returns the log of a job, which depends only on its ID.
func logOf(id int64) string {
	random := rand.New(rand.NewPCG(uint64(id), 1))
	var b strings.Builder
	for line := range 20 + random.IntN(180) {
		fmt.Fprintf(&b, "job %d line %d %x\n", id, line, random.Uint64())
	}
	return b.String()
}

// update sets the state of a job on the server.
func (f *fleet) update(ctx context.Context, l *lease, body string) error {
	res, text, err := f.send(ctx, "PUT", fmt.Sprintf("/jobs/%d", l.ID), l.Token, "application/json", "", []byte(body))
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusOK:
		return nil
	case res.StatusCode == http.StatusForbidden && strings.Contains(body, `"running"`):
		return errLeft // the job was started too late, so the server has requeued it
	}
	return fmt.Errorf("update %s: %d %s", body, res.StatusCode, text)
}

// append sends the log up to an offset. Once the server has acknowledged a part of
// the log, it must keep it.
func (f *fleet) append(ctx context.Context, l *lease, log string, at, to int) error {
	known := at
	for at < to {
		piece := log[at:min(to, at+2000)]
		span := fmt.Sprintf("%d-%d", at, at+len(piece)-1)
		res, text, err := f.send(ctx, "PATCH", fmt.Sprintf("/jobs/%d/trace", l.ID), l.Token, "text/plain", span, []byte(piece))
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusAccepted && res.StatusCode != http.StatusRequestedRangeNotSatisfiable {
			return fmt.Errorf("append %s: %d %s", span, res.StatusCode, text)
		}
		_, size, _ := strings.Cut(res.Header.Get("Range"), "-")
		has, err := strconv.Atoi(size)
		switch {
		case err != nil:
			return fmt.Errorf("append %s: range %q", span, res.Header.Get("Range"))
		case has < known || has > at+len(piece):
			return fmt.Errorf("append %s: the server has %d bytes, and had %d", span, has, known)
		case res.StatusCode == http.StatusAccepted && has != at+len(piece):
			return fmt.Errorf("append %s: the server has acknowledged %d bytes", span, has)
		case res.StatusCode == http.StatusRequestedRangeNotSatisfiable:
			f.mu.Lock()
			f.resent++
			f.mu.Unlock()
		}
		at, known = has, has
	}
	return nil
}

// upload sends the artifacts of a job.
func (f *fleet) upload(ctx context.Context, l *lease) error {
	var packed, body bytes.Buffer
	z := zip.NewWriter(&packed)
	w, err := z.Create("out.txt")
	if err == nil {
		_, err = io.WriteString(w, artifactOf(l.ID))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		return err
	}
	form := multipart.NewWriter(&body)
	w, err = form.CreateFormFile("file", "artifacts.zip")
	if err == nil {
		_, err = w.Write(packed.Bytes())
	}
	if err := errors.Join(err, form.Close()); err != nil {
		return err
	}
	path := fmt.Sprintf("/jobs/%d/artifacts?artifact_type=archive&artifact_format=zip", l.ID)
	res, text, err := f.send(ctx, "POST", path, l.Token, form.FormDataContentType(), "", body.Bytes())
	if err != nil || res.StatusCode == http.StatusCreated {
		return err
	}
	return fmt.Errorf("upload: %d %s", res.StatusCode, text)
}

func artifactOf(id int64) string { return fmt.Sprintf("made by job %d", id) }

// download reads the artifacts of the dependencies of a job.
func (f *fleet) download(ctx context.Context, id int64, token string) error {
	res, text, err := f.send(ctx, "GET", fmt.Sprintf("/jobs/%d/artifacts", id), token, "", "", nil)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("artifacts of job %d: %d %s", id, res.StatusCode, text)
	}
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return fmt.Errorf("artifacts of job %d: %w", id, err)
	}
	in, err := z.Open("out.txt")
	if err != nil {
		return err
	}
	defer in.Close()
	if got, err := io.ReadAll(in); err != nil || string(got) != artifactOf(id) {
		return fmt.Errorf("artifacts of job %d contain %q: %w", id, got, err)
	}
	return nil
}
