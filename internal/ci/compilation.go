package ci

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"svc/internal/ci/config"
	"svc/internal/limit"
)

// compilationWait is the maximum time that a compilation of a CI/CD
// configuration waits for a slot.
const compilationWait = 30 * time.Second

// compilationTime is the maximum time that a compilation takes. It is shorter
// than the time limit of background jobs, so that a pipeline whose configuration
// is too slow fails, instead of being compiled again by every retry.
const compilationTime = 2 * time.Minute

// errSlow is the cause of a compilation that took longer than compilationTime.
var errSlow = errors.New("the compilation takes too long")

// LimitCompilations sets up the slots for compilations of CI/CD configurations.
// wait is the maximum time to wait for a slot, and most that of a compilation. It
// is called at start-up.
//
// A configuration of a few hundred kilobytes takes tens of megabytes of memory
// and a processor for a second, and anyone who can read a public project can
// have its configuration compiled. Background jobs of the server have no
// caller: only Total limits them.
func (s *Service) LimitCompilations(wait, most time.Duration) {
	s.compilationTime = most
	total := max(2, runtime.GOMAXPROCS(0))
	half := total / 2
	s.compilations = limit.NewShare("compilations of CI configurations", limit.ShareLimits{
		Total: total, Reserve: half, PerUser: half, PerAddress: 1, Queue: 32, Wait: wait,
	})
}

// Compilations returns the slots for compilations, for tests.
func (s *Service) Compilations() *limit.Share { return s.compilations }

// compile runs f, which compiles a configuration, in a slot. It must not be called in a
// transaction or within f: the caller would wait for a slot while it holds a lock or a
// slot that other compilations need. It returns errs.Busy if no slot becomes free, and
// config.Errors if f takes too long: the author of the files can make them smaller.
func (s *Service) compile(ctx context.Context, f func(ctx context.Context) error) error {
	release, err := s.compilations.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("wait to compile a CI configuration: %w", err)
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, s.compilationTime, errSlow)
	defer cancel()
	err = f(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errSlow) {
		return config.Errors{{Message: fmt.Sprintf("The CI configuration took longer than %s to compile. Make it smaller, or split it into child pipelines.", s.compilationTime)}}
	}
	return err
}
