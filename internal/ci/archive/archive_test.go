package archive

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"
)

// counted counts the reads and bytes of a reader.
type counted struct {
	io.ReaderAt
	reads, bytes int
}

func (c *counted) ReadAt(p []byte, at int64) (int, error) {
	c.reads++
	c.bytes += len(p)
	return c.ReaderAt.ReadAt(p, at)
}

func pack(t testing.TB, method uint16, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range names {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil && !strings.HasSuffix(name, "/") {
			_, err = io.WriteString(w, "content of "+name)
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

func open(t testing.TB, content []byte) (*Reader, *counted) {
	t.Helper()
	var index bytes.Buffer
	in := bytes.NewReader(content)
	if err := WriteIndex(t.Context(), &index, in, in.Size()); err != nil {
		t.Fatal(err)
	}
	at := &counted{ReaderAt: bytes.NewReader(index.Bytes())}
	tree, err := OpenIndex(at, at, int64(index.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return &Reader{Tree: tree, In: in, Size: in.Size()}, at
}

func TestIndex(t *testing.T) {
	t.Parallel()
	names := []string{"b.txt", "a", "a/c/d.txt", "a-b/x", "a/b", "empty/", "z/z/z/z", "a/c/", "../out", "/etc/passwd", "x//y", "a.txt", "b.txt"}
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		r, _ := open(t, append([]byte("stands before"), pack(t, method, names...)...))
		list, more, err := r.List(".", 4)
		if err != nil || !more {
			t.Fatal(err)
		}
		var got []string
		for _, e := range list {
			got = append(got, fmt.Sprintf("%s %t %d %d", e.Path, e.Dir, e.Size, e.Files))
		}
		if want := "a true 34 2,a-b true 16 1,empty true 0 0,z true 18 1"; strings.Join(got, ",") != want {
			t.Errorf("got %v", got)
		}
		var walked []string
		err = r.Walk("a", func(e *Entry) error {
			walked = append(walked, e.Path)
			in, err := r.Open(e)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(in)
			if string(text) != "content of "+e.Path {
				t.Errorf("%s: %q", e.Path, text)
			}
			return err
		})
		if err != nil || strings.Join(walked, " ") != "a/c/d.txt a/b" {
			t.Errorf("%v %v", walked, err)
		}
		for name, want := range map[string]bool{"a": true, "b.txt": true, "z/z/z/z": true, "z": false, "a/c": false, "no": false, "a/c/d.txt/e": false, "etc/passwd": false} {
			if _, err := r.Find(name, false); (err == nil) != want || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestIndexAgainstZip compares the index with what archive/zip reads.
func TestIndexAgainstZip(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		files := fstest.MapFS{}
		var names []string
		for range random.IntN(200) {
			var parts []string
			for range 1 + random.IntN(5) {
				parts = append(parts, string(rune('a'+random.IntN(5))))
			}
			name := strings.Join(parts, "/")
			if files[name] == nil {
				files[name] = &fstest.MapFile{Data: []byte("content of " + name)}
				names = append(names, name)
			}
		}
		r, _ := open(t, pack(t, zip.Deflate, names...))
		seen := map[string]bool{}
		if err := r.Walk(".", func(e *Entry) error { seen[e.Path] = true; return nil }); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			e, err := r.Find(name, false)
			if err != nil || !seen[name] || e.Size != int64(len(files[name].Data)) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if len(seen) != len(names) {
			t.Fatalf("%d of %d files", len(seen), len(names))
		}
	}
}

// flat writes an archive of many empty files without archive/zip, quickly.
func flat(count int, name func(int) string) []byte {
	var dir bytes.Buffer
	for i := range count {
		head := make([]byte, headerSize)
		binary.LittleEndian.PutUint32(head, headerSignature)
		binary.LittleEndian.PutUint16(head[28:], uint16(len(name(i))))
		dir.Write(head)
		dir.WriteString(name(i))
	}
	end64 := make([]byte, end64Size)
	binary.LittleEndian.PutUint32(end64, end64Signature)
	binary.LittleEndian.PutUint64(end64[32:], uint64(count))
	binary.LittleEndian.PutUint64(end64[40:], uint64(dir.Len()))
	locator := make([]byte, locatorSize)
	binary.LittleEndian.PutUint32(locator, locatorSignature)
	binary.LittleEndian.PutUint64(locator[8:], uint64(dir.Len()))
	last := make([]byte, endSize)
	binary.LittleEndian.PutUint32(last, endSignature)
	for i := 8; i < 20; i++ {
		last[i] = 0xff
	}
	return bytes.Join([][]byte{dir.Bytes(), end64, locator, last}, nil)
}

// TestLargeIndexReads checks that finding a file of a large archive reads little.
func TestLargeIndexReads(t *testing.T) {
	t.Parallel()
	const files = 200_000
	r, at := open(t, flat(files, func(i int) string { return fmt.Sprintf("d%d/f%d", i%3, i) }))
	at.reads, at.bytes = 0, 0
	if _, err := r.Find("d1/f100000", false); err != nil {
		t.Fatal(err)
	}
	if at.reads > 200 || at.bytes > 20_000 {
		t.Errorf("a file: %d reads, %d bytes", at.reads, at.bytes)
	}
	at.reads, at.bytes = 0, 0
	if list, more, err := r.List("d2", 500); err != nil || len(list) != 500 || !more {
		t.Fatal(err)
	}
	if at.reads > 2000 || at.bytes > 100_000 {
		t.Errorf("a directory: %d reads, %d bytes", at.reads, at.bytes)
	}
	root, err := r.Find(".", true)
	if err != nil || root.Files != files {
		t.Errorf("%+v %v", root, err)
	}
}

func TestArchiveLimits(t *testing.T) {
	t.Parallel()
	for want, content := range map[string][]byte{
		"more than 500000 files": flat(MaxEntries+1, func(i int) string { return fmt.Sprint(i) }),
		"files and directories":  flat(30_000, func(i int) string { return fmt.Sprintf("%d/%s", i, strings.Repeat("d/", 20)) }),
		"path of more than 4096": flat(1, func(int) string { return strings.Repeat("a", 5000) }),
		"nested more than 100":   flat(2, func(i int) string { return strings.Repeat("a/", 101) + fmt.Sprint(i) }),
	} {
		var out bytes.Buffer
		err := WriteIndex(t.Context(), &out, bytes.NewReader(content), int64(len(content)))
		var limit *LimitError
		if !errors.As(err, &limit) || !strings.Contains(limit.Reason, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	content := flat(100, func(i int) string { return fmt.Sprint(i) })
	if err := WriteIndex(ctx, io.Discard, bytes.NewReader(content), int64(len(content))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("PK\x05\x06"), "a")
	f.Add(flat(3, func(i int) string { return fmt.Sprintf("a/%d", i) }), "a/1")
	f.Add(pack(f, zip.Deflate, "a/b", "c"), "c")
	f.Fuzz(func(t *testing.T, content []byte, name string) {
		var index bytes.Buffer
		in := bytes.NewReader(content)
		if err := WriteIndex(t.Context(), &index, in, in.Size()); err != nil {
			return
		}
		if index.Len() > footerSize+(recordSize+8)*(10*len(content)+1) {
			t.Fatalf("an index of %d bytes for %d", index.Len(), len(content))
		}
		at := bytes.NewReader(index.Bytes())
		tree, err := OpenIndex(at, at, at.Size())
		if err != nil {
			t.Fatal(err)
		}
		r := &Reader{Tree: tree, In: in, Size: in.Size()}
		err = r.Walk(".", func(e *Entry) error {
			found, err := r.Find(e.Path, false)
			if err != nil {
				return err
			}
			if file, err := r.Open(found); err == nil {
				_, _ = io.Copy(io.Discard, io.LimitReader(file, 1<<20)) // it may be broken
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = r.Find(name, false) // it may not be there
	})
}

// FuzzOpenIndex opens any bytes as an index.
func FuzzOpenIndex(f *testing.F) {
	var index bytes.Buffer
	content := pack(f, zip.Deflate, "a/b", "c")
	if err := WriteIndex(context.Background(), &index, bytes.NewReader(content), int64(len(content))); err != nil {
		f.Fatal(err)
	}
	f.Add(index.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		at := bytes.NewReader(text)
		tree, err := OpenIndex(at, at, at.Size())
		if err != nil {
			return
		}
		_, _ = tree.Find("a/b", false)
		_, _, _ = tree.List("a", 500)
	})
}
