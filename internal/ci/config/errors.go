package config

import (
	"fmt"
	"strings"
)

// Pos is a place in a file of the configuration. Line and Column count from 1;
// they are 0 where a fault has no place, such as a limit on the whole.
type Pos struct {
	File   string
	Line   int
	Column int
}

// Error is one fault, or one warning, of a configuration. It is for the author
// of the file to see.
type Error struct {
	Pos
	// Key is the path of the keyword at fault, as in jobs:build:script; empty
	// for a fault of the whole.
	Key string
	// Message is the sentence as the public linter puts it.
	Message string
}

// Error returns the message with its place before it.
func (e *Error) Error() string {
	switch {
	case e.File == "":
		return e.Message
	case e.Line == 0:
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// Errors are all faults that were found, up to a hundred.
type Errors []*Error

// Error gives one fault a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Messages returns the sentences alone, as the public API lists them.
func (e Errors) Messages() []string {
	messages := make([]string, len(e))
	for i, one := range e {
		messages[i] = one.Message
	}
	return messages
}

// NoPipeline is what Plan returns when the configuration is sound, but asks
// for no pipeline here.
type NoPipeline struct {
	// Filtered says that workflow:rules decided it; otherwise no job is left.
	Filtered bool
}

// Error returns the sentence that the author of the push is shown.
func (n *NoPipeline) Error() string {
	if n.Filtered {
		return "Pipeline filtered out by workflow rules."
	}
	return "The resulting pipeline would have been empty. Review the rules configuration for the relevant jobs."
}

func failAt(pos Pos, key, format string, args ...any) *Error {
	return &Error{Pos: pos, Key: key, Message: fmt.Sprintf(format, args...)}
}
