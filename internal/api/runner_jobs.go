package api

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"svc/internal/bind"
	"svc/internal/ci"
	"svc/internal/ci/artifact"
	"svc/internal/errs"
)

func (a *API) runnerJobRoutes() {
	a.tag("Runner jobs")
	handle(a, "POST /jobs/request", runnerCall, a.requestJob, returns(assignmentJSON{}), response(http.StatusNoContent, "No job is available.", nil),
		response(http.StatusUnprocessableEntity, "The runner is not supported.", messageJSON{}), summary("Request a job"))
	handle(a, "PUT /jobs/{id}", runnerCall, a.updateRunnerJob,
		response(http.StatusPreconditionFailed, "The checksum of the log does not match. The runner sends it again.", messageJSON{}),
		summary("Update a job"))
	handle(a, "PATCH /jobs/{id}/trace", runnerCall, a.appendTrace, raw, status(http.StatusAccepted),
		response(http.StatusRequestedRangeNotSatisfiable, "The log has a different size. The Range header contains it.", streamed{}),
		summary("Append to a job log"))
	handle(a, "POST /jobs/{id}/artifacts", runnerCall, a.uploadArtifact, raw, summary("Upload job artifacts"))
	handle(a, "GET /jobs/{id}/artifacts", runnerCall, a.downloadForJob, badRange, summary("Download artifacts for a job"))
}

type requestJobParams struct {
	contactParams
	LastUpdate string `param:"last_update" doc:"Value of the X-GitLab-Last-Update header of the previous response. It enables long polling."`
}

// requestJob assigns a pending job to a runner. If none is pending, the request may
// be held as a long poll, and the response is 204:
// https://docs.gitlab.com/runner/configuration/advanced-configuration/#long-polling
func (a *API) requestJob(c *call, p requestJobParams) (any, error) {
	found, cursor, err := a.CI.RequestJob(c, ci.JobRequest{Contact: p.contact(c), Cursor: p.LastUpdate, Wait: preferredWait(c.r.Header)})
	if err != nil {
		return nil, err
	}
	if found == nil {
		c.w.Header().Set("X-GitLab-Last-Update", cursor)
		if p.LastUpdate != "" {
			c.w.Header().Set("Gitlab-Ci-Builds-Polling", "yes")
		}
		return none{}, nil
	}
	return toAssignment(c, found, a.Now()), nil
}

// preferredWait returns the time that a client prefers to wait for a response
// (RFC 7240, section 4.3), or 0 if the header has none.
func preferredWait(h http.Header) time.Duration {
	for _, list := range h.Values("Prefer") {
		for preference := range strings.SplitSeq(list, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(preference), "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 16); err == nil {
				return time.Duration(n) * time.Second
			}
		}
	}
	return 0
}

type runnerJobParams struct {
	ID    int64  `param:"id"`
	Token string `param:"token" secret:"true" doc:"Token of the job."`
}

// token returns the job token, which may be in a header.
func (p *runnerJobParams) token(c *call) string {
	if token := c.r.Header.Get("Job-Token"); token != "" {
		return token
	}
	return p.Token
}

// jobHeaders writes the headers with the job status for the runner.
func jobHeaders(c *call, h *ci.JobReply) {
	if h == nil {
		return
	}
	c.w.Header().Set("Job-Status", h.Status)
	c.w.Header().Set("X-GitLab-Trace-Update-Interval", strconv.Itoa(int(h.Interval/time.Second)))
}

type updateJobParams struct {
	runnerJobParams
	State         string          `param:"state" enum:"running,success,failed,pending"`
	FailureReason string          `param:"failure_reason"`
	ExitCode      *int64          `param:"exit_code"`
	Checksum      string          `param:"checksum" doc:"Deprecated: use output."`
	Output        *jobOutputParam `param:"output"`
	Trace         *string         `param:"trace" doc:"No longer used."`
}

type jobOutputParam struct {
	Checksum string `param:"checksum" doc:"Checksum of the whole log, as crc32:<hex>."`
	Bytesize int64  `param:"bytesize"`
}

// updateRunnerJob updates the status of a job.
func (a *API) updateRunnerJob(c *call, p updateJobParams) (streamed, error) {
	u := ci.JobUpdate{State: p.State, Reason: p.FailureReason, ExitCode: p.ExitCode, Checksum: p.Checksum}
	if p.Output != nil {
		u.Checksum, u.Size = p.Output.Checksum, p.Output.Bytesize
	}
	heard, err := a.CI.UpdateJob(c, p.ID, p.token(c), u)
	jobHeaders(c, heard)
	if err != nil {
		return streamed{}, err
	}
	if heard.Mismatch {
		a.writeJSON(c.w, c.r, http.StatusPreconditionFailed, messageJSON{"412 Precondition Failed"})
		return streamed{}, nil
	}
	return plainStatus(c, http.StatusOK)
}

