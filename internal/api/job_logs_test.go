package api_test

import (
	"bufio"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/waittest"
)

func TestTrace(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		b.pipeline(b.project)
		j := b.run()
		at := "GET " + b.at("/jobs/%d/trace", j.ID)
		s.Check(t, apptest.Call{Name: "no log yet", Do: at, As: b.owner, Status: 404})
		text := "section_start:1:x\r\x1b[0Kline\n"
		b.patch(j, 0, text, 202)
		read := func(name string) {
			t.Helper()
			got := s.Check(t, apptest.Call{Do: at, As: b.owner, Status: 200, WantHeader: map[string]string{
				"Content-Type": "text/plain; charset=utf-8", "Content-Disposition": fmt.Sprintf(`infile; filename="%d.log"`, j.ID), "Accept-Ranges": "bytes"}})
			if string(got.Body) != text {
				t.Errorf("%s: the log is %q", name, got.Body)
			}
			tag := got.Header.Get("ETag")
			s.Table(t, []apptest.Call{
				{Name: name + ": not changed", Do: at, As: b.owner, Header: map[string]string{"If-None-Match": tag}, Status: 304},
				{Name: name + ": no such part", Do: at, As: b.owner, Header: map[string]string{"Range": "bytes=1000-"}, Status: 416},
				{Name: name + ": nobody", Do: at, Status: 404},
			})
			part := s.Check(t, apptest.Call{Do: at, As: b.owner, Header: map[string]string{"Range": "bytes=8-12"}, Status: 206})
			if string(part.Body) != text[8:13] || part.Header.Get("Content-Range") != fmt.Sprintf("bytes 8-12/%d", len(text)) {
				t.Errorf("%s: part is %q, %v", name, part.Body, part.Header)
			}
			end := s.Check(t, apptest.Call{Do: at, As: b.owner, Header: map[string]string{"Range": "bytes=-4"}, Status: 206})
			if string(end.Body) != text[len(text)-4:] {
				t.Errorf("%s: the end is %q", name, end.Body)
			}
		}
		read("live")
		if got := b.patch(j, len(text), "more", 202); got.Header.Get("X-GitLab-Trace-Update-Interval") != "3" {
			t.Errorf("somebody watches, and the interval is %s", got.Header.Get("X-GitLab-Trace-Update-Interval"))
		}
		text += "more"
		b.update(j, 200, crc(text))
		b.putAway()
		read("put away")
		if left, _ := filepath.Glob(filepath.Join(s.Config.DataDir, "logs", "*", "*")); len(left) > 0 {
			t.Errorf("the live log is still there: %v", left)
		}
		s.Check(t, apptest.Call{Do: "POST " + b.at("/jobs/%d/erase", j.ID), As: b.owner, Status: 201})
		s.Check(t, apptest.Call{Name: "erased", Do: at, As: b.owner, Status: 404})
		b.settled()
		if n := b.blobs(); n != 0 {
			t.Errorf("%d files are left", n)
		}
	})
}

// TestTraceCaughtUp checks that the log of a job that ends without its runner is
// packed.
func TestTraceCaughtUp(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		b.pipeline(b.project)
		j := b.run()
		b.patch(j, 0, "all of it", 202)
		s.Check(t, apptest.Call{Do: "POST " + b.at("/jobs/%d/cancel", j.ID), As: b.owner, Status: 201})
		if got := b.patch(j, 9, "too late", 403); got.Header.Get("Job-Status") != "canceled" {
			t.Errorf("Job-Status is %q", got.Header.Get("Job-Status"))
		}
		b.putAway()
		if n := b.blobs(); n != 1 {
			t.Errorf("%d logs are put away", n)
		}
		if got := s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d/trace", j.ID), As: b.owner, Status: 200}); string(got.Body) != "all of it" {
			t.Errorf("the log is %q", got.Body)
		}
	})
}

