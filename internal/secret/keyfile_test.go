package secret

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestStartAtOnce starts several processes concurrently without a key file. They run
// the test binary, which runs this test again and prints the keys.
func TestStartAtOnce(t *testing.T) {
	if path := os.Getenv("SECRET_TEST_KEYS"); path != "" {
		k, err := LoadKeyring(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("keys=%v;", k.IDs())
		return
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	answers := make([]string, 8)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			again := exec.Command(os.Args[0], "-test.run=^TestStartAtOnce$")
			again.Env = append(os.Environ(), "SECRET_TEST_KEYS="+path)
			out, err := again.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			answers[i], _, _ = strings.Cut(string(out), ";")
		})
	}
	wg.Wait()
	k, err := LoadKeyring(path)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("keys=%v", k.IDs())
	for _, answer := range answers {
		if answer != want {
			t.Errorf("a process got %q, want %q", answer, want)
		}
	}
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	info, err := os.Stat(k.path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %04o, want 0600", info.Mode().Perm())
	}
	entries, err := os.ReadDir(filepath.Dir(k.path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "keys" && e.Name() != "keys.lock" {
			t.Errorf("%s is left behind", e.Name())
		}
	}

	text, err := os.ReadFile(k.path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	id, key, _ := strings.Cut(lines[len(lines)-1], " ")
	wrong := "A"
	if strings.HasPrefix(key, "A") {
		wrong = "B"
	}
	damaged := wrong + key[1:]

	for name, tt := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"group reads":  {string(text), 0o640, "open to others"},
		"world reads":  {string(text), 0o604, "open to others"},
		"empty":        {"", 0o600, "no key"},
		"head alone":   {keyFileHead, 0o600, "no key"},
		"no head":      {lines[len(lines)-1], 0o600, "line 1"},
		"later form":   {strings.Replace(string(text), "keyring 1", "keyring 2", 1), 0o600, "line 3"},
		"wrong letter": {strings.Replace(string(text), key, damaged, 1), 0o600, "damaged"},
		"short key":    {strings.Replace(string(text), key, "AAAA", 1), 0o600, "32 bytes"},
		"no key":       {strings.Replace(string(text), " "+key, "", 1), 0o600, "line 4"},
		"twice":        {string(text) + id + " " + key + "\n", 0o600, "twice"},
		"too large":    {string(text) + strings.Repeat("#\n", maxKeyFile), 0o600, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "keys")
			if err := os.WriteFile(path, []byte(tt.text), tt.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, tt.mode); err != nil {
				t.Fatal(err)
			}
			_, err := LoadKeyring(path)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v; want %q and the file's name", err, tt.want)
			}
			if err != nil && (strings.Contains(err.Error(), key) || strings.Contains(err.Error(), damaged)) {
				t.Errorf("error %q shows the key", err)
			}
			// An invalid file is not replaced: it may be the only copy of the keys.
			if got, err := os.ReadFile(path); err != nil || string(got) != tt.text {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
	t.Run("comments and blank lines", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(string(text)+"\n# copied in May\n"), 0o400); err != nil {
			t.Fatal(err)
		}
		again, err := LoadKeyring(path)
		if err != nil || !slices.Equal(again.IDs(), k.IDs()) {
			t.Errorf("LoadKeyring = %v, %v", again, err)
		}
	})
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if _, err := LoadKeyring(dir); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("error %v; want the name", err)
		}
	})
	t.Run("no directory", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "none", "keys")
		if _, err := LoadKeyring(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v; want the name", err)
		}
	})
}

// TestRelativeKeyFile creates a key file in the working directory. The temporary
// file must be in the same directory, so that the rename does not cross file
// systems.
func TestRelativeKeyFile(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("TMPDIR", "/nonexistent")
	if _, err := LoadKeyring("keys"); err != nil {
		t.Error(err)
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add(keyFileHead)
	f.Add("keyring 1\n0123456789abcdef AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := parseKeys(strings.NewReader(text))
		if err == nil && len(keys) == 0 {
			t.Error("no error and no key")
		}
	})
}
