// Package sshd serves git over SSH. It authenticates users and deploy keys by
// their public keys, runs only the three git services and
// git-lfs-authenticate, and forwards nothing.
// Features decide who may fetch or push.
package sshd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"svc/internal/lfs"
	"svc/internal/limit"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// Limits are the limits of clients. A zero field takes the default that its comment
// gives.
type Limits struct {
	Connections int           // concurrent: 1000
	OfAccount   int           // of them of one user or deploy key: 250
	Starting    int           // connections that have not signed in yet: 100
	StartingOf  int           // of them from one address: 20
	Sessions    int           // concurrent sessions of a connection: 10
	Tries       int           // keys that a client may offer: 6
	SignIn      time.Duration // time to sign in: 1 min
	LastCommand time.Duration // time to sign in and begin a command once the server stops: 5 s
	Idle        time.Duration // how long a connection may be idle: 10 min
	Stall       time.Duration // how long a client may not read a response: 2 min
	Silence     time.Duration // how long git may wait for the wants and haves of a fetch: 1 min
}

func (l Limits) filled() Limits {
	return Limits{
		Connections: cmp.Or(l.Connections, 1000),
		OfAccount:   cmp.Or(l.OfAccount, 250),
		Starting:    cmp.Or(l.Starting, 100),
		StartingOf:  cmp.Or(l.StartingOf, 20),
		Sessions:    cmp.Or(l.Sessions, 10),
		Tries:       cmp.Or(l.Tries, 6),
		SignIn:      cmp.Or(l.SignIn, time.Minute),
		LastCommand: cmp.Or(l.LastCommand, 5*time.Second),
		Idle:        cmp.Or(l.Idle, 10*time.Minute),
		Stall:       cmp.Or(l.Stall, 2*time.Minute),
		Silence:     cmp.Or(l.Silence, time.Minute),
	}
}

// Deps are the dependencies of the server.
type Deps struct {
	Users    *user.Service
	Projects *project.Service
	Repos    *repo.Service
	LFS      *lfs.Service
	URL      string // the external URL of the instance
	HostKeys []ssh.Signer
	Name     string // of the service, for the greeting
	Limits   Limits
	Log      *slog.Logger
	// Trace returns a context with the correlation ID of a command, for its log
	// lines.
	Trace func(context.Context) context.Context
	// Count is called for each command for a git service ("git-upload-pack") with
	// its outcome: "ok", "refused", "failed", or "gone" if the client disconnected.
	Count func(service, outcome string)
}

// Server serves SSH on one listener.
type Server struct {
	Deps
	config *ssh.ServerConfig

	mu       sync.Mutex
	listener net.Listener
	conns    map[*conn]bool
	starting map[string]int // by limit.AddressKey
	started  int            // sum of starting
	accounts map[string]int // connections that have signed in, by account
	stopping bool
	ended    sync.WaitGroup // of connections and Serve
}

// New returns a server that does not listen yet.
func New(d Deps) *Server {
	d.Limits = d.Limits.filled()
	s := &Server{Deps: d, conns: map[*conn]bool{}, starting: map[string]int{}, accounts: map[string]int{}}
	safe := ssh.SupportedAlgorithms()
	s.config = &ssh.ServerConfig{
		Config:                  ssh.Config{KeyExchanges: safe.KeyExchanges, Ciphers: safe.Ciphers, MACs: safe.MACs},
		PublicKeyAuthAlgorithms: safe.PublicKeyAuths,
		PublicKeyCallback:       s.acceptKey,
		MaxAuthTries:            d.Limits.Tries,
		ServerVersion:           "SSH-2.0-svc",
	}
	for _, key := range d.HostKeys {
		s.config.AddHostKey(key)
	}
	return s
}

// errStopped is returned by Serve after Shutdown.
var errStopped = errors.New("ssh server stopped")

// Serve accepts connections until Shutdown, and then returns nil. It closes the
// listener.
func (s *Server) Serve(l net.Listener) error {
	if !s.listen(l) {
		return errors.Join(errStopped, l.Close())
	}
	defer s.ended.Done()
	for {
		nc, err := l.Accept()
		if err == nil {
			s.ended.Add(1)
			go func() {
				defer s.ended.Done()
				s.serve(nc)
			}()
			continue
		}
		if s.stopped() {
			return nil
		}
		var passing net.Error
		if !errors.As(err, &passing) || !passing.Timeout() && errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept ssh connections: %w", err)
		}
		// Most likely the limit of open files is reached, which is temporary.
		s.Log.Warn("cannot accept an ssh connection", "error", err)
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *Server) listen(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.listener = l
	s.ended.Add(1) // for Serve itself, which may still add accepted connections
	return true
}

func (s *Server) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// Shutdown closes the listener and the idle connections that have run a command, and
// waits for clients that are signing in and for running commands. When ctx ends,
// they are disconnected and its error is returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	if s.listener != nil {
		_ = s.listener.Close() // an error means that it is already closed
	}
	for c := range s.conns {
		switch {
		case c.running > 0:
		case c.began:
			_ = c.net.Close()
		default:
			c.net.endBy(time.Now().Add(s.Limits.LastCommand))
		}
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.ended.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.conns {
		_ = c.net.Close()
	}
	s.mu.Unlock()
	<-done
	return ctx.Err()
}

