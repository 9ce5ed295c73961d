package blobtest

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"svc/internal/blob"
	"svc/internal/errs"
)

const mib = 1 << 20

// testStream puts and gets 100 MB, and checks the total of all memory allocations
// meanwhile.
func testStream(t *testing.T, s blob.Store) {
	const size, most = 100_000_000, 64 * mib
	taken := func(what string, f func()) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		n := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s of %d MB takes %.1f MiB", what, size/1_000_000, float64(n)/mib)
		if n > most {
			t.Errorf("%s takes %d bytes of memory, %d are enough", what, n, most)
		}
	}
	taken("put", func() {
		n, err := s.Put(t.Context(), "big", plain{pattern(1, size)}, blob.Options{})
		if err != nil || n != size {
			t.Fatalf("Put = %d, %v", n, err)
		}
	})
	taken("get", func() {
		o, err := s.Get(t.Context(), "big")
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		if o.Size != size {
			t.Errorf("size %d", o.Size)
		}
		want := pattern(1, size)
		a, b := make([]byte, 64<<10), make([]byte, 64<<10)
		for at := 0; ; {
			n, err := io.ReadFull(o, a)
			io.ReadFull(want, b[:n])
			if !bytes.Equal(a[:n], b[:n]) {
				t.Fatalf("the bytes from %d on are not those that were put", at)
			}
			at += n
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				if at != size {
					t.Errorf("%d bytes came back", at)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// testSizes tests sizes around all limits that a store may have.
func testSizes(t *testing.T, s blob.Store) {
	for i, size := range []int64{0, 1, 255, 256, 257, 64<<10 - 1, 64 << 10, 8*mib - 1, 8 * mib, 8*mib + 1, 16 * mib, 17 * mib} {
		text := patternText(2, size)
		known, unknown := blob.Options{Size: size}, blob.Options{}
		options := []blob.Options{known, unknown}
		if size > mib { // one of them is enough
			options = options[i%2:][:1]
		}
		for _, o := range options {
			before := time.Now()
			n, err := s.Put(t.Context(), "a/size", plain{strings.NewReader(text)}, o)
			if err != nil || n != size {
				t.Fatalf("Put of %d bytes with %+v = %d, %v", size, o, n, err)
			}
			check(t, s, "a/size", text)
			info, err := s.Stat(t.Context(), "a/size")
			if err != nil || info.Key != "a/size" || info.Size != size || info.ContentType != "application/octet-stream" {
				t.Errorf("Stat after %d bytes = %+v, %v", size, info, err)
			}
			// A server may return whole seconds, and its clock may differ.
			if d := info.ModTime.Sub(before); d < -2*time.Second || d > time.Minute || info.ModTime.Location() != time.UTC {
				t.Errorf("put at %v, modified at %v", before, info.ModTime)
			}
		}
	}
}

func testContentType(t *testing.T, s blob.Store) {
	for _, tt := range []struct{ give, want string }{
		{"", "application/octet-stream"},
		{"text/plain; charset=utf-8", "text/plain; charset=utf-8"},
		{`multipart/x; boundary="a b"`, `multipart/x; boundary="a b"`},
		{"x/" + strings.Repeat("y", 200), "x/" + strings.Repeat("y", 200)},
	} {
		if _, err := s.Put(t.Context(), "k", strings.NewReader("text"), blob.Options{ContentType: tt.give}); err != nil {
			t.Fatal(err)
		}
		o, err := s.Get(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		o.Close()
		if o.ContentType != tt.want {
			t.Errorf("put as %q, is %q", tt.give, o.ContentType)
		}
	}
	for _, bad := range []string{"text/plain\r\nX-Evil: 1", "text/\x00", "text/ü", strings.Repeat("x", 300), " text/plain"} {
		_, err := s.Put(t.Context(), "bad", strings.NewReader("text"), blob.Options{ContentType: bad})
		checkKind(t, "content type "+bad, err, errs.KindInvalid)
	}
	checkKeys(t, s, "", "k")
}

func testAbsent(t *testing.T, s blob.Store) {
	put(t, s, "dir/there", "x")
	for _, key := range []string{"absent", "dir", "dir/absent", "dir/there/below", "dir/th", "no/such/dir"} {
		_, err := s.Get(t.Context(), key)
		checkKind(t, "Get "+key, err, errs.KindNotFound)
		for _, length := range []int64{-1, 0, 5} {
			_, err = s.GetRange(t.Context(), key, 0, length)
			checkKind(t, "GetRange "+key, err, errs.KindNotFound)
		}
		_, err = s.Stat(t.Context(), key)
		checkKind(t, "Stat "+key, err, errs.KindNotFound)
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("Delete(%s): %v", key, err)
		}
	}
	checkKeys(t, s, "absent")
	checkKeys(t, s, "", "dir/there")
	check(t, s, "dir/there", "x")
}

func testOverwrite(t *testing.T, s blob.Store) {
	for _, v := range []struct{ text, kind string }{
		{"first", "text/plain"}, {"", "image/png"}, {patternText(4, 9*mib), "text/html"}, {"short", "application/zip"},
	} {
		if _, err := s.Put(t.Context(), "k", strings.NewReader(v.text), blob.Options{ContentType: v.kind}); err != nil {
			t.Fatal(err)
		}
		check(t, s, "k", v.text)
		info, err := s.Stat(t.Context(), "k")
		if err != nil || info.ContentType != v.kind || info.Size != int64(len(v.text)) {
			t.Errorf("Stat = %+v, %v; want type %s, size %d", info, err, v.kind, len(v.text))
		}
	}
	checkKeys(t, s, "", "k")
}

func testDelete(t *testing.T, s blob.Store) {
	for _, key := range []string{"a/b/c", "a/b/d", "a/e", "f"} {
		put(t, s, key, key)
	}
	for _, step := range []struct {
		key  string
		left []string
	}{
		{"a/b/c", []string{"a/b/d", "a/e", "f"}},
		{"a/b/c", []string{"a/b/d", "a/e", "f"}},
		{"a/b", []string{"a/b/d", "a/e", "f"}},
		{"a/b/d", []string{"a/e", "f"}},
		{"f", []string{"a/e"}},
		{"a/e", nil},
	} {
		if err := s.Delete(t.Context(), step.key); err != nil {
			t.Errorf("Delete(%s): %v", step.key, err)
		}
		checkKeys(t, s, "", step.left...)
		for _, key := range step.left {
			check(t, s, key, key)
		}
	}
	// A deleted directory may be created again, also as an object.
	put(t, s, "a/b", "now an object")
	check(t, s, "a/b", "now an object")
}

// testDirectoryAndObject checks that a store that does not support a directory and
// an object with the same key returns Conflict and changes nothing.
func testDirectoryAndObject(t *testing.T, s blob.Store) {
	put(t, s, "a/b", "below")
	put(t, s, "c", "above")
	for _, key := range []string{"a", "c/d", "c/d/e"} {
		_, err := s.Put(t.Context(), key, strings.NewReader("new"), blob.Options{})
		if err == nil {
			check(t, s, key, "new")
		} else {
			checkKind(t, "Put "+key, err, errs.KindConflict)
		}
		check(t, s, "a/b", "below")
		check(t, s, "c", "above")
	}
}

func testPing(t *testing.T, s blob.Store) {
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	checkKeys(t, s, "")
}
