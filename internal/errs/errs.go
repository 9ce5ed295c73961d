// Package errs defines the kinds of errors that operations return to callers.
//
// Features return these kinds; each interface translates them into its protocol
// in one place. Any other error is an internal error: it is logged, and its text
// is never shown to a caller.
package errs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Kind is the kind of an Error.
type Kind int

// The kinds. An interface maps each to one status of its protocol.
const (
	KindInvalid       Kind = iota + 1 // the input cannot be accepted
	KindUnauthorized                  // the caller is not known
	KindForbidden                     // the caller may see the object, but not do this
	KindNotFound                      // the object does not exist, or the caller may not see it
	KindConflict                      // conflict with the state of the object, or with another object
	KindPrecondition                  // the object has changed since the caller read it
	KindUnprocessable                 // the input is well formed, but cannot be processed
	KindTooLarge                      // the input is larger than a limit
	KindNotAllowed                    // the request is not supported for this object
	KindUnavailable                   // a service that is needed does not respond
	KindGone                          // this interface is no longer supported
	KindNotAcceptable                 // there is nothing that the request could stop
)

// Error is an error whose text may be shown to the caller.
type Error struct {
	Kind Kind
	// Text is a sentence for the caller. For KindNotFound it is the name of the
	// missing object ("User"), or empty.
	Text string
	// Fields are the messages about attributes of a model, by the name of the
	// attribute. It goes with KindInvalid or KindConflict and replaces Text.
	Fields map[string][]string
	// Bare means that interfaces return Text without a prefix.
	Bare bool
	// Listed means that clients expect Text in a list; it goes with KindConflict or
	// KindUnprocessable.
	Listed bool
	// Code is a reason for programs, if several reasons have the same kind.
	Code string
	// RetryAfter is when to retry; it goes with KindUnavailable. 0 means that the
	// interface chooses.
	RetryAfter time.Duration
	cause      error
}