// conn is a connection of a client.
type conn struct {
	net     *timedConn
	addr    netip.Addr
	account string
	running int  // running commands; guarded by Server.mu
	began   bool // a command was started; guarded by Server.mu
}

// key returns the key under which limits count the client's address.
func (c *conn) key() string { return limit.AddressKey(c.addr.String()) }

// enter registers a new connection, unless there are too many.
func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) >= s.Limits.Connections || s.started >= s.Limits.Starting || s.starting[c.key()] >= s.Limits.StartingOf {
		return false
	}
	s.conns[c] = true
	s.started++
	s.starting[c.key()]++
	c.net.endBy(time.Now().Add(s.Limits.SignIn))
	return true
}

// signedIn removes a connection from those that are signing in.
func (s *Server) signedIn(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started--
	if s.starting[c.key()]--; s.starting[c.key()] == 0 {
		delete(s.starting, c.key())
	}
}

// belong counts a connection for its account, unless that has too many.
func (s *Server) belong(c *conn, account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accounts[account] >= s.Limits.OfAccount {
		return false
	}
	c.account = account
	s.accounts[account]++
	return true
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if c.account == "" {
		return
	}
	if s.accounts[c.account]--; s.accounts[c.account] == 0 {
		delete(s.accounts, c.account)
	}
}

// opened replaces the sign-in deadline of a connection with the idle timeout, or
// with the deadline for its only command while the server is stopping.
func (s *Server) opened(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		c.net.endBy(time.Now().Add(s.Limits.LastCommand))
		return
	}
	c.net.open()
}

// begin registers a running command. While the server is stopping, only the first
// command of a connection is allowed.
func (s *Server) begin(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		if c.began {
			return false
		}
		c.net.open()
	}
	c.running++
	c.began = true
	return true
}

// end registers the end of a command. While the server is stopping, the connection
// stays open for a second, so that the client can read the last output.
func (s *Server) end(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.running--
	if s.stopping && c.running == 0 {
		c.net.endBy(time.Now().Add(time.Second))
	}
}

// serve serves a client until it disconnects.
func (s *Server) serve(nc net.Conn) {
	// The address may have to be read from the connection (PROXY protocol).
	c := &conn{net: &timedConn{Conn: nc, idle: s.Limits.Idle}, addr: addrOf(nc.RemoteAddr())}
	defer c.net.Close()
	if !s.enter(c) {
		s.Log.Warn("ssh connection refused: too many connections", "ip", c.addr.String())
		return
	}
	defer s.leave(c)
	client, channels, requests, err := ssh.NewServerConn(c.net, s.config)
	s.signedIn(c)
	if err != nil {
		s.Log.Debug("SSH authentication failed", "ip", c.addr.String(), "error", err)
		return
	}
	if account := client.Permissions.Extensions[accountKey]; !s.belong(c, account) {
		s.Log.Warn("ssh connection refused: too many connections of one account", "account", account, "ip", c.addr.String())
		return
	}
	unchecked := client.Permissions.Extensions[uncheckedKey] != ""
	if !unchecked { // otherwise the deadline for the sign-in stays
		s.opened(c)
	}
	go ssh.DiscardRequests(requests) // including requests for port forwarding
	ctx, cancel := context.WithCancel(context.Background())
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer cancel() // stops the commands of a client that has disconnected
	places := make(chan struct{}, s.Limits.Sessions)
	for n := range channels {
		if n.ChannelType() != "session" {
			_ = n.Reject(ssh.Prohibited, "only git is served here")
			continue
		}
		select {
		case places <- struct{}{}:
		default:
			_ = n.Reject(ssh.ResourceShortage, "too many sessions on this connection")
			continue
		}
		channel, requests, err := n.Accept()
		if err != nil {
			<-places
			continue
		}
		sessions.Go(func() {
			defer func() { <-places }()
			x := &session{Server: s, conn: c, channel: channel, fingerprint: client.Permissions.Extensions[fingerprintKey], unchecked: unchecked}
			x.run(ctx, requests)
		})
	}
}

func addrOf(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// timedConn is a connection that closes at a fixed time at first, and later when
// nothing is sent or received for a while.
type timedConn struct {
	net.Conn
	idle time.Duration

	mu    sync.Mutex
	fixed bool
}

// endBy sets a fixed time at which the connection closes.
func (t *timedConn) endBy(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fixed = true
	_ = t.SetDeadline(at) // fails only if the connection is closed
}

// open replaces the fixed time by the idle timeout.
func (t *timedConn) open() {
	t.mu.Lock()
	t.fixed = false
	t.mu.Unlock()
	t.extend()
}

func (t *timedConn) extend() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.fixed {
		_ = t.SetDeadline(time.Now().Add(t.idle))
	}
}

// Read implements net.Conn.
func (t *timedConn) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.extend()
	return n, err
}

// Write implements net.Conn.
func (t *timedConn) Write(p []byte) (int, error) {
	n, err := t.Conn.Write(p)
	t.extend()
	return n, err
}
