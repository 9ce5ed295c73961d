package bind

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// parseJSON reads a JSON body, which must be an object, into a value. Text is a part
// of the body and is copied only if it contains escapes. Text that is not UTF-8 is
// kept; its parameter rejects it.
//
// encoding/json is not used because it has no limits of depth and number of values,
// and silently replaces invalid UTF-8.
func parseJSON(body string) (value, error) {
	j := jsonReader{body: body}
	// Some editors and shells send a byte order mark first.
	if strings.HasPrefix(body, "\ufeff") {
		j.at = len("\ufeff")
	}
	v, err := j.value(0)
	if err != nil {
		return value{}, err
	}
	j.skipSpace()
	if j.at < len(j.body) {
		return value{}, j.malformed("unexpected text after the end")
	}
	if v.kind != valueObject {
		return value{}, &InputError{Fault: FaultMalformed, Text: "the JSON body must be an object"}
	}
	return v, nil
}

type jsonReader struct {
	body   string
	at     int
	values int
}

// malformed returns an error with the position, in characters, but without parts of
// the input.
func (j *jsonReader) malformed(what string) error {
	before := j.body[:min(j.at, len(j.body))]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return &InputError{
		Fault: FaultMalformed,
		Text:  fmt.Sprintf("the body is not valid JSON: %s at line %d, column %d", what, line, column),
	}
}

func (j *jsonReader) unexpected() error {
	if j.at >= len(j.body) {
		return j.malformed("unexpected end")
	}
	return j.malformed("unexpected character")
}

func (j *jsonReader) skipSpace() {
	for j.at < len(j.body) {
		switch j.body[j.at] {
		case ' ', '\t', '\r', '\n':
			j.at++
		default:
			return
		}
	}
}

// take skips white space and c, and reports whether c came next.
func (j *jsonReader) take(c byte) bool {
	j.skipSpace()
	if j.at < len(j.body) && j.body[j.at] == c {
		j.at++
		return true
	}
	return false
}

func (j *jsonReader) value(depth int) (value, error) {
	if j.values++; j.values > maxValues {
		return value{}, &InputError{Fault: FaultMalformed, Text: fmt.Sprintf("the JSON body has more than %d values", maxValues)}
	}
	j.skipSpace()
	if j.at >= len(j.body) {
		return value{}, j.unexpected()
	}
	switch c := j.body[j.at]; {
	case c == '{' || c == '[':
		if depth == maxDepth {
			return value{}, j.malformed(fmt.Sprintf("more than %d levels", maxDepth))
		}
		j.at++
		if c == '{' {
			return j.object(depth)
		}
		return j.list(depth)
	case c == '"':
		text, err := j.text()
		return value{kind: valueText, text: text}, err
	case c == '-' || c >= '0' && c <= '9':
		return j.number()
	}
	for _, word := range [...]struct {
		text string
		kind valueKind
	}{{"null", valueNull}, {"true", valueBool}, {"false", valueBool}} {
		if strings.HasPrefix(j.body[j.at:], word.text) {
			j.at += len(word.text)
			return value{kind: word.kind, text: word.text}, nil
		}
	}
	return value{}, j.unexpected()
}

func (j *jsonReader) object(depth int) (value, error) {
	v := value{kind: valueObject}
	if j.take('}') {
		return v, nil
	}
	for {
		j.skipSpace()
		if j.at >= len(j.body) || j.body[j.at] != '"' {
			return value{}, j.unexpected()
		}
		key, err := j.text()
		if err != nil {
			return value{}, err
		}
		if !j.take(':') {
			return value{}, j.unexpected()
		}
		kid, err := j.value(depth + 1)
		if err != nil {
			return value{}, err
		}
		kid.key = key
		v.kids = append(v.kids, kid)
		if j.take('}') {
			return v, nil
		}
		if !j.take(',') {
			return value{}, j.unexpected()
		}
	}
}

