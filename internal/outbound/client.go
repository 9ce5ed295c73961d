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

// errTooLarge is the error of a response that is larger than the limit.
var errTooLarge = errors.New("the response is too large")

// NewClient returns an HTTP client for a library that sends its own requests. It
// connects only to addresses that the policy allows, follows no redirects, and fails
// if a response has more than limit bytes or takes longer than timeout. roots are
// the trusted certificates; nil means those of the system.
func NewClient(p Policy, roots *x509.CertPool, timeout time.Duration, limit int64) *http.Client {
	s := NewSender(p, false, timeout)
	s.transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	s.transport.DisableKeepAlives = true
	s.client.Transport = bounded{s.transport, limit}
	return s.client
}

// bounded limits the size of responses.
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

// Read returns an error instead of a truncated response, which could have another
// meaning.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
