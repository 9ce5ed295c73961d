package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"svc/internal/errs"
	"svc/internal/outbound"
)

// maxFileURL is the maximum length of the URL of a file. Presigned URLs are long.
const maxFileURL = 8000

// ParseFileURL checks the URL of a file, which may have a query and credentials. Invalid,
// with a text that can follow the name of the field.
func ParseFileURL(text string) (*url.URL, error) {
	if len(text) > maxFileURL || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, errs.Invalid("is too long or contains white space or control characters")
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" {
		return nil, errs.Invalid("must be a URL that starts with http:// or https://")
	}
	return u, nil
}

// Transfer limits the time of the transfer of one file to or from a server of a user.
// It is not safe for concurrent use; Close ends it.
type Transfer struct {
	transport *http.Transport
	client    *http.Client
	stall     time.Duration
	cancel    context.CancelCauseFunc
	silence   *time.Timer // runs while the server is waited for
	deadline  *time.Timer
}

// minRate is the speed at which a file has to be transferred at least, in bytes per
// second, after the time that is always given.
const minRate = 256 << 10

var (
	errSilent = errors.New("the server sends no data")
	errSlow   = errors.New("the transfer takes too long")
)

// NewTransfer returns a Transfer and its context. stall is how long the server may send
// nothing; 0 means a minute.
func NewTransfer(ctx context.Context, p outbound.Policy, stall time.Duration) (context.Context, *Transfer) {
	if stall == 0 {
		stall = time.Minute
	}
	ctx, cancel := context.WithCancelCause(ctx)
	t := &Transfer{transport: p.Transport(15 * time.Second), stall: stall, cancel: cancel}
	t.transport.DisableKeepAlives, t.transport.DisableCompression = true, true
	t.client = &http.Client{Transport: t.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.silence = time.AfterFunc(stall, func() { cancel(errSilent) })
	t.deadline = time.AfterFunc(10*stall, func() { cancel(errSlow) })
	return ctx, t
}

// Close ends the transfer.
func (t *Transfer) Close() {
	t.silence.Stop()
	t.deadline.Stop()
	t.cancel(nil)
	t.transport.CloseIdleConnections()
}

// Client returns the client for the requests of the transfer. It follows no redirects.
func (t *Transfer) Client() *http.Client { return t.client }

// allow extends the time of the transfer for a file of a size.
func (t *Transfer) allow(size int64) {
	t.deadline.Reset(10*t.stall + time.Duration(size/minRate)*time.Second)
}

// Body returns a reader of the answer's body, which has a size.
func (t *Transfer) Body(r io.Reader, size int64) io.Reader {
	t.silence.Stop()
	t.allow(size)
	return &pacedBody{t, r}
}

// pacedBody ends the transfer if a Read takes too long. The time between calls is that
// of the caller.
type pacedBody struct {
	t    *Transfer
	from io.Reader
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	b.t.silence.Reset(b.t.stall)
	n, err := b.from.Read(p)
	b.t.silence.Stop()
	return n, err
}

// Failure converts an error of the transfer with the context ctx, which is part of
// outer: the end of outer and errors with a kind are returned unchanged.
func (t *Transfer) Failure(outer, ctx context.Context, err error) error {
	if outer.Err() != nil {
		return context.Cause(outer)
	}
	switch context.Cause(ctx) {
	case errSilent:
		return &Failure{Text: "The server did not respond, or stopped sending data.", Temporary: true, cause: err}
	case errSlow:
		return &Failure{Text: "The transfer of the file took too long.", Temporary: true, cause: err}
	}
	if _, ok := errors.AsType[*Failure](err); ok {
		return err
	}
	if e, ok := errs.As(err); ok {
		return &Failure{Text: e.Text, Temporary: e.Kind == errs.KindUnavailable, cause: err}
	}
	if errors.Is(err, outbound.ErrLocal) {
		return &Failure{Text: "The URL leads to an address of the local network, which is not allowed.", cause: err}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &Failure{Text: "The server closed the connection before the file was complete.", Temporary: true, cause: err}
	}
	plain := outbound.Plain(err)
	return &Failure{Text: "The server cannot be reached: " + plain.Error() + ".", Temporary: true, cause: plain}
}

// fileTypes are the types of export files. The first one is that of the public API.
var fileTypes = []string{"application/gzip", "application/x-gzip", "application/x-tar"}

// Get requests the file at a URL and returns its body and its size. The caller closes
// the body. A server that redirects, or does not send the size and the type of an export
// file, is a permanent Failure.
//
// See https://docs.gitlab.com/api/project_import_export/#import-a-file-from-a-remote-object-storage.
func (t *Transfer) Get(ctx context.Context, address string) (io.ReadCloser, int64, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, fail("The URL of the file is not valid.")
	}
	q.Header.Set("User-Agent", "svc-import")
	answer, err := t.client.Do(q)
	if err != nil {
		return nil, 0, err
	}
	err = statusFailure(answer.StatusCode)
	if err == nil {
		kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
		switch {
		case !slices.Contains(fileTypes, kind):
			err = fail("The server sends the file with the Content-Type %.100q. It must be application/gzip.", answer.Header.Get("Content-Type"))
		case answer.ContentLength < 0:
			err = fail("The server does not send the size of the file: the Content-Length is missing.")
		}
	}
	if err != nil {
		answer.Body.Close()
		return nil, 0, err
	}
	return answer.Body, answer.ContentLength, nil
}

// Send sends a file to a URL. A server that redirects or refuses is a permanent Failure.
func (t *Transfer) Send(ctx context.Context, method, address string, size int64, file io.Reader) error {
	t.silence.Stop() // the server answers when it has the file
	t.allow(size)
	q, err := http.NewRequestWithContext(ctx, method, address, io.NopCloser(file))
	if err != nil {
		return fail("The URL of the upload is not valid.")
	}
	q.ContentLength = size
	q.Header.Set("Content-Type", fileTypes[0])
	q.Header.Set("User-Agent", "svc-export")
	answer, err := t.client.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return statusFailure(answer.StatusCode)
}

// statusFailure returns nil for the status of a success.
func statusFailure(code int) error {
	switch {
	case code >= 200 && code < 300:
		return nil
	case code >= 300 && code < 400:
		return &Failure{Text: fmt.Sprintf("The server redirects to another address (HTTP %d). Redirects are not followed: use the final URL.", code), Status: code}
	}
	temporary := code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
	return &Failure{Text: fmt.Sprintf("The server answered with HTTP %d.", code), Status: code, Temporary: temporary}
}
