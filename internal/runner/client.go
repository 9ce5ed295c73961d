package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// client is an HTTP client for the runner API. Calls return the status of the
// response, and an error if there was no response.
type client struct {
	base   string // with /api/v4
	token  string // of the runner
	system string
	info   map[string]any
	http   *http.Client
	cursor string // cursor of the last long poll
	now    func() time.Time
	pace   Pace
}

func newClient(d Deps, system, shell string) (*client, error) {
	u, err := url.Parse(d.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not the address of a server", d.URL)
	}
	c := &client{
		base: strings.TrimSuffix(d.URL, "/") + "/api/v4", token: d.Token, system: system, now: d.Now, pace: d.Pace,
		info: map[string]any{
			"name": "svc-runner", "version": d.Version.Version, "revision": d.Version.Revision,
			"platform": runtime.GOOS, "architecture": runtime.GOARCH, "executor": "shell", "shell": shell,
			"features": supported(),
		},
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = 10 * time.Minute // a request for a job may be held
	c.http = &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Host != via[0].URL.Host { // object storage must not get the token
			r.Header.Del("Job-Token")
		}
		if len(via) > 5 {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return c, nil
}

// supported returns the features of this runner.
func supported() map[string]bool {
	return map[string]bool{
		"variables": true, "raw_variables": true, "artifacts": true, "artifacts_exclude": true, "upload_multiple_artifacts": true,
		"upload_raw_artifacts": true, "cache": true, "fallback_cache_keys": true, "refspecs": true, "masking": true,
		"trace_reset": true, "trace_checksum": true, "trace_size": true, "multi_build_steps": true, "return_exit_code": true,
		"two_phase_job_commit": true, "cancelable": true, "cancel_gracefully": true,
	}
}

// reply is the status of a response with its headers about the job.
type reply struct {
	status   int
	state    string        // of the job
	interval time.Duration // requested interval for log updates; 0 if not given
	size     int64         // size of the log on the server; -1 if not given
}

// parseReply returns the status of a response and its headers about a job.
func parseReply(res *http.Response) reply {
	s := reply{status: res.StatusCode, state: res.Header.Get("Job-Status"), size: -1}
	if n, err := strconv.Atoi(res.Header.Get("X-GitLab-Trace-Update-Interval")); err == nil && n > 0 {
		s.interval = min(time.Duration(n)*time.Second, 15*time.Minute)
	}
	if _, end, ok := strings.Cut(res.Header.Get("Range"), "-"); ok {
		if n, err := strconv.ParseInt(end, 10, 64); err == nil && n >= 0 {
			s.size = n
		}
	}
	return s
}

// send sends a request with a JSON body. If out is not nil and the call succeeded,
// the response body is decoded into it.
func (c *client) send(ctx context.Context, method, path string, token [2]string, body, out any) (*http.Response, error) {
	r, err := c.newRequest(ctx, method, path, token, body)
	if err != nil {
		return nil, err
	}
	return c.do(r, out)
}

// newRequest returns a request with a JSON body.
func (c *client) newRequest(ctx context.Context, method, path string, token [2]string, body any) (*http.Request, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(token[0], token[1])
	return r, nil
}

func (c *client) do(r *http.Request, out any) (*http.Response, error) {
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "svc-runner")
	r.Header.Set("X-Request-Id", random(16))
	res, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if out != nil && res.StatusCode/100 == 2 && res.StatusCode != http.StatusNoContent {
		if err := json.NewDecoder(res.Body).Decode(out); err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // so that the connection can be used again
	return res, nil
}

func (c *client) runnerToken() [2]string { return [2]string{"Runner-Token", c.token} }

func jobToken(token string) [2]string { return [2]string{"Job-Token", token} }

func (c *client) contact() map[string]any {
	return map[string]any{"token": c.token, "system_id": c.system, "info": c.info}
}

// sendRate is the minimum expected upload rate of the body of a bounded call, in
// bytes per second.
const sendRate = 64 << 10

// bounded limits the time of a call with a body: a frozen server or a dead
// connection must not block the runner. The next call may reach another node.
func (c *client) bounded(ctx context.Context, body int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.pace.Call+time.Duration(body)*time.Second/sendRate)
}

// verify checks whether the token is valid.
func (c *client) verify(ctx context.Context) (int, error) {
	ctx, cancel := c.bounded(ctx, 0)
	defer cancel()
	res, err := c.send(ctx, http.MethodPost, "/runners/verify", c.runnerToken(), c.contact(), nil)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, nil
}

// request requests a job. If there is none, again reports whether the server
// supports long polling, so that the next request can be sent immediately.
func (c *client) request(ctx context.Context) (j *assignment, again bool, err error) {
	body := c.contact()
	if c.cursor != "" {
		body["last_update"] = c.cursor
	}
	ctx, cancel := context.WithTimeout(ctx, c.pace.Hold+c.pace.Call)
	defer cancel()
	j = &assignment{}
	start := c.now()
	r, err := c.newRequest(ctx, http.MethodPost, "/jobs/request", c.runnerToken(), body)
	if err != nil {
		return nil, false, err
	}
	r.Header.Set("Prefer", fmt.Sprintf("wait=%d", int(c.pace.Hold/time.Second)))
	res, err := c.do(r, j)
	if err != nil {
		return nil, false, err
	}
	switch res.StatusCode {
	case http.StatusCreated:
		if j.ID == 0 || j.Token == "" {
			return nil, false, fmt.Errorf("the server gave a job without an id or token")
		}
		return j, false, nil
	case http.StatusNoContent:
		first := c.cursor == ""
		c.cursor = res.Header.Get("X-GitLab-Last-Update")
		// A server that responds immediately to a request with a cursor does not support
		// long polling.
		return nil, c.cursor != "" && (first || c.now().Sub(start) > time.Second), nil
	}
	return nil, false, fmt.Errorf("status %d", res.StatusCode)
}

// update is the state of a job for the server.
type update struct {
	Token    string  `json:"token"`
	State    string  `json:"state"`
	Reason   string  `json:"failure_reason,omitempty"`
	ExitCode *int    `json:"exit_code,omitempty"`
	Output   *output `json:"output,omitempty"`
}

type output struct {
	Checksum string `json:"checksum"`
	Bytesize int64  `json:"bytesize"`
}

// update sends the state of a job to the server.
func (c *client) update(ctx context.Context, jobID int64, u update) (reply, error) {
	ctx, cancel := c.bounded(ctx, 0)
	defer cancel()
	res, err := c.send(ctx, http.MethodPut, fmt.Sprintf("/jobs/%d", jobID), jobToken(u.Token), u, nil)
	if err != nil {
		return reply{}, err
	}
	return parseReply(res), nil
}

// patch sends a part of a job log.
func (c *client) patch(ctx context.Context, jobID int64, token string, at int64, text []byte, debug bool) (reply, error) {
	ctx, cancel := c.bounded(ctx, len(text))
	defer cancel()
	address := fmt.Sprintf("%s/jobs/%d/trace?debug_trace=%t", c.base, jobID, debug)
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, address, bytes.NewReader(text))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Content-Type", "text/plain")
	r.Header.Set("Content-Range", fmt.Sprintf("%d-%d", at, at+int64(len(text))-1))
	r.Header.Set("Job-Token", token)
	res, err := c.do(r, nil)
	if err != nil {
		return reply{}, err
	}
	return parseReply(res), nil
}

// upload uploads a file of a job as an artifact.
func (c *client) upload(ctx context.Context, jobID int64, token string, a artifact, path, name string) (int, error) {
	body, kind, err := newForm(path, name)
	if err != nil {
		return 0, err
	}
	query := url.Values{"artifact_type": {a.Type}, "artifact_format": {a.Format}}
	if a.ExpireIn != "" {
		query.Set("expire_in", a.ExpireIn)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/jobs/%d/artifacts?%s", c.base, jobID, query.Encode()), nil)
	if err != nil {
		return 0, err
	}
	r.GetBody = body.open
	if r.Body, err = body.open(); err != nil {
		return 0, err
	}
	r.ContentLength = body.size
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Job-Token", token)
	res, err := c.do(r, nil)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, nil
}

// download writes the artifacts of a job to a file.
func (c *client) download(ctx context.Context, d dependency, to *os.File) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/jobs/%d/artifacts", c.base, d.ID), nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Job-Token", d.Token)
	r.Header.Set("User-Agent", "svc-runner")
	res, err := c.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return res.StatusCode, nil
	}
	if _, err := io.Copy(to, res.Body); err != nil {
		return 0, err
	}
	return res.StatusCode, nil
}
