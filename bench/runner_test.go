package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"svc/internal/git/gittest"
)

// pipelineFile creates one job for each push.
const pipelineFile = `test:
  script:
    - make
    - make test
`

// pushPipeline pushes a change to the project, which creates a pipeline of one job.
func (s site) pushPipeline(b testing.TB, serial int) {
	b.Helper()
	g := gittest.New(b)
	g.Commit(gittest.Commit{Message: fmt.Sprintf("Change number %d\n", serial), Changes: []gittest.Change{
		{Path: ".gitlab-ci.yml", Content: pipelineFile}, {Path: "serial", Content: fmt.Sprint(serial)},
	}})
	g.Git("push", "-q", "--force", s.remote(), fmt.Sprintf("main:refs/heads/b%d", serial))
}

// runner is a simulated runner. It sends the requests of the public runner on one
// connection and uses as little CPU time as possible, because it shares the
// processors with the measured server.
type runner struct {
	addr   string
	conn   net.Conn
	in     *bufio.Reader
	out    bytes.Buffer
	token  string
	body   []byte
	cursor string // cursor of the last request, which allows the server to hold the next one
}

// newRunner creates an instance runner.
func (s site) newRunner(b testing.TB) *runner {
	b.Helper()
	var made struct{ Token string }
	check(b, s.post("user/runners", `{"runner_type":"instance_type"}`, &made))
	return runnerAt(b, s.addr, made.Token)
}

func runnerAt(b testing.TB, addr, token string) *runner {
	r := &runner{addr: addr, token: token}
	b.Cleanup(func() {
		if r.conn != nil {
			r.conn.Close()
		}
	})
	return r
}

// dial connects to the server. The first request does, because the server closes a
// connection on which none begins within ten seconds.
func (r *runner) dial() (err error) {
	if r.conn, err = net.Dial("tcp", r.addr); err == nil {
		r.in = bufio.NewReader(r.conn)
	}
	return err
}

// job has the fields of a job that a runner needs.
type job struct {
	ID    int64
	Token string
}

// call sends a request and returns the response, which must have one of the
// statuses.
func (r *runner) call(method, path, header string, body []byte, ok ...int) (*answer, error) {
	r.out.Reset()
	fmt.Fprintf(&r.out, "%s /api/v4/%s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n%s\r\n\r\n", method, path, r.addr, len(body), header)
	r.out.Write(body)
	if r.conn == nil {
		if err := r.dial(); err != nil {
			return nil, err
		}
	}
	if _, err := r.conn.Write(r.out.Bytes()); err != nil {
		return nil, err
	}
	res, err := r.answer()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(ok, res.status) {
		return nil, fmt.Errorf("%s %s: %d: %.200s", method, path, res.status, res.body)
	}
	return res, nil
}

// answer has the fields of a response that a runner needs.
type answer struct {
	status int
	cursor string
	body   []byte // valid until the next call
}

