package listing

import (
	"strconv"
	"strings"
)

// MaxCompletions is the maximum number of suggestions for autocompletion.
const MaxCompletions = 10

// Typed is the text to complete.
type Typed struct {
	Text   string
	Number int64 // number of an issue or merge request; 0 if the text is not a number
}

// NewTyped returns the text to complete. Only the first 100 bytes are used.
func NewTyped(text string) Typed {
	if len(text) > 100 {
		text = strings.ToValidUTF8(text[:100], "")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > 1e12 {
		n = 0
	}
	return Typed{text, n}
}
