package bind

import (
	"fmt"
	"strings"
	"time"
)

// Opt is a parameter that may be absent, null or given, and whose handler
// tells the three apart: a PUT leaves what is absent, clears what is null.
// Text without characters counts as null for every type but text itself,
// lists and hashes, as forms have no other way to say it.
type Opt[T any] struct {
	Set   bool // the parameter was sent
	Null  bool // it was sent as null
	Value T
}

func (Opt[T]) optional() {}

// optional marks opt for the layout, which cannot name all its instances.
type optional interface{ optional() }

// Unmarshaler is a type that reads itself from the text of one parameter.
// Its error is never shown: the client reads "x is invalid".
type Unmarshaler interface{ UnmarshalParam(text string) error }

// FileText is a text that clients send as it is or as a file.
type FileText string

// MaxFileText is how many bytes of such a file are read.
const MaxFileText = 1 << 20

// Date is a day of the calendar, written YYYY-MM-DD.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// Time returns the start of the day in UTC.
func (d Date) Time() time.Time {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
}

// String returns the day as YYYY-MM-DD.
func (d Date) String() string {
	return fmt.Sprintf("%04d-%02d-%02d", d.Year, int(d.Month), d.Day)
}

// ParamError is every parameter that is wrong, answered with 400 and
// {"error": Error()}. Its texts name declared parameters only and hold
// nothing that the client sent.
type ParamError struct {
	Messages []string
}

// Invalid is the error of a parameter that a check beyond its tags refuses:
// "user_id is invalid".
func Invalid(messages ...string) *ParamError { return &ParamError{messages} }

// Error joins the messages, as the public API does.
func (e *ParamError) Error() string { return strings.Join(e.Messages, ", ") }

// Fault says why a request could not be read.
type Fault int

const (
	FaultMalformed  Fault = iota + 1 // not in the form its content type promises: 400
	FaultIncomplete                  // the client went away in the middle: 400, if anyone still listens
	FaultTooLarge                    // over a limit of size: 413
	FaultMediaType                   // a body in a form that the API does not read: 415
)

// InputError is a request whose parameters could not be read at all. The text
// may be shown ({"error": text}): it never repeats what was sent. The cause is
// for the log.
type InputError struct {
	Fault Fault
	Text  string
	Cause error
}

func (e *InputError) Error() string {
	if e.Cause != nil {
		return e.Text + ": " + e.Cause.Error()
	}
	return e.Text
}

func (e *InputError) Unwrap() error { return e.Cause }

// Ruled is a parameters struct that also has rules about groups of its
// parameters. A struct that embeds a ruled one and has rules itself returns
// both.
type Ruled interface{ ParamRules() []Rule }

// Rule is a condition on which parameters of a group were sent. A parameter
// that was sent as null or empty counts as sent; a default does not.
type Rule struct {
	Kind  RuleKind
	Names []string
}

// RuleKind says what a Rule asks for.
type RuleKind int

const (
	RuleExclusive RuleKind = iota + 1
	RuleAtLeastOne
	RuleExactlyOne
	RuleAllOrNone
)

// Exclusive allows at most one of the parameters.
func Exclusive(names ...string) Rule { return Rule{RuleExclusive, names} }

// AtLeastOne wants one or more of the parameters.
func AtLeastOne(names ...string) Rule { return Rule{RuleAtLeastOne, names} }

// ExactlyOne wants one of the parameters and no more.
func ExactlyOne(names ...string) Rule { return Rule{RuleExactlyOne, names} }

// AllOrNone wants all of the parameters, or none of them.
func AllOrNone(names ...string) Rule { return Rule{RuleAllOrNone, names} }

// broken returns the names to blame and what to say of them, or no names when
// the rule holds. given are the names of the group that were sent.
func (r Rule) broken(given []string) (blame []string, text string) {
	switch {
	case r.Kind == RuleExclusive && len(given) > 1,
		r.Kind == RuleExactlyOne && len(given) > 1:
		return given, "are mutually exclusive"
	case r.Kind == RuleAtLeastOne && len(given) == 0:
		return r.Names, "are missing, at least one parameter must be provided"
	case r.Kind == RuleExactlyOne && len(given) == 0:
		return r.Names, "are missing, exactly one parameter must be provided"
	case r.Kind == RuleAllOrNone && len(given) != 0 && len(given) != len(r.Names):
		return r.Names, "provide all or none of parameters"
	}
	return nil, ""
}
