package api

import (
	"fmt"
	"strings"
	"time"
)

// opt is a parameter that may be absent, null or given, and whose handler
// tells the three apart: a PUT leaves what is absent, clears what is null.
// Text without characters counts as null for every type but text itself,
// lists and hashes, as forms have no other way to say it.
type opt[T any] struct {
	Set   bool // the parameter was sent
	Null  bool // it was sent as null
	Value T
}

func (opt[T]) optional() {}

// optional marks opt for the layout, which can not name all its instances.
type optional interface{ optional() }

// unmarshaler is a type that reads itself from the text of one parameter.
// Its error is never shown: the client reads "x is invalid".
type unmarshaler interface{ UnmarshalParam(text string) error }

// fileText is a text that clients send as it is or as a file.
type fileText string

// maxFileText is how many bytes of such a file are read.
const maxFileText = 1 << 20

// Date is a day of the calendar, written YYYY-MM-DD.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// Time gives the start of the day in UTC.
func (d Date) Time() time.Time {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
}

// String gives the day as YYYY-MM-DD.
func (d Date) String() string {
	return fmt.Sprintf("%04d-%02d-%02d", d.Year, int(d.Month), d.Day)
}

// paramError is every parameter that is wrong, answered with 400 and
// {"error": Error()}. Its texts name declared parameters only and hold
// nothing that the client sent.
type paramError struct {
	messages []string
}

func (e *paramError) Error() string { return strings.Join(e.messages, ", ") }

// fault says why a request could not be read.
type fault int

const (
	faultMalformed  fault = iota + 1 // not in the form its content type promises: 400
	faultIncomplete                  // the client went away in the middle: 400, if anyone still listens
	faultTooLarge                    // over a limit of size: 413
	faultMediaType                   // a body in a form that the API does not read: 415
)

// inputError is a request whose parameters could not be read at all. The text
// may be shown ({"error": text}): it never repeats what was sent. The cause is
// for the log.
type inputError struct {
	fault fault
	text  string
	cause error
}

func (e *inputError) Error() string {
	if e.cause != nil {
		return e.text + ": " + e.cause.Error()
	}
	return e.text
}

func (e *inputError) Unwrap() error { return e.cause }

// ruled is a parameters struct that also has rules about groups of its
// parameters. A struct that embeds a ruled one and has rules itself returns
// both.
type ruled interface{ paramRules() []rule }

// rule is a condition on which parameters of a group were sent. A parameter
// that was sent as null or empty counts as sent; a default does not.
type rule struct {
	kind  ruleKind
	names []string
}

type ruleKind int

const (
	ruleExclusive ruleKind = iota + 1
	ruleAtLeastOne
	ruleExactlyOne
	ruleAllOrNone
)

// exclusive allows at most one of the parameters.
func exclusive(names ...string) rule { return rule{ruleExclusive, names} }

// atLeastOne wants one or more of the parameters.
func atLeastOne(names ...string) rule { return rule{ruleAtLeastOne, names} }

// exactlyOne wants one of the parameters and no more.
func exactlyOne(names ...string) rule { return rule{ruleExactlyOne, names} }

// allOrNone wants all of the parameters, or none of them.
func allOrNone(names ...string) rule { return rule{ruleAllOrNone, names} }

// broken gives the names to blame and what to say of them, or no names when
// the rule holds. given are the names of the group that were sent.
func (r rule) broken(given []string) (blame []string, text string) {
	switch {
	case r.kind == ruleExclusive && len(given) > 1,
		r.kind == ruleExactlyOne && len(given) > 1:
		return given, "are mutually exclusive"
	case r.kind == ruleAtLeastOne && len(given) == 0:
		return r.names, "are missing, at least one parameter must be provided"
	case r.kind == ruleExactlyOne && len(given) == 0:
		return r.names, "are missing, exactly one parameter must be provided"
	case r.kind == ruleAllOrNone && len(given) != 0 && len(given) != len(r.names):
		return r.names, "provide all or none of parameters"
	}
	return nil, ""
}
