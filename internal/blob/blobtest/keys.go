package blobtest

import (
	"strings"
	"testing"
	"time"

	"svc/internal/blob"
	"svc/internal/errs"
)

// testOddKeys tests unusual but valid keys.
func testOddKeys(t *testing.T, s blob.Store) {
	odd := []string{
		"a b", "a+b", "a%2Fb", "a%00", "a#b?c&d=e;f", "ü/日本語", `"quoted"/'single'`, "...", "..a", "a..", ".hidden/.too",
		"~", "$HOME", "`id`", "a:b", "a*b", "-rf", "<x>", "Case", "case", "tmp/lock", "objects/x",
		strings.Repeat("p", 255), strings.Repeat("d/", 400) + "deep",
	}
	for _, key := range odd {
		put(t, s, key, "text of "+key)
	}
	for _, key := range odd {
		check(t, s, key, "text of "+key)
		if info, err := s.Stat(t.Context(), key); err != nil || info.Key != key {
			t.Errorf("Stat(%.80q) = %+v, %v", key, info, err)
		}
		checkKeys(t, s, key, key)
	}
	if got := keys(t, s, ""); len(got) != len(odd) {
		t.Errorf("List gives %q", got)
	}
	for _, key := range odd {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("Delete(%.80q): %v", key, err)
		}
	}
	checkKeys(t, s, "")
}

func testHostileKeys(t *testing.T, s blob.Store) {
	put(t, s, "a/b", "x")
	for _, key := range []string{
		"", "/", "//", "/a", "a/", "a//b", "..", ".", "../a", "a/..", "a/../b", "a/./b", "./a", "../../../../etc/passwd",
		"a\x00b", "\x00", "a\nb", "a\rb", "a\tb", "a\x7fb", "a\u0085b", "a\uffff", `a\b`, `..\..\a`, "\xff\xfe", "a/\xc0\xae\xc0\xae/b",
		strings.Repeat("x", 256), strings.Repeat("x/", 450) + "x", strings.Repeat("x/", 5000) + "x",
	} {
		ctx := t.Context()
		_, err := s.Put(ctx, key, strings.NewReader("evil"), blob.Options{})
		checkKind(t, "Put "+key, err, errs.KindInvalid)
		_, err = s.Get(ctx, key)
		checkKind(t, "Get "+key, err, errs.KindInvalid)
		for _, length := range []int64{-1, 0, 1} {
			_, err = s.GetRange(ctx, key, 0, length)
			checkKind(t, "GetRange "+key, err, errs.KindInvalid)
		}
		_, err = s.Stat(ctx, key)
		checkKind(t, "Stat "+key, err, errs.KindInvalid)
		checkKind(t, "Delete "+key, s.Delete(ctx, key), errs.KindInvalid)
		_, err = s.URL(ctx, key, time.Minute)
		checkKind(t, "URL "+key, err, errs.KindInvalid)
	}
	checkKeys(t, s, "", "a/b")
}
