// Package expand replaces references to variables, such as $NAME, by the values of
// the variables. Values can refer to other variables. Every value is expanded once,
// and a budget limits the number of substitutions, the bytes they produce and the
// nesting of values, so that a small text cannot cause unlimited work.
package expand

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const (
	// MaxText is the maximum number of bytes that the substitutions in one text or
	// value may produce.
	MaxText = 256 << 10
	// MaxBytes is the maximum number of bytes that all expansions of one budget may
	// read and produce.
	MaxBytes = 64 << 20
	// MaxSteps is the maximum number of references that all expansions of one budget
	// may look up.
	MaxSteps = 1_000_000
	// MaxDepth is the maximum nesting of values.
	MaxDepth = 100
)

// ErrLimit is wrapped by the errors of expansions that exceed a limit.
var ErrLimit = errors.New("variable expansion exceeds a limit")

// Budget limits the work of a set of expansions. After its limits are exceeded, or
// its context has ended, texts are returned unchanged and Err returns the reason. A
// Budget is not safe for concurrent use.
type Budget struct {
	ctx   context.Context
	steps int
	bytes int
	err   error
}

// NewBudget returns a budget with the limits of the package. Expansions stop when
// ctx ends.
func NewBudget(ctx context.Context) *Budget { return &Budget{ctx: ctx} }

// Err returns nil, an error that wraps ErrLimit, or the error of the context.
func (b *Budget) Err() error { return b.err }

// Steps returns the number of references that were looked up.
func (b *Budget) Steps() int { return b.steps }

// Bytes returns the number of bytes that were read and produced.
func (b *Budget) Bytes() int { return b.bytes }

// spend records work; it returns false if the budget is exhausted.
func (b *Budget) spend(steps, bytes int) bool {
	if b.err != nil {
		return false
	}
	b.steps += steps
	b.bytes += bytes
	switch {
	case b.steps > MaxSteps:
		b.err = fmt.Errorf("%w: more than %d references to variables", ErrLimit, MaxSteps)
	case b.bytes > MaxBytes:
		b.err = fmt.Errorf("%w: more than %d MiB of expanded variables", ErrLimit, MaxBytes>>20)
	case b.steps%1024 == 0:
		b.err = b.ctx.Err()
	}
	return b.err == nil
}

// Variable is a variable that texts can refer to.
type Variable struct {
	Value string
	// Raw means that the value contains no references.
	Raw bool
	// Kept means that references to the variable in other values are not replaced.
	Kept bool
}

// Syntax finds the references in a text from left to right. It calls with for each,
// with the reference as written and its name, and returns the text with the
// references replaced by the results.
type Syntax func(text string, with func(match, name string) string) string

// Expander expands texts with one set of variables. The zero value of an optional
// field disables it.
type Expander struct {
	Budget    *Budget
	Variables func(name string) (Variable, bool)
	Syntax    Syntax // syntax of texts
	// Nested is the syntax of values. Optional: if it is nil, values are not
	// expanded.
	Nested Syntax
	// DropUnknown replaces references to unknown variables in values by the
	// empty string.
	DropUnknown bool
	// DropCircular replaces a circular reference by the empty string; otherwise it
	// is an error. Such a value depends on where the circle was entered, so it is
	// expanded again for each use.
	DropCircular bool

	values map[string]result
	chain  []string // names of the values that are being expanded
}

type result struct {
	text  string
	depth int
	err   error
	busy  bool
	cut   bool // whether a circular reference was dropped
}

// Text expands a text. If keep is set, references to unknown variables are kept;
// otherwise they become the empty string. A circular value is inserted unexpanded; a
// value that exceeds a limit exhausts the budget.
func (e *Expander) Text(text string, keep bool) string {
	if !e.Budget.spend(0, len(text)) {
		return text
	}
	size := 0
	out := e.Syntax(text, func(match, name string) string {
		if !e.Budget.spend(1, 0) {
			return match
		}
		v, ok := e.Variables(name)
		switch {
		case !ok && keep:
			return match
		case !ok:
			return ""
		}
		value, err := e.Value(name)
		switch {
		case err == nil:
			v.Value = value
		case e.Budget.err == nil && errors.Is(err, ErrLimit):
			e.Budget.err = err
		}
		if size += len(v.Value); size > MaxText {
			if e.Budget.err == nil {
				e.Budget.err = fmt.Errorf("%w: a text grows by more than %d KiB", ErrLimit, MaxText>>10)
			}
			return match
		}
		if !e.Budget.spend(0, len(v.Value)) {
			return match
		}
		return v.Value
	})
	if e.Budget.err != nil {
		return text
	}
	return out
}

// Value returns the expanded value of a variable, or an empty string for an unknown
// one. It returns an error if values refer to each other in a circle, a limit is
// exceeded, or the context has ended.
func (e *Expander) Value(name string) (string, error) {
	r := e.value(name)
	return r.text, r.err
}

func (e *Expander) value(name string) result {
	if r, ok := e.values[name]; ok && !r.busy {
		return r
	}
	v, _ := e.Variables(name)
	if e.Nested == nil || v.Raw || v.Value == "" {
		return result{text: v.Value}
	}
	if len(e.chain) >= MaxDepth {
		return result{err: fmt.Errorf("%w: the values of variables are nested more than %d levels deep", ErrLimit, MaxDepth)}
	}
	if e.values == nil {
		e.values = map[string]result{}
	}
	e.values[name] = result{busy: true}
	e.chain = append(e.chain, name)
	r := e.expand(name, v.Value)
	e.chain = e.chain[:len(e.chain)-1]
	if r.err == nil && r.depth > MaxDepth {
		r = result{err: fmt.Errorf("%w: the value of variable %s is nested more than %d levels deep", ErrLimit, name, MaxDepth)}
	}
	if e.values[name] = r; r.cut {
		delete(e.values, name)
	}
	return r
}

// expand expands the value of a variable with the values that it refers to.
func (e *Expander) expand(name, value string) result {
	var r result
	if !e.Budget.spend(0, len(value)) {
		return result{err: e.Budget.err}
	}
	size := 0
	r.text = e.Nested(value, func(match, inner string) string {
		if r.err != nil {
			return match
		}
		if !e.Budget.spend(1, 0) {
			r.err = e.Budget.err
			return match
		}
		v, ok := e.Variables(inner)
		switch {
		case ok && v.Kept, !ok && !e.DropUnknown:
			return match
		case !ok:
			return ""
		case e.values[inner].busy && e.DropCircular:
			r.cut = true
			return ""
		case e.values[inner].busy:
			r.err = fmt.Errorf("circular variable reference detected: %s", strings.Join(append(e.chain, inner), " -> "))
			return match
		}
		within := e.value(inner)
		if r.err = within.err; r.err != nil {
			return match
		}
		r.depth, r.cut = max(r.depth, within.depth+1), r.cut || within.cut
		if size += len(within.text); size > MaxText {
			r.err = fmt.Errorf("%w: the value of variable %s is too long when expanded", ErrLimit, name)
			return match
		}
		if !e.Budget.spend(0, len(within.text)) {
			r.err = e.Budget.err
			return match
		}
		return within.text
	})
	if r.err != nil {
		r.text = ""
	}
	return r
}
