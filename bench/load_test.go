package bench

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// clients is how many clients send requests at once, each the next one as
// soon as it has its answer.
const clients = 8

// load is one request that is sent over and over, on connections that stay
// open.
type load struct {
	client *http.Client
	url    string
	token  string
}

func newLoad(b testing.TB, url, token string) *load {
	b.Helper()
	t := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	b.Cleanup(t.CloseIdleConnections)
	return &load{&http.Client{Transport: t}, url, token}
}

// run loads the server for a while and gives the requests per second.
func (l *load) run(b testing.TB, d time.Duration) float64 {
	b.Helper()
	var wg sync.WaitGroup
	counts, faults := make([]int, clients), make([]error, clients)
	start := time.Now()
	for i := range clients {
		wg.Go(func() {
			for faults[i] == nil && time.Since(start) < d {
				_, faults[i] = l.send(io.Discard)
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

// send sends the request and reads the answer, which must be a 200.
func (l *load) send(body io.Writer) (http.Header, error) {
	r, err := http.NewRequest(http.MethodGet, l.url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("PRIVATE-TOKEN", l.token)
	res, err := l.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", l.url, res.Status)
	}
	_, err = io.Copy(body, res.Body)
	return res.Header, err
}

// bare starts the server that ours is measured against: it does nothing but
// send the same answer, header and body.
func bare(b testing.TB, header http.Header, body []byte) (url string) {
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
	var body strings.Builder
	l := newLoad(t, bare(t, http.Header{"X-Page": {"1"}}, []byte(`{"id":1}`)), "secret")
	header, err := l.send(&body)
	if err != nil || header.Get("X-Page") != "1" || body.String() != `{"id":1}` {
		t.Errorf("%v, %q, %v", header, body.String(), err)
	}
	if got := l.run(t, 10*time.Millisecond); got < clients {
		t.Errorf("%v requests per second", got)
	}
	refuse := httptest.NewServer(http.NotFoundHandler())
	defer refuse.Close()
	if _, err := newLoad(t, refuse.URL, "secret").send(io.Discard); err == nil {
		t.Error("a refusal is no error")
	}
}