// plainStatus writes a status with its number as the body.
func plainStatus(c *call, code int) (streamed, error) {
	c.w.Header()["Content-Type"] = jsonHeader // the runner expects it
	c.w.Header()["Cache-Control"] = noCache
	c.w.WriteHeader(code)
	_, _ = io.WriteString(c.w, strconv.Itoa(code)) // the client may have disconnected
	return streamed{}, nil
}

type appendTraceParams struct {
	runnerJobParams
	DebugTrace bool `param:"debug_trace" doc:"Whether the log has debug output with variable values. Reading it requires the Developer role."`
}

// pieceKept is the largest buffer that is reused, in bytes.
const pieceKept = 128 << 10

// appendTrace appends a chunk to a job log.
func (a *API) appendTrace(c *call, p appendTraceParams) (streamed, error) {
	at, noRange := rangeStart(c.r.Header.Get("Content-Range"))
	buf := a.pieces.Get().(*bytes.Buffer)
	defer func() { // unusually large buffers are not reused
		if buf.Reset(); buf.Cap() <= pieceKept {
			a.pieces.Put(buf)
		}
	}()
	if _, err := buf.ReadFrom(http.MaxBytesReader(c.w, c.r.Body, ci.MaxPatch)); err != nil {
		return streamed{}, bind.BodyError(err)
	}
	text := buf.Bytes()
	heard, err := a.CI.AppendLog(c, p.ID, p.token(c), ci.LogPatch{At: at, Text: text, Debug: p.DebugTrace})
	jobHeaders(c, heard)
	switch {
	case errs.Is(err, errs.KindInvalid) && noRange != nil:
		return streamed{}, noRange // a wrong token is reported first
	case err != nil:
		return streamed{}, err
	}
	c.w.Header().Set("Range", "0-"+strconv.FormatInt(heard.Size, 10))
	if heard.Gap {
		return plainStatus(c, http.StatusRequestedRangeNotSatisfiable)
	}
	return plainStatus(c, http.StatusAccepted)
}

// rangeStart returns the start of a range: "0-99", optionally with the total size.
func rangeStart(header string) (int64, error) {
	if header == "" {
		return -1, &bind.InputError{Fault: bind.FaultMalformed, Text: "400 Missing header Content-Range"}
	}
	header = strings.TrimSpace(strings.TrimPrefix(header, "bytes "))
	first, _, ok := strings.Cut(header, "-")
	at, err := strconv.ParseInt(first, 10, 64)
	if !ok || err != nil || at < 0 {
		return -1, &bind.InputError{Fault: bind.FaultMalformed, Text: "400 Invalid header Content-Range"}
	}
	return at, nil
}

type uploadArtifactParams struct {
	runnerJobParams
	Type     string `param:"artifact_type" default:"archive"`
	Format   string `param:"artifact_format" enum:"zip,gzip,raw"`
	ExpireIn string `param:"expire_in"`
}

// uploadArtifact stores an artifact file of a job while it is received.
func (a *API) uploadArtifact(c *call, p uploadArtifactParams) (streamed, error) {
	u := artifact.Upload{Kind: artifact.Kind(p.Type), Format: artifact.Format(p.Format), ExpireIn: p.ExpireIn}
	part, noFile := uploadedFile(c)
	if noFile == nil {
		u.Content, u.Filename = part, bind.CleanName(part.FileName())
	}
	_, job, err := a.CI.AddArtifact(c, p.ID, p.token(c), u)
	if noFile != nil && errs.Is(err, errs.KindInvalid) {
		return streamed{}, noFile // a wrong token is reported first
	}
	if job != nil {
		c.w.Header().Set("Job-Status", string(job.Status))
	}
	if err != nil {
		if c.Err() == nil && errs.KindOf(err) == 0 && errors.Is(err, io.ErrUnexpectedEOF) {
			err = &bind.InputError{Fault: bind.FaultIncomplete, Text: "the body is incomplete", Cause: err}
		}
		return streamed{}, err
	}
	return plainStatus(c, http.StatusCreated)
}

// uploadedFile returns the file of a multipart body without reading it.
func uploadedFile(c *call) (*multipart.Part, error) {
	media, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return nil, &bind.InputError{Fault: bind.FaultMalformed, Text: "file is missing"}
	}
	parts := multipart.NewReader(c.r.Body, params["boundary"])
	for range bind.MaxFiles {
		part, err := parts.NextPart()
		if err != nil {
			return nil, &bind.InputError{Fault: bind.FaultMalformed, Text: "file is missing", Cause: err}
		}
		if part.FormName() == "file" {
			return part, nil
		}
	}
	return nil, &bind.InputError{Fault: bind.FaultMalformed, Text: "file is missing"}
}

type downloadForJobParams struct {
	runnerJobParams
	DirectDownload *bool `param:"direct_download" doc:"No effect: the content is always sent in the response."`
}

// downloadForJob sends the artifacts of a dependency to a job.
func (a *API) downloadForJob(c *call, p downloadForJobParams) (streamed, error) {
	f, err := a.CI.JobArchive(c, p.ID, p.token(c), c.actor.IP)
	if err != nil {
		return streamed{}, err
	}
	return a.sendFile(c, f)
}
