package limit

import (
	"context"
	"errors"
	"sync/atomic"

	"svc/internal/errs"
)

// ErrLargeAnswer ends the reading of an answer that is over the bytes that its
// request may read.
var ErrLargeAnswer = errors.New("the answer is too large")

// Reads counts the bytes that a request reads into memory for its answer. It
// counts only after Answers has bounded it. A nil Reads counts nothing.
type Reads struct{ bytes, most atomic.Int64 }

// ReadsOf returns the count of the request of ctx, or nil when it is not
// bounded: the work of the server itself, and of requests that write.
func ReadsOf(ctx context.Context) *Reads {
	if a, ok := ctx.Value(accountKey{}).(*account); ok && a.reads.most.Load() > 0 {
		return &a.reads
	}
	return nil
}

// Add counts bytes that were read. It returns ErrLargeAnswer when they are more
// than the request may read.
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

// Over reports whether more was read than the request may read.
func (r *Reads) Over() bool {
	if r == nil {
		return false
	}
	most := r.most.Load()
	return most > 0 && r.bytes.Load() > most
}

// EndReads stops counting: the answer of the request of ctx has begun, and what
// is read now is sent on.
func EndReads(ctx context.Context) {
	if a, ok := ctx.Value(accountKey{}).(*account); ok {
		a.reads.most.Store(0)
	}
}

// Answers bounds the memory of answers. Most answers are small and need nothing.
// A request that reads more than that is read again in one of few slots.
type Answers struct {
	share       *Share
	small, most int64
}

// NewAnswers makes the slots of answers for which more than small bytes are
// read; most is the limit of one answer.
func NewAnswers(small, most int64, l ShareLimits) *Answers {
	return &Answers{share: NewShare("large answers", l), small: small, most: most}
}

// Share returns the slots, for metrics and tests.
func (a *Answers) Share() *Share { return a.share }

// Read calls read, which reads an answer into memory and sends it. When more is
// read than a small answer has, read must return before it has sent anything;
// then Read waits for a slot and calls read again. The function release gives the
// slot back before read returns, when the answer is no longer in memory; it may
// be called more than once. Read returns errs.Busy when there is no slot and
// errs.Invalid when the answer is too large for one.
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
