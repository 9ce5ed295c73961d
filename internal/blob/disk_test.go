package blob_test

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"svc/internal/blob"
	"svc/internal/blob/blobtest"
	"svc/internal/errs"
)

func put(t testing.TB, s blob.Store, key, text string) {
	t.Helper()
	if _, err := s.Put(t.Context(), key, strings.NewReader(text), blob.Options{ContentType: "text/plain"}); err != nil {
		t.Fatal(err)
	}
}

// files returns the files and directories below a directory, directories with a
// trailing "/".
func files(t testing.TB, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func checkFiles(t testing.TB, dir string, want ...string) {
	t.Helper()
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Errorf("%s holds %q, want %q", filepath.Base(dir), got, want)
	}
}

// temporary returns the temporary files without the lock files.
func temporary(t testing.TB, data string) []string {
	t.Helper()
	return slices.DeleteFunc(files(t, filepath.Join(data, "blobs", "tmp")), func(name string) bool {
		return strings.HasSuffix(name, "/") || filepath.Base(name) == "lock"
	})
}

func TestDiskLayout(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := open(t, "", data)
	put(t, s, "a/b/c.txt", "some text")
	put(t, s, "a/d", "")
	objects := filepath.Join(data, "blobs", "objects")
	checkFiles(t, objects, "a/", "a/b/", "a/b/c.txt", "a/d")

	text, err := os.ReadFile(filepath.Join(objects, "a/b/c.txt"))
	if err != nil || !strings.HasPrefix(string(text), "some text\nblob 1 9 text/plain ") || len(text) != 9+256 {
		t.Errorf("the file is %q, %v", text, err)
	}
	for name, want := range map[string]fs.FileMode{".": 0o700, "a/b": 0o700, "a/b/c.txt": 0o600} {
		info, err := os.Stat(filepath.Join(objects, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	if err := s.Delete(t.Context(), "a/b/c.txt"); err != nil {
		t.Fatal(err)
	}
	checkFiles(t, objects, "a/", "a/d")
	if err := s.Delete(t.Context(), "a/d"); err != nil {
		t.Fatal(err)
	}
	checkFiles(t, objects)
	if left := temporary(t, data); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

func TestDiskLeavesNoTemporaryFile(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := open(t, "", data)
	put(t, s, "file", "x")
	during := 0
	for name, p := range map[string]struct {
		key  string
		body io.Reader
		size int64
	}{
		"broken body":  {"k", io.MultiReader(strings.NewReader("half"), reader(func([]byte) (int, error) { return 0, io.ErrUnexpectedEOF })), 0},
		"wrong size":   {"k", strings.NewReader("half"), 8},
		"bad place":    {"file/below", strings.NewReader("text"), 0},
		"second place": {"file/below/it", strings.NewReader("text"), 0},
		"count": {"k", reader(func([]byte) (int, error) {
			during = len(temporary(t, data))
			return 0, errors.New("seen")
		}), 0},
	} {
		if _, err := s.Put(t.Context(), p.key, p.body, blob.Options{Size: p.size}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if left := temporary(t, data); len(left) > 0 {
			t.Errorf("%s leaves %q", name, left)
		}
	}
	if during != 1 {
		t.Errorf("%d temporary files during a Put, want 1: the test looks at the wrong place", during)
	}
	checkFiles(t, filepath.Join(data, "blobs", "objects"), "file")
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// TestDiskDirectoriesComeAndGo removes directories while a concurrent Put uses them.
func TestDiskDirectoriesComeAndGo(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	blobtest.PutsAndDeletes(t, open(t, "", data))
	checkFiles(t, filepath.Join(data, "blobs", "objects"))
}

// TestDiskKilled kills a process during a Put. The process is the test binary, which
// runs this test again.
func TestDiskKilled(t *testing.T) {
	if data := os.Getenv("BLOB_TEST_DATA"); data != "" {
		s := open(t, "", data)
		put(t, s, "whole", "text")
		s.Put(t.Context(), "half", io.MultiReader(strings.NewReader("half of it"), reader(func([]byte) (int, error) {
			os.Stdout.WriteString("in the middle\n")
			select {}
		})), blob.Options{})
		return
	}
	t.Parallel()
	data := t.TempDir()
	again := exec.Command(os.Args[0], "-test.run=^TestDiskKilled$")
	again.Env = append(os.Environ(), "BLOB_TEST_DATA="+data)
	out, err := again.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "in the middle\n" {
		t.Fatalf("the process says %q, %v", line, err)
	}

	// The files of a running process are not deleted.
	first := open(t, "", data)
	if n := len(temporary(t, data)); n != 1 {
		t.Errorf("%d temporary files beside a living process, want 1", n)
	}
	again.Process.Kill()
	again.Wait()
	if n := len(temporary(t, data)); n != 1 {
		t.Errorf("%d temporary files after the kill, want 1", n)
	}
	second := open(t, "", data)
	if left := temporary(t, data); len(left) > 0 {
		t.Errorf("%q are left after the next start", left)
	}

	for _, s := range []blob.Store{first, second} {
		_, err := s.Stat(t.Context(), "half")
		if !errs.Is(err, errs.KindNotFound) {
			t.Errorf("the half object: %v", err)
		}
		if info, err := s.Stat(t.Context(), "whole"); err != nil || info.Size != 4 {
			t.Errorf("the whole object: %+v, %v", info, err)
		}
		put(t, s, "new", "works on")
	}
}

func TestDiskDamage(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := open(t, "", data)
	for name, damage := range map[string]func(path string) error{
		"cut":     func(path string) error { return os.Truncate(path, 300) },
		"cut off": func(path string) error { return os.Truncate(path, 0) },
		"longer":  func(path string) error { return appendTo(path, "x") },
		"doubled": func(path string) error {
			b, err := os.ReadFile(path)
			return errors.Join(err, appendTo(path, string(b)))
		},
		"foreign": func(path string) error { return os.WriteFile(path, make([]byte, 4096), 0o600) },
	} {
		put(t, s, name, strings.Repeat("text ", 100))
		if err := damage(filepath.Join(data, "blobs", "objects", name)); err != nil {
			t.Fatal(err)
		}
		_, err := s.Get(t.Context(), name)
		if err == nil || errs.KindOf(err) != 0 || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want a fault that names it", name, err)
		}
		// It can be replaced and deleted.
		put(t, s, name, "new")
		if info, err := s.Stat(t.Context(), name); err != nil || info.Size != 3 {
			t.Errorf("%s after a new Put: %+v, %v", name, info, err)
		}
		if err := s.Delete(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// TestDiskLinks creates links in the directory that lead out of it.
func TestDiskLinks(t *testing.T) {
	t.Parallel()
	data, outside := t.TempDir(), t.TempDir()
	elsewhere := open(t, "", outside)
	put(t, elsewhere, "k", "secret")
	s := open(t, "", data)
	put(t, s, "here", "x")
	objects := filepath.Join(data, "blobs", "objects")
	target := filepath.Join(outside, "blobs", "objects")
	if err := errors.Join(os.Symlink(target, filepath.Join(objects, "dir")), os.Symlink(filepath.Join(target, "k"), filepath.Join(objects, "file"))); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"dir/k", "file"} {
		if o, err := s.Get(t.Context(), key); err == nil {
			t.Errorf("Get(%s) leads out: %+v", key, o.Info)
		}
	}
	if _, err := s.Put(t.Context(), "dir/new", strings.NewReader("x"), blob.Options{}); err == nil {
		t.Error("Put leads out")
	}
	if err := s.Delete(t.Context(), "dir/k"); err == nil {
		t.Error("Delete leads out")
	}
	checkFiles(t, target, "k")
	for info, err := range s.List(t.Context(), "") {
		if err != nil || info.Key != "here" {
			t.Errorf("List gives %+v, %v", info, err)
		}
	}
	// Put replaces a link to a file, and does not follow it.
	put(t, s, "file", "ours")
	if info, err := elsewhere.Stat(t.Context(), "k"); err != nil || info.Size != 6 {
		t.Errorf("the file outside: %+v, %v", info, err)
	}
}

func TestDiskStrangers(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := open(t, "", data)
	put(t, s, "ours", "x")
	objects := filepath.Join(data, "blobs", "objects")
	if err := errors.Join(os.WriteFile(filepath.Join(objects, ".note"), []byte("hello"), 0o600), os.MkdirAll(filepath.Join(objects, "empty/dir"), 0o700)); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	if !slices.Equal(keys, []string{"ours"}) {
		t.Errorf("List gives %q", keys)
	}
	// A crash can leave an empty directory.
	put(t, s, "empty/dir", "x")
}

func TestDiskPing(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s, err := blob.Open(t.Context(), "", data)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(data, "blobs", "tmp")); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); !errs.Is(err, errs.KindUnavailable) {
		t.Errorf("Ping without a place to write: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestDiskOpenRefuses(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := blob.Open(t.Context(), "", data); err == nil || !strings.Contains(err.Error(), data) {
		t.Errorf("Open in a file: %v, want an error that names it", err)
	}
}

func TestDiskClose(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for range 3 {
		s, err := blob.Open(t.Context(), "", data)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	checkFiles(t, filepath.Join(data, "blobs", "tmp"), "lock")
}
