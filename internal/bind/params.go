package bind

import (
	"fmt"
	"strings"
	"time"
)

// Opt is a parameter that may be absent, null or given, and whose handler
// distinguishes the three: a PUT request does not change absent parameters, and
// clears those that are null. Empty text counts as null for all types except text,
// lists and hashes, because forms cannot send null.
type Opt[T any] struct {
	Set   bool // whether the parameter was sent
	Null  bool // whether it was sent as null
	Value T
}

func (Opt[T]) optional() {}

// optional marks Opt for the layout, which cannot list all its instances.
type optional interface{ optional() }

// Unmarshaler is a type that parses itself from the text of a parameter. Its error
// is never shown: the client gets "x is invalid".
type Unmarshaler interface{ UnmarshalParam(text string) error }

// FileText is a text that clients send as text or as a file.
type FileText string

// MaxFileText is the maximum size of such a file.
const MaxFileText = 1 << 20

// Date is a calendar day, written YYYY-MM-DD.
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

// ParamError lists all invalid parameters. The response has status 400 and {"error":
// Error()}. Its texts contain only names of declared parameters, and nothing that
// the client sent.
type ParamError struct {
	Messages []string
}

// Invalid returns the error of a check beyond the tags, such as "user_id is
// invalid".
func Invalid(messages ...string) *ParamError { return &ParamError{messages} }

// Error joins the messages like the public API.
func (e *ParamError) Error() string { return strings.Join(e.Messages, ", ") }

// Fault is the reason why a request could not be read.
type Fault int

const (
	FaultMalformed  Fault = iota + 1 // the body does not match its content type: 400
	FaultIncomplete                  // the client disconnected before the end: 400
	FaultTooLarge                    // over a size limit: 413
	FaultMediaType                   // a content type that the API does not support: 415
)

// InputError is the error of a request whose parameters could not be read at all.
// The text may be shown ({"error": text}), because it contains no parts of the
// input. The cause is for the log.
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

// Ruled is a parameters struct with rules about groups of its parameters. A struct
// that embeds a Ruled struct and has rules itself must return both.
type Ruled interface{ ParamRules() []Rule }

// Rule is a condition about which parameters of a group were sent. A parameter that
// was sent as null or empty counts as sent; a default does not.
type Rule struct {
	Kind  RuleKind
	Names []string
}

// RuleKind is the kind of a Rule.
type RuleKind int

const (
	RuleExclusive RuleKind = iota + 1
	RuleAtLeastOne
	RuleExactlyOne
	RuleAllOrNone
)

// Exclusive allows at most one of the parameters.
func Exclusive(names ...string) Rule { return Rule{RuleExclusive, names} }

// AtLeastOne requires one or more of the parameters.
func AtLeastOne(names ...string) Rule { return Rule{RuleAtLeastOne, names} }

// ExactlyOne requires exactly one of the parameters.
func ExactlyOne(names ...string) Rule { return Rule{RuleExactlyOne, names} }

// AllOrNone requires all of the parameters, or none.
func AllOrNone(names ...string) Rule { return Rule{RuleAllOrNone, names} }

// broken returns the parameters that violate the rule and the error text; no names
// if the rule is satisfied. given are the names of the group that were sent.
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
