package pypi

import (
	"strings"
	"testing"
)

func TestChecks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"My.Lib__x": "my-lib-x", "a--b": "a-b", "A": "a"} {
		if got := Normalize(name); got != want {
			t.Errorf("Normalize(%q) = %q, want %q", name, got, want)
		}
	}
	for _, version := range []string{"1", "1.0", "1.0a1", "1.0.dev3", "1!2.0", "1.0.post1", "1.0+local.1", "v1.0", "1.0-1", "2024.1.2rc1"} {
		if err := CheckVersion(version); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	for _, version := range []string{"", "one", "1..0", "1.0/2", "../1", "1.0 "} {
		if CheckVersion(version) == nil {
			t.Errorf("%q is accepted", version)
		}
	}
	for file, ok := range map[string]bool{
		"my_lib-1.0-py3-none-any.whl": true, "My.Lib-1.0.tar.gz": true, "my-lib-1.0.zip": true, "other-1.0.zip": false, "my_lib-1.0.exe": false, "../my_lib-1.0.zip": false, "-my_lib-1.0.zip": false,
	} {
		if err := CheckFile(file, "my-lib"); (err == nil) != ok {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// FuzzFile checks that accepted names have no special characters.
func FuzzFile(f *testing.F) {
	f.Add("a-1.zip", "a")
	f.Fuzz(func(t *testing.T, file, name string) {
		if CheckName(name) == nil && CheckFile(file, name) == nil && strings.ContainsAny(file, "/\\\"<>&\n\x00 %#?") {
			t.Errorf("%q is accepted", file)
		}
	})
}
