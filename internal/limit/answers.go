package limit

import (
	"context"
	"errors"
	"sync/atomic"

	"svc/internal/errs"
)

// ErrLargeAnswer is returned when a request has read more bytes than it may.
var ErrLargeAnswer = errors.New("the response is too large")

// Reads counts the bytes that a request reads into memory for its response. It
// counts only after Answers has set a limit. A nil Reads counts nothing.
type Reads struct{ bytes, most atomic.Int64 }

// ReadsOf returns the counter of the request of ctx, or nil if it has no limit: for
// operations of the server itself, and for requests that write.
func ReadsOf(ctx context.Context) *Reads {
	if a, ok := ctx.Value(accountKey{}).(*account); ok && a.reads.most.Load() > 0 {
		return &a.reads
	}
	return nil
}

// Add counts bytes that were read. It returns ErrLargeAnswer if the sum is over the
// limit of the request.
func (r *Reads) Add(bytes int) error {
	if r == nil {
		return nil
	}
	total := r.bytes.Add(int64(bytes))
	if most := r.most.Load(); most > 0 && total > most {
		return ErrLargeAnswer
	}
	return nil
}

// Over reports whether the sum is over the limit of the request.
func (r *Reads) Over() bool {
	if r == nil {
		return false
	}
	most := r.most.Load()
	return most > 0 && r.bytes.Load() > most
}

// EndReads stops counting, because the response of the request of ctx has begun and
// further data is streamed.
func EndReads(ctx context.Context) {
	if a, ok := ctx.Value(accountKey{}).(*account); ok {
		a.reads.most.Store(0)
	}
}

// Answers limits the memory for responses. Most responses are small and need no
// slot. A request that reads more is repeated with one of a few slots.
type Answers struct {
	share       *Share
	small, most int64
}

// NewAnswers returns Answers that require a slot for responses that read more than
// small bytes; most is the limit with a slot.
func NewAnswers(small, most int64, l ShareLimits) *Answers {
	return &Answers{share: NewShare("large responses", l), small: small, most: most}
}

// Share returns the slots, for metrics and tests.
func (a *Answers) Share() *Share { return a.share }

// Read calls read, which reads a response into memory and sends it. If more than a
// small response is read, read must return before it has sent anything; then Read
// waits for a slot and calls read again. The function release frees the slot before
// read returns, when the response is no longer in memory; it may be called more than
// once. Read returns errs.Busy if no slot becomes free and errs.Invalid if the
// response is too large for a slot.
func (a *Answers) Read(ctx context.Context, read func(release func()) error) error {
	account, ok := ctx.Value(accountKey{}).(*account)
	if !ok {
		return read(noSlot)
	}
	reads := &account.reads
	reads.bound(a.small)
	if err := read(noSlot); !reads.Over() {
		return err
	}
	release, err := a.share.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	reads.bound(a.most)
	if err := read(release); !reads.Over() {
		return err
	}
	return errs.Invalid("The response would exceed %d MiB. Request fewer items at a time.", a.most>>20)
}

func noSlot() {}

func (r *Reads) bound(most int64) {
	r.bytes.Store(0)
	r.most.Store(most)
}
