package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// errTooLarge is the error of a response with more bytes than are allowed.
var errTooLarge = errors.New("the response is too large")

// NewClient returns an HTTP client for a library that sends its own requests. It
// reaches what the policy allows, follows no redirects, and fails when a response
// has more than limit bytes or takes longer than timeout. roots are the trusted
// certificates; nil for those of the system.
func NewClient(p Policy, roots *x509.CertPool, timeout time.Duration, limit int64) *http.Client {
	s := NewSender(p, false, timeout)
	s.transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	s.transport.DisableKeepAlives = true
	s.client.Transport = bounded{s.transport, limit}
	return s.client
}

// bounded limits the bytes of responses.
type bounded struct {
	next  http.RoundTripper
	limit int64
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := check(r.URL); err != nil {
		return nil, err
	}
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.URL.Host, Plain(err))
	}
	answer.Body = &boundedBody{answer.Body, b.limit}
	return answer, nil
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read fails instead of cutting a response short, which could make it another one.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