func (j *jsonReader) list(depth int) (value, error) {
	v := value{kind: valueList}
	if j.take(']') {
		return v, nil
	}
	for {
		kid, err := j.value(depth + 1)
		if err != nil {
			return value{}, err
		}
		v.kids = append(v.kids, kid)
		if j.take(']') {
			return v, nil
		}
		if !j.take(',') {
			return value{}, j.unexpected()
		}
	}
}

func (j *jsonReader) number() (value, error) {
	start := j.at
	if j.body[j.at] == '-' {
		j.at++
	}
	whole := j.at
	if !j.digits() {
		return value{}, j.unexpected()
	}
	if j.body[whole] == '0' && j.at > whole+1 {
		j.at = whole + 1
		return value{}, j.unexpected()
	}
	if j.at < len(j.body) && j.body[j.at] == '.' {
		j.at++
		if !j.digits() {
			return value{}, j.unexpected()
		}
	}
	if j.at < len(j.body) && (j.body[j.at] == 'e' || j.body[j.at] == 'E') {
		j.at++
		if j.at < len(j.body) && (j.body[j.at] == '+' || j.body[j.at] == '-') {
			j.at++
		}
		if !j.digits() {
			return value{}, j.unexpected()
		}
	}
	return value{kind: valueNumber, text: j.body[start:j.at]}, nil
}

// digits skips digits and reports whether there was one.
func (j *jsonReader) digits() bool {
	start := j.at
	for j.at < len(j.body) && j.body[j.at] >= '0' && j.body[j.at] <= '9' {
		j.at++
	}
	return j.at > start
}

// text reads a string, starting at its opening quote.
func (j *jsonReader) text() (string, error) {
	j.at++
	start := j.at
	for ; j.at < len(j.body); j.at++ {
		switch c := j.body[j.at]; {
		case c == '"':
			text := j.body[start:j.at]
			j.at++
			return text, nil
		case c == '\\':
			return j.escapedText(start)
		case c < ' ':
			return "", j.unexpected()
		}
	}
	return "", j.unexpected()
}

// escapedText reads the rest of a string, starting at its first escape.
func (j *jsonReader) escapedText(start int) (string, error) {
	out := []byte(j.body[start:j.at])
	for j.at < len(j.body) {
		c := j.body[j.at]
		switch {
		case c == '"':
			j.at++
			return string(out), nil
		case c < ' ':
			return "", j.unexpected()
		case c != '\\':
			out = append(out, c)
			j.at++
			continue
		}
		j.at++
		if j.at >= len(j.body) {
			return "", j.unexpected()
		}
		if j.body[j.at] == 'u' {
			var err error
			if out, err = j.unicode(out); err != nil {
				return "", err
			}
			continue
		}
		const escapes, bytes = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
		i := strings.IndexByte(escapes, j.body[j.at])
		if i < 0 {
			return "", j.unexpected()
		}
		out = append(out, bytes[i])
		j.at++
	}
	return "", j.unexpected()
}

// unicode reads the escape of a character, or of a surrogate pair, starting at its
// u.
func (j *jsonReader) unicode(out []byte) ([]byte, error) {
	r, ok := j.hex4()
	if !ok {
		return nil, j.unexpected()
	}
	if utf16.IsSurrogate(r) && strings.HasPrefix(j.body[j.at:], `\u`) {
		back := j.at
		j.at++
		low, ok := j.hex4()
		if !ok {
			return nil, j.unexpected()
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return utf8.AppendRune(out, pair), nil
		}
		j.at = back
	}
	if utf16.IsSurrogate(r) {
		// A single surrogate is invalid. It is encoded in bytes that are not valid
		// UTF-8, so that it is rejected like other invalid text.
		return append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f), nil
	}
	return utf8.AppendRune(out, r), nil
}

// hex4 reads the four digits after a u; on failure, its position is that of the
// invalid character.
func (j *jsonReader) hex4() (rune, bool) {
	var r rune
	j.at++
	for range 4 {
		if j.at >= len(j.body) {
			return 0, false
		}
		digit, ok := unhex(j.body[j.at])
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(digit)
		j.at++
	}
	return r, true
}
