package blobtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/blob"
	"svc/internal/errs"
)

func testList(t *testing.T, s blob.Store) {
	checkKeys(t, s, "")
	checkKeys(t, s, "no/such/")
	all := []string{"a-b", "a/1", "a/10", "a/2/x", "a/2/y/z", "a0", "b", "b.c/d", "ü"}
	for _, key := range slices.Backward(all) {
		put(t, s, key, "text of "+key)
	}
	for prefix, want := range map[string][]string{
		"":       all,
		"a":      {"a-b", "a/1", "a/10", "a/2/x", "a/2/y/z", "a0"},
		"a/":     {"a/1", "a/10", "a/2/x", "a/2/y/z"},
		"a/1":    {"a/1", "a/10"},
		"a/2/":   {"a/2/x", "a/2/y/z"},
		"a/2/y":  {"a/2/y/z"},
		"a/2/yy": nil,
		"b":      {"b", "b.c/d"},
		"b/":     nil,
		"a-b/":   nil,
		"a0":     {"a0"},
		"z":      nil,
		"ü":      {"ü"},
		".":      nil,
	} {
		checkKeys(t, s, prefix, want...)
	}
	for info, err := range s.List(t.Context(), "a/2/") {
		if err != nil {
			t.Fatal(err)
		}
		if info.Size != int64(len("text of "+info.Key)) || info.ModTime.IsZero() || info.ModTime.Location() != time.UTC {
			t.Errorf("listed as %+v", info)
		}
		break // stopping early must work
	}
	for _, prefix := range []string{"/", "/a", "../", "a/../", "a//", "a//b", "\x00", "a\\", "\xff", strings.Repeat("x", 2000)} {
		n := 0
		for _, err := range s.List(t.Context(), prefix) {
			checkKind(t, "List "+prefix, err, errs.KindInvalid)
			n++
		}
		if n != 1 {
			t.Errorf("List(%.20q) goes on after its error: %d rounds", prefix, n)
		}
	}
}

// testListMany lists more than 1000 objects, the maximum page size of a server.
func testListMany(t *testing.T, s blob.Store) {
	const count, workers = 1050, 8
	var want []string
	for i := range count {
		want = append(want, fmt.Sprintf("many/%c/%d", 'a'+i%26, i))
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < count; i += workers {
				if _, err := s.Put(t.Context(), want[i], strings.NewReader("x"), blob.Options{Size: 1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(want)
	checkKeys(t, s, "many/", want...)
	n := 0
	for range s.List(t.Context(), "many/") {
		if n++; n == 10 {
			break
		}
	}
	if n != 10 {
		t.Errorf("%d objects before the break", n)
	}
}
