package ci

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/ci/config"
	"svc/internal/errs"
	"svc/internal/expand"
)

// expansion expands texts of a CI file within the budget of one operation.
type expansion struct {
	*config.Expander
	budget *expand.Budget
}

// flatExpansion inserts the values of variables as they are written.
func flatExpansion(ctx context.Context, variables config.Lookup) expansion {
	b := expand.NewBudget(ctx)
	return expansion{config.Flat(b, variables), b}
}

// err is Invalid when the variables exceed a limit, and the error of the context
// when that has ended. It is asked once the texts are expanded.
func (e expansion) err() error {
	if err := e.budget.Err(); errors.Is(err, expand.ErrLimit) {
		return errs.Invalid("%s", err)
	}
	return e.budget.Err()
}

// failed is err for a job that a runner is about to get: the job fails, and its
// log says why.
func (e expansion) failed() error {
	if err := e.budget.Err(); errors.Is(err, expand.ErrLimit) {
		return &unrunnable{DataIntegrityFailure, fmt.Sprintf("The variables of the job cannot be expanded: %v.", err)}
	}
	return e.budget.Err()
}

// expander expands texts with the variables of a job, and those by each other.
func (a *Assignment) expander(ctx context.Context) expansion {
	known := make([]config.Variable, 0, len(a.Variables))
	for _, v := range a.Variables {
		known = append(known, config.Variable{Key: v.Key, Value: v.Value, Raw: v.Raw, File: v.File})
	}
	b := expand.NewBudget(ctx)
	return expansion{config.Nested(b, config.LookupIn(known)), b}
}
