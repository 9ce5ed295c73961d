package dbtest

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Proxy forwards connections to a PostgreSQL server. A test can stop forwarding or refuse
// connections, to simulate a broken network or a restarting server.
type Proxy struct {
	Source        // the database through the proxy
	Direct string // its URL without the proxy

	network, address string
	listener         net.Listener

	mu      sync.Mutex
	wake    *sync.Cond
	stalled string // application whose connections are silent
	losing  string // part of a statement of the transaction that loses the reply to its commit
	late    bool   // that commit is held back until ReleaseCommit
	away    bool
	refused int
	ended   bool
	conns   map[net.Conn]bool
	running sync.WaitGroup
}

// NewProxy starts a proxy for a PostgreSQL database until the test ends.
func NewProxy(t testing.TB, src Source) *Proxy {
	t.Helper()
	cfg, err := pgconn.ParseConfig(src.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Direct: src.URL, conns: map[net.Conn]bool{}}
	p.wake = sync.NewCond(&p.mu)
	p.network, p.address = pgconn.NetworkAddress(cfg.Host, cfg.Port)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	p.URL = throughProxy(t, src.URL, p.listener.Addr().(*net.TCPAddr).Port)
	p.running.Go(p.serve)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.change(func() { p.ended = true })
		p.cut()
		p.running.Wait()
	})
	return p
}

// throughProxy returns the URL of a database with the address of the proxy.
func throughProxy(t testing.TB, from string, port int) string {
	t.Helper()
	u, err := url.Parse(from)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	q := u.Query()
	q.Del("host")
	q.Del("port")
	q.Del("connect_timeout") // the tests wait for the default
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return u.String()
}

// Stall stalls the connections of an application: they stay open, and nothing is
// forwarded until Resume.
func (p *Proxy) Stall(application string) { p.change(func() { p.stalled = application }) }

// Resume ends Stall and forwards what was held back.
func (p *Proxy) Resume() { p.Stall("") }

// GoAway closes all connections and refuses new ones, as a restarting server does.
func (p *Proxy) GoAway() {
	p.change(func() { p.away = true })
	p.cut()
}

// ComeBack ends GoAway.
func (p *Proxy) ComeBack() { p.change(func() { p.away = false }) }

// LoseCommit closes the connection of the next transaction that runs a statement with a text
// when the server replies to its commit: the client does not learn that it succeeded.
func (p *Proxy) LoseCommit(text string) { p.change(func() { p.losing, p.late = text, false }) }

// DelayCommit closes the connection of the next transaction that runs a statement with a text
// when the client commits. The server receives that commit only after ReleaseCommit.
func (p *Proxy) DelayCommit(text string) { p.change(func() { p.losing, p.late = text, true }) }

// ReleaseCommit ends DelayCommit.
func (p *Proxy) ReleaseCommit() { p.change(func() { p.late = false }) }

// CommitLost reports whether the client of LoseCommit or DelayCommit has lost its connection.
func (p *Proxy) CommitLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.losing == ""
}

func (p *Proxy) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.wake.Broadcast()
}

func (p *Proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.forward(client) })
	}
}

// starting is PostgreSQL's response while it starts.
const starting = "SFATAL\x00VFATAL\x00C57P03\x00Mthe database system is starting up\x00\x00"

// enter registers both ends of a connection, unless the server is away.
func (p *Proxy) enter(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.away {
		p.refused++
		if p.refused%2 == 0 { // the other half are closed without a response
			_, _ = client.Write(append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(len(starting)+4)), starting...))
		}
		return false
	}
	p.conns[client], p.conns[server] = true, true
	return true
}

func (p *Proxy) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial(p.network, p.address)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.enter(client, server) {
		return
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, client)
		delete(p.conns, server)
	}()
	first := make([]byte, 4096)
	n, err := client.Read(first)
	if err != nil {
		return
	}
	name := application(first[:n])
	if _, err := server.Write(first[:n]); err != nil {
		return
	}
	var back sync.WaitGroup
	watched := &watch{p: p, client: client, statements: map[string]string{}}
	back.Go(func() { p.copy(client, server, name, watched.reply) })
	p.copy(server, client, name, watched.request)
	back.Wait()
}

// application returns the application name from the first message of a client.
func application(startup []byte) string {
	_, after, ok := bytes.Cut(startup, []byte("application_name\x00"))
	if !ok {
		return ""
	}
	name, _, _ := bytes.Cut(after, []byte{0})
	return string(name)
}

// watch looks for the transaction of LoseCommit or DelayCommit in a connection.
type watch struct {
	p          *Proxy
	client     net.Conn
	unread     []byte            // the beginning of a message
	statements map[string]string // prepared statements by name
	with       bool              // the transaction has a statement with the text
	cut        atomic.Bool
}

// request reads what the client sends: messages of a type, a length and a body.
func (w *watch) request(content []byte) bool {
	w.unread = append(w.unread, content...)
	for len(w.unread) >= 5 {
		size := 1 + int(binary.BigEndian.Uint32(w.unread[1:5]))
		if len(w.unread) < size {
			break
		}
		w.message(w.unread[0], string(w.unread[5:size]))
		w.unread = w.unread[size:]
	}
	return true
}

func (w *watch) message(kind byte, body string) {
	first, rest, _ := strings.Cut(body, "\x00")
	second, _, _ := strings.Cut(rest, "\x00")
	statement := ""
	switch kind {
	case 'Q': // query
		statement = first
	case 'P': // prepare a statement with a name
		w.statements[first] = second
	case 'B': // run the statement of a name
		statement = w.statements[second]
	}
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	switch {
	case strings.HasPrefix(statement, "begin"), statement == "rollback":
		w.with = false
	case w.p.losing != "" && strings.Contains(statement, w.p.losing):
		w.with = true
	case statement == "commit" && w.with:
		w.p.losing = ""
		w.cut.Store(true)
		for w.p.late && !w.p.ended {
			_ = w.client.Close()
			w.p.wake.Wait()
		}
	}
}

// reply reports whether a reply of the server may be forwarded.
func (w *watch) reply([]byte) bool { return !w.cut.Load() }

// copy forwards one direction until it ends or pass refuses, then closes the other one too.
func (p *Proxy) copy(to, from net.Conn, name string, pass func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		for name != "" && p.stalled == name && !p.ended && !p.away {
			p.wake.Wait()
		}
		p.mu.Unlock()
		if !pass(buf[:n]) {
			return
		}
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}

// EachProxy runs f with a proxy for a PostgreSQL database, if there is a server. SQLite has
// no connection that can be lost.
func EachProxy(t *testing.T, f func(t *testing.T, p *Proxy)) {
	t.Helper()
	if os.Getenv("TEST_POSTGRES") == "" {
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		f(t, NewProxy(t, Postgres(t)))
	})
}
