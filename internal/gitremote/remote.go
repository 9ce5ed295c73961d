// Package gitremote fetches from and pushes to Git repositories on other servers:
// refs, packs and LFS objects. It is a client of the smart HTTP protocol and of the
// protocols over SSH and TCP (gitprotocol-http(5), gitprotocol-v2(5),
// gitprotocol-pack(5)) that runs in this process, so that the rules of package
// outbound apply to each connection, and credentials are not in arguments,
// environments or files of other processes.
package gitremote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"svc/internal/outbound"
)

const (
	maxRedirects = 3
	connectTime  = 15 * time.Second
	// headerTime is the time limit for the first byte of a response: servers count
	// objects before they send it.
	headerTime = 5 * time.Minute
)

// Options configure a remote.
type Options struct {
	Policy outbound.Policy
	// Stall is how long a server may send nothing; 0 means the default.
	Stall time.Duration
	// Key is the private key for SSH, in PEM; empty for a password.
	Key []byte
	// HostKeys are the accepted public keys of an SSH server, as lines of
	// authorized_keys files.
	HostKeys []string
	// Also is the prefix of further refs that Refs lists besides branches and tags.
	Also string
}

// Remote is a repository on another server. It is not safe for concurrent use. Close
// closes its connections.
type Remote struct {
	base      *url.URL
	user      string
	password  string
	stall     time.Duration
	policy    outbound.Policy
	key       []byte
	hostKeys  []string
	also      string
	transport *http.Transport
	client    *http.Client
	stream    *stream // of SSH and TCP, from Refs to the end of the transfer
}

// Failure is an error of the other server or of the connection to it. Its text is a
// message for the user, and contains neither credentials nor addresses.
type Failure struct {
	Text      string
	Temporary bool // another attempt may succeed
	cause     error
}

// Error implements error.
func (f *Failure) Error() string { return f.Text }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.cause }

func fail(format string, args ...any) *Failure { return &Failure{Text: fmt.Sprintf(format, args...)} }

// Open returns a remote. It does not connect yet.
func Open(a Address, o Options) (*Remote, error) {
	u, err := url.Parse(a.URL)
	if err != nil {
		return nil, fail("The URL of the repository is not valid.")
	}
	r := &Remote{base: u, user: a.User, password: a.Password, stall: o.Stall, policy: o.Policy, key: o.Key, hostKeys: o.HostKeys, also: o.Also, transport: o.Policy.Transport(connectTime)}
	if r.stall == 0 {
		r.stall = time.Minute
	}
	r.transport.ResponseHeaderTimeout = headerTime
	r.transport.DisableCompression = true // what is limited is what the server sends
	r.transport.MaxConnsPerHost = 4
	r.client = &http.Client{Transport: r.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return r, nil
}

// Close closes the connections.
func (r *Remote) Close() {
	r.transport.CloseIdleConnections()
	if r.stream != nil {
		_ = r.stream.Close()
	}
}

// HTTP reports whether the repository is accessed over HTTP.
func (r *Remote) HTTP() bool { return !r.streams() }

// streams reports whether the protocol uses a single connection.
func (r *Remote) streams() bool { return r.base.Scheme == "ssh" || r.base.Scheme == "git" }

// authorize adds the credentials to a request to the server of the repository.
func (r *Remote) authorize(q *http.Request) {
	if (r.user != "" || r.password != "") && sameOrigin(q.URL, r.base) {
		q.SetBasicAuth(r.user, r.password)
	}
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

// do sends a request, and returns its response with status 200.
func (r *Remote) do(q *http.Request) (*http.Response, error) {
	q.Header.Set("User-Agent", "git/2.0 (svc)")
	answer, err := r.client.Do(q)
	if err != nil {
		return nil, r.unreachable(q.Context(), err)
	}
	if answer.StatusCode == http.StatusOK {
		answer.Body = &stalling{body: answer.Body, rate: rate{after: r.stall, now: time.Now}}
		return answer, nil
	}
	return answer, refused(answer)
}

func (r *Remote) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, outbound.ErrLocal) {
		return &Failure{Text: "The URL leads to an address of the local network, which is not allowed.", cause: err}
	}
	return &Failure{Text: "The server cannot be reached: " + outbound.Plain(err).Error() + ".", Temporary: true, cause: outbound.Plain(err)}
}

// refused closes a response with an error status and returns the error.
func refused(answer *http.Response) error {
	answer.Body.Close()
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return fail("The server refused the credentials (HTTP %d). Check the username and password.", code)
	case code == http.StatusNotFound, code == http.StatusGone:
		return fail("The repository was not found (HTTP %d). Check the URL; a private repository needs a username and password.", code)
	case code >= 300 && code < 400:
		return fail("The server sent an unexpected redirect (HTTP %d).", code)
	default:
		return &Failure{Text: fmt.Sprintf("The server answered with HTTP %d.", code), Temporary: code >= 500 || code == http.StatusTooManyRequests}
	}
}

