package bind

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Limits of a request, which limit the work of the binder. The limits in bytes are
// set by each endpoint.
const (
	maxParams = 10_000  // fields of the query and the form together
	maxValues = 100_000 // values of a JSON body, items of a list
	maxDepth  = 32      // levels of nesting
	MaxFiles  = 32      // each uses a file descriptor
)

// Limits are the limits of an endpoint for bodies.
type Limits struct {
	// Body is the maximum size of a JSON or form body, and of all text fields of a
	// multipart body together. It is kept in memory.
	Body int64
	// File is the maximum size of all files of a multipart body together. If it is
	// 0, files are skipped and their parameters are invalid.
	File int64
	// TempDir is the directory for files during the request; empty means the
	// directory of the system.
	TempDir string
	// Raw leaves the body to the handler: parameters are only read from path and
	// query.
	Raw bool
}

// Input are the parameters that a request sent, before they are checked. It is not
// safe for concurrent use, and its owner must close it at the end of the request.
//
// If a parameter is sent in several places, the path has precedence over the body,
// and the body over the query, as in GitLab. Nested values are not merged.
type Input struct {
	path  func(name string) (string, bool)
	json  value  // the JSON body, an object; none for other bodies
	pairs []pair // of the query, then of the form
	files []*Upload

	room [8]pair // storage for a small query, to avoid an allocation
}

// pair is a field of a query or form.
type pair struct {
	key    string
	text   string
	file   *Upload
	steps  int32 // offset of the brackets in key; the length of key if there are none
	next   int32 // position, from 1, of the next pair for the same parameter
	given  bool  // whether there was a "="; otherwise the value is null
	isFile bool
	from   source
}

type source uint8

const (
	fromQuery source = iota
	fromBody
)

