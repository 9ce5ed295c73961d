package secret

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// cheap are parameters that make tests fast.
var cheap = Params{Memory: 64, Time: 1, Threads: 1}

func TestHashAndVerify(t *testing.T) {
	t.Parallel()
	h := NewHasher(DefaultParams(), 2)
	ctx := t.Context()
	for _, password := range []string{"correct horse", "", "pässwörd\x00tail", strings.Repeat("x", 5000)} {
		hash, err := h.Hash(ctx, password)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
			t.Fatalf("hash %q does not name its parameters", hash)
		}
		for _, tt := range []struct {
			password string
			want     bool
		}{{password, true}, {password + "x", false}, {"other", false}} {
			got, err := h.Verify(ctx, hash, tt.password)
			if err != nil || got != tt.want {
				t.Errorf("Verify(%.20q for %.20q) = %v, %v; want %v", tt.password, password, got, err, tt.want)
			}
		}
		again, err := h.Hash(ctx, password)
		if err != nil || again == hash {
			t.Errorf("second hash of one password: %q, %v; want another salt", again, err)
		}
	}
}

// TestVerifyKnown verifies hashes that other programs created.
func TestVerifyKnown(t *testing.T) {
	t.Parallel()
	h := NewHasher(cheap, 1)
	for name, tt := range map[string]struct{ hash, password string }{
		"argon2 reference program": {"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "password"},
		"bcrypt 2a":                {"$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "U*U"},
		"bcrypt 2y":                {"$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "U*U"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				password string
				want     bool
			}{{tt.password, true}, {tt.password + "!", false}} {
				got, err := h.Verify(t.Context(), tt.hash, c.password)
				if err != nil || got != c.want {
					t.Errorf("Verify(%q) = %v, %v; want %v", c.password, got, err, c.want)
				}
			}
			if !h.NeedsRehash(tt.hash) {
				t.Error("NeedsRehash is false")
			}
		})
	}
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	h := NewHasher(cheap, 1)
	dear, err := bcrypt.GenerateFromPassword([]byte("x"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	for name, hash := range map[string]string{
		"empty":         "",
		"clear text":    "correct horse",
		"other kind":    "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"other version": "$argon2id$v=16$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"no version":    "$argon2id$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"all memory":    "$argon2id$v=19$m=4294967295,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"all day":       "$argon2id$v=19$m=256,t=4000000,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"zero":          "$argon2id$v=19$m=256,t=0,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"sign":          "$argon2id$v=19$m=+256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"too thin":      "$argon2id$v=19$m=16,t=2,p=4$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"order":         "$argon2id$v=19$t=2,m=256,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"short salt":    "$argon2id$v=19$m=256,t=2,p=1$c29t$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"no sum":        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$",
		"not base64":    "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR_uIPnA4rEsF5h7TKyQwu9U1bMCHGi_4",
		"short bcrypt":  "$2a$05$CCCCCCCCCCCCCC",
		"dear bcrypt":   strings.Replace(string(dear), "$04$", "$31$", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ok, err := h.Verify(t.Context(), hash, "password")
			if ok || err == nil {
				t.Errorf("Verify = %v, %v; want an error", ok, err)
			}
			if err != nil && hash != "" && strings.Contains(err.Error(), hash) {
				t.Errorf("error %q shows the hash", err)
			}
		})
	}
}

func TestNeedsRehash(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	old := NewHasher(cheap, 1)
	hash, err := old.Hash(ctx, "pw")
	if err != nil {
		t.Fatal(err)
	}
	if old.NeedsRehash(hash) {
		t.Error("a fresh hash needs no other")
	}
	raised := NewHasher(Params{Memory: 128, Time: 2, Threads: 1}, 1)
	if !raised.NeedsRehash(hash) {
		t.Error("a hash of cheaper parameters should be replaced")
	}
	if ok, err := raised.Verify(ctx, hash, "pw"); err != nil || !ok {
		t.Errorf("an old hash does not verify any more: %v, %v", ok, err)
	}
}

func TestHasherPanicsOnSenselessParams(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("NewHasher took parameters that no hash can have")
		}
	}()
	NewHasher(Params{Memory: 1, Time: 1, Threads: 4}, 1)
}

