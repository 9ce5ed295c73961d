package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// clients is how many connections send requests at once, each the next one as
// soon as it has its answer.
const clients = 8

// load sends one request over and over, on connections that stay open.
//
// It shares the processors with the server, so it does no more than it must: a
// client of the standard library would cost more than what it measures, and
// make all servers look alike.
type load struct {
	request []byte
	conns   []*conn
}

type conn struct {
	net.Conn
	in *bufio.Reader
}

// newLoad opens the connections to a server.
func newLoad(b testing.TB, addr, path, token string) *load {
	b.Helper()
	l := &load{request: []byte("GET " + path + " HTTP/1.1\r\nHost: " + addr + "\r\nUser-Agent: bench\r\n" +
		"Accept: application/json\r\nPRIVATE-TOKEN: " + token + "\r\n\r\n")}
	for range clients {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		l.conns = append(l.conns, &conn{c, bufio.NewReaderSize(c, 64<<10)})
	}
	return l
}

// run loads the server for a while and gives the requests per second.
func (l *load) run(b testing.TB, d time.Duration) float64 {
	b.Helper()
	var wg sync.WaitGroup
	counts, faults := make([]int, len(l.conns)), make([]error, len(l.conns))
	start := time.Now()
	for i, c := range l.conns {
		wg.Go(func() {
			for faults[i] == nil && time.Since(start) < d {
				faults[i] = c.send(l.request, io.Discard)
				counts[i]++
			}
		})
	}
	wg.Wait()
	took := time.Since(start).Seconds()
	total := 0
	for i, n := range counts {
		if faults[i] != nil {
			b.Fatal(faults[i])
		}
		total += n
	}
	return float64(total) / took
}

// body sends the request once and gives the body of the answer.
func (l *load) body(b testing.TB) []byte {
	b.Helper()
	var body bytes.Buffer
	if err := l.conns[0].send(l.request, &body); err != nil {
		b.Fatal(err)
	}
	return body.Bytes()
}

// send sends a request and reads the answer, which must be a 200 with a
// length.
func (c *conn) send(request []byte, body io.Writer) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	length := int64(-1)
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("answer %q", line)
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64); err != nil {
				return err
			}
		}
		if len(line) == 2 {
			break
		}
	}
	if length < 0 {
		return fmt.Errorf("an answer without a length")
	}
	_, err := io.CopyN(body, c.in, length)
	return err
}

// bare starts the server that ours is measured against: it does nothing but
// answer with the body.
func bare(b testing.TB, body []byte) (addr string) {
	b.Helper()
	length := strconv.Itoa(len(body))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", length)
		_, _ = w.Write(body)
	}))
	b.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestLoad(t *testing.T) {
	t.Parallel()
	l := newLoad(t, bare(t, []byte(`{"id":1}`)), "/user", "secret")
	if got := string(l.body(t)); got != `{"id":1}` {
		t.Errorf("body %q", got)
	}
	if got := l.run(t, 10*time.Millisecond); got < clients {
		t.Errorf("%v requests per second", got)
	}
	refuse := httptest.NewServer(http.NotFoundHandler())
	defer refuse.Close()
	c := newLoad(t, refuse.Listener.Addr().String(), "/user", "secret")
	if err := c.conns[0].send(c.request, io.Discard); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("error %v, want one with 404", err)
	}
}
