package runner

import (
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// write creates files in a directory. A name that ends in "/" is a directory, and
// the content "-> x" is a symbolic link to x.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch to, link := strings.CutPrefix(text, "-> "); {
		case err != nil:
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case link:
			err = os.Symlink(to, path)
		default:
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// testJob returns a job with a working tree and a log, but without a server.
func testJob(t testing.TB, vars ...variable) *job {
	t.Helper()
	r := &Runner{Deps: Deps{Dir: t.TempDir(), Now: time.Now, Pace: Pace{}.withDefaults()}}
	for _, dir := range []string{r.buildsDir(), r.cacheDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	j, err := r.newJob(&assignment{ID: 1, Token: "job-token", Variables: vars, JobInfo: jobInfo{ProjectID: 7, ProjectFullPath: "g/p"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	j.main, j.whole = t.Context(), t.Context()
	t.Cleanup(j.cleanUp)
	return j
}

func TestCollect(t *testing.T) {
	t.Parallel()
	j := testJob(t)
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret": "x"})
	write(t, j.dir, map[string]string{
		"a.txt": "a", "d/b.txt": "b", "d/e/c.o": "c", "d/empty/": "", ".git/config": "token", "out": "-> " + outside, "in": "-> d", "sub/.git/x": "x", "sub/y": "y",
	})
	tests := []struct {
		name string
		sel  selection
		want string
	}{
		{"a file", selection{paths: []string{"a.txt"}}, "a.txt"},
		{"absolute", selection{paths: []string{j.dir + "/a.txt"}}, "a.txt"},
		{"a directory", selection{paths: []string{"d"}}, "d d/b.txt d/e d/e/c.o d/empty"},
		{"with a slash", selection{paths: []string{"./d/"}}, "d d/b.txt d/e d/e/c.o d/empty"},
		{"a pattern", selection{paths: []string{"**/*.o", "*.txt"}}, "a.txt d/e/c.o"},
		{"a pattern for directories", selection{paths: []string{"d/e*"}}, "d/e d/e/c.o d/empty"},
		{"without some", selection{paths: []string{"d"}, exclude: []string{"d/**/*.o", "d/empty"}}, "d d/b.txt d/e"},
		{"all but the repository", selection{paths: []string{"."}}, "a.txt d d/b.txt d/e d/e/c.o d/empty in out sub sub/y"},
		{"the repository, named", selection{paths: []string{".git/config"}}, ".git/config"},
		{"links that lead away", selection{paths: []string{"out/*", "out/secret"}}, ""},
		{"a link within, named", selection{paths: []string{"in/*.txt"}}, "in/b.txt"},
		{"above", selection{paths: []string{"../x", "/etc/passwd", "d/../../x", ""}}, ""},
		{"nothing", selection{paths: []string{"nothing"}}, ""},
	}
	for _, tt := range tests {
		got, err := j.collect(tt.sel)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, got, tt.want)
		}
	}
}

func TestCollectUntracked(t *testing.T) {
	t.Parallel()
	j := testJob(t)
	write(t, j.dir, map[string]string{"tracked": "x", "new": "y", "ignored.o": "z", ".gitignore": "*.o\n"})
	for _, args := range [][]string{{"init", "-q"}, {"add", "tracked", ".gitignore"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = j.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	got, err := j.collect(selection{untracked: true})
	if err != nil || strings.Join(got, " ") != "ignored.o new" {
		t.Errorf("got %v %v", got, err)
	}
}

func TestPackUnpack(t *testing.T) {
	t.Parallel()
	j := testJob(t)
	write(t, j.dir, map[string]string{"bin/run": "#!/bin/sh", "text": "text", "link": "-> text", "abs": "-> /etc/hostname"})
	if err := os.Chmod(filepath.Join(j.dir, "bin/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := j.collect(selection{paths: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	archive, to := filepath.Join(t.TempDir(), "x.zip"), t.TempDir()
	if err := pack(t.Context(), j.dir, files, "zip", archive); err != nil {
		t.Fatal(err)
	}
	// Existing files are replaced; existing links are not followed.
	elsewhere := filepath.Join(t.TempDir(), "kept")
	write(t, filepath.Dir(elsewhere), map[string]string{"kept": "kept"})
	write(t, to, map[string]string{"text": "-> " + elsewhere, "link": "old"})
	if n, err := unpack(t.Context(), archive, to); err != nil || n != 5 {
		t.Fatalf("%d %v", n, err)
	}
	for name, want := range map[string]string{"bin/run": "#!/bin/sh", "text": "text", "link": "text"} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if info, err := os.Stat(filepath.Join(to, "bin/run")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode: %v %v", info.Mode(), err)
	}
	if link, err := os.Readlink(filepath.Join(to, "abs")); err != nil || link != "/etc/hostname" {
		t.Errorf("link: %s %v", link, err)
	}
	if got, err := os.ReadFile(elsewhere); err != nil || string(got) != "kept" {
		t.Errorf("a file outside was changed: %q %v", got, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errCanceled)
	if err := pack(ctx, j.dir, files, "zip", archive); !errors.Is(err, errCanceled) {
		t.Errorf("pack after a cancel: %v", err)
	}
}

func TestPackFormats(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.xml": "<a/>", "b.xml": "<b/>", "d/": ""})
	to := filepath.Join(t.TempDir(), "out")
	if err := pack(t.Context(), dir, []string{"a.xml", "b.xml", "d"}, "gzip", to); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != "<a/><b/>" {
		t.Errorf("gzip: %q %v", text, err)
	}
	if err := pack(t.Context(), dir, []string{"a.xml"}, "raw", to); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "<a/>" {
		t.Errorf("raw: %q %v", text, err)
	}
	for _, files := range [][]string{{"a.xml", "b.xml"}, {"d"}} {
		if err := pack(t.Context(), dir, files, "raw", to); !errors.Is(err, errRefused) {
			t.Errorf("raw of %v: %v", files, err)
		}
	}
}

// TestUnpackEscapes unpacks archives that try to write outside of the directory.
func TestUnpackEscapes(t *testing.T) {
	t.Parallel()
	link := func(to string) string { return "-> " + to }
	tests := []struct {
		name    string
		entries [][2]string
	}{
		{"a name upwards", [][2]string{{"../evil", "x"}}},
		{"a name within upwards", [][2]string{{"a/../../evil", "x"}}},
		{"an absolute name", [][2]string{{"/tmp/evil", "x"}}},
		{"backslashes", [][2]string{{`..\evil`, "x"}}},
		{"a link, and a file behind it", [][2]string{{"l", link("..")}, {"l/evil", "x"}}},
		{"an absolute link, and a file behind it", [][2]string{{"l", link("OUTSIDE")}, {"l/evil", "x"}}},
		{"a link to a link", [][2]string{{"d/", ""}, {"d/l", link("../..")}, {"m", link("d/l")}, {"m/evil", "x"}}},
		{"a directory through a link", [][2]string{{"l", link("OUTSIDE")}, {"l/evil/", ""}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			above := t.TempDir()
			dir := filepath.Join(above, "tree")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			archive := filepath.Join(t.TempDir(), "x.zip")
			makeZip(t, archive, tt.entries, above)
			if _, err := unpack(t.Context(), archive, dir); err == nil {
				t.Error("it was unpacked")
			}
			entries, err := os.ReadDir(above)
			if err != nil || len(entries) != 1 {
				t.Errorf("outside there is %v %v", entries, err)
			}
		})
	}
}

func makeZip(t testing.TB, path string, entries [][2]string, outside string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for _, e := range entries {
		head := &zip.FileHeader{Name: e[0]}
		head.SetMode(0o644)
		text, link := strings.CutPrefix(e[1], "-> ")
		if link {
			head.SetMode(fs.ModeSymlink | 0o777)
			text = strings.ReplaceAll(text, "OUTSIDE", outside)
		}
		if strings.HasSuffix(e[0], "/") {
			head.SetMode(fs.ModeDir | 0o755)
		}
		w, err := z.CreateHeader(head)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestCachePrune(t *testing.T) {
	t.Parallel()
	j := testJob(t)
	write(t, j.dir, map[string]string{"deps/x": "x"})
	for _, key := range []string{"../../evil", "used"} {
		if err := j.saveCache(cache{Key: key, Paths: []string{"deps"}}); err != nil {
			t.Fatal(err)
		}
	}
	half := j.cachePath("half") + ".new-1234"
	write(t, filepath.Dir(half), map[string]string{filepath.Base(half): "half"})
	start := time.Now()
	j.r.Now = func() time.Time { return start.Add(20 * 24 * time.Hour) }
	if err := j.restoreCache([]string{"missing", "used"}); err != nil {
		t.Fatal(err)
	}
	j.r.Now = func() time.Time { return start.Add(40 * 24 * time.Hour) }
	j.r.pruneCache()
	left, err := filepath.Glob(filepath.Join(j.r.cacheDir(), "*", "*"))
	if err != nil || !slices.Equal(left, []string{j.cachePath("used")}) {
		t.Errorf("left is %v %v", left, err)
	}
}
