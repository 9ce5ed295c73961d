// Package outbound sends HTTP requests to URLs that users give. It refuses
// addresses of the local network (SSRF protection).
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
	maxTime      = 10 * time.Second // of one file
	maxTotal     = 30 * time.Second // of all files of one Fetcher
)

// ErrLocal is what a request comes to that would leave for the machine itself
// or its own network.
var ErrLocal = errors.New("the address belongs to a local network")

// Fetcher gets files for one piece of work, which it gives half a minute of
// waiting altogether. It is for one goroutine.
type Fetcher struct {
	client *http.Client
	left   time.Duration
}

// New returns a fetcher. With local it goes to loopback and private addresses
// as well.
func New(local bool) *Fetcher {
	dial := &net.Dialer{Timeout: maxTime}
	if !local {
		// The address is looked at when it is dialled: a name that was harmless when
		// someone asked for it may stand for something else by now.
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
			// No proxy of the environment: it would be the one that is dialled.
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

// Get fetches a file by http or https, of which it reads limit+1 bytes at
// most. The errors are short, and name nothing that the caller did not know.
func (f *Fetcher) Get(ctx context.Context, address string, limit int) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address is no URL")
	}
	if err := check(u); err != nil {
		return nil, err
	}
	if f.left <= 0 {
		return nil, errors.New("the time for files from other sites is over")
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
		return nil, errors.New("the address is no URL")
	}
	answer, err := f.client.Do(request)
	if err != nil {
		return nil, Plain(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is HTTP %d", answer.StatusCode)
	}
	content, err := io.ReadAll(io.LimitReader(answer.Body, int64(limit)+1))
	if err != nil {
		return nil, Plain(err)
	}
	return content, nil
}

func check(u *url.URL) error {
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return errors.New("the address is neither http:// nor https://")
	}
	return nil
}

// Plain says what went wrong without the addresses that a network error has
// in it.
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
		return errors.New("the site did not answer in time")
	case errors.As(err, &name):
		return errors.New("the name of the site is not known")
	case errors.As(err, &network):
		return errors.New("the site cannot be reached")
	}
	return err
}

// closed are networks that are not for everyone and that netip does not know.
var closed = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),   // behind a provider's translation
	netip.MustParsePrefix("192.0.0.0/24"),    // protocols
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("198.18.0.0/15"),   // measurements
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // kept back, and broadcast
	netip.MustParsePrefix("2001::/32"),       // Teredo: an IPv4 address within
	netip.MustParsePrefix("2002::/16"),       // 6to4: likewise
	netip.MustParsePrefix("2001:db8::/32"),
}

// open6 are the only addresses of IPv6 that are assigned to the open Internet. Others
// have an IPv4 address within (::/96, 64:ff9b::/96) or belong to a site (fec0::/10).
var open6 = netip.MustParsePrefix("2000::/3")

// Public reports whether an address is one of the open Internet.
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
