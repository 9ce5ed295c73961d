package bucket

import (
	"os"
	"path/filepath"
	"testing"
)

// TestClaim expects that a process removes what ended processes left, and nothing else.
func TestClaim(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	take := func() (string, *os.File) {
		t.Helper()
		dir, lock, err := claim(base)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lock.Close() })
		if err := emptyOthers(base, dir); err != nil {
			t.Fatal(err)
		}
		return dir, lock
	}
	write := func(dir string) string {
		t.Helper()
		path := filepath.Join(dir, "projects", "1.git", "HEAD")
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o640); err != nil {
			t.Fatal(err)
		}
		return path
	}
	exists := func(path string, want bool) {
		t.Helper()
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want %t", path, err, want)
		}
	}
	zero, lock := take()
	one, other := take()
	two, third := take()
	first, second, last := write(zero), write(one), write(two)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if dir, _ := take(); dir != one {
		t.Fatalf("%s, want %s", dir, one)
	}
	for _, path := range []string{first, second, last} {
		exists(path, true)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	if dir, _ := take(); dir != zero {
		t.Fatalf("%s, want %s", dir, zero)
	}
	exists(first, true) // the cache of this process
	exists(second, true)
	exists(last, false)
	exists(filepath.Join(two, lockFile), true)
}
