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

// Kind says what sort of refusal an Error is.
type Kind int

// The kinds. An interface maps each to one status of its protocol.
const (
	KindInvalid       Kind = iota + 1 // the input cannot be accepted
	KindUnauthorized                  // the caller is not known
	KindForbidden                     // the caller may see the thing, but not do this
	KindNotFound                      // there is no such thing, or the caller may not see it
	KindConflict                      // the thing's present state, or another thing, stands in the way
	KindPrecondition                  // the thing changed since the caller looked
	KindUnprocessable                 // the input is well formed, but cannot be worked off
	KindTooLarge                      // the input is over a limit of size
	KindNotAllowed                    // the request is not supported for this thing
	KindUnavailable                   // a part that is needed does not answer now
	KindGone                          // this way of doing it is not open any more
	KindNotAcceptable                 // there is nothing that the request could end
)

// Error is a refusal whose text may be shown to the caller.
type Error struct {
	Kind Kind
	// Text is a sentence for the caller. For KindNotFound it is the name of
	// the missing thing ("User"), empty when that says nothing.
	Text string
	// Fields holds what is wrong with each named attribute of a model; it
	// goes with KindInvalid or KindConflict and replaces Text.
	Fields map[string][]string
	// Bare says that Text stands alone: an interface puts nothing before it.
	Bare bool
	// Listed says that clients know Text as one of a list; it goes with
	// KindConflict or KindUnprocessable.
	Listed bool
	// Code tells programs why, where several reasons have one kind.
	Code string
	// RetryAfter is when to try again; it goes with KindUnavailable. 0 means
	// that the interface chooses.
	RetryAfter time.Duration
	cause      error
}

// Error returns the text for logs, with the cause that callers never see.
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

// Because returns a copy of e that carries the cause for the log.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// Coded returns a copy of e that tells programs why.
func (e *Error) Coded(code string) *Error {
	c := *e
	c.Code = code
	return &c
}

// Invalid refuses input, with a sentence that says why.
func Invalid(format string, args ...any) *Error { return newError(KindInvalid, format, args) }

// Refused is Invalid for a sentence that stands alone, as clients know it.
func Refused(format string, args ...any) *Error {
	e := newError(KindInvalid, format, args)
	e.Bare = true
	return e
}

// InvalidField refuses input because of one attribute.
func InvalidField(name, format string, args ...any) *Error {
	return &Error{Kind: KindInvalid, Fields: map[string][]string{name: {text(format, args)}}}
}

// Fields collects what is wrong with the attributes of a model: messages by the
// name of the attribute. The API returns them as {"message": {"name": ["…"]}}.
type Fields map[string][]string

// Add adds a message to those of an attribute.
func (f Fields) Add(name, format string, args ...any) {
	f[name] = append(f[name], text(format, args))
}

// Set makes a message the only one of an attribute.
func (f Fields) Set(name, format string, args ...any) { f[name] = []string{text(format, args)} }

// Err returns an error of KindInvalid with the messages, or nil if there are
// none.
func (f Fields) Err() error {
	if len(f) == 0 {
		return nil
	}
	return &Error{Kind: KindInvalid, Fields: f}
}

// Unauthorized says that the caller is not known.
func Unauthorized(format string, args ...any) *Error {
	return newError(KindUnauthorized, format, args)
}

// Forbidden refuses what the caller may see but not do; the reason may be empty.
func Forbidden(format string, args ...any) *Error { return newError(KindForbidden, format, args) }

// NotFound says that the named thing is not there for this caller; the name
// may be empty.
func NotFound(thing string) *Error { return &Error{Kind: KindNotFound, Text: thing} }

// Conflict says what stands in the way.
func Conflict(format string, args ...any) *Error { return newError(KindConflict, format, args) }

// Precondition says that the thing changed since the caller looked at it.
func Precondition(format string, args ...any) *Error {
	return newError(KindPrecondition, format, args)
}

// ChangedSince is a Precondition when a thing changed after the caller looked
// at it, and nil otherwise, also when they do not say when that was. HTTP tells
// times in whole seconds.
func ChangedSince(changed time.Time, looked *time.Time) error {
	if looked == nil || !changed.Truncate(time.Second).After(*looked) {
		return nil
	}
	return Precondition("")
}

// Unprocessable refuses well-formed input that cannot be worked off.
func Unprocessable(format string, args ...any) *Error {
	return newError(KindUnprocessable, format, args)
}

// TooLarge refuses input that is over a limit.
func TooLarge(format string, args ...any) *Error { return newError(KindTooLarge, format, args) }

// NotAllowed refuses a form of request that this thing does not support.
func NotAllowed(format string, args ...any) *Error { return newError(KindNotAllowed, format, args) }

// Unavailable says that a needed part does not answer now.
func Unavailable(format string, args ...any) *Error { return newError(KindUnavailable, format, args) }

// Busy is Unavailable for work that has to wait for other work. after is when
// to try again.
func Busy(after time.Duration, format string, args ...any) *Error {
	e := newError(KindUnavailable, format, args)
	e.RetryAfter = after
	return e
}

// StorageFull is Unavailable because a disk, a quota, the database or the
// object storage has no space left. Packages return it for errors of services;
// errors of the system that say so need no mapping: see As.
func StorageFull(cause error) *Error {
	return Busy(time.Minute, "The server's storage is full. Try again later, or ask an administrator to free space.").Because(cause)
}

// As returns the refusal in err's chain, if there is one. When the system had
// no space left or a disk quota was reached, that is the refusal, wherever it
// happened and whatever else was made of it on the way.
func As(err error) (*Error, bool) {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return StorageFull(err), true
	}
	return errors.AsType[*Error](err)
}

// RetryAfter is the value of the header Retry-After for an error of
// KindUnavailable: whole seconds, 5 unless the error says otherwise.
func RetryAfter(err error) string {
	after := 5 * time.Second
	if e, ok := As(err); ok && e.RetryAfter > 0 {
		after = e.RetryAfter
	}
	return strconv.Itoa(int((after + time.Second - 1) / time.Second))
}

// Gone says that this way of doing things is not open any more.
func Gone(format string, args ...any) *Error { return newError(KindGone, format, args) }

// NotAcceptable is the error for a request to end what has not begun or is over.
func NotAcceptable(format string, args ...any) *Error {
	return newError(KindNotAcceptable, format, args)
}

// KindOf returns the kind of the first Error in err's chain, or 0 for a fault.
func KindOf(err error) Kind {
	if e, ok := As(err); ok {
		return e.Kind
	}
	return 0
}

// IsRefusal reports whether the operation answered, and the answer was no: the
// caller may not, or the thing is not there. A fault is none, and neither is
// KindUnavailable, after which no one knows the answer.
func IsRefusal(err error) bool {
	kind := KindOf(err)
	return kind != 0 && kind != KindUnavailable
}

// Is reports whether err is a refusal of the kind.
func Is(err error, kind Kind) bool { return KindOf(err) == kind }

func newError(kind Kind, format string, args []any) *Error {
	return &Error{Kind: kind, Text: text(format, args)}
}

func text(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}
