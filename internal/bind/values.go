package bind

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// valueKind is the kind of a value in the input. Forms have text, lists, objects and
// files; the others are only in JSON.
type valueKind uint8

const (
	valueNone valueKind = iota // not sent
	valueNull
	valueText
	valueNumber
	valueBool
	valueList
	valueObject
	valueFile
	valueBad // sent in two incompatible forms, such as a=1&a[]=2
)

// value is a node of the tree that represents all formats of input.
type value struct {
	kind valueKind
	key  string // key in an object
	text string // a text, number or boolean
	kids []value
	file *Upload        // a file; nil if the endpoint accepts none
	seen map[string]int // position of each key, in an object with many keys
}

// blank reports whether the value is empty text.
func (v *value) blank() bool { return v.kind == valueText && v.text == "" }

// scalar returns the value of a text, number or boolean. It must be valid UTF-8
// without NUL, because databases and git cannot store other text.
func (v *value) scalar() (string, bool) {
	switch v.kind {
	case valueText, valueNumber, valueBool:
		return v.text, Clean(v.text)
	}
	return "", false
}

func Clean(s string) bool { return strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) }

// splitKey splits the key of a form field, a[b][], into the name of the parameter,
// a, and the steps, [b][]. A key with unbalanced brackets is returned as the name,
// which matches no parameter.
func splitKey(key string) (name, steps string) {
	at := strings.IndexByte(key, '[')
	if at < 0 {
		return key, ""
	}
	for rest := key[at:]; rest != ""; {
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 || strings.IndexByte(rest[1:end], '[') >= 0 {
			return key, ""
		}
		rest = rest[end+1:]
	}
	return key[:at], key[at:]
}

// nextStep splits off the first step: [] is an element of a list, [key] a member of
// an object.
func nextStep(steps string) (key string, list bool, rest string) {
	end := strings.IndexByte(steps, ']')
	key = steps[1:end]
	return key, key == "", steps[end+1:]
}

// insert inserts the value of a form field at steps and creates the nodes on the
// path, with the rules of Rack: a[] appends an element, and a[][k] sets k in the
// last element unless it already has k, in which case it appends an element. It
// reports whether the steps are compatible with the existing nodes.
func (v *value) insert(steps string, leaf value) bool {
	if steps == "" {
		if v.kind == valueList || v.kind == valueObject {
			return false
		}
		leaf.key = v.key
		*v = leaf
		return true
	}
	key, list, rest := nextStep(steps)
	if list {
		if v.kind != valueList && v.kind != valueNone {
			return false
		}
		v.kind = valueList
		if n := len(v.kids); n > 0 && rest != "" && v.kids[n-1].kind == valueObject && !v.kids[n-1].has(rest) {
			return v.kids[n-1].insert(rest, leaf)
		}
		v.kids = append(v.kids, value{})
		return v.kids[len(v.kids)-1].insert(rest, leaf)
	}
	if v.kind != valueObject && v.kind != valueNone {
		return false
	}
	v.kind = valueObject
	return v.member(key).insert(rest, leaf)
}

// has reports whether the object has a value at steps. A list on the path can always
// get another element.
func (v *value) has(steps string) bool {
	for steps != "" {
		key, _, rest := nextStep(steps)
		if v.kind != valueObject {
			return false
		}
		at := v.find(key)
		if at < 0 {
			return false
		}
		v, steps = &v.kids[at], rest
	}
	return true
}

// manyKeys is the number of keys from which an object has an index, so that a form
// of ten thousand keys needs only ten thousand map lookups.
const manyKeys = 16

func (v *value) find(key string) int {
	if v.seen != nil {
		if at, ok := v.seen[key]; ok {
			return at
		}
		return -1
	}
	for i := range v.kids {
		if v.kids[i].key == key {
			return i
		}
	}
	return -1
}

// member returns the member of an object, and creates it if necessary.
func (v *value) member(key string) *value {
	at := v.find(key)
	if at < 0 {
		at = len(v.kids)
		v.kids = append(v.kids, value{key: key})
		switch {
		case v.seen != nil:
			v.seen[key] = at
		case len(v.kids) == manyKeys:
			v.seen = make(map[string]int, 2*manyKeys)
			for i := range v.kids {
				v.seen[v.kids[i].key] = i
			}
		}
	}
	return &v.kids[at]
}