// discover requests the refs of a service. Redirects are followed only here; further
// requests use the URL that they lead to.
func (r *Remote) discover(ctx context.Context, service string) (*http.Response, error) {
	const suffix = "/info/refs"
	at := r.base.JoinPath(suffix)
	at.RawQuery = "service=" + service
	for range maxRedirects + 1 {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
		if err != nil {
			return nil, fail("The URL of the repository is not valid.")
		}
		q.Header.Set("Git-Protocol", "version=2")
		r.authorize(q)
		answer, err := r.do(q)
		if answer == nil || answer.StatusCode < 300 || answer.StatusCode >= 400 || answer.Header.Get("Location") == "" {
			return answer, err
		}
		next, err := at.Parse(answer.Header.Get("Location"))
		if err != nil || next.Scheme != "http" && next.Scheme != "https" || next.Hostname() == "" {
			return nil, fail("The server redirects to a URL that is not allowed.")
		}
		if at.Scheme == "https" && next.Scheme == "http" {
			return nil, fail("The server redirects from https to http, which is not allowed.")
		}
		if !r.policy.MayReach(next) {
			return nil, fail("The server redirects to an address of the local network, which is not allowed.")
		}
		path, found := strings.CutSuffix(next.Path, suffix)
		if !found || next.RawQuery != at.RawQuery {
			return nil, fail("The server redirects to a URL that is not a Git repository. Use the URL that it redirects to.")
		}
		next.User = nil
		base := *next
		base.Path, base.RawPath, base.RawQuery, base.Fragment = path, "", "", ""
		if !sameOrigin(&base, r.base) {
			r.user, r.password = "", "" // the credentials are for the first server only
		}
		r.base, at = &base, next
	}
	return nil, fail("The server redirects too often.")
}

// post sends a request to a service.
func (r *Remote) post(ctx context.Context, service string, body io.Reader) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base.JoinPath("/"+service).String(), body)
	if err != nil {
		return nil, fail("The URL of the repository is not valid.")
	}
	q.Header.Set("Content-Type", "application/x-"+service+"-request")
	q.Header.Set("Accept", "application/x-"+service+"-result")
	q.Header.Set("Git-Protocol", "version=2")
	r.authorize(q)
	answer, err := r.do(q)
	if err != nil {
		return nil, err
	}
	if kind := answer.Header.Get("Content-Type"); kind != "application/x-"+service+"-result" {
		answer.Body.Close()
		return nil, fail("The server does not answer like a Git server.")
	}
	return answer, nil
}

// minRate is how many bytes per second a server must send on average, so that a
// slow one does not occupy a worker for hours.
const minRate = 1 << 10

// rate measures the rate at which data is received while it is awaited.
type rate struct {
	after    time.Duration // until the rate is checked
	now      func() time.Time
	began    time.Time // of the current wait
	waited   time.Duration
	received int64
}

// start begins a wait for data.
func (r *rate) start() { r.began = r.now() }

// add ends a wait, in which n bytes were received. It returns a Failure if the rate
// is less than minRate.
func (r *rate) add(n int) error {
	r.received += int64(n)
	r.waited += r.now().Sub(r.began)
	if r.waited > r.after && float64(r.received) < minRate*r.waited.Seconds() {
		return &Failure{Text: "The server sends data too slowly.", Temporary: true}
	}
	return nil
}

// paced is a reader whose Read fails at less than minRate, from the first byte on.
type paced struct {
	in    io.Reader
	rate  rate
	begun bool
}

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	p.rate.start()
	n, err := p.in.Read(b)
	if !p.begun { // the server may prepare its answer first
		p.begun = true
		return n, err
	}
	if slow := p.rate.add(n); err == nil {
		err = slow
	}
	return n, err
}

// limited is a reader that fails after a number of bytes.
type limited struct {
	in   io.Reader
	left int64
	text string // of the Failure
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fail("%s", l.text)
	}
	n, err := l.in.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// stalling is a response body whose Read fails if nothing is received for a while,
// or less than minRate.
type stalling struct {
	body    io.ReadCloser
	rate    rate
	unpaced bool // the rate is not checked
}

// Read implements io.Reader.
func (s *stalling) Read(p []byte) (int, error) {
	fired := make(chan struct{})
	timer := time.AfterFunc(s.rate.after, func() {
		close(fired)
		s.body.Close() // ends the read
	})
	s.rate.start()
	n, err := s.body.Read(p)
	if !timer.Stop() {
		<-fired
		return n, &Failure{Text: "The server stopped sending data.", Temporary: true}
	}
	if slow := s.rate.add(n); err == nil && !s.unpaced {
		err = slow
	}
	return n, err
}

// Close implements io.Closer.
func (s *stalling) Close() error { return s.body.Close() }
