package ci

import (
	"archive/zip"
	"bytes"
	"fmt"
	"testing"

	"svc/internal/blob"
	"svc/internal/errs"
)

func TestZipDirectory(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := range 3000 {
		w, err := z.Create(fmt.Sprintf("dir/file-%d.txt", i))
		if err == nil {
			_, err = w.Write([]byte("x"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	size, err := zipDirectory(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil || size < 3000*46 || size > int64(out.Len()) {
		t.Errorf("the directory has %d of %d bytes: %v", size, out.Len(), err)
	}
	store, err := blob.Open(t.Context(), "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string, content []byte) *Artifact {
		t.Helper()
		n, err := store.Put(t.Context(), key, bytes.NewReader(content), blob.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return &Artifact{Size: n, blob: key}
	}
	r, err := openZip(t.Context(), store, put("good", out.Bytes()))
	if err != nil || len(r.File) != 3000 {
		t.Errorf("%v", err)
	}
	for name, content := range map[string][]byte{"empty": nil, "text": []byte("no archive"), "cut": out.Bytes()[:out.Len()/2]} {
		if _, err := openZip(t.Context(), store, put(name, content)); !errs.Is(err, errs.KindUnprocessable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// One that says its list is larger than we hold.
	huge := bytes.Clone(out.Bytes())
	at := bytes.LastIndex(huge, []byte("PK\x05\x06"))
	copy(huge[at+12:], []byte{0xff, 0xff, 0xff, 0x7f})
	if _, err := openZip(t.Context(), store, put("huge", huge)); !errs.Is(err, errs.KindUnprocessable) {
		t.Errorf("a huge list: %v", err)
	}
}

func FuzzZipDirectory(f *testing.F) {
	f.Add([]byte("PK\x05\x06"))
	f.Add(append(make([]byte, 40), "PK\x05\x06\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00"...))
	f.Fuzz(func(t *testing.T, text []byte) {
		if n, err := zipDirectory(bytes.NewReader(text), int64(len(text))); err == nil && n < 0 {
			t.Errorf("%d", n)
		}
	})
}

func TestScopeCovers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"review/*", "review/1", true}, {"review/*", "review", false}, {"*/eu", "prod/eu", true},
		{"a*b*c", "axbyc", true}, {"a*b*c", "acb", false}, {"production", "production", true}, {"prod", "production", false},
	} {
		if got := scopeCovers(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q covers %q: %v", tt.pattern, tt.name, got)
		}
	}
}