// ParseBool parses the words that GitLab accepts as booleans. The list is fixed and
// does not include "tRuE".
func ParseBool(s string) (b, ok bool) {
	switch s {
	case "1", "t", "T", "true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "0", "f", "F", "false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

// parseInt parses digits, or a JSON number in any notation if it is an integer.
func parseInt(v *value) (int64, bool) {
	n, err := strconv.ParseInt(v.text, 10, 64)
	if err == nil {
		return n, true
	}
	if v.kind != valueNumber || !strings.ContainsAny(v.text, ".eE") {
		return 0, false
	}
	// Integers are exact in a float64 up to 2^53; larger ones would change.
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// parseFloat parses a decimal number. It rejects infinities, hexadecimal numbers and
// NaN, which only Go accepts.
func parseFloat(s string) (float64, bool) {
	if strings.Trim(s, "+-.0123456789eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// parseTime parses a time in ISO 8601 (extended format), including its RFC 3339
// subset, or as Ruby prints it. Without a zone it is UTC, without a time of day
// midnight.
func parseTime(s string) (time.Time, bool) {
	d, rest, ok := cutDate(s)
	if !ok {
		return time.Time{}, false
	}
	if rest == "" {
		return d.Time(), true
	}
	if c := rest[0]; c != 'T' && c != 't' && c != ' ' {
		return time.Time{}, false
	}
	hour, rest, ok := cutNumber(rest[1:], 2, 23)
	if !ok || !strings.HasPrefix(rest, ":") {
		return time.Time{}, false
	}
	minute, rest, ok := cutNumber(rest[1:], 2, 59)
	if !ok {
		return time.Time{}, false
	}
	second, nano := 0, 0
	if strings.HasPrefix(rest, ":") {
		if second, rest, ok = cutNumber(rest[1:], 2, 59); !ok {
			return time.Time{}, false
		}
		if nano, rest, ok = cutFraction(rest); !ok {
			return time.Time{}, false
		}
	}
	offset, ok := parseZone(rest)
	if !ok {
		return time.Time{}, false
	}
	t := time.Date(d.Year, d.Month, d.Day, hour, minute, second-offset, nano, time.UTC)
	// With a zone, the year of the first or last day may not have four digits.
	return t, t.Year() >= 1 && t.Year() <= 9999
}

// parseDate parses a day. Of a time, which some clients send, the day is used as
// written.
func parseDate(s string) (Date, bool) {
	d, rest, ok := cutDate(s)
	if ok && rest != "" {
		_, ok = parseTime(s)
	}
	return d, ok
}

func cutDate(s string) (d Date, rest string, ok bool) {
	year, rest, ok1 := cutNumber(s, 4, 9999)
	rest, ok2 := strings.CutPrefix(rest, "-")
	month, rest, ok3 := cutNumber(rest, 2, 12)
	rest, ok4 := strings.CutPrefix(rest, "-")
	day, rest, ok5 := cutNumber(rest, 2, 31)
	d = Date{year, time.Month(month), day}
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || year < 1 || month < 1 || day < 1 || d.Time().Day() != day {
		return Date{}, "", false
	}
	return d, rest, true
}

// cutNumber splits off exactly width digits with a value of at most limit.
func cutNumber(s string, width, limit int) (n int, rest string, ok bool) {
	if len(s) < width {
		return 0, "", false
	}
	for i := range width {
		if s[i] < '0' || s[i] > '9' {
			return 0, "", false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, s[width:], n <= limit
}

// cutFraction splits off the fraction of a second and returns it in nanoseconds;
// further digits are ignored.
func cutFraction(s string) (nano int, rest string, ok bool) {
	if s == "" || s[0] != '.' && s[0] != ',' {
		return 0, s, true
	}
	unit, i := 100_000_000, 1
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		nano += int(s[i]-'0') * unit
		unit /= 10
	}
	return nano, s[i:], i > 1
}

// parseZone returns the seconds east of UTC.
func parseZone(s string) (offset int, ok bool) {
	switch s {
	case "", "Z", "z", " UTC":
		return 0, true
	}
	s = strings.TrimPrefix(s, " ")
	if s == "" || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hours, rest, ok := cutNumber(s[1:], 2, 23)
	if !ok {
		return 0, false
	}
	minutes := 0
	if rest != "" {
		if minutes, rest, ok = cutNumber(strings.TrimPrefix(rest, ":"), 2, 59); !ok || rest != "" {
			return 0, false
		}
	}
	offset = hours*3600 + minutes*60
	if s[0] == '-' {
		offset = -offset
	}
	return offset, true
}
