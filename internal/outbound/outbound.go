// Package outbound sends HTTP requests to URLs that users give. It refuses addresses
// of the local network, as protection against server-side request forgery (SSRF).
package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

const (
	maxRedirects = 3
	maxTime      = 10 * time.Second // time limit of a file
	maxTotal     = 30 * time.Second // time limit of all files of a Fetcher
)

// ErrLocal is the error of a request to an address of the machine or its local
// network.
var ErrLocal = errors.New("the address belongs to a local network")

// Fetcher fetches the files that one operation needs, with a time limit for all of
// them together. It is not safe for concurrent use.
type Fetcher struct {
	client *http.Client
	left   time.Duration
}

// New returns a Fetcher. If local is true, it also connects to loopback and private
// addresses.
func New(local bool) *Fetcher {
	dial := &net.Dialer{Timeout: maxTime}
	if !local {
		// The address is checked when it is dialed, because the name may have been
		// resolved to another address before (DNS rebinding).
		dial.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !Public(at.Addr()) {
				return ErrLocal
			}
			return nil
		}
	}
	return &Fetcher{
		left: maxTotal,
		client: &http.Client{
			// No proxy from the environment, because only its address would be
			// checked.
			Transport: &http.Transport{DialContext: dial.DialContext, DisableKeepAlives: true, TLSHandshakeTimeout: maxTime, MaxResponseHeaderBytes: 64 << 10},
			CheckRedirect: func(r *http.Request, via []*http.Request) error {
				if len(via) > maxRedirects {
					return errors.New("too many redirects")
				}
				return check(r.URL)
			},
		},
	}
}

// Get fetches a file with http or https and returns at most limit+1 bytes of it. The
// errors are short, and contain nothing that the caller does not know.
func (f *Fetcher) Get(ctx context.Context, address string, limit int) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address is not a valid URL")
	}
	if err := check(u); err != nil {
		return nil, err
	}
	if f.left <= 0 {
		return nil, errors.New("the time limit for files from other sites was reached")
	}
	began := time.Now()
	defer func() { f.left -= time.Since(began) }()
	within, cancel := context.WithTimeout(ctx, min(maxTime, f.left))
	defer cancel()
	content, err := f.get(within, u, limit)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return content, err
}

func (f *Fetcher) get(ctx context.Context, u *url.URL, limit int) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("the address is not a valid URL")
	}
	answer, err := f.client.Do(request)
	if err != nil {
		return nil, Plain(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server responded with HTTP %d", answer.StatusCode)
	}
	content, err := io.ReadAll(io.LimitReader(answer.Body, int64(limit)+1))
	if err != nil {
		return nil, Plain(err)
	}
	return content, nil
}

func check(u *url.URL) error {
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return errors.New("the address must start with http:// or https://")
	}
	return nil
}

// Plain returns an error with a short description of err, without the addresses that
// network errors contain.
func Plain(err error) error {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	var network *net.OpError
	var name *net.DNSError
	switch {
	case errors.Is(err, ErrLocal):
		return ErrLocal
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the server did not respond in time")
	case errors.As(err, &name):
		return errors.New("the host name could not be resolved")
	case errors.As(err, &network):
		return errors.New("the server cannot be reached")
	}
	return err
}

// closed are networks that are not part of the public Internet and that netip does
// not know.
var closed = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),   // carrier-grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcast
	netip.MustParsePrefix("2001::/32"),       // Teredo: contains an IPv4 address
	netip.MustParsePrefix("2002::/16"),       // 6to4: contains an IPv4 address
	netip.MustParsePrefix("2001:db8::/32"),
}

// open6 are the IPv6 addresses that are assigned to the public Internet. Others
// contain an IPv4 address (::/96, 64:ff9b::/96) or are site-local (fec0::/10).
var open6 = netip.MustParsePrefix("2000::/3")

// Public reports whether an address belongs to the public Internet.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !open6.Contains(a) {
		return false
	}
	for _, p := range closed {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
