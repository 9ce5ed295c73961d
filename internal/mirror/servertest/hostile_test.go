package servertest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/pktline"
	"svc/internal/waittest"
)

// endless writes a line again and again, each with another number, until the other
// side closes the connection or most bytes are written. It returns the number of bytes.
func endless(w io.Writer, line string, most int64) (written int64) {
	var b []byte
	for i := 0; written < most; i++ {
		b = b[:0]
		for range 100 {
			b = pktline.Append(b, fmt.Sprintf(line, i))
			i++
		}
		n, err := w.Write(b)
		written += int64(n)
		if err != nil {
			break
		}
	}
	return written
}

// TestEndlessRefs imports from a server whose list of refs does not end.
func TestEndlessRefs(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		m := newMirrorTester(t, s)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		var sent atomic.Int64
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				line := strings.Repeat("0", 39) + "1 refs/pull/%d/head\x00" + strings.Repeat("word ", 2000) + "\n"
				sent.Add(endless(c, line, 1<<30))
				c.Close()
			}
		}()
		m.Check(t, apptest.Call{Do: "POST /projects", As: m.alice, Form: url.Values{"name": {"copy"}, "import_url": {"git://" + l.Addr().String() + "/x"}}, Status: 201})
		waittest.For(t, "the import to fail", func() bool { return m.importState(t, "copy").Status == "failed" })
		if now := m.importState(t, "copy"); now.Error == nil || *now.Error != "The server's list of refs is too long." {
			t.Errorf("%v", *now.Error)
		}
		waittest.For(t, "the connection to be closed", func() bool { return sent.Load() > 0 })
		if n := sent.Load(); n > 200<<20 {
			t.Errorf("%d bytes were sent", n)
		}
	})
}

// TestEndlessReport pushes to a server whose report of the push does not end.
func TestEndlessReport(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		m := newMirrorTester(t, s)
		var sent atomic.Int64
		destination := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var b bytes.Buffer
			if r.Method == http.MethodGet {
				w.Header().Set("Content-Type", "application/x-git-receive-pack-advertisement")
				b.Write(pktline.Append(nil, "# service=git-receive-pack\n"))
				b.Write(pktline.AppendFlush(nil))
				b.Write(pktline.Append(nil, strings.Repeat("0", 40)+" capabilities^{}\x00report-status delete-refs ofs-delta\n"))
				b.Write(pktline.AppendFlush(nil))
				_, _ = w.Write(b.Bytes())
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
			_, _ = w.Write(pktline.Append(nil, "unpack ok\n"))
			sent.Add(endless(w, "ok refs/heads/%d"+strings.Repeat("x", 1000)+"\n", 1<<30))
		}))
		t.Cleanup(destination.Close)
		made := m.create(t, url.Values{"url": {destination.URL + "/x.git"}})
		now := m.sync(t, made.ID)
		if now.Status != "failed" || now.LastError == nil || *now.LastError != "The server's report of the push is too long." {
			t.Errorf("%+v", now)
		}
		waittest.For(t, "the connection to be closed", func() bool { return sent.Load() > 0 })
		if n := sent.Load(); n > 64<<20 {
			t.Errorf("%d bytes were sent", n)
		}
	})
}
