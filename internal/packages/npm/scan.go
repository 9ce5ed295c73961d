package npm

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
)

// Errors of text that is not JSON, or not of this form.
var (
	errSyntax = errors.New("the body is not valid JSON")
	errEmpty  = errors.New("the body is empty")
	errEnd    = errors.New("the body is not valid JSON: it ends too early")
	errObject = errors.New("a value in the body is not an object")
	errBase64 = errors.New("the attachment is not valid base64")
)

// maxDepth is the number of levels of nesting.
const maxDepth = 64

// scanner reads JSON text of any size. It holds only what its caller asks for:
// values up to a limit, and long strings piece by piece.
type scanner struct{ r *bufio.Reader }

// bodyReader reads the body of a request. It turns a body that is cut short into a plain
// end, because base64Reader takes other errors of that kind for invalid text.
type bodyReader struct{ r io.Reader }

// Read implements io.Reader.
func (b bodyReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// next returns the next byte that is not white space, and consumes it.
func (s scanner) next() (byte, error) {
	for {
		c, err := s.r.ReadByte()
		if err == io.EOF {
			return 0, errEnd
		}
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return c, nil
	}
}

// end checks that nothing follows.
func (s scanner) end() error {
	_, err := s.next()
	if errors.Is(err, errEnd) {
		return nil
	}
	if err != nil {
		return err
	}
	return errSyntax
}

// object reads an object. member is called for each member after its name, and
// consumes the value.
func (s scanner) object(member func(name string) error) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c != '{' {
		return errObject
	}
	for first := true; ; first = false {
		if c, err = s.next(); err != nil {
			return err
		}
		switch {
		case first && c == '}':
			return nil
		case !first && c == '}':
			return nil
		case !first && c == ',':
			if c, err = s.next(); err != nil {
				return err
			}
		case !first:
			return errSyntax
		}
		if c != '"' {
			return errSyntax
		}
		name, err := s.text(maxName)
		if err != nil {
			return err
		}
		if c, err = s.next(); err != nil {
			return err
		}
		if c != ':' {
			return errSyntax
		}
		if err := member(name); err != nil {
			return err
		}
	}
}

// text reads the rest of a string whose quote was consumed.
func (s scanner) text(limit int) (string, error) {
	raw := []byte{'"'}
	if err := s.restOfString(&raw, limit); err != nil {
		return "", err
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", errSyntax
	}
	return text, nil
}

// restOfString consumes a string after its quote. With raw it appends the text up
// to a limit.
func (s scanner) restOfString(raw *[]byte, limit int) error {
	for {
		c, err := s.r.ReadByte()
		if err == io.EOF {
			return errEnd
		}
		if err != nil {
			return err
		}
		if err := keep(raw, c, limit); err != nil {
			return err
		}
		switch {
		case c == '"':
			return nil
		case c < ' ':
			return errSyntax
		case c == '\\':
			if c, err = s.r.ReadByte(); err != nil {
				return errEnd
			}
			if err := keep(raw, c, limit); err != nil {
				return err
			}
		}
	}
}

func keep(raw *[]byte, c byte, limit int) error {
	if raw == nil {
		return nil
	}
	if len(*raw) >= limit {
		return errTooLong
	}
	*raw = append(*raw, c)
	return nil
}

// errTooLong is the error of a value over its limit.
var errTooLong = errors.New("a value in the body is too long")

// value reads a value of at most limit bytes.
func (s scanner) value(limit int) ([]byte, error) {
	raw := make([]byte, 0, 256)
	if err := s.walk(&raw, limit); err != nil {
		return nil, err
	}
	if !json.Valid(raw) {
		return nil, errSyntax
	}
	return raw, nil
}

// skip consumes a value of any size.
func (s scanner) skip() error { return s.walk(nil, 0) }

// walk consumes one value. Kept text is validated by the caller; of skipped text walk
// only looks for the end.
func (s scanner) walk(raw *[]byte, limit int) error {
	depth := 0
	for {
		c, err := s.next()
		if err != nil {
			return err
		}
		if err := keep(raw, c, limit); err != nil {
			return err
		}
		switch c {
		case '{', '[':
			if depth++; depth > maxDepth {
				return errTooLong
			}
		case '}', ']':
			if depth--; depth < 0 {
				return errSyntax
			}
		case '"':
			if err := s.restOfString(raw, limit); err != nil {
				return err
			}
		case ',', ':':
			if depth == 0 {
				return errSyntax
			}
			continue
		default:
			if err := s.literal(raw, limit); err != nil {
				return err
			}
		}
		if depth == 0 {
			return nil
		}
	}
}

// literal consumes the rest of a number, true, false or null.
func (s scanner) literal(raw *[]byte, limit int) error {
	for {
		c, err := s.r.ReadByte()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch c {
		case ',', '}', ']', ' ', '\t', '\r', '\n', ':':
			return s.r.UnreadByte()
		}
		if err := keep(raw, c, limit); err != nil {
			return err
		}
	}
}

// stringReader reads the characters of a string without escapes, such as base64,
// after its quote.
type stringReader struct {
	s    scanner
	done bool
}

// Read implements io.Reader.
func (r *stringReader) Read(p []byte) (int, error) {
	if r.done {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) {
		// What is buffered is taken without a call for each byte.
		c, err := r.s.r.ReadByte()
		if err == io.EOF {
			return n, errEnd
		}
		if err != nil {
			return n, err
		}
		switch {
		case c == '"':
			r.done = true
			if n == 0 {
				return 0, io.EOF
			}
			return n, nil
		case c == '\\': // some encoders escape the slash
			if c, err = r.s.r.ReadByte(); err != nil {
				return n, errEnd
			}
			if c != '/' {
				return n, errSyntax
			}
		case c < ' ':
			return n, errSyntax
		}
		p[n] = c
		n++
		if r.s.r.Buffered() == 0 {
			return n, nil
		}
	}
	return n, nil
}

// base64Reader decodes the content of an attachment.
type base64Reader struct{ r io.Reader }

func newBase64Reader(text io.Reader) base64Reader {
	return base64Reader{base64.NewDecoder(base64.StdEncoding, text)}
}

// Read implements io.Reader. It returns errBase64 for bad text, so that callers can
// distinguish it from errors of the body and of the object store.
func (b base64Reader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if _, corrupt := errors.AsType[base64.CorruptInputError](err); corrupt || err == io.ErrUnexpectedEOF {
		err = errBase64
	}
	return n, err
}
