package errortrack

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// group returns the digest by which events are grouped. A sender may set the
// fingerprint, in which {{ default }} stands for the default: the types of the
// exceptions with the frames of the program, without line numbers, which change
// too often; for an exception without a stack trace its type and location or
// message; for a message its text.
func (e *Event) group() string {
	sum := sha256.New()
	write := func(parts ...string) {
		for _, p := range parts {
			sum.Write([]byte(p))
			sum.Write([]byte{0}) // separates the parts: none contains NUL
		}
	}
	said := e.fingerprint
	if len(said) == 0 {
		said = []string{defaultMark}
	}
	for _, part := range said {
		if isDefault(part) {
			write(e.usual()...)
			continue
		}
		write("said", part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

const defaultMark = "{{ default }}"

func isDefault(part string) bool {
	return strings.ReplaceAll(part, " ", "") == "{{default}}"
}

// usual returns the default fingerprint.
func (e *Event) usual() []string {
	parts := []string{"platform", e.Platform}
	framed := false
	for _, x := range e.Exceptions {
		parts = append(parts, "exception", x.Type)
		last := ""
		for _, f := range own(x.Frames) {
			at := f.Where() + "\x01" + f.Function
			if f.Function == "" {
				at += "\x01" + f.Source
			}
			if at == last { // the depth of a recursion makes no difference
				continue
			}
			last, framed = at, true
			parts = append(parts, at)
		}
	}
	switch {
	case framed:
	case e.Type() != "" && e.Transaction != "":
		parts = append(parts, "at", e.Transaction)
	case e.template != "":
		parts = append(parts, "message", e.template)
	default:
		parts = append(parts, "message", plainMessage(e.Title))
	}
	return parts
}

// values matches the parts of a message that vary between events, such as numbers,
// addresses and UUIDs.
var values = regexp.MustCompile(`0x[0-9a-fA-F]+|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|\b[0-9a-fA-F]{16,}\b|\d+`)

func plainMessage(text string) string { return values.ReplaceAllString(text, "#") }
