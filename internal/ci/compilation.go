package ci

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"svc/internal/limit"
)

// compilationWait is how long a compilation of a CI configuration waits for a
// slot.
const compilationWait = 30 * time.Second

// LimitCompilations makes the slots for compilations of CI configurations, each
// of which waits for one no longer than wait. It is called at start-up.
//
// A configuration of a few hundred kilobytes takes tens of megabytes and a
// processor for a second, and anyone who reads a public project can have its
// file checked. The server's own work has no caller: Total alone limits it.
func (s *Service) LimitCompilations(wait time.Duration) {
	total := max(2, runtime.GOMAXPROCS(0))
	half := total / 2
	s.compilations = limit.NewShare("compilations of CI configurations", limit.ShareLimits{
		Total: total, Reserve: half, PerUser: half, PerAddress: 1, Queue: 32, Wait: wait,
	})
}

// Compilations are the slots of compilations, for tests and metrics.
func (s *Service) Compilations() *limit.Share { return s.compilations }

// compile runs f, which compiles a configuration, in a slot. It must not be
// called in a transaction or within f: both would wait for slots while holding
// what others need to release theirs. It returns errs.Busy when there is no slot.
func (s *Service) compile(ctx context.Context, f func() error) error {
	release, err := s.compilations.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("wait to compile a CI configuration: %w", err)
	}
	defer release()
	return f()
}
