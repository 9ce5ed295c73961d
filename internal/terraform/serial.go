package terraform

import (
	"strconv"

	"svc/internal/errs"
)

// serialScanner finds the member "serial" of the JSON object that is written to it. It
// needs little memory whatever the object contains, and accepts every valid object. It
// does not validate: of an invalid object it rejects only what could hide the serial.
type serialScanner struct {
	depth   int
	begun   bool // the object was opened
	quoted  bool // inside a string
	escaped bool // after a backslash
	key     bool // the next string is a key of the outermost object
	text    []byte
	value   bool   // after the key "serial": its number is read
	number  []byte // of the serial
	wrong   bool
}

// maxNumber is the longest number that is read: that of an int64, with a sign.
const maxNumber = 20

// Write implements io.Writer. It never fails.
func (s *serialScanner) Write(p []byte) (int, error) {
	for _, c := range p {
		s.step(c)
	}
	return len(p), nil
}

func (s *serialScanner) step(c byte) {
	if s.quoted {
		s.inString(c)
		return
	}
	if s.depth == 0 && c != '{' && !space(c) || s.depth == 0 && c == '{' && s.begun {
		s.wrong = true // not one object
		return
	}
	switch c {
	case '"':
		s.quoted, s.text = true, s.text[:0]
	case '{', '[':
		s.value = false
		s.depth++
		if s.depth == 1 {
			s.begun, s.key = true, true
		}
	case '}', ']':
		s.value = false
		s.depth--
	case ',':
		if s.depth == 1 {
			s.key, s.value = true, false
		}
	case ':':
		if s.depth == 1 && s.key {
			s.key = false
			if string(s.text) == "serial" {
				s.value, s.number = true, s.number[:0]
			}
		}
	default:
		if s.value && !space(c) && len(s.number) <= maxNumber {
			s.number = append(s.number, c)
		}
	}
}

// inString takes a byte of a string. Escapes are not decoded: no program escapes
// the letters of "serial".
func (s *serialScanner) inString(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.quoted, s.value = false, false
		return
	}
	if len(s.text) <= len("serial") {
		s.text = append(s.text, c)
	}
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// result returns the serial; Invalid if what was written is not a state.
func (s *serialScanner) result() (int64, error) {
	if s.wrong || !s.begun || s.depth != 0 || s.quoted {
		return 0, errs.Invalid("The body is not a Terraform state in JSON")
	}
	n, err := strconv.ParseInt(string(s.number), 10, 64)
	if err != nil || n < 0 {
		return 0, errs.Invalid("serial is missing or invalid")
	}
	return n, nil
}