// TestBound uses all slots of a Hasher, and checks that further calls wait until
// their context ends.
func TestBound(t *testing.T) {
	t.Parallel()
	h := NewHasher(cheap, 2)
	stored, err := h.Hash(t.Context(), "pw")
	if err != nil {
		t.Fatal(err)
	}
	imported, err := bcrypt.GenerateFromPassword([]byte("pw"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	heavy := "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	calls := map[string]func(context.Context) error{
		"hash":   func(ctx context.Context) error { _, err := h.Hash(ctx, "pw"); return err },
		"verify": func(ctx context.Context) error { _, err := h.Verify(ctx, stored, "pw"); return err },
		"bcrypt": func(ctx context.Context) error { _, err := h.Verify(ctx, string(imported), "pw"); return err },
		"heavy":  func(ctx context.Context) error { _, err := h.Verify(ctx, heavy, "pw"); return err },
		"burn":   func(ctx context.Context) error { return h.Burn(ctx, "pw") },
	}
	if err := h.memory.Acquire(t.Context(), 2*int64(cheap.Memory)); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s with no place free: %v, want the context's error", name, err)
		}
		cancel()
	}
	h.memory.Release(2 * int64(cheap.Memory))

	var wg sync.WaitGroup
	for range 8 {
		for name, call := range calls {
			wg.Go(func() {
				if err := call(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	wg.Wait()
	if !h.memory.TryAcquire(2 * int64(cheap.Memory)) {
		t.Error("not every place was given back")
	}
}

// TestBurnCosts checks that Burn computes one hash, like Verify.
func TestBurnCosts(t *testing.T) {
	t.Parallel()
	h := NewHasher(Params{Memory: 64, Time: 1, Threads: 1}, 1)
	ctx := t.Context()
	hash, err := h.Hash(ctx, "pw")
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"Verify": func() error { _, err := h.Verify(ctx, hash, "other"); return err },
		"Burn":   func() error { return h.Burn(ctx, "other") },
	} {
		before := h.Count()
		if err := call(); err != nil {
			t.Fatal(err)
		}
		if n := h.Count() - before; n != 1 {
			t.Errorf("%s computes %d hashes", name, n)
		}
	}
}

func FuzzParsePHC(f *testing.F) {
	f.Add("$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4")
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$$")
	f.Add("$argon2id$v=19$m=0,t=,p=256$AAAAAAAAAAA\n$")
	f.Fuzz(func(t *testing.T, s string) {
		e, err := parsePHC(s)
		if err != nil {
			return
		}
		if e.String() != s {
			t.Errorf("%q reads as %q", s, e.String())
		}
		if e.Memory > maxMemory || e.Time > maxTime || e.Threads > maxThreads || e.Memory < 8*uint32(e.Threads) {
			t.Errorf("%q asks for %+v", s, e.Params)
		}
	})
}

// FuzzVerifyBcrypt verifies passwords with invalid bcrypt hashes.
func FuzzVerifyBcrypt(f *testing.F) {
	f.Add("$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "U*U")
	f.Add("$2a$04$!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!", "")
	h := NewHasher(cheap, 1)
	f.Fuzz(func(t *testing.T, hash, password string) {
		if cost, err := bcrypt.Cost([]byte(hash)); err == nil && cost > 5 && cost <= maxBcryptCost {
			return // valid, but slow
		}
		if isBcrypt(hash) {
			h.Verify(t.Context(), hash, password)
		}
	})
}

func BenchmarkHash(b *testing.B) {
	h := NewHasher(DefaultParams(), 2)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Hash(b.Context(), "correct horse battery staple"); err != nil {
			b.Fatal(err)
		}
	}
}
