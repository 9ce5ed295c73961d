// Package blobtest is the test suite of blob.Store implementations, and an S3
// server for tests.
package blobtest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/internal/blob"
	"svc/internal/errs"
)

// Run tests an implementation of blob.Store. newStore returns a new empty store. The
// caller must not be parallel, because the first test measures the memory of the
// process.
func Run(t *testing.T, newStore func(t *testing.T) blob.Store) {
	t.Run("stream", func(t *testing.T) { testStream(t, newStore(t)) })
	for _, tt := range []struct {
		name string
		test func(*testing.T, blob.Store)
	}{
		{"sizes", testSizes},
		{"content type", testContentType},
		{"odd keys", testOddKeys},
		{"hostile keys", testHostileKeys},
		{"absent", testAbsent},
		{"range", testRange},
		{"seek", testSeek},
		{"serve", testServe},
		{"overwrite", testOverwrite},
		{"read while replaced", testReadWhileReplaced},
		{"delete", testDelete},
		{"directory and object", testDirectoryAndObject},
		{"list", testList},
		{"list many", testListMany},
		{"wrong size", testWrongSize},
		{"body breaks off", testBodyBreaksOff},
		{"cancelled", testCancelled},
		{"puts at once", testPutsAtOnce},
		{"puts and deletes at once", testPutsAndDeletesAtOnce},
		{"url", testURL},
		{"upload url", testUploadURL},
		{"copy", testCopy},
		{"ping", testPing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, newStore(t))
		})
	}
}

func put(t testing.TB, s blob.Store, key, text string) {
	t.Helper()
	n, err := s.Put(t.Context(), key, strings.NewReader(text), blob.Options{})
	if err != nil || n != int64(len(text)) {
		t.Fatalf("Put(%.80q) = %d, %v; want %d", key, n, err, len(text))
	}
}

func read(s blob.Store, t testing.TB, key string) (string, error) {
	o, err := s.Get(t.Context(), key)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(o)
	return string(b), errors.Join(err, o.Close())
}

func check(t testing.TB, s blob.Store, key, want string) {
	t.Helper()
	got, err := read(s, t, key)
	if err != nil || got != want {
		t.Errorf("%.80q holds %.40q (%d bytes), %v; want %.40q (%d bytes)", key, got, len(got), err, want, len(want))
	}
}

func checkKind(t testing.TB, what string, err error, want errs.Kind) {
	t.Helper()
	if !errs.Is(err, want) {
		t.Errorf("%s: %v, want an error of kind %d", what, err, want)
	}
}

func keys(t testing.TB, s blob.Store, prefix string) []string {
	t.Helper()
	var keys []string
	for info, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("List(%q): %v", prefix, err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func checkKeys(t testing.TB, s blob.Store, prefix string, want ...string) {
	t.Helper()
	got := keys(t, s, prefix)
	if slices.Equal(got, want) {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	head := func(keys []string) []string { return keys[at:min(len(keys), at+10)] }
	t.Errorf("List(%.80q) gives %d keys, want %d; from number %d on it has %.80q, want %.80q",
		prefix, len(got), len(want), at, head(got), head(want))
}

// pattern returns a reader of n bytes. They repeat after a prime number of bytes, so
// that a lost, repeated or moved buffer is detected.
func pattern(seed byte, n int64) io.Reader {
	p := &patternReader{block: make([]byte, 65_521)}
	rand.NewChaCha8([32]byte{seed}).Read(p.block)
	return io.LimitReader(p, n)
}

type patternReader struct {
	block []byte
	at    int
}

func (p *patternReader) Read(b []byte) (int, error) {
	n := copy(b, p.block[p.at:])
	p.at = (p.at + n) % len(p.block)
	return n, nil
}

func patternText(seed byte, n int64) string {
	var b bytes.Buffer
	io.Copy(&b, pattern(seed, n))
	return b.String()
}

// plain hides all methods of a reader except Read, like the body of a request.
type plain struct{ io.Reader }