// Error returns the text for logs, with the cause, which callers never see.
func (e *Error) Error() string {
	text := e.Text
	if len(e.Fields) > 0 {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
			parts = append(parts, name+" "+strings.Join(e.Fields[name], ", "))
		}
		text = strings.Join(parts, "; ")
	}
	if e.Kind == KindNotFound {
		text = strings.TrimSpace(text + " not found")
	}
	if e.cause != nil {
		return text + ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// Because returns a copy of e with a cause, which is logged.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// Coded returns a copy of e with a code for programs.
func (e *Error) Coded(code string) *Error {
	c := *e
	c.Code = code
	return &c
}

// Invalid returns an error for invalid input.
func Invalid(format string, args ...any) *Error { return newError(KindInvalid, format, args) }

// Refused is Invalid with a text that interfaces return without a prefix, because
// clients expect it so.
func Refused(format string, args ...any) *Error {
	e := newError(KindInvalid, format, args)
	e.Bare = true
	return e
}

// InvalidField returns an error for input with an invalid attribute.
func InvalidField(name, format string, args ...any) *Error {
	return &Error{Kind: KindInvalid, Fields: map[string][]string{name: {text(format, args)}}}
}

// Fields collects messages about the attributes of a model, by the name of the
// attribute. The API returns them as {"message": {"name": ["…"]}}.
type Fields map[string][]string

// Add adds a message about an attribute.
func (f Fields) Add(name, format string, args ...any) {
	f[name] = append(f[name], text(format, args))
}

// Set replaces the messages about an attribute.
func (f Fields) Set(name, format string, args ...any) { f[name] = []string{text(format, args)} }

// Err returns an error of KindInvalid with the messages, or nil if there are
// none.
func (f Fields) Err() error {
	if len(f) == 0 {
		return nil
	}
	return &Error{Kind: KindInvalid, Fields: f}
}

// Unauthorized returns an error for an unknown caller.
func Unauthorized(format string, args ...any) *Error {
	return newError(KindUnauthorized, format, args)
}

// Forbidden returns an error for a caller who may see the object, but not do this;
// the reason may be empty.
func Forbidden(format string, args ...any) *Error { return newError(KindForbidden, format, args) }

// NotFound returns an error for an object that does not exist or that the caller may
// not see; its name may be empty.
func NotFound(thing string) *Error { return &Error{Kind: KindNotFound, Text: thing} }

// Conflict returns an error for a conflict with the state of an object.
func Conflict(format string, args ...any) *Error { return newError(KindConflict, format, args) }

// Precondition returns an error for an object that has changed since the caller read
// it.
func Precondition(format string, args ...any) *Error {
	return newError(KindPrecondition, format, args)
}

// ChangedSince returns a Precondition error if an object was changed after the
// caller read it, otherwise nil, also if that time is not known. It compares whole
// seconds, like HTTP.
func ChangedSince(changed time.Time, looked *time.Time) error {
	if looked == nil || !changed.Truncate(time.Second).After(*looked) {
		return nil
	}
	return Precondition("")
}

// Unprocessable returns an error for well-formed input that cannot be processed.
func Unprocessable(format string, args ...any) *Error {
	return newError(KindUnprocessable, format, args)
}

// TooLarge returns an error for input that is larger than a limit.
func TooLarge(format string, args ...any) *Error { return newError(KindTooLarge, format, args) }

// NotAllowed returns an error for a request that is not supported for the object.
func NotAllowed(format string, args ...any) *Error { return newError(KindNotAllowed, format, args) }

// Unavailable returns an error for a needed service that does not respond.
func Unavailable(format string, args ...any) *Error { return newError(KindUnavailable, format, args) }

// Busy is Unavailable for a request that would have to wait for others. after is
// when to retry.
func Busy(after time.Duration, format string, args ...any) *Error {
	e := newError(KindUnavailable, format, args)
	e.RetryAfter = after
	return e
}

// StorageFull is Unavailable because a disk, a quota, the database or the object
// store has no space left. Packages return it for such errors of services; those of
// the operating system need not be converted, see As.
func StorageFull(cause error) *Error {
	return Busy(time.Minute, "The server's storage is full. Try again later, or ask an administrator to free space.").Because(cause)
}

// As returns the first Error in the chain of err. If the operating system had no
// space left or a disk quota was reached, it returns StorageFull instead, whatever
// errors wrap the cause.
func As(err error) (*Error, bool) {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return StorageFull(err), true
	}
	return errors.AsType[*Error](err)
}

// RetryAfter returns the value of the header Retry-After for an error of
// KindUnavailable: whole seconds, by default 5.
func RetryAfter(err error) string {
	after := 5 * time.Second
	if e, ok := As(err); ok && e.RetryAfter > 0 {
		after = e.RetryAfter
	}
	return strconv.Itoa(int((after + time.Second - 1) / time.Second))
}

// Gone returns an error for an interface that is no longer supported.
func Gone(format string, args ...any) *Error { return newError(KindGone, format, args) }

// NotAcceptable returns an error for a request to stop something that has not
// started or is over.
func NotAcceptable(format string, args ...any) *Error {
	return newError(KindNotAcceptable, format, args)
}

// KindOf returns the kind of the first Error in the chain of err, or 0 for an
// internal error.
func KindOf(err error) Kind {
	if e, ok := As(err); ok {
		return e.Kind
	}
	return 0
}

// IsRefusal reports whether the operation was completed with a negative result, such
// as a missing permission or object. It is false for internal errors, and for
// KindUnavailable, after which the result is unknown.
func IsRefusal(err error) bool {
	kind := KindOf(err)
	return kind != 0 && kind != KindUnavailable
}

// Is reports whether err is an Error of the kind.
func Is(err error, kind Kind) bool { return KindOf(err) == kind }

// IgnoreRefusal returns nil for a refusal, and every other error unchanged.
func IgnoreRefusal(err error) error {
	if IsRefusal(err) {
		return nil
	}
	return err
}

// IgnoreNotFound returns nil for a NotFound error, and every other error unchanged.
func IgnoreNotFound(err error) error {
	if Is(err, KindNotFound) {
		return nil
	}
	return err
}

func newError(kind Kind, format string, args []any) *Error {
	return &Error{Kind: kind, Text: text(format, args)}
}

func text(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}
