package ci

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"svc/internal/limit"
)

// compilationWait is the maximum time that a compilation of a CI/CD
// configuration waits for a slot.
const compilationWait = 30 * time.Second

// LimitCompilations sets up the slots for compilations of CI/CD configurations.
// wait is the maximum time to wait for a slot. It is called at start-up.
//
// A configuration of a few hundred kilobytes takes tens of megabytes of memory
// and a processor for a second, and anyone who can read a public project can
// have its configuration compiled. Background jobs of the server have no
// caller: only Total limits them.
func (s *Service) LimitCompilations(wait time.Duration) {
	total := max(2, runtime.GOMAXPROCS(0))
	half := total / 2
	s.compilations = limit.NewShare("compilations of CI configurations", limit.ShareLimits{
		Total: total, Reserve: half, PerUser: half, PerAddress: 1, Queue: 32, Wait: wait,
	})
}

// Compilations returns the slots for compilations, for tests and metrics.
func (s *Service) Compilations() *limit.Share { return s.compilations }

// compile runs f, which compiles a configuration, in a slot. It must not be called in a
// transaction or within f: the caller would wait for a slot while it holds a lock or a
// slot that other compilations need. It returns errs.Busy if no slot becomes free.
func (s *Service) compile(ctx context.Context, f func() error) error {
	release, err := s.compilations.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("wait to compile a CI configuration: %w", err)
	}
	defer release()
	return f()
}
