package db

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"svc/internal/errs"
)

func TestTurnIsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turn := newTurn()
		if err := turn.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var order []int
		for i := range 20 {
			wg.Go(func() {
				if err := turn.take(t.Context()); err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				turn.give()
			})
			synctest.Wait() // the goroutine is in the queue
		}
		turn.give()
		wg.Wait()
		for i, n := range order {
			if n != i {
				t.Fatalf("order %v", order)
			}
		}
	})
}

func TestTurnEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turn := newTurn()
		if err := turn.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := turn.take(t.Context()); !errs.Is(err, errs.KindUnavailable) || time.Since(start) != patience {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := turn.take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if turn.try() {
			t.Error("two have their turn")
		}
		// A writer that waits for another one for long still gets its turn.
		late := make(chan error)
		go func() { late <- turn.take(t.Context()) }()
		time.Sleep(patience - time.Second)
		turn.give()
		if err := <-late; err != nil {
			t.Error(err)
		}
		turn.give()
		if !turn.try() {
			t.Error("the turn got lost")
		}
	})
}

func TestAgain(t *testing.T) {
	t.Parallel()
	busy := mapPostgres40001()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		err := retryBusy(t.Context(), func() error {
			if tries++; tries < 5 {
				return busy
			}
			return nil
		})
		if err != nil || tries != 5 {
			t.Errorf("%d tries: %v", tries, err)
		}

		start := time.Now()
		err = retryBusy(t.Context(), func() error { return busy })
		if !errs.Is(err, errs.KindUnavailable) || !errors.Is(err, busy) {
			t.Error(err)
		}
		if d := time.Since(start); d < patience || d > patience+time.Second {
			t.Errorf("patience lasted %v", d)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := retryBusy(ctx, func() error { return busy }); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}

		tries = 0
		fault := errors.New("a fault")
		err = retryBusy(t.Context(), func() error { tries++; return fault })
		if err != fault || tries != 1 {
			t.Errorf("%d tries: %v", tries, err)
		}
	})
}
