package joblog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSegmentsCut truncates a segment at every offset, as a crash may: complete
// records are kept, and the logs continue after them.
func TestSegmentsCut(t *testing.T) {
	t.Parallel()
	whole := &segmentStore{dir: t.TempDir(), limit: segmentSize}
	var want [3]string
	var ends []int // of the file, after each chunk
	var then [][3]string
	for i := range 9 {
		job, text := i%3, strings.Repeat(string(rune('a'+i)), 5+i)
		if _, err := whole.add(t.Context(), int64(job+1), int64(len(want[job])), []byte(text)); err != nil {
			t.Fatal(err)
		}
		want[job] += text
		ends, then = append(ends, int(whole.current.size)), append(then, want)
	}
	content, err := os.ReadFile(whole.path(1))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(content) + 1 {
		l := &segmentStore{dir: t.TempDir(), limit: segmentSize}
		if err := os.WriteFile(l.path(1), content[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		var have [3]string
		for i, end := range ends {
			if end <= n {
				have = then[i]
			}
		}
		for job, text := range have {
			if got, err := l.size(t.Context(), int64(job+1)); err != nil || got != int64(len(text)) {
				t.Fatalf("cut at %d: job %d has %d bytes, %v; want %d", n, job+1, got, err, len(text))
			}
			if _, err := l.add(t.Context(), int64(job+1), int64(len(text)), []byte("more")); err != nil {
				t.Fatalf("cut at %d: %v", n, err)
			}
			if got := readLog(t, l, int64(job+1), true); got != text+"more" {
				t.Fatalf("cut at %d: job %d has %q, want %q", n, job+1, got, text+"more")
			}
		}
	}
}

// TestSegmentsStart reads the segments again, as at a start of the server: removed
// logs stay removed, and a segment is deleted with its last log.
func TestSegmentsStart(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	start := func() *segmentStore { return &segmentStore{dir: dir, limit: 200} }
	l := start()
	want := map[int64]string{}
	add := func(job int64, text string) {
		t.Helper()
		if _, err := l.add(ctx, job, int64(len(want[job])), []byte(text)); err != nil {
			t.Fatal(err)
		}
		want[job] += text
	}
	for i := range 30 {
		for job := int64(1); job <= 3; job++ {
			add(job, fmt.Sprintf("%d of %d\n", i, job))
		}
	}
	if err := l.restart(ctx, 2); err != nil {
		t.Fatal(err)
	}
	before := want[2]
	want[2] = ""
	add(2, "again")
	held, err := l.open(ctx, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.remove(ctx, 1); err != nil {
		t.Fatal(err)
	}
	delete(want, 1)
	if n, err := held.Seek(0, 2); err != nil || n != held.Size {
		t.Errorf("a reader of a log that was removed: %d %v", n, err)
	}
	for range 2 {
		if ids, err := l.jobs(ctx); err != nil || fmt.Sprint(ids) != "[2 3]" {
			t.Fatalf("jobs are %v, %v", ids, err)
		}
		for job, text := range want {
			if got := readLog(t, l, job, true); got != text {
				t.Errorf("log of %d is %q, want %q", job, got, text)
			}
		}
		if got := readLog(t, l, 2, false); got != before {
			t.Errorf("the log before is %q, want %q", got, before)
		}
		l = start()
	}
	for _, job := range []int64{2, 3} {
		if err := l.remove(ctx, job); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	want = map[int64]string{}
	add(9, "next")
	if got := readLog(t, start(), 9, true); got != "next" {
		t.Errorf("log is %q", got)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzSegment reads any bytes as a segment.
func FuzzSegment(f *testing.F) {
	chunk := record{jobID: 7, size: 5, sum: 0x3610a686, kind: chunkKind}.append(nil)
	f.Add(append(chunk, "hello"...))
	f.Add(record{jobID: 7, kind: restartKind}.append(nil))
	f.Fuzz(func(t *testing.T, content []byte) {
		l := &segmentStore{dir: t.TempDir(), limit: segmentSize}
		if err := os.WriteFile(l.path(1), content, 0o600); err != nil {
			t.Fatal(err)
		}
		ids, err := l.jobs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if text := readLog(t, l, id, true); text != "" && !bytes.Contains(content, []byte(text[:1])) {
				t.Errorf("%q is not in the file", text)
			}
		}
	})
}
