package alert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"svc/internal/errs"
)

// A payload is untrusted JSON. Values with an unexpected type are ignored.

// MaxPayload is the largest payload, in bytes.
const MaxPayload = 1 << 20

// decode reads a JSON object; numbers stay as they were written. Invalid.
func decode(body []byte) (map[string]any, error) {
	if !utf8.Valid(body) {
		return nil, errs.Invalid("the payload is not UTF-8")
	}
	d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(string(body), "\ufeff")))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more than one value")
		}
	}
	if err != nil {
		return nil, errs.Invalid("the payload is not valid JSON").Because(err)
	}
	doc, ok := v.(map[string]any)
	if !ok {
		return nil, errs.Invalid("the payload must be a JSON object")
	}
	return doc, nil
}

// encode writes a value as canonical JSON: equal values have equal texts.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // cannot happen: it was decoded from JSON
		return fmt.Sprint(v)
	}
	return string(text)
}

// scalar returns a string, number or boolean as text; empty for other values.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(v, "\x00", ""), "\uFFFD"))
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// scalars returns a scalar, or the scalars of a list.
func scalars(v any) []string {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	texts := []string{}
	for _, item := range list {
		if text := scalar(item); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// line replaces line breaks and other control characters by spaces.
func line(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text))
}

// clip truncates a text to a number of characters.
func clip(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	const more = "..."
	return string([]rune(text)[:most-len(more)]) + more
}

// clipAll returns the first texts that together have at most this number of
// characters.
func clipAll(list []string, most int) []string {
	room := most
	for i, text := range list {
		if room -= utf8.RuneCountInString(text); room < 0 {
			return slices.Clip(list[:i])
		}
	}
	return list
}

// layouts are the time formats that are accepted.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 -0700 MST",
	"2006-01-02 15:04:05 MST", "2006-01-02 15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02 15:04", time.DateOnly, time.RFC1123, time.RFC1123Z,
}

// moment parses a time: in one of the layouts, or as seconds or milliseconds since
// 1970. The year 1 counts as none, because Go programs send it for the zero time.
func moment(v any) (time.Time, bool) {
	text := scalar(v)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && len(text) >= 9 {
		const thousandYears = 1 << 35 // in seconds
		if n < thousandYears {
			return time.Unix(n, 0).UTC(), n > 0
		}
		return time.UnixMilli(n).UTC(), n < thousandYears*1000
	}
	for _, layout := range layouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC().Truncate(time.Microsecond), at.UTC().Year() > 1 && at.UTC().Year() < 10000
		}
	}
	return time.Time{}, false
}
