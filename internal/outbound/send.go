package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Policy defines which addresses of the local network requests may reach.
type Policy struct {
	Local bool // all addresses
	// Allowed are names, addresses and networks that are allowed, each with an
	// optional port: example.org, 10.1.2.3:8080, 10.0.0.0/8.
	Allowed []string
}

// allowsName reports whether a host is in the list by its name.
func (p Policy) allowsName(host, port string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(p.Allowed, func(entry string) bool {
		entry = strings.ToLower(entry)
		return entry == host || entry == net.JoinHostPort(host, port)
	})
}

// allowsAddress reports whether an address may be reached.
func (p Policy) allowsAddress(at netip.AddrPort) bool {
	addr := at.Addr().Unmap().WithZone("")
	if p.Local || Public(addr) {
		return true
	}
	return slices.ContainsFunc(p.Allowed, func(entry string) bool {
		if network, err := netip.ParsePrefix(entry); err == nil {
			return network.Contains(addr)
		}
		if one, err := netip.ParseAddr(entry); err == nil {
			return one.Unmap() == addr
		}
		one, err := netip.ParseAddrPort(entry)
		return err == nil && one.Addr().Unmap() == addr && one.Port() == at.Port()
	})
}

// MayReach reports whether a URL may be allowed, without resolving its name. When a
// request is sent, the addresses of the name are checked.
func (p Policy) MayReach(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "ssh": "22", "git": "9418"}[u.Scheme]
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if p.Local || p.allowsName(host, port) {
		return true
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return p.allowsAddress(loopback(port))
	}
	at, err := netip.ParseAddrPort(net.JoinHostPort(u.Hostname(), port))
	return err != nil || p.allowsAddress(at)
}

func loopback(port string) netip.AddrPort {
	at, _ := netip.ParseAddrPort("127.0.0.1:" + port)
	return at
}

// Sender sends requests with a body to one receiver. It follows no redirects. It is
// not safe for concurrent use; Close closes its connections.
type Sender struct {
	transport *http.Transport
	client    *http.Client
}

// NewSender returns a Sender. insecure skips the verification of certificates; time
// limits each request with its response.
func NewSender(p Policy, insecure bool, timeout time.Duration) *Sender {
	transport := p.Transport(timeout)
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: insecure} // #nosec G402: an option of the webhook
	return &Sender{transport: transport, client: &http.Client{
		Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Transport returns a transport that connects only to allowed addresses. The address
// is checked when it is dialed, so that a name cannot be resolved to another address
// afterwards. timeout limits the connection and the TLS handshake.
func (p Policy) Transport(timeout time.Duration) *http.Transport {
	return &http.Transport{
		// No proxy from the environment, because only its address would be checked.
		DialContext:            p.dialer(timeout),
		TLSHandshakeTimeout:    timeout,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConnsPerHost:    1,
		ForceAttemptHTTP2:      true,
	}
}

// Dial connects to an allowed address, for protocols other than HTTP.
func (p Policy) Dial(ctx context.Context, address string, timeout time.Duration) (net.Conn, error) {
	return p.dialer(timeout)(ctx, "tcp", address)
}

// dialer connects to allowed addresses.
func (p Policy) dialer(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := &net.Dialer{Timeout: timeout}
	checked := &net.Dialer{Timeout: timeout, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !p.allowsAddress(at) {
			return ErrLocal
		}
		return nil
	}}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, port, err := net.SplitHostPort(address); err == nil && p.allowsName(host, port) {
			return dial.DialContext(ctx, network, address)
		}
		return checked.DialContext(ctx, network, address)
	}
}

// Response is the response to a request. Body has at most limit bytes.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Send sends a request and reads at most limit bytes of the response. The errors are
// short, and contain nothing that the caller does not know.
func (s *Sender) Send(r *http.Request, limit int64) (*Response, error) {
	if err := check(r.URL); err != nil {
		return nil, err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, Plain(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, limit))
	if err != nil && len(body) == 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, Plain(err)
	}
	return &Response{Status: answer.StatusCode, Header: answer.Header, Body: body}, nil
}

// Close closes idle connections.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }
