package secret

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const place = "ci_variables/value/17"

func newKeyring(t testing.TB) *Keyring {
	t.Helper()
	k, err := LoadKeyring(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func rotate(t testing.TB, k *Keyring) {
	t.Helper()
	if err := k.Rotate(); err != nil {
		t.Fatal(err)
	}
}

func checkOpen(t testing.TB, k *Keyring, sealed, want string) {
	t.Helper()
	got, err := k.Open(sealed, place)
	if err != nil || string(got) != want {
		t.Errorf("Open(%.30s…) = %q, %v; want %q", sealed, got, err, want)
	}
}

func TestSeal(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	for _, text := range []string{"", "s3cr3t", strings.Repeat("long ", 50_000), "\x00\xff"} {
		sealed := k.Seal([]byte(text), place)
		checkOpen(t, k, sealed, text)
		if !strings.HasPrefix(sealed, "s1."+k.IDs()[0]+".") {
			t.Errorf("%.40s… does not carry its form and key", sealed)
		}
		if len(text) > 2 && strings.Contains(sealed, text) {
			t.Error("the value stands in the clear")
		}
		if k.Seal([]byte(text), place) == sealed {
			t.Error("two seals of one value are equal")
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	sealed := k.Seal([]byte("s3cr3t"), place)
	other := k.Seal([]byte("s3cr3t"), place)
	parts, otherParts := strings.Split(sealed, "."), strings.Split(other, ".")
	join := func(s ...string) string { return strings.Join(s, ".") }

	for name, tt := range map[string]struct {
		sealed, place string
		want          error
	}{
		"other place":      {sealed, "ci_variables/value/18", ErrDamaged},
		"no place":         {sealed, "", ErrDamaged},
		"empty":            {"", place, ErrDamaged},
		"clear text":       {"s3cr3t", place, ErrDamaged},
		"other form":       {join("s2", parts[1], parts[2], parts[3]), place, ErrDamaged},
		"no key id":        {join("s1", "", parts[2], parts[3]), place, ErrDamaged},
		"other key id":     {join("s1", "0123456789abcdef", parts[2], parts[3]), place, ErrUnknownKey},
		"payload of other": {join("s1", parts[1], parts[2], otherParts[3]), place, ErrDamaged},
		"key of other":     {join("s1", parts[1], otherParts[2], parts[3]), place, ErrDamaged},
		"parts swapped":    {join("s1", parts[1], parts[3], parts[2]), place, ErrDamaged},
		"cut short":        {sealed[:len(sealed)-1], place, ErrDamaged},
		"one more part":    {sealed + ".AAAA", place, ErrDamaged},
		"line break":       {sealed + "\n", place, ErrDamaged},
		"empty payload":    {join("s1", parts[1], parts[2], ""), place, ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := k.Open(tt.sealed, tt.place); !errors.Is(err, tt.want) {
				t.Errorf("Open = %q, %v; want %v", got, err, tt.want)
			}
		})
	}
	t.Run("every letter", func(t *testing.T) {
		t.Parallel()
		for i := range sealed {
			b := []byte(sealed)
			b[i] ^= 1
			if got, err := k.Open(string(b), place); err == nil {
				t.Errorf("Open took %q after a change at %d", got, i)
			}
		}
	})
	t.Run("other instance", func(t *testing.T) {
		t.Parallel()
		foreign := newKeyring(t)
		_, err := foreign.Open(sealed, place)
		if !errors.Is(err, ErrUnknownKey) || !strings.Contains(err.Error(), parts[1]) || !strings.Contains(err.Error(), foreign.path) {
			t.Errorf("error %v does not name the key and the file", err)
		}
	})
}

func TestRotate(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	old := k.Seal([]byte("s3cr3t"), place)
	derived := k.Derive("cookies")
	rotate(t, k)
	rotate(t, k)

	ids := k.IDs()
	if len(ids) != 3 {
		t.Fatalf("keys %v, want 3", ids)
	}
	checkOpen(t, k, old, "s3cr3t")
	if sealed := k.Seal(nil, place); !strings.HasPrefix(sealed, "s1."+ids[2]+".") {
		t.Errorf("%.30s… is not sealed with the newest key %s", sealed, ids[2])
	}

	fresh, changed, err := k.Reseal(old)
	if err != nil || !changed {
		t.Fatalf("Reseal = %v, %v", changed, err)
	}
	checkOpen(t, k, fresh, "s3cr3t")
	if !strings.HasPrefix(fresh, "s1."+ids[2]+".") {
		t.Errorf("%.30s… is not under the newest key", fresh)
	}
	if strings.Split(fresh, ".")[3] != strings.Split(old, ".")[3] {
		t.Error("Reseal touched the payload")
	}
	if again, changed, err := k.Reseal(fresh); err != nil || changed || again != fresh {
		t.Errorf("second Reseal = %v, %v", changed, err)
	}
	if _, _, err := k.Reseal("s1.x"); !errors.Is(err, ErrDamaged) {
		t.Errorf("Reseal of rubbish: %v", err)
	}

	again, err := LoadKeyring(k.path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.IDs(), ids) {
		t.Errorf("the file holds %v, want %v", again.IDs(), ids)
	}
	for _, sealed := range []string{old, fresh} {
		checkOpen(t, again, sealed, "s3cr3t")
	}
	if !bytes.Equal(again.Derive("cookies"), derived) {
		t.Error("Derive changed with the rotation")
	}
}

func TestDerive(t *testing.T) {
	t.Parallel()
	k, other := newKeyring(t), newKeyring(t)
	a := k.Derive("a")
	if len(a) != 32 || !bytes.Equal(a, k.Derive("a")) {
		t.Error("Derive does not repeat itself")
	}
	if bytes.Equal(a, k.Derive("b")) || bytes.Equal(a, other.Derive("a")) || bytes.Equal(a, k.keys[0].raw) {
		t.Error("Derive gives one key for two uses")
	}
}

// TestRotatedElsewhere rotates keys with two keyrings of one key file, like a server
// and a command.
func TestRotatedElsewhere(t *testing.T) {
	t.Parallel()
	server := newKeyring(t)
	command, err := LoadKeyring(server.path)
	if err != nil {
		t.Fatal(err)
	}
	rotate(t, command)
	checkOpen(t, server, command.Seal([]byte("new"), place), "new")

	rotate(t, command)
	if err := server.Reload(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(server.IDs(), command.IDs()) {
		t.Errorf("after Reload the server has %v, want %v", server.IDs(), command.IDs())
	}

	// Concurrent rotations keep the keys of the other process.
	rotate(t, server)
	rotate(t, command)
	if n := len(command.IDs()); n != 5 {
		t.Errorf("%d keys after four rotations, want 5", n)
	}
}

func TestRotateAtOnce(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := k.Rotate(); err != nil {
				t.Error(err)
			}
			sealed := k.Seal([]byte("x"), place)
			checkOpen(t, k, sealed, "x")
		})
	}
	wg.Wait()
	if err := k.Reload(); err != nil {
		t.Fatal(err)
	}
	if n := len(k.IDs()); n != 9 {
		t.Errorf("%d keys after eight rotations, want 9", n)
	}
}

func TestKeyringKeepsQuiet(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	hex := fmt.Sprintf("%x", k.keys[0].raw)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		got := fmt.Sprintf(verb, k)
		if got != "keyring "+k.path || strings.Contains(got, hex) {
			t.Errorf("%s prints %q", verb, got)
		}
	}
}

func FuzzOpen(f *testing.F) {
	k := newKeyring(f)
	rotate(f, k)
	good := k.Seal([]byte("s3cr3t"), place)
	f.Add(good, place)
	f.Add("s1."+k.IDs()[0]+"..", place)
	f.Add("s1...", "")
	f.Add(strings.Repeat(".", 40), "x")
	f.Fuzz(func(t *testing.T, sealed, at string) {
		got, err := k.Open(sealed, at)
		if err == nil && (sealed != good || at != place) {
			t.Errorf("Open(%q, %q) = %q", sealed, at, got)
		}
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnknownKey) {
			t.Errorf("Open(%q, %q): %v is neither kind", sealed, at, err)
		}
		if _, _, err := k.Reseal(sealed); err == nil && sealed != good {
			t.Errorf("Reseal took %q", sealed)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	k := newKeyring(b)
	value := []byte("a value of common length for a variable")
	for b.Loop() {
		k.Seal(value, place)
	}
}

func BenchmarkOpen(b *testing.B) {
	k := newKeyring(b)
	sealed := k.Seal([]byte("a value of common length for a variable"), place)
	for b.Loop() {
		if _, err := k.Open(sealed, place); err != nil {
			b.Fatal(err)
		}
	}
}
