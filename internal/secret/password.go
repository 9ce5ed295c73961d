package secret

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/sync/semaphore"
)

const (
	saltLen = 16
	sumLen  = 32

	// maxBcryptCost bounds the time an imported hash may take: each step
	// doubles it, and 15 is about two seconds.
	maxBcryptCost = 15
)

// Params is the price of one password hash. Raise it when machines get
// faster: old hashes keep working, and NeedsRehash finds them.
type Params struct {
	Memory  uint32 // KiB
	Time    uint32 // passes over the memory
	Threads uint8
}

// DefaultParams is what OWASP advises for argon2id on a server that has other
// uses for its memory: 19 MiB, two passes, one thread.
func DefaultParams() Params { return Params{Memory: 19 << 10, Time: 2, Threads: 1} }

// Hasher hashes and checks passwords, a bounded number at once: each takes
// Params.Memory, and a flood of sign-ins must wait, not use up the machine.
type Hasher struct {
	params Params
	total  int64
	memory *semaphore.Weighted
	count  atomic.Int64
}

// NewHasher makes a Hasher that computes at most atOnce hashes at a time. It
// panics on parameters that no hash can have.
func NewHasher(p Params, atOnce int) *Hasher {
	e := encoded{Params: p, salt: make([]byte, saltLen), sum: make([]byte, sumLen)}
	if _, err := parsePHC(e.String()); err != nil {
		panic(fmt.Sprintf("secret: hasher parameters: %v", err))
	}
	total := int64(p.Memory) * int64(max(atOnce, 1))
	return &Hasher{params: p, total: total, memory: semaphore.NewWeighted(total)}
}

// Hash returns the hash of a password to store. It waits for its turn and fails
// only when ctx ends first.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	e := encoded{Params: h.params, salt: make([]byte, saltLen)}
	rand.Read(e.salt) // never fails: the runtime ends the process instead
	sum, err := h.compute(ctx, e.Params, e.salt, password, sumLen)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	e.sum = sum
	return e.String(), nil
}

// Verify reports whether the password belongs to the hash, which is argon2id
// or, for imported users, bcrypt. It waits for its turn; the error is ctx's, or
// says that the stored hash cannot be read.
func (h *Hasher) Verify(ctx context.Context, hash, password string) (bool, error) {
	if isBcrypt(hash) {
		return h.verifyBcrypt(ctx, hash, password)
	}
	e, err := parsePHC(hash)
	if err != nil {
		return false, fmt.Errorf("verify password: %w", err)
	}
	sum, err := h.compute(ctx, e.Params, e.salt, password, len(e.sum))
	if err != nil {
		return false, fmt.Errorf("verify password: %w", err)
	}
	return subtle.ConstantTimeCompare(sum, e.sum) == 1, nil
}

// Burn takes as long as Verify. Call it when there is no such user, or no
// password to compare with, so that the response time does not reveal that.
func (h *Hasher) Burn(ctx context.Context, password string) error {
	if _, err := h.compute(ctx, h.params, make([]byte, saltLen), password, sumLen); err != nil {
		return fmt.Errorf("burn password: %w", err)
	}
	return nil
}

// Count returns how many hashes have been computed. Each costs the same, so tests
// measure the cost of a sign-in with it instead of the clock.
func (h *Hasher) Count() int64 { return h.count.Load() }

// NeedsRehash reports whether a hash has other parameters than those of Hash.
// Replace it at the next sign-in, when the password is known. It is true for a
// hash that cannot be parsed.
func (h *Hasher) NeedsRehash(hash string) bool {
	e, err := parsePHC(hash)
	return err != nil || e.Params != h.params || len(e.salt) != saltLen || len(e.sum) != sumLen
}

func (h *Hasher) compute(ctx context.Context, p Params, salt []byte, password string, n int) ([]byte, error) {
	// A hash heavier than the whole allowance takes all of it.
	weight := min(int64(p.Memory), h.total)
	if err := h.memory.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	defer h.memory.Release(weight)
	h.count.Add(1)
	return argon2.IDKey([]byte(password), salt, p.Time, p.Memory, p.Threads, uint32(n)), nil
}

func isBcrypt(hash string) bool {
	return strings.HasPrefix(hash, "$2a$") || strings.HasPrefix(hash, "$2b$") || strings.HasPrefix(hash, "$2y$")
}

func (h *Hasher) verifyBcrypt(ctx context.Context, hash, password string) (bool, error) {
	cost, err := bcrypt.Cost([]byte(hash))
	if err != nil {
		return false, fmt.Errorf("verify password: bcrypt hash: %w", err)
	}
	if cost > maxBcryptCost {
		return false, fmt.Errorf("verify password: bcrypt hash: cost %d is over %d", cost, maxBcryptCost)
	}
	// It takes hardly any memory, but its share of the processors counts.
	weight := int64(h.params.Memory)
	if err := h.memory.Acquire(ctx, weight); err != nil {
		return false, fmt.Errorf("verify password: %w", err)
	}
	defer h.memory.Release(weight)
	h.count.Add(1)
	err = bcrypt.CompareHashAndPassword([]byte(hash), []byte(password))
	if errors.Is(err, bcrypt.ErrMismatchedHashAndPassword) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("verify password: bcrypt hash: %w", err)
	}
	return true, nil
}
