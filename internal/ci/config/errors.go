package config

import (
	"fmt"
	"strings"
)

// Pos is a position in a file of the configuration. Line and Column count from 1; they
// are 0 if an error has no position, such as a limit on the whole configuration.
type Pos struct {
	File   string
	Line   int
	Column int
}

// Error is an error or warning about a configuration, for the author of the file.
type Error struct {
	Pos
	// Key is the path of the keyword, such as jobs:build:script; empty for an error of
	// the whole configuration.
	Key string
	// Message is the sentence as CI Lint of GitLab words it.
	Message string
}

// Error returns the message, preceded by its position.
func (e *Error) Error() string {
	switch {
	case e.File == "":
		return e.Message
	case e.Line == 0:
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// Errors are all errors of a configuration, up to 100.
type Errors []*Error

// Error returns one line for each error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Messages returns the sentences without positions, as the API lists them.
func (e Errors) Messages() []string {
	messages := make([]string, len(e))
	for i, one := range e {
		messages[i] = one.Message
	}
	return messages
}

// NoPipeline is the error of Plan if the configuration is valid, but results in no
// pipeline.
type NoPipeline struct {
	// Filtered reports that workflow:rules excluded the pipeline; otherwise no job is left.
	Filtered bool
}

// Error returns the sentence that is shown to the user who pushed.
func (n *NoPipeline) Error() string {
	if n.Filtered {
		return "Pipeline filtered out by workflow rules."
	}
	return "The resulting pipeline would have been empty. Review the rules configuration for the relevant jobs."
}

func failAt(pos Pos, key, format string, args ...any) *Error {
	return newError(pos, key, fmt.Sprintf(format, args...))
}

// newError returns an error with at most maxMessage bytes of text: messages repeat what
// the author wrote, which may be as long as a file.
func newError(pos Pos, key, message string) *Error {
	return &Error{Pos: pos, Key: shorten(key), Message: shorten(message)}
}

func shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}
