package errortrack

import (
	"bytes"
	"encoding/json"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"
)

// The JSON formats in which SDKs send events. They vary between languages and
// releases, so values of an unexpected type are dropped instead of rejected: an
// incomplete error is better than none.

// word is a string; a number or a boolean is converted to text.
type word string

// UnmarshalJSON implements json.Unmarshaler.
func (w *word) UnmarshalJSON(b []byte) error {
	*w = ""
	switch {
	case len(b) == 0:
	case b[0] == '"':
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		*w = word(clean(text))
	case b[0] != '{' && b[0] != '[' && b[0] != 'n':
		*w = word(b)
	}
	return nil
}

// clean removes NUL, which PostgreSQL cannot store. Invalid UTF-8 was replaced
// when the JSON was parsed.
func clean(text string) string { return strings.ReplaceAll(text, "\x00", "") }

// number is an integer, or 0 for other values.
type number int

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	*n = 0
	if f, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64); err == nil && math.Abs(f) < math.MaxInt32 {
		*n = number(f)
	}
	return nil
}

// flag is a boolean that may be missing.
type flag struct{ set, value bool }

// UnmarshalJSON implements json.Unmarshaler.
func (f *flag) UnmarshalJSON(b []byte) error {
	*f = flag{set: string(b) == "true" || string(b) == "false", value: string(b) == "true"}
	return nil
}

// several is a list. SDKs also send {"values": list} and single values.
type several[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (s *several[T]) UnmarshalJSON(b []byte) error {
	*s = nil
	if b[0] == '{' {
		var inside struct {
			Values json.RawMessage `json:"values"`
		}
		if err := json.Unmarshal(b, &inside); err != nil {
			return err
		}
		if inside.Values != nil {
			b = bytes.TrimSpace(inside.Values)
		} else {
			b = append(append([]byte{'['}, b...), ']')
		}
	}
	if len(b) == 0 || b[0] != '[' {
		return nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(b, &items); err != nil {
		return err
	}
	for _, raw := range items {
		var item T
		if string(raw) != "null" && json.Unmarshal(raw, &item) == nil {
			*s = append(*s, item)
		}
	}
	return nil
}

// object is a JSON object with unknown members; nil for other values.
type object map[string]json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (o *object) UnmarshalJSON(b []byte) error {
	*o = nil
	if b[0] != '{' {
		return nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	*o = m
	return nil
}

// optional is a JSON object of a known type; the zero value for other values.
type optional[T any] struct{ value T }

// UnmarshalJSON implements json.Unmarshaler.
func (o *optional[T]) UnmarshalJSON(b []byte) error {
	var zero T
	o.value = zero
	if b[0] != '{' {
		return nil
	}
	return json.Unmarshal(b, &o.value)
}

// moment is a time: Unix seconds or text.
type moment struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (m *moment) UnmarshalJSON(b []byte) error {
	m.Time = time.Time{}
	text := strings.Trim(string(b), `"`)
	// Unix seconds outside of the years 1970 to 9999 are ignored.
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		if f > 0 && f < 253402300800 {
			m.Time = time.UnixMicro(int64(f * 1e6)).UTC()
		}
		return nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil {
			m.Time = at.UTC()
			return nil
		}
	}
	return nil
}

// tagList is a list of tags, sent as an object or a list of pairs.
type tagList []Tag

// UnmarshalJSON implements json.Unmarshaler.
func (t *tagList) UnmarshalJSON(b []byte) error {
	*t = nil
	if b[0] == '{' {
		var o object
		if err := o.UnmarshalJSON(b); err != nil {
			return err
		}
		*t = o.words()
		return nil
	}
	if b[0] != '[' {
		return nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(b, &items); err != nil {
		return err
	}
	for _, raw := range items {
		var pair []word
		if json.Unmarshal(raw, &pair) == nil && len(pair) == 2 {
			*t = append(*t, Tag{string(pair[0]), string(pair[1])})
		}
	}
	return nil
}

// words returns the members of an object that can be converted to text, sorted by
// name.
func (o object) words() []Tag {
	var list []Tag
	for name, raw := range o {
		var w word
		if w.UnmarshalJSON(raw) == nil && w != "" {
			list = append(list, Tag{clean(name), string(w)})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// wireEvent is an event as SDKs send it.
type wireEvent struct {
	EventID     word                   `json:"event_id"`
	Timestamp   moment                 `json:"timestamp"`
	Platform    word                   `json:"platform"`
	Level       word                   `json:"level"`
	Logger      word                   `json:"logger"`
	Transaction word                   `json:"transaction"`
	Culprit     word                   `json:"culprit"`
	Server      word                   `json:"server_name"`
	Release     word                   `json:"release"`
	Environment word                   `json:"environment"`
	Message     json.RawMessage        `json:"message"`
	LogEntry    optional[wireMessage]  `json:"logentry"`
	OldEntry    optional[wireMessage]  `json:"sentry.interfaces.Message"`
	Exception   several[wireException] `json:"exception"`
	OldThrown   several[wireException] `json:"sentry.interfaces.Exception"`
	Threads     several[wireThread]    `json:"threads"`
	Stack       optional[wireStack]    `json:"stacktrace"`
	Fingerprint several[word]          `json:"fingerprint"`
	Tags        tagList                `json:"tags"`
	User        optional[wireUser]     `json:"user"`
	Request     optional[wireRequest]  `json:"request"`
	Crumbs      several[wireCrumb]     `json:"breadcrumbs"`
	Contexts    object                 `json:"contexts"`
	Extra       object                 `json:"extra"`
	SDK         optional[wireSDK]      `json:"sdk"`
	Type        word                   `json:"type"`
}

type wireMessage struct {
	Message   word `json:"message"`
	Formatted word `json:"formatted"`
}

type wireException struct {
	Type      word                    `json:"type"`
	Value     word                    `json:"value"`
	Module    word                    `json:"module"`
	Stack     optional[wireStack]     `json:"stacktrace"`
	Mechanism optional[wireMechanism] `json:"mechanism"`
}

type wireMechanism struct {
	Handled flag `json:"handled"`
}

type wireThread struct {
	Current flag                `json:"current"`
	Crashed flag                `json:"crashed"`
	Stack   optional[wireStack] `json:"stacktrace"`
}

type wireStack struct {
	Frames several[wireFrame] `json:"frames"`
}

type wireFrame struct {
	File     word          `json:"filename"`
	Path     word          `json:"abs_path"`
	Module   word          `json:"module"`
	Package  word          `json:"package"`
	Function word          `json:"function"`
	Line     number        `json:"lineno"`
	Column   number        `json:"colno"`
	InApp    flag          `json:"in_app"`
	Before   several[word] `json:"pre_context"`
	Source   word          `json:"context_line"`
	After    several[word] `json:"post_context"`
}

type wireUser struct {
	ID       word `json:"id"`
	Username word `json:"username"`
	Email    word `json:"email"`
	IP       word `json:"ip_address"`
}

type wireRequest struct {
	URL    word `json:"url"`
	Method word `json:"method"`
}

type wireCrumb struct {
	At       moment `json:"timestamp"`
	Category word   `json:"category"`
	Level    word   `json:"level"`
	Message  word   `json:"message"`
	Data     object `json:"data"`
}

type wireSDK struct {
	Name    word `json:"name"`
	Version word `json:"version"`
}