// answer reads a response with a Content-Length, as the server sends it.
func (r *runner) answer() (*answer, error) {
	a, size, given := &answer{}, 0, false
	for first := true; ; first = false {
		line, err := r.in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		if first {
			if _, err := fmt.Sscanf(string(line), "HTTP/1.1 %d", &a.status); err != nil {
				return nil, fmt.Errorf("response %q: %w", line, err)
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case "Content-Length":
			if size, err = strconv.Atoi(string(value)); err != nil {
				return nil, err
			}
			given = true
		case "X-Gitlab-Last-Update":
			a.cursor = string(value)
		}
	}
	if !given && a.status != http.StatusNoContent {
		return nil, errors.New("the answer has no length")
	}
	r.body = slices.Grow(r.body[:0], size)[:size]
	_, err := io.ReadFull(r.in, r.body)
	a.body = r.body
	return a, err
}

const jsonType = "Content-Type: application/json"

// request requests a job; it returns nil if there is none.
func (r *runner) request() (*job, error) {
	body := fmt.Sprintf(`{"token":%q,"last_update":%q,"system_id":"s_bench","info":{"name":"bench","version":"17.11.0","platform":"linux",
		"architecture":"amd64","executor":"shell","features":{"two_phase_job_commit":true,"trace_checksum":true,"trace_size":true,
		"upload_multiple_artifacts":true,"refspecs":true,"masking":true,"cancelable":true}}}`, r.token, r.cursor)
	res, err := r.call(http.MethodPost, "jobs/request", jsonType, []byte(body), http.StatusCreated, http.StatusNoContent)
	if err != nil {
		return nil, err
	}
	if res.status == http.StatusNoContent {
		r.cursor = res.cursor
		return nil, nil
	}
	return readJob(res.body)
}

// readJob finds the two fields of the response that are needed. The public runner
// decodes all, but on another machine.
func readJob(text []byte) (*job, error) {
	j := &job{}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() && (j.ID == 0 || j.Token == "") {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var to any = &json.RawMessage{}
		switch key {
		case "id":
			to = &j.ID
		case "token":
			to = &j.Token
		}
		if err := d.Decode(to); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// state returns the status of a job, for the end with the checksum of its log.
func (r *runner) state(j *job, state string, log []byte) error {
	body := fmt.Sprintf(`{"token":%q,"state":%q,"output":{"checksum":"crc32:%08x","bytesize":%d}}`, j.Token, state, crc32.ChecksumIEEE(log), len(log))
	_, err := r.call(http.MethodPut, fmt.Sprintf("jobs/%d", j.ID), jsonType, []byte(body), http.StatusOK)
	return err
}

// trace sends a part of the log.
func (r *runner) trace(j *job, at int, part []byte) error {
	header := fmt.Sprintf("Job-Token: %s\r\nContent-Type: text/plain\r\nContent-Range: %d-%d", j.Token, at, at+len(part)-1)
	_, err := r.call(http.MethodPatch, fmt.Sprintf("jobs/%d/trace", j.ID), header, part, http.StatusAccepted)
	return err
}

const (
	tracePatches = 4
	tracePatch   = 16 << 10
)

// run sends the measured requests of a job.
func (r *runner) run(j *job, log []byte) error {
	if err := r.state(j, "running", nil); err != nil {
		return err
	}
	for i := range tracePatches {
		if err := r.trace(j, i*tracePatch, log[i*tracePatch:(i+1)*tracePatch]); err != nil {
			return err
		}
	}
	return r.state(j, "success", log)
}

// await requests jobs until there is one.
func (r *runner) await() (*job, error) {
	for range 100 {
		if j, err := r.request(); j != nil || err != nil {
			return j, err
		}
	}
	return nil, errors.New("no job came")
}

// sampleLog returns a typical log of a job.
func sampleLog(size int) []byte {
	var b bytes.Buffer
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "2026-11-15T08:%02d:%02d.%06dZ 00O compiled package %d of %d in %d ms\n", n/60%60, n%60, n*7919%1000000, n, n*31%977, n*104729%5003)
	}
	return b.Bytes()[:size]
}

// TestRunner checks that the simulated runner can run a job.
func TestRunner(t *testing.T) {
	t.Parallel()
	s := newSite(t, serve(t, "").Addr())
	r := s.newRunner(t)
	if j, err := r.request(); j != nil || err != nil || r.cursor == "" {
		t.Fatalf("%v, %v, %q", j, err, r.cursor)
	}
	s.pushPipeline(t, 1)
	j, err := r.await()
	check(t, err)
	log := sampleLog(tracePatches * tracePatch)
	check(t, r.run(j, log))
	var kept bytes.Buffer
	if _, err := get(s.client, s.address(fmt.Sprintf("jobs/%d/trace", j.ID)), rootToken, &kept); err != nil || !bytes.Equal(kept.Bytes(), log) {
		t.Errorf("a log of %d bytes: %v", kept.Len(), err)
	}
	var text bytes.Buffer
	if _, err := get(s.client, s.address("jobs"), rootToken, &text); err != nil || !strings.Contains(text.String(), `"status":"success"`) {
		t.Errorf("%v: %s", err, text.String())
	}
	if err := r.state(j, "failed", nil); err == nil {
		t.Error("a job was changed after its end")
	}
}
