package ci

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/ci/config"
	"svc/internal/errs"
	"svc/internal/expand"
)

// expansion expands variables in strings of a CI/CD configuration, within the
// budget of one operation.
type expansion struct {
	*config.Expander
	budget *expand.Budget
}

// flatExpansion inserts the values of variables without expanding them further.
func flatExpansion(ctx context.Context, variables config.Lookup) expansion {
	b := expand.NewBudget(ctx)
	return expansion{config.Flat(b, variables), b}
}

// err returns Invalid if a limit was exceeded, or the error of the context.
// Callers check it after they have expanded all strings.
func (e expansion) err() error {
	if err := e.budget.Err(); errors.Is(err, expand.ErrLimit) {
		return errs.Invalid("%s", err)
	}
	return e.budget.Err()
}

// failed is err for a job that is being assigned to a runner: the job fails,
// and its log has the reason.
func (e expansion) failed() error {
	if err := e.budget.Err(); errors.Is(err, expand.ErrLimit) {
		return &unrunnable{DataIntegrityFailure, fmt.Sprintf("The variables of the job cannot be expanded: %v.", err)}
	}
	return e.budget.Err()
}

// expander expands strings with the variables of a job. Variables may refer to
// each other.
func (a *Assignment) expander(ctx context.Context) expansion {
	known := make([]config.Variable, 0, len(a.Variables))
	for _, v := range a.Variables {
		known = append(known, config.Variable{Key: v.Key, Value: v.Value, Raw: v.Raw, File: v.File})
	}
	b := expand.NewBudget(ctx)
	return expansion{config.Nested(b, config.LookupIn(known)), b}
}
