package app

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"svc/internal/httpreq"
	"svc/internal/limit"
)

const (
	// spareConns is the number of connections above the limits that are accepted for
	// health probes.
	spareConns = 32
	// spareTime is the lifetime of such a connection.
	spareTime = 10 * time.Second
	// refusalLog is how often refused connections are logged.
	refusalLog = time.Minute
)

// gate limits the number of open connections of all listeners, and per IP address.
// This leaves file descriptors for repositories, the database and health probes. The
// limit per address also bounds the requests of HTTP/2 in progress.
type gate struct {
	most       int // 0 means no limit
	perAddress int // 0 means no limit
	exempt     func(netip.Addr) bool
	log        *slog.Logger

	mu       sync.Mutex
	total    int
	of       map[string]int // by limit.AddressKey
	requests map[string]int // requests of HTTP/2 in progress, likewise
	spare    []*gatedConn   // over a limit, the oldest first
	logged   time.Time
}

// newGate returns the gate of a server. Trusted proxies and load balancers have no
// limit per address, because all clients connect through them.
func newGate(s *Server) *gate {
	most := s.Config.MaxConnections
	if most == 0 {
		most = usualConnections()
	}
	return &gate{most: most, perAddress: s.Config.MaxConnectionsPerAddress, exempt: httpreq.Proxies(slices.Concat(s.Config.TrustedProxies, s.Config.ProxyProtocol)).Contains, log: s.Log, of: map[string]int{}, requests: map[string]int{}}
}

// usualConnections is a third of the files that the process may open. A connection
// that downloads a file holds that open as well. The rest is for repositories, git
// processes and the database.
func usualConnections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 0
	}
	return int(min(files.Cur/3, 1<<30))
}

// listen returns a listener whose connections pass the gate. With spare, a few
// connections over the limits are accepted, for handlers that ask isSpare.
func (g *gate) listen(l net.Listener, spare bool) net.Listener {
	return &gatedListener{Listener: l, gate: g, spare: spare}
}

type gatedListener struct {
	net.Listener
	gate  *gate
	spare bool
}

// Accept implements net.Listener.
func (l *gatedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g := l.gate.enter(c, l.spare); g != nil {
			return g, nil
		}
		_ = c.Close()
	}
}

// gatedConn is a connection that is counted until it is closed.
type gatedConn struct {
	net.Conn
	gate  *gate
	key   string
	spare *time.Timer // closes a connection over the limits; nil for others
	once  sync.Once
}

// enter counts a connection. It returns nil if the limit is reached.
func (g *gate) enter(c net.Conn, spare bool) *gatedConn {
	g.mu.Lock()
	defer g.mu.Unlock()
	remote := c.RemoteAddr().String()
	conn := &gatedConn{Conn: c, gate: g, key: limit.AddressKey(remote)}
	full := g.most > 0 && g.total >= g.most
	if !full && (!g.bounds(remote) || g.of[conn.key] < g.perAddress) {
		g.total++
		g.of[conn.key]++
		return conn
	}
	if now := time.Now(); now.Sub(g.logged) >= refusalLog {
		g.logged = now
		g.log.Warn("connection refused: too many open connections; if the address is a proxy, add it to trusted_proxies",
			"ip", conn.key, "of_address", g.of[conn.key], "open", g.total)
	}
	if !spare {
		return nil
	}
	if len(g.spare) == spareConns { // the oldest is closed
		oldest := g.spare[0]
		g.spare = g.spare[1:]
		_ = oldest.Conn.Close()
	}
	conn.spare = time.AfterFunc(spareTime, func() { _ = c.Close() })
	g.spare = append(g.spare, conn)
	return conn
}

// bounds reports whether the limit per address applies to an address with a port.
func (g *gate) bounds(remote string) bool {
	at, err := netip.ParseAddrPort(remote)
	return g.perAddress > 0 && (err != nil || !g.exempt(at.Addr()))
}

// enterRequest counts a request of HTTP/2 until end is called. One connection can
// have hundreds in progress, so an address may have as many requests as connections.
// It reports false if the limit is reached.
func (g *gate) enterRequest(remote string) (end func(), ok bool) {
	if !g.bounds(remote) {
		return func() {}, true
	}
	key := limit.AddressKey(remote)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.requests[key] >= g.perAddress {
		return nil, false
	}
	g.requests[key]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.requests[key]--; g.requests[key] == 0 {
			delete(g.requests, key)
		}
	}, true
}

// Close implements net.Conn.
func (c *gatedConn) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}

func (c *gatedConn) leave() {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.spare != nil {
		c.spare.Stop()
		g.spare = slices.DeleteFunc(g.spare, func(other *gatedConn) bool { return other == c })
		return
	}
	g.total--
	if g.of[c.key]--; g.of[c.key] == 0 {
		delete(g.of, c.key)
	}
}

type spareKey struct{}

// connContext marks the requests of connections over the limits.
func connContext(ctx context.Context, c net.Conn) context.Context {
	if g, ok := gated(c); ok && g.spare != nil {
		return context.WithValue(ctx, spareKey{}, true)
	}
	return ctx
}

// refuseSpare answers a request on a connection over the limits, unless it is a
// health probe. It reports whether it did.
func refuseSpare(w http.ResponseWriter, r *http.Request) bool {
	if r.Context().Value(spareKey{}) == nil {
		return false
	}
	w.Header().Set("Connection", "close")
	if watched[r.URL.Path] {
		return false
	}
	refuseFull(w, "Too many connections are open. Try again in a moment.")
	return true
}

func refuseFull(w http.ResponseWriter, text string) {
	w.Header().Set("Retry-After", "5")
	http.Error(w, text, http.StatusServiceUnavailable)
}
