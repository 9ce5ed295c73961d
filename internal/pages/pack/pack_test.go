package pack

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"

	"svc/internal/ci/archive"
	"svc/internal/errs"
)

// entry is a file of an archive. It is a symbolic link if its content starts with
// "-> ".
type entry struct{ name, content string }

// zipOf returns an artifact archive as a runner uploads it.
func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, e := range entries {
		head := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		content, link := strings.CutPrefix(e.content, "-> ")
		switch {
		case link:
			head.SetMode(fs.ModeSymlink | 0o777)
		case content == "<device>":
			head.SetMode(fs.ModeDevice | 0o600)
		}
		w, err := z.CreateHeader(head)
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// indexed opens an archive with an index in memory.
func indexed(from []byte) (*archive.Reader, error) {
	var index bytes.Buffer
	in := bytes.NewReader(from)
	if err := archive.WriteIndex(context.Background(), &index, in, in.Size()); err != nil {
		return nil, err
	}
	at := bytes.NewReader(index.Bytes())
	tree, err := archive.OpenIndex(at, at, at.Size())
	return &archive.Reader{Tree: tree, In: in, Size: in.Size()}, err
}

// written writes a pack of an archive and opens it.
func written(t testing.TB, from []byte, dir string, l Limits) (*Pack, Stats, error) {
	t.Helper()
	r, err := indexed(from)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	stats, err := Write(t.Context(), &out, r, dir, l)
	if err != nil {
		return nil, stats, err
	}
	p, err := Open(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return p, stats, nil
}

func content(t testing.TB, p *Pack, part Part) string {
	t.Helper()
	text, err := io.ReadAll(p.Read(part))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var plenty = Limits{Files: 100, Bytes: 1 << 20}

func TestPack(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("the same words ", 200)
	from := zipOf(t,
		entry{"public/", ""}, entry{"public/index.html", "home"}, entry{"public/a/b/c.txt", long}, entry{"public/a/link", "-> b/c.txt"},
		entry{"public/to-link", "-> a/link"}, entry{"public/photo.jpg", long}, entry{"public/own.css", long}, entry{"public/own.css.gz", "their own"},
		entry{"public/.env", "secret"}, entry{"public/a/.git/config", "secret"}, entry{"public/.well-known/x", "known"}, entry{"publicity/x", "beside"}, entry{"x", "above"})
	p, stats, err := written(t, from, "public", plenty)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Stats{Files: 8, Bytes: int64(4 + 5*len(long) + len("their own") + len("known"))}); stats != want || p.Len() != want.Files {
		t.Errorf("stats are %+v with %d files, want %+v", stats, p.Len(), want)
	}
	for name, want := range map[string]string{
		"index.html": "home", "a/b/c.txt": long, "a/link": long, "to-link": long, ".well-known/x": "known",
	} {
		f := p.Find(name)
		if f == nil {
			t.Errorf("no %s", name)
			continue
		}
		if got := content(t, p, f.Plain); got != want {
			t.Errorf("%s is %.40q, want %.40q", name, got, want)
		}
	}
	for _, name := range []string{".env", "a/.git/config", "x", "publicity/x", "../x", "", "a", "a/b", "index.html/"} {
		if p.Find(name) != nil {
			t.Errorf("there is a %q", name)
		}
	}
	for name, want := range map[string]bool{"": true, "a": true, "a/b": true, "a/b/c.txt": false, "b": false, ".well-known": true} {
		if p.Dir(name) != want {
			t.Errorf("%q is a directory: %t", name, !want)
		}
	}
	text := p.Find("a/b/c.txt")
	if same := p.Find("a/link"); same.Tag != text.Tag || text.Tag == p.Find("index.html").Tag || len(text.Tag) != 32 {
		t.Errorf("tags are %s, %s and %s", text.Tag, same.Tag, p.Find("index.html").Tag)
	}
	if got, err := io.ReadAll(brotli.NewReader(p.Read(*text.Brotli))); err != nil || string(got) != long {
		t.Errorf("the brotli copy is %.40q: %v", got, err)
	}
	z, err := gzip.NewReader(p.Read(*text.Gzip))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != long {
		t.Errorf("the gzip copy is %.40q: %v", got, err)
	}
	if f := p.Find("photo.jpg"); f.Brotli != nil || f.Gzip != nil {
		t.Error("a picture was compressed")
	}
	if f := p.Find("index.html"); f.Brotli != nil || f.Gzip != nil {
		t.Error("a few bytes were compressed")
	}
	if got := content(t, p, *p.Find("own.css").Gzip); got != "their own" {
		t.Errorf("the copy of the site itself is %.40q", got)
	}
}

// TestRefused checks that archives that cannot be published are rejected.
func TestRefused(t *testing.T) {
	t.Parallel()
	many := make([]entry, 101)
	for i := range many {
		many[i] = entry{fmt.Sprintf("public/%d", i), "x"}
	}
	// A chain of too many links.
	chain := []entry{{"public/l0", "x"}}
	for i := range maxHops + 1 {
		chain = append(chain, entry{fmt.Sprintf("public/l%d", i+1), fmt.Sprintf("-> l%d", i)})
	}
	for _, c := range []struct {
		name string
		dir  string
		from []entry
		want string
	}{
		{"no directory", "public", []entry{{"dist/x", "x"}}, `no directory "public"`},
		{"an empty one", "public", []entry{{"public/", ""}, {"public/.env", "x"}}, "has no files"},
		{"up", "public", []entry{{"public/../x", "x"}}, `no directory "public"`},
		{"up and down", ".", []entry{{"a/../../x", "x"}}, "has no files"},
		{"absolute", ".", []entry{{"/etc/passwd", "x"}}, "has no files"},
		{"backslash", "public", []entry{{`public/a\b`, "x"}}, "cannot be published"},
		{"zero", "public", []entry{{"public/a\x00b", "x"}}, "cannot be published"},
		{"line", "public", []entry{{"public/a\nb", "x"}}, "cannot be published"},
		{"two slashes", "public", []entry{{"public/a//b", "x"}}, `no directory "public"`},
		{"link out", "public", []entry{{"public/x", "-> ../secret"}, {"secret", "x"}}, "does not point to a file"},
		{"absolute link", "public", []entry{{"public/x", "-> /etc/passwd"}}, "does not point to a file"},
		{"absolute link to a file", "public", []entry{{"public/x", "-> /y"}, {"public/y", "x"}}, "does not point to a file"},
		{"link to hidden", "public", []entry{{"public/x", "-> .env"}, {"public/.env", "x"}}, "does not point to a file"},
		{"link to a directory", "public", []entry{{"public/x", "-> a"}, {"public/a/b", "x"}}, "does not point to a file"},
		{"link to itself", "public", []entry{{"public/x", "-> x"}}, "does not point to a file"},
		{"circle", "public", []entry{{"public/x", "-> y"}, {"public/y", "-> x"}}, "does not point to a file"},
		{"chain", "public", chain, "does not point to a file"},
		{"device", "public", []entry{{"public/x", "<device>"}}, "neither a file nor a link"},
		{"too many", "public", many, "more than 100 files"},
		{"too large", "public", []entry{{"public/x", strings.Repeat("0", 1<<20+1)}}, "over the limit"},
		{"too large together", "public", []entry{{"public/x", strings.Repeat("0", 600<<10)}, {"public/y", strings.Repeat("0", 600<<10)}}, "over the limit"},
		{"links count", "public", []entry{{"public/x", strings.Repeat("0", 600<<10)}, {"public/y", "-> x"}}, "over the limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := written(t, zipOf(t, c.from...), c.dir, plenty)
			if !errs.Is(err, errs.KindUnprocessable) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestLiar writes a pack of an archive that declares a smaller size of a file than
// it has.
func TestLiar(t *testing.T) {
	t.Parallel()
	from := zipOf(t, entry{"public/x", strings.Repeat("0", 1<<20)})
	at := bytes.LastIndex(from, []byte("PK\x01\x02")) + 24
	for _, size := range []uint32{10, 1<<20 - 1, 1<<20 + 1, 1<<32 - 2} {
		binary.LittleEndian.PutUint32(from[at:], size)
		r, err := indexed(from)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Write(t.Context(), io.Discard, r, "public", Limits{Files: 1}); !errs.Is(err, errs.KindUnprocessable) {
			t.Errorf("%d bytes: got %v", size, err)
		}
	}
}

// TestBroken opens packs with missing or changed parts.
func TestBroken(t *testing.T) {
	t.Parallel()
	from := zipOf(t, entry{"public/a.txt", strings.Repeat("words ", 300)}, entry{"public/b", "x"})
	r, err := indexed(from)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := Write(t.Context(), &out, r, "public", plenty); err != nil {
		t.Fatal(err)
	}
	for n := range out.Len() {
		if _, err := Open(bytes.NewReader(out.Bytes()[:n]), int64(n)); err == nil {
			t.Fatalf("the first %d of %d bytes are a pack", n, out.Len())
		}
	}
	if _, err := Open(bytes.NewReader(zipOf(t, entry{"site/x", "compressed"})), int64(len(zipOf(t, entry{"site/x", "compressed"})))); err == nil {
		t.Error("a pack may have compressed entries")
	}
	// A changed artifact archive is detected when it is read.
	broken := bytes.Clone(from)
	copy(broken[60:], "something else")
	if _, _, err := written(t, broken, "public", plenty); !errs.Is(err, errs.KindUnprocessable) {
		t.Errorf("a changed archive: %v", err)
	}
}

// FuzzWrite checks that a pack of any archive can be opened, is within the limits
// and has only plain paths.
func FuzzWrite(f *testing.F) {
	f.Add(zipOf(f, entry{"public/index.html", "home"}, entry{"public/l", "-> index.html"}), "public")
	f.Add(zipOf(f, entry{"a/../b", "x"}, entry{".git/x", "y"}), ".")
	f.Add(zipOf(f, entry{"public/a.css", strings.Repeat("a{} ", 200)}, entry{"public/a.css.br", "z"}), "public")
	f.Fuzz(func(t *testing.T, from []byte, dir string) {
		r, err := indexed(from)
		if err != nil {
			return
		}
		var out bytes.Buffer
		limits := Limits{Files: 10, Bytes: 64 << 10}
		stats, err := Write(t.Context(), &out, r, dir, limits)
		if err != nil {
			if !errs.Is(err, errs.KindUnprocessable) {
				t.Fatalf("%v is for nobody", err)
			}
			return
		}
		p, err := Open(bytes.NewReader(out.Bytes()), int64(out.Len()))
		if err != nil {
			t.Fatalf("what was written can not be opened: %v", err)
		}
		if stats.Files > limits.Files || stats.Bytes > limits.Bytes || p.Len() != stats.Files {
			t.Fatalf("%+v, %d files", stats, p.Len())
		}
		for name, file := range p.files {
			if !fs.ValidPath(name) || hidden(name) || strings.Contains(name, `\`) {
				t.Fatalf("a file is named %q", name)
			}
			if n, err := io.Copy(io.Discard, p.Read(file.Plain)); err != nil || n != file.Plain.Size {
				t.Fatalf("%q has %d of %d bytes: %v", name, n, file.Plain.Size, err)
			}
		}
	})
}

// FuzzOpen checks that opening and reading arbitrary data as a pack is safe.
func FuzzOpen(f *testing.F) {
	f.Add(zipOf(f, entry{"site/x", ""}))
	var out bytes.Buffer
	from := zipOf(f, entry{"public/a.txt", strings.Repeat("words ", 300)})
	if r, err := indexed(from); err == nil {
		if _, err := Write(f.Context(), &out, r, "public", plenty); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Open(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			return
		}
		for name, file := range p.files {
			for _, part := range []*Part{&file.Plain, file.Brotli, file.Gzip} {
				if part == nil {
					continue
				}
				if got, err := io.ReadAll(p.Read(*part)); err == nil && len(got) > len(text) {
					t.Fatalf("%q has more bytes than there are", name)
				}
			}
		}
	})
}
