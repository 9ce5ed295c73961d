package git

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"svc/internal/git/gittest"
)

// unpack reads an archive with the standard library, which did not create it.
func unpack(t *testing.T, format ArchiveFormat, data []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	if format == Zip {
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(f.Name, "/") {
				files[f.Name] = string(text)
			}
		}
		return files
	}
	var in io.Reader = bytes.NewReader(data)
	switch format {
	case TarGz:
		z, err := gzip.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		in = z
	case TarBz2:
		in = bzip2.NewReader(in)
	}
	for list := tar.NewReader(in); ; {
		h, err := list.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(list)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = string(text)
		}
	}
}

func TestArchive(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	big := strings.Repeat("no two blocks are the same, said the clerk\n", 40_000)
	g.Commit(gittest.Commit{Changes: []gittest.Change{
		{Path: "a", Content: "1"}, {Path: "d/b", Content: big}, {Path: "d/c*", Content: "3"}, {Path: "d/cc", Content: "4"}, {Path: "-x", Content: "5"},
	}})
	g.Git("tag", "-a", "-m", "m", "v1")
	for _, format := range []ArchiveFormat{Tar, TarGz, TarBz2, Zip} {
		for _, c := range []struct {
			o    ArchiveOptions
			want map[string]string
		}{
			{ArchiveOptions{Rev: "main", Prefix: "p-1"}, map[string]string{"p-1/a": "1", "p-1/d/b": big, "p-1/d/c*": "3", "p-1/d/cc": "4", "p-1/-x": "5"}},
			{ArchiveOptions{Rev: "v1", Path: "d/c*"}, map[string]string{"d/c*": "3"}},
			{ArchiveOptions{Rev: "main", Path: "/d/", Prefix: "x/"}, map[string]string{"x/d/b": big, "x/d/c*": "3", "x/d/cc": "4"}},
			{ArchiveOptions{Rev: "main", Path: "-x"}, map[string]string{"-x": "5"}},
		} {
			c.o.Format = format
			var out bytes.Buffer
			if err := r.Archive(t.Context(), &out, c.o); err != nil {
				t.Errorf("%+v: %v", c.o, err)
				continue
			}
			if got := unpack(t, format, out.Bytes()); !maps.Equal(got, c.want) {
				t.Errorf("%+v: %v", c.o, slices.Sorted(maps.Keys(got)))
			}
		}
	}
	for _, c := range []struct {
		o    ArchiveOptions
		want error
	}{
		{ArchiveOptions{Rev: "none", Format: Tar}, ErrNotFound},
		{ArchiveOptions{Rev: "--output=/tmp/x", Format: Tar}, ErrBadRevision},
		{ArchiveOptions{Rev: "main", Path: "none", Format: TarGz}, ErrNotFound},
		{ArchiveOptions{Rev: "main", Path: "../..", Format: TarGz}, ErrBadPath},
		{ArchiveOptions{Rev: "main", Prefix: "../x", Format: TarGz}, ErrBadPath},
		{ArchiveOptions{Rev: "main", Format: "rar"}, ErrUnsupported},
	} {
		var out bytes.Buffer
		if err := r.Archive(t.Context(), &out, c.o); !errors.Is(err, c.want) || out.Len() > 0 {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}

func TestArchiveLeavesOut(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: ".gitattributes", Content: "secret export-ignore\n"}, {Path: "secret", Content: "x"}, {Path: "a", Content: "1"}}})
	var out bytes.Buffer
	if err := r.Archive(t.Context(), &out, ArchiveOptions{Rev: "main", Format: Tar}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{".gitattributes": "secret export-ignore\n", "a": "1"}, unpack(t, Tar, out.Bytes())); d != "" {
		t.Error(d)
	}
}

// failing accepts some bytes and then fails.
type failing struct{ left int }

var errGone = errors.New("the client is gone")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errGone
	}
	return len(p), nil
}

func TestArchiveStopsWithClient(t *testing.T) {
	t.Parallel()
	g := gittest.Generate(t, gittest.Size{Commits: 1, Files: 500, Lines: 200})
	r := newEngine(t, Limits{}).Repo(g.Path)
	for _, format := range []ArchiveFormat{Tar, TarGz, TarBz2, Zip} {
		err := r.Archive(t.Context(), &failing{10_000}, ArchiveOptions{Rev: "main", Format: format})
		if !errors.Is(err, errGone) || r.engine.transfers.Held() != 0 {
			t.Errorf("%s: %v", format, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Archive(ctx, io.Discard, ArchiveOptions{Rev: string(g.Tip("main")), Format: format}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestArchiveIsMadeOnce(t *testing.T) {
	t.Parallel()
	g := gittest.Generate(t, gittest.Size{Commits: 2, Files: 300})
	e, err := New(Deps{Spool: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	started := watchProcesses(t, e)
	r := e.Repo(g.Path)
	archive := func(o ArchiveOptions) []byte {
		t.Helper()
		var out bytes.Buffer
		if err := r.Archive(t.Context(), &out, o); err != nil {
			t.Error(err)
		}
		return out.Bytes()
	}
	o := ArchiveOptions{Rev: "main", Format: TarGz, Prefix: "x"}
	first := archive(o)
	if len(unpack(t, TarGz, first)) != 300 {
		t.Error("not all files are there")
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if !bytes.Equal(archive(o), first) {
				t.Error("not the same again")
			}
		})
	}
	wg.Wait()
	if n := started("archive"); n != 1 {
		t.Errorf("made %d times", n)
	}
	others := []ArchiveOptions{{Rev: "main", Format: TarGz}, {Rev: "main", Format: Tar, Prefix: "x"}, {Rev: "main~1", Format: TarGz, Prefix: "x"},
		{Rev: "main", Format: TarGz, Prefix: "x", Path: "dir00/sub00"}}
	for _, o := range others {
		if bytes.Equal(archive(o), first) {
			t.Errorf("%+v is the same", o)
		}
	}
	if n := started("archive"); n != len(others) {
		t.Errorf("%d others were made", n)
	}
	r.Forget()
	if used, _ := e.spool.Usage(); used != 0 {
		t.Errorf("%d bytes are kept of a repository that is forgotten", used)
	}
}
