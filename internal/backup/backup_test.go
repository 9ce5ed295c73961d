package backup

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func noProgress(int64, int64) {}

func roots() []string { return []string{"data", "blobs"} }

// written returns a backup with a few entries, one of them large.
func written(t testing.TB, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	long := strings.Repeat("ä long name/", 30) + "end" // too long for a USTAR header
	for _, name := range []string{"data/a", "blobs/" + long} {
		if err := w.Add(name, 5, Meta{"type": "text/plain; x=\"é\""}, strings.NewReader("hello, and more")); err != nil {
			t.Fatal(err)
		}
	}
	large := bytes.Repeat([]byte("0123456789"), size/10+1)
	for name, content := range map[string][]byte{"blobs/large": large, "blobs/small": []byte("x"), "blobs/none": nil} {
		err := w.AddFrom(name, func(w io.Writer) (Meta, error) {
			for part := range chunks(content, 100_000) {
				if _, err := w.Write(part); err != nil {
					return nil, err
				}
			}
			return Meta{"n": fmt.Sprint(len(content))}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	failed := errors.New("no")
	if err := w.AddFrom("blobs/fails", func(w io.Writer) (Meta, error) {
		_, _ = w.Write(large)
		return nil, failed
	}); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	for _, name := range []string{"", "a", "/a/b", "a/../b", "../a/b", "a/b\n", `a\b/c`, "a/\xff", "a//b", "a/./b"} {
		if err := w.Add(name, 0, nil, strings.NewReader("")); err == nil {
			t.Errorf("the name %q was accepted", name)
		}
	}
	if err := w.Finish(&Manifest{Program: "1", Schema: 7, Storages: []string{"default"}}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func chunks(b []byte, n int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for ; len(b) > 0; b = b[min(n, len(b)):] {
			if !yield(b[:min(n, len(b))]) {
				return
			}
		}
	}
}

func opened(t *testing.T, text []byte) (*Reader, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.tar")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(name, roots(), noProgress)
	if err == nil {
		t.Cleanup(func() { r.Close() })
	}
	return r, err
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	r, err := opened(t, written(t, spoolLimit))
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Manifest; m.Entries != 5 || m.Schema != 7 || m.Parts["data"] != (Part{1, 5}) || m.Parts["blobs"].Entries != 4 {
		t.Errorf("%+v", m)
	}
	sizes := map[string]int64{}
	err = r.Each("blobs", func(e Entry, in io.Reader) error {
		text, err := io.ReadAll(in)
		if int64(len(text)) != e.Size {
			t.Errorf("%s has %d bytes, want %d", e.Name, len(text), e.Size)
		}
		if n, ok := e.Meta["n"]; ok && n != fmt.Sprint(e.Size) {
			t.Errorf("%s says %s", e.Name, n)
		}
		sizes[e.Name] = e.Size
		return err
	})
	if err != nil || len(sizes) != 4 || sizes["none"] != 0 || sizes["large"] <= spoolLimit {
		t.Error(sizes, err)
	}
	err = r.Each("data", func(e Entry, in io.Reader) error {
		if e.Name != "a" || e.Meta["type"] != "text/plain; x=\"é\"" {
			t.Errorf("%+v", e)
		}
		return nil // the content need not be read
	})
	if err != nil {
		t.Error(err)
	}
}

// rewritten copies a backup with changed headers and contents.
func rewritten(t *testing.T, text []byte, change func(head *tar.Header, content []byte) []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	in, w := tar.NewReader(bytes.NewReader(text)), tar.NewWriter(&out)
	for {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		head.PAXRecords = map[string]string{}
		if content = change(head, content); content == nil {
			continue
		}
		head.Size = int64(len(content))
		if err := errors.Join(w.WriteHeader(head)); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(content)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRefused(t *testing.T) {
	t.Parallel()
	good := written(t, spoolLimit)
	changed := func(name string, change func(head *tar.Header, content []byte) []byte) []byte {
		return rewritten(t, good, func(head *tar.Header, content []byte) []byte {
			if head.Name == name {
				return change(head, content)
			}
			return append([]byte{}, content...)
		})
	}
	renamed := func(to string) []byte {
		return changed("data/a", func(head *tar.Header, content []byte) []byte {
			head.Name = to
			return content
		})
	}
	damaged := bytes.Clone(good)
	damaged[bytes.Index(damaged, []byte("hello"))] ^= 1
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"empty":          {nil, "truncated"},
		"text":           {[]byte("hello"), "truncated"},
		"half":           {good[:len(good)/2], "truncated"},
		"no manifest":    {changed(manifestName, func(*tar.Header, []byte) []byte { return nil }), "truncated"},
		"no sums":        {changed(sumsName, func(*tar.Header, []byte) []byte { return nil }), "manifest.json"},
		"one bit":        {damaged, "data/a is damaged"},
		"an entry less":  {changed("data/a", func(*tar.Header, []byte) []byte { return nil }), "it has 4 entries"},
		"other content":  {changed("data/a", func(_ *tar.Header, b []byte) []byte { return []byte("other") }), "data/a is damaged"},
		"another format": {changed(formatName, func(*tar.Header, []byte) []byte { return []byte(`{"format": 2}`) }), "use a newer release"},
		"format 0":       {changed(formatName, func(*tar.Header, []byte) []byte { return []byte(`{}`) }), "it has format 0"},
		"another tar":    {changed(formatName, func(*tar.Header, []byte) []byte { return nil }), "not a backup of svc"},
		"upwards":        {renamed("data/../../x"), "is not a valid entry name"},
		"absolute":       {renamed("/etc/passwd"), "is not a valid entry name"},
		"another place":  {renamed("etc/passwd"), "does not know"},
		"at the top":     {renamed("x"), "is not a valid entry name"},
		"link": {changed("data/a", func(head *tar.Header, _ []byte) []byte {
			head.Typeflag, head.Linkname = tar.TypeSymlink, "/etc"
			return []byte{}
		}), "is not a regular file"},
		"directory": {changed("data/a", func(head *tar.Header, _ []byte) []byte {
			head.Typeflag = tar.TypeDir
			return []byte{}
		}), "is not a regular file"},
		"a record of another": {changed("data/a", func(head *tar.Header, b []byte) []byte {
			head.PAXRecords["LIBARCHIVE.x"] = "y"
			return b
		}), "has the unknown PAX record"},
		"large manifest": {changed(manifestName, func(*tar.Header, []byte) []byte { return bytes.Repeat([]byte(" "), maxManifest+1) }), "too large"},
		"other sums": {changed(sumsName, func(_ *tar.Header, b []byte) []byte {
			return append(bytes.Clone(b), "more\n"...)
		}), "more lines"},
		"behind the end": {append(bytes.TrimRight(bytes.Clone(good), "\x00"), tail(t, good)...), "follows the end of the archive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := opened(t, c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "is unusable") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, err := Open(t.TempDir(), roots(), noProgress); err == nil {
		t.Error("a directory was opened")
	}
}

// tail returns one more entry for a tar file whose end marker was removed.
func tail(t *testing.T, good []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "data/b", Format: tar.FormatPAX}); err != nil {
		t.Fatal(err)
	}
	fill := (512 - len(bytes.TrimRight(good, "\x00"))%512) % 512
	return append(make([]byte, fill), out.Bytes()...)
}

func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "x.tar")
	there := func() (names []string) {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			names = append(names, e.Name())
		}
		return names
	}
	// A file of a killed backup is overwritten, also if it was readable by other
	// users.
	if err := os.WriteFile(name+partial, []byte("a longer text than before"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(name); err == nil || !strings.Contains(err.Error(), "another backup") {
		t.Errorf("two concurrent backups: %v", err)
	}
	if _, err := f.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	if got := there(); !reflect.DeepEqual(got, []string{"x.tar.partial"}) {
		t.Error(got)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Abort() // has no effect after Commit
	info, err := os.Stat(name)
	if err != nil || info.Size() != 4 || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if got := there(); !reflect.DeepEqual(got, []string{"x.tar"}) {
		t.Error(got)
	}
	if _, err := Create(name); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("an existing file: %v", err)
	}
	other, err := Create(name + "2")
	if err != nil {
		t.Fatal(err)
	}
	other.Abort()
	if got := there(); !reflect.DeepEqual(got, []string{"x.tar"}) {
		t.Error(got)
	}
}

// fullDisk is a writer that fails after a number of bytes.
type fullDisk struct{ left int }

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

// TestFullDisk checks that the writer returns an error wherever the disk becomes
// full.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for space := 0; space < 5<<10; space += 512 {
		w, err := NewWriter(&fullDisk{space}, t.TempDir())
		if err == nil {
			err = errors.Join(w.Add("data/a", 3, nil, strings.NewReader("abc")), w.Finish(&Manifest{}), w.Close())
		}
		if err == nil {
			t.Errorf("%d bytes were enough", space)
		}
	}
	w, err := NewWriter(io.Discard, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Add("data/a", 4, nil, strings.NewReader("abc")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a truncated file: %v", err)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	rows := [][]any{
		{nil, true, int64(9007199254740993), 0.1, "é <b>\u2028\x00", []byte{0, 255}},
		{[]byte{}, []byte(nil), int64(-1), 1e300, "no \xff utf8", false},
	}
	want := [][]any{
		{nil, true, json.Number("9007199254740993"), json.Number("0.1"), "é <b>\u2028\x00", []byte{0, 255}},
		{[]byte{}, nil, json.Number("-1"), json.Number("1e+300"), "no \xff utf8", false},
	}
	var out bytes.Buffer
	n, size, err := WriteRows(&out, []string{"a", "b"}, 42, func(yield func([]any, error) bool) {
		for _, row := range rows {
			if !yield(append([]any{}, row...), nil) {
				return
			}
		}
	})
	if n != 2 || err != nil {
		t.Fatal(n, err)
	}
	read := func(text []byte, size int64) ([][]any, error) {
		columns, last, rows, err := ReadRows(bytes.NewReader(text), size)
		if err != nil {
			return nil, err
		}
		if len(columns) != 2 || last != 42 {
			t.Error(columns, last)
		}
		var got [][]any
		for row, err := range rows {
			if err != nil {
				return nil, err
			}
			got = append(got, row)
		}
		return got, nil
	}
	if got, err := read(out.Bytes(), size); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for name, c := range map[string]struct {
		text []byte
		size int64
	}{
		"larger than it says":  {out.Bytes(), size - 1},
		"smaller than it says": {out.Bytes(), size + 1},
		"truncated":            {out.Bytes()[:out.Len()-9], size},
		"not compressed":       {[]byte("{}"), 2},
	} {
		if got, err := read(c.text, c.size); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	fault := errors.New("no")
	if _, _, err := WriteRows(io.Discard, nil, 0, func(yield func([]any, error) bool) { yield(nil, fault) }); !errors.Is(err, fault) {
		t.Error(err)
	}
}

func FuzzReader(f *testing.F) {
	good := written(f, 10)
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add(good[512:])
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := check(bytes.NewReader(text), int64(len(text)), roots(), noProgress)
		if err != nil {
			return
		}
		for _, root := range roots() {
			if err := r.Each(root, func(e Entry, in io.Reader) error {
				if !filepath.IsLocal(e.Name) || e.Size > int64(len(text)) {
					t.Errorf("%q of %d bytes", e.Name, e.Size)
				}
				_, err := io.Copy(io.Discard, in)
				return err
			}); err != nil {
				t.Error(err)
			}
		}
	})
}

func FuzzRows(f *testing.F) {
	f.Add([]byte(`[null,true,1.5,"x",{"base64":"AA=="},{"text":"/w=="}]`))
	f.Add([]byte(`[{"base64":"*"}]`))
	f.Add([]byte(`[[]] 1`))
	f.Fuzz(func(t *testing.T, line []byte) {
		row, err := readRow(line)
		if err != nil {
			return
		}
		var out bytes.Buffer
		for i, v := range row { // converted like for the database
			if n, ok := v.(json.Number); ok {
				row[i] = json.RawMessage(n)
			}
		}
		_, size, err := WriteRows(&out, nil, 0, func(yield func([]any, error) bool) { yield(row, nil) })
		if err != nil {
			t.Fatal(err)
		}
		_, _, rows, err := ReadRows(&out, size)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for again, err := range rows {
			if err != nil || len(again) != len(row) {
				t.Fatalf("%v, %v", again, err)
			}
			n++
		}
		if n != 1 {
			t.Fatalf("%d rows", n)
		}
	})
}
