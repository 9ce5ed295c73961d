package db

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"svc/internal/errs"
)

// turn is the FIFO lock of SQLite writers. The pool of database/sql, which has
// one connection for writing, would wake waiters in any order.
type turn struct {
	free   chan struct{}
	nested atomic.Pointer[func() bool] // see FailNestedWrites

	waits  atomic.Int64 // number of waits
	waited atomic.Int64 // total time of the waits, in nanoseconds
}

func newTurn() *turn {
	t := &turn{free: make(chan struct{}, 1)}
	t.give()
	return t
}

var errNested = errors.New("the database is written to inside a transaction: use the Tx, not the DB")

// take waits for the turn. The caller must give it back.
func (t *turn) take(ctx context.Context) error {
	if t.try() {
		return nil
	}
	began := time.Now()
	t.waits.Add(1)
	defer func() { t.waited.Add(int64(time.Since(began))) }()
	if nested := t.nested.Load(); nested != nil && (*nested)() {
		return errNested
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-t.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return errs.Unavailable("The database is busy.").Because(errors.New("another write holds the database"))
	}
}

// FailNestedWrites makes a write outside of a transaction fail if it is made by
// the function of a transaction: on SQLite it would wait for the end of that
// transaction, a deadlock. Tests use it to find such writes. insideTx reports
// whether the calling goroutine runs the function of a transaction.
func (d *DB) FailNestedWrites(insideTx func() bool) {
	if d.turn != nil {
		d.turn.nested.Store(&insideTx)
	}
}

// try takes the turn if it is free.
func (t *turn) try() bool {
	select {
	case <-t.free:
		return true
	default:
		return false
	}
}

func (t *turn) give() { t.free <- struct{}{} }

// retryBusy calls f, and retries it while it fails because of another
// transaction.
func retryBusy(ctx context.Context, f func() error) error {
	err := f()
	if !busy(err) {
		return err
	}
	for start, pause := time.Now(), time.Millisecond; busy(err); pause = min(2*pause, 200*time.Millisecond) {
		if time.Since(start) > patience {
			return errs.Unavailable("The database is busy.").Because(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause)):
		}
		err = f()
	}
	return err
}

// lostTries is the maximum number of attempts of retryLost.
const lostTries = 5

// retryLost is retryBusy for a function that may run again after its connection was
// lost. A connection notices that the database was restarted only when it is used, and
// so does each of the others in the pool; the driver may also notice late that the
// context of an earlier caller has ended.
func retryLost(ctx context.Context, f func() error) error {
	err := retryBusy(ctx, f)
	for try := 1; try < lostTries && errors.Is(err, errCut) && ctx.Err() == nil; try++ {
		err = retryBusy(ctx, f)
	}
	return err
}

// busy reports whether an error was caused by another transaction. Errors of
// libraries with their own SQL are not mapped yet.
func busy(err error) bool { return errors.Is(err, errBusy) || errors.Is(mapError(err), errBusy) }