// ReadInput reads the parameters of a request; path returns the decoded path
// segments by name. It consumes the body and writes files to disk. It returns an
// InputError for errors of the client. The caller must close the input.
//
// The body is read according to its content type: JSON (application/json or a type
// that ends in +json), form, or multipart; without a content type it is read as a
// form. A body of text/plain, and any other body of a GET or HEAD request, is
// ignored. Any other body that is not empty is rejected with FaultMediaType, as in
// GitLab: otherwise parameters would be ignored, and the client would not notice its
// mistake.
func ReadInput(r *http.Request, w http.ResponseWriter, path func(name string) (string, bool), l Limits) (*Input, error) {
	in := &Input{path: path}
	in.pairs = in.room[:0]
	err := in.addForm(r.URL.RawQuery, fromQuery)
	if err == nil && !l.Raw && r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
		err = in.readBody(r, w, l)
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// Close removes the files of the request.
func (in *Input) Close() error {
	var errs []error
	for _, u := range in.files {
		errs = append(errs, u.close())
	}
	in.files = nil
	return errors.Join(errs...)
}

func (in *Input) readBody(r *http.Request, w http.ResponseWriter, l Limits) error {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	switch {
	case media == "multipart/form-data":
		return in.readMultipart(r, w, l)
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		text, err := ReadWhole(r, w, l.Body)
		if err != nil {
			return err
		}
		// Clients without parameters may send an empty body or null.
		if bare := strings.Trim(text, " \t\r\n"); bare == "" || bare == "null" {
			return nil
		}
		in.json, err = parseJSON(text)
		return err
	case media == "" || media == "application/x-www-form-urlencoded":
		text, err := ReadWhole(r, w, l.Body)
		if err != nil {
			return err
		}
		return in.addForm(text, fromBody)
	case media == "text/plain" || r.Method == http.MethodGet || r.Method == http.MethodHead:
		return nil
	}
	if n, err := io.ReadFull(r.Body, make([]byte, 1)); n == 0 {
		if err == io.EOF {
			return nil
		}
		return BodyError(err)
	}
	return &InputError{Fault: FaultMediaType, Text: "the body's content type is not supported"}
}

// ReadWhole reads a body of at most limit bytes.
func ReadWhole(r *http.Request, w http.ResponseWriter, limit int64) (string, error) {
	if r.ContentLength > limit {
		return "", TooLarge(nil)
	}
	buffer := int64(32 << 10)
	if r.ContentLength > 0 {
		// One byte more, so that the last read detects the end.
		buffer = min(buffer, r.ContentLength+1)
	}
	text, err := readText(http.MaxBytesReader(w, r.Body, limit), limit, buffer)
	if err != nil {
		return "", BodyError(err)
	}
	return text, nil
}

// readText reads at most limit bytes, one buffer at a time: memory is allocated when
// bytes arrive, not according to Content-Length.
func readText(from io.Reader, limit, buffer int64) (string, error) {
	var text strings.Builder
	buf := make([]byte, buffer)
	for {
		n, err := from.Read(buf)
		if int64(text.Len()+n) > limit {
			return "", TooLarge(nil)
		}
		text.Write(buf[:n])
		if err == io.EOF {
			return text.String(), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// TooLarge is the error of a body over its limit.
func TooLarge(cause error) error {
	return &InputError{Fault: FaultTooLarge, Text: "the body is too large", Cause: cause}
}

// BodyError converts an error from reading the body to an InputError.
func BodyError(err error) error {
	if _, known := errors.AsType[*InputError](err); known {
		return err
	}
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return TooLarge(err)
	}
	return &InputError{Fault: FaultIncomplete, Text: "the body ends too early", Cause: err}
}

// addForm adds the fields of a query string or form body, separated by "&".
func (in *Input) addForm(raw string, from source) error {
	for raw != "" {
		var field string
		field, raw, _ = strings.Cut(raw, "&")
		if field == "" {
			continue
		}
		key, text, given := strings.Cut(field, "=")
		key, ok1 := unescape(key)
		text, ok2 := unescape(text)
		if !ok1 || !ok2 {
			where := "query string"
			if from == fromBody {
				where = "form body"
			}
			return &InputError{Fault: FaultMalformed, Text: "the " + where + " has a malformed %-escape"}
		}
		if err := in.add(pair{key: key, text: text, given: given, from: from}); err != nil {
			return err
		}
	}
	return nil
}

func (in *Input) add(p pair) error {
	name, steps := splitKey(p.key)
	if strings.Count(steps, "[") >= maxDepth {
		return &InputError{Fault: FaultMalformed, Text: fmt.Sprintf("a parameter has more than %d levels", maxDepth)}
	}
	if len(in.pairs) >= maxParams {
		return &InputError{Fault: FaultMalformed, Text: fmt.Sprintf("the request has more than %d parameters", maxParams)}
	}
	p.steps = int32(len(name))
	in.pairs = append(in.pairs, p)
	return nil
}

// unescape decodes + and %XX. Text without any is returned as it is, without an
// allocation.
func unescape(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s, true
	}
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '+':
			out.WriteByte(' ')
		case '%':
			if i+2 >= len(s) {
				return "", false
			}
			high, ok1 := unhex(s[i+1])
			low, ok2 := unhex(s[i+2])
			if !ok1 || !ok2 {
				return "", false
			}
			out.WriteByte(high<<4 | low)
			i += 2
		default:
			out.WriteByte(s[i])
		}
	}
	return out.String(), true
}

func unhex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// Asks reports whether a parameter was sent, in the query or the body, with a value
// other than null, false, 0, an empty text, list or object, or one of the harmless
// values.
func (in *Input) Asks(name string, harmless ...string) bool {
	for i := range in.pairs {
		p := &in.pairs[i]
		if p.key[:p.steps] == name && (p.isFile || p.given && asks(p.text, harmless)) {
			return true
		}
	}
	for i := range in.json.kids {
		v := &in.json.kids[i]
		if v.key != name {
			continue
		}
		switch v.kind {
		case valueText, valueNumber, valueBool:
			return asks(v.text, harmless)
		case valueList, valueObject:
			return len(v.kids) > 0
		}
	}
	return false
}

// JSON returns the parameters of the query and the body except some, as a JSON
// object. Files are left out. It returns false if JSON cannot represent the others.
func (in *Input) JSON(except ...string) (string, bool) {
	all := value{kind: valueObject}
	for i := range in.pairs {
		p := &in.pairs[i]
		name := p.key[:p.steps]
		if p.isFile || slices.Contains(except, name) {
			continue
		}
		if !all.member(name).insert(p.key[p.steps:], p.value()) {
			return "", false
		}
	}
	for _, v := range in.json.kids {
		if !slices.Contains(except, v.key) {
			*all.member(v.key) = v
		}
	}
	text, ok := appendValue(nil, &all)
	return string(text), ok
}

func asks(text string, harmless []string) bool {
	return !slices.Contains([]string{"", "0", "false"}, text) && !slices.Contains(harmless, text)
}
