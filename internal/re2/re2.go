// Package re2 bounds the regular expressions that users give. Matching takes time in
// proportion to the product of the text and the expression, but a short expression may
// stand for a large one: (?:.?.?.?){1000} has thousands of steps, and with more
// repetitions it has millions.
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
	// maxSteps is how many steps an expression may compile to, about: a{1000} is
	// a thousand.
	maxSteps = 5000
)

// ErrLarge refuses an expression that stands for too many steps.
var ErrLarge = errors.New("the pattern is too large")

// Compile compiles an expression. It is an error if it is too large.
func Compile(expression string) (*regexp.Regexp, error) {
	if _, err := Steps(expression); err != nil {
		return nil, err
	}
	return regexp.Compile(expression)
}

// Steps returns how many steps an expression compiles to, about, without compiling
// it. It is an error if these are too many.
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

// StepsOf is Steps for an expression that was parsed, without the bound.
func StepsOf(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/2
	if re.Op == syntax.OpCharClass {
		n = 1 + bits.Len(uint(len(re.Rune))) // its ranges are searched by halves
	}
	for _, sub := range re.Sub {
		n += StepsOf(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 1<<30)
}

// Matcher matches many texts within one bound.
type Matcher struct {
	re    *regexp.Regexp
	steps int
	left  int
}

// maxWork is how many steps times bytes a Matcher takes, which is about two seconds.
// An expression of 30 steps is matched with 3 MB of text.
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

// Match reports whether a text matches. Above the bound it is false.
func (m *Matcher) Match(text string) bool {
	m.left -= m.steps * (1 + len(text))
	return !m.Exceeded() && m.re.MatchString(text)
}

// Exceeded reports whether the bound was exceeded, so that the results are incomplete.
func (m *Matcher) Exceeded() bool { return m.left < 0 }