// TestTraceErasedEarly checks that a log is deleted when its job is erased before it
// is packed.
func TestTraceErasedEarly(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		b.pipeline(b.project)
		j := b.run()
		b.patch(j, 0, "secret", 202)
		b.update(j, 200, `{"state":"success"}`)
		at := "GET " + b.at("/jobs/%d/trace", j.ID)
		s.Table(t, []apptest.Call{
			{Name: "before", Do: at, As: b.owner, Status: 200},
			{Do: "POST " + b.at("/jobs/%d/erase", j.ID), As: b.owner, Status: 201},
			{Name: "after", Do: at, As: b.owner, Status: 404},
		})
		b.putAway()
		if n := b.blobs(); n != 0 {
			t.Errorf("%d logs are put away", n)
		}
		s.Check(t, apptest.Call{Name: "later", Do: at, As: b.owner, Status: 404})
	})
}

func TestTraceLimit(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"ci_max_log_megabytes":1}`, Status: 200})
		b.pipeline(b.project)
		j := b.run()
		block := strings.Repeat("0123456789abcde\n", 48<<10>>4) // 48 KiB
		sent := 0
		for sent < 3<<20 {
			if got := b.patch(j, sent, block, 202); got.Header.Get("Range") != fmt.Sprintf("0-%d", sent+len(block)) {
				t.Fatalf("at %d: %v", sent, got.Header)
			}
			sent += len(block)
		}
		b.update(j, 200, fmt.Sprintf(`{"state":"success","output":{"checksum":"crc32:00000000","bytesize":%d}}`, sent))
		b.putAway()
		got := s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d/trace", j.ID), As: b.owner, Status: 200})
		if n := len(got.Body); n < 1<<20 || n > 1<<20+200 || !strings.Contains(string(got.Body[1<<20:]), "over its limit of 1 MiB") {
			t.Errorf("%d bytes are kept, and at the end %q", n, got.Body[min(n, 1<<20):])
		}
	})
}

func TestTraceStream(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		b.pipeline(b.project)
		j := b.run()
		b.patch(j, 0, "one\n", 202)
		follow := func(last string) (<-chan string, func()) {
			r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/api/v4"+b.at("/jobs/%d/trace", j.ID), nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("PRIVATE-TOKEN", b.owner)
			r.Header.Set("Accept", "text/event-stream")
			r.Header.Set("Last-Event-ID", last)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || got != "text/event-stream" {
				t.Errorf("%d %s", res.StatusCode, got)
			}
			lines := make(chan string, 100)
			go func() {
				defer close(lines)
				in := bufio.NewScanner(res.Body)
				for in.Scan() {
					if in.Text() != "" && in.Text() != ": " {
						lines <- in.Text()
					}
				}
			}()
			return lines, func() { _ = res.Body.Close() }
		}
		expect := func(lines <-chan string, want ...string) {
			t.Helper()
			for _, w := range want {
				if got := waittest.Receive(t, w, lines); got != w {
					t.Errorf("got %q, want %q", got, w)
				}
			}
		}
		lines, stop := follow("")
		defer stop()
		expect(lines, "event: log", "id: 4", `data: {"offset":0,"text":"one\n"}`)
		if got := b.patch(j, 4, "zw\xc3", 202); got.Header.Get("X-GitLab-Trace-Update-Interval") != "3" {
			t.Error("a stream does not count as a watcher")
		}
		expect(lines, "event: log", "id: 6", `data: {"offset":4,"text":"zw"}`)
		b.patch(j, 7, "\xb6lf\n", 202)
		expect(lines, "event: log", "id: 11", `data: {"offset":6,"text":"ölf\n"}`)
		b.update(j, 200, `{"state":"success"}`)
		expect(lines, "event: end", "id: 11", `data: {"status":"success"}`)
		again, stop := follow("6")
		defer stop()
		expect(again, "event: log", "id: 11", `data: {"offset":6,"text":"ölf\n"}`, "event: end")
	})
}
