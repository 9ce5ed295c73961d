package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// clients is the number of concurrent clients. Each sends its next request when it
// has received the response.
const clients = 8

// load is a request that is sent repeatedly, on persistent connections.
type load struct {
	send []func() error // one per client; another status than 200 is an error
}

// newLoad returns a load that uses net/http.
func newLoad(b testing.TB, address, token string) *load {
	b.Helper()
	t := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	b.Cleanup(t.CloseIdleConnections)
	client := &http.Client{Transport: t}
	l := &load{send: make([]func() error, clients)}
	for i := range l.send {
		l.send[i] = func() error {
			_, err := get(client, address, token, io.Discard)
			return err
		}
	}
	return l
}

// newLeanLoad returns a load that sends prepared bytes and only finds the end of the
// response, like load generators, so that its own work is a small part of a request.
func newLeanLoad(b testing.TB, address, token string) *load {
	return newLeanLoadOf(b, clients, address, token)
}

// newLeanLoadOf is newLeanLoad with a number of clients.
func newLeanLoadOf(b testing.TB, clients int, address, token string) *load {
	b.Helper()
	l := &load{send: make([]func() error, clients)}
	for i := range l.send {
		c, err := newLean(address, token)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.dial(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.conn.Close() })
		l.send[i] = c.send
	}
	return l
}

// newHostLoad is newLeanLoad with another host name than the listener's.
func newHostLoad(b testing.TB, address, host string) *load {
	b.Helper()
	l := &load{send: make([]func() error, clients)}
	for i := range l.send {
		c, err := newLean(address, "")
		if err != nil {
			b.Fatal(err)
		}
		c.request = bytes.Replace(c.request, []byte("\r\nHost: "+c.host+"\r\n"), []byte("\r\nHost: "+host+"\r\n"), 1)
		if err := c.dial(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.conn.Close() })
		l.send[i] = c.send
	}
	return l
}

// run sends requests for a time, with at least one request per client, and returns
// the requests per second.
func (l *load) run(b testing.TB, d time.Duration) float64 {
	b.Helper()
	start := time.Now()
	n := len(l.times(b, d))
	return float64(n) / time.Since(start).Seconds()
}

// times is run, and returns how long each request took.
func (l *load) times(b testing.TB, d time.Duration) []time.Duration {
	b.Helper()
	var wg sync.WaitGroup
	took, faults := make([][]time.Duration, len(l.send)), make([]error, len(l.send))
	start := time.Now()
	for i, send := range l.send {
		wg.Go(func() {
			for at := start; faults[i] == nil && (len(took[i]) == 0 || at.Sub(start) < d); {
				faults[i] = send()
				now := time.Now()
				took[i] = append(took[i], now.Sub(at))
				at = now
			}
		})
	}
	wg.Wait()
	for _, err := range faults {
		if err != nil {
			b.Fatal(err)
		}
	}
	return slices.Concat(took...)
}

// get sends a request and copies the body of the response, whose status must be 200.
func get(client *http.Client, address, token string, body io.Writer) (http.Header, error) {
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("PRIVATE-TOKEN", token)
	res, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", address, res.Status)
	}
	_, err = io.Copy(body, res.Body)
	return res.Header, err
}

// lean is a connection that sends one request repeatedly and parses only the
// necessary parts of HTTP.
type lean struct {
	host    string
	request []byte
	conn    net.Conn
	answer  []byte // buffer for the response
}

func newLean(address, token string) (*lean, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nPRIVATE-TOKEN: %s\r\n\r\n", u.RequestURI(), u.Host, token)
	return &lean{host: u.Host, request: []byte(request), answer: make([]byte, 128<<10)}, nil
}

func (c *lean) dial() (err error) {
	c.conn, err = net.Dial("tcp", c.host)
	return err
}

var (
	statusOK   = []byte("HTTP/1.1 200 OK\r\n")
	lengthName = []byte("\r\nContent-Length: ")
	headEnd    = []byte("\r\n\r\n")
)

// send sends the request and reads the response, whose length is in its header.
func (c *lean) send() error {
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	size, whole := 0, 0 // received bytes, and total bytes of the response
	for whole == 0 || size < whole {
		n, err := c.conn.Read(c.answer[size:])
		if err != nil {
			return err
		}
		size += n
		if whole == 0 {
			if whole, err = answerSize(c.answer[:size]); err != nil {
				return err
			}
		}
	}
	if size > whole {
		return errors.New("more came than the answer")
	}
	return nil
}

// answerSize returns the length of a response, 0 if its header is incomplete.
func answerSize(start []byte) (int, error) {
	head := bytes.Index(start, headEnd)
	if head < 0 {
		return 0, nil
	}
	if !bytes.HasPrefix(start, statusOK) {
		return 0, fmt.Errorf("response %.100q", start)
	}
	_, length, ok := bytes.Cut(start[:head+2], lengthName)
	if !ok {
		return 0, errors.New("the answer does not tell its length")
	}
	digits, _, _ := bytes.Cut(length, headEnd[:2])
	n, err := strconv.Atoi(string(digits))
	return head + len(headEnd) + n, err
}

// bare starts a minimal server for comparison, which always sends the same response.
func bare(b testing.TB, header http.Header, body []byte) (address string) {
	b.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), header)
		_, _ = w.Write(body)
	}))
	b.Cleanup(s.Close)
	return s.URL
}

func TestLoad(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 100_000)
	for name, newLoad := range map[string]func(testing.TB, string, string) *load{"net/http": newLoad, "lean": newLeanLoad} {
		var asked sync.Map
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Store(r.Method+" "+r.RequestURI+" "+r.Header.Get("PRIVATE-TOKEN"), true)
			switch r.URL.Path {
			case "/refused":
				http.NotFound(w, r)
			case "/unknown":
				w.(http.Flusher).Flush() // so that the response has no Content-Length
			}
			w.Header().Set("Content-Length", strconv.Itoa(len(large)))
			_, _ = io.WriteString(w, large)
		}))
		defer s.Close()
		if got := newLoad(t, s.URL+"/a?b=c", "secret").run(t, 10*time.Millisecond); got <= 0 {
			t.Errorf("%s: %v requests per second", name, got)
		}
		if _, ok := asked.Load("GET /a?b=c secret"); !ok {
			t.Errorf("%s: the request is different", name)
		}
		if err := newLoad(t, s.URL+"/refused", "secret").send[0](); err == nil {
			t.Errorf("%s: an error status is not reported", name)
		}
		if err := newLoad(t, s.URL+"/unknown", "secret").send[0](); (err == nil) != (name == "net/http") {
			t.Errorf("%s: a response without a length: %v", name, err)
		}
	}
}

func TestBare(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	header, err := get(http.DefaultClient, bare(t, http.Header{"X-Page": {"1"}}, []byte(`{"id":1}`)), "secret", &body)
	if err != nil || header.Get("X-Page") != "1" || body.String() != `{"id":1}` {
		t.Errorf("%v, %q, %v", header, body.String(), err)
	}
}
