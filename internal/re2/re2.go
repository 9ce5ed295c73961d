// Package re2 limits the cost of regular expressions that users give. Matching takes
// time in proportion to the product of the sizes of text and compiled expression,
// but a short expression may compile to a large program: (?:.?.?.?){1000} has
// thousands of steps, and more repetitions have millions.
package re2

import (
	"errors"
	"math/bits"
	"regexp"
	"regexp/syntax"
)

const (
	// MaxLength is the maximum number of bytes of an expression.
	MaxLength = 2048
	// maxSteps is the approximate maximum number of steps of a compiled expression:
	// a{1000} has a thousand.
	maxSteps = 5000
)

// ErrLarge is the error of an expression with too many steps.
var ErrLarge = errors.New("the pattern is too large")

// Compile compiles an expression. It returns an error if it is too large.
func Compile(expression string) (*regexp.Regexp, error) {
	if _, err := Steps(expression); err != nil {
		return nil, err
	}
	return regexp.Compile(expression)
}

// Steps returns the approximate number of steps of an expression without compiling
// it. It returns an error if there are too many.
func Steps(expression string) (int, error) {
	if len(expression) > MaxLength {
		return 0, errors.New("the pattern is too long")
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, err
	}
	n := StepsOf(tree)
	if n > maxSteps {
		return 0, ErrLarge
	}
	return n, nil
}

// StepsOf is Steps for a parsed expression, without the limit.
func StepsOf(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/2
	if re.Op == syntax.OpCharClass {
		n = 1 + bits.Len(uint(len(re.Rune))) // binary search in its ranges
	}
	for _, sub := range re.Sub {
		n += StepsOf(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 1<<30)
}

// Matcher matches many texts with one limit for all of them.
type Matcher struct {
	re    *regexp.Regexp
	steps int
	left  int
}

// maxWork is the maximum product of steps and bytes for a Matcher, which takes about
// two seconds. It allows an expression of 30 steps to be matched with 3 MB of text.
const maxWork = 100_000_000

// NewMatcher compiles an expression.
func NewMatcher(expression string) (*Matcher, error) {
	n, err := Steps(expression)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(expression)
	return &Matcher{re: re, steps: n, left: maxWork}, err
}

// Match reports whether a text matches. Once the limit is exceeded, it returns
// false.
func (m *Matcher) Match(text string) bool {
	m.left -= m.steps * (1 + len(text))
	return !m.Exceeded() && m.re.MatchString(text)
}

// Exceeded reports whether the limit was exceeded, so that the results are
// incomplete.
func (m *Matcher) Exceeded() bool { return m.left < 0 }
