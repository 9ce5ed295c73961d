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

	// maxBcryptCost limits the time to verify an imported hash: each step doubles
	// it, and 15 takes about two seconds.
	maxBcryptCost = 15
)

// Params are the cost parameters of a password hash. They can be raised at any time:
// old hashes can still be verified, and NeedsRehash detects them.
type Params struct {
	Memory  uint32 // KiB
	Time    uint32 // passes over the memory
	Threads uint8
}

// DefaultParams returns the parameters that OWASP recommends for argon2id: 19 MiB,
// two passes, one thread.
func DefaultParams() Params { return Params{Memory: 19 << 10, Time: 2, Threads: 1} }

// Hasher hashes and verifies passwords. The number of concurrent hashes is limited,
// because each needs Params.Memory: further sign-ins wait.
type Hasher struct {
	params Params
	total  int64
	memory *semaphore.Weighted
	count  atomic.Int64
}

// NewHasher returns a Hasher that computes at most atOnce hashes concurrently. It
// panics if the parameters are not valid.
func NewHasher(p Params, atOnce int) *Hasher {
	e := encoded{Params: p, salt: make([]byte, saltLen), sum: make([]byte, sumLen)}
	if _, err := parsePHC(e.String()); err != nil {
		panic(fmt.Sprintf("secret: hasher parameters: %v", err))
	}
	total := int64(p.Memory) * int64(max(atOnce, 1))
	return &Hasher{params: p, total: total, memory: semaphore.NewWeighted(total)}
}

// Hash returns the hash of a password to store. It waits if too many hashes are
// being computed, and returns the error of ctx if ctx ends first.
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

// Verify reports whether the password matches the hash, which is argon2id or, for
// imported users, bcrypt. It waits like Hash. It returns the error of ctx, or an
// error if the hash is not valid.
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

// Burn takes as long as Verify. It is called if a user does not exist or has no
// password, so that the response time does not reveal that.
func (h *Hasher) Burn(ctx context.Context, password string) error {
	if _, err := h.compute(ctx, h.params, make([]byte, saltLen), password, sumLen); err != nil {
		return fmt.Errorf("burn password: %w", err)
	}
	return nil
}

// Count returns the number of computed hashes. Tests measure the cost of a sign-in
// with it instead of the time.
func (h *Hasher) Count() int64 { return h.count.Load() }

// NeedsRehash reports whether a hash has other parameters than the Hasher, or cannot
// be parsed. Callers replace such a hash at the next sign-in, when they have the
// password.
func (h *Hasher) NeedsRehash(hash string) bool {
	e, err := parsePHC(hash)
	return err != nil || e.Params != h.params || len(e.salt) != saltLen || len(e.sum) != sumLen
}

func (h *Hasher) compute(ctx context.Context, p Params, salt []byte, password string, n int) ([]byte, error) {
	// A hash that needs more than the total memory waits for all of it.
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
	// bcrypt needs little memory, but its processor time must be limited too.
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
