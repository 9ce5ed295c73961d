package bind

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// valueKind is what a value was sent as. Forms know text, lists, objects and
// files; the others come from JSON.
type valueKind uint8

const (
	valueNone valueKind = iota // nothing yet
	valueNull
	valueText
	valueNumber
	valueBool
	valueList
	valueObject
	valueFile
	valueBad // sent in two forms that exclude each other, like a=1&a[]=2
)

// value is a node of the tree that all forms of input are brought into.
type value struct {
	kind valueKind
	key  string // in an object
	text string // of a text, number or boolean
	kids []value
	file *Upload        // of a file; nil when the endpoint takes none
	seen map[string]int // position of each key, in an object with many
}

// Blank reports whether the value is text without characters.
func (v *value) blank() bool { return v.kind == valueText && v.text == "" }

// scalar returns the text of a text, number or boolean that databases and git
// can hold: in UTF-8 and without NUL.
func (v *value) scalar() (string, bool) {
	switch v.kind {
	case valueText, valueNumber, valueBool:
		return v.text, Clean(v.text)
	}
	return "", false
}

func Clean(s string) bool { return strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) }

// splitKey cuts the key of a form field, a[b][], into the parameter's name, a,
// and the steps below it, [b][]. A key whose brackets do not pair is a name as
// a whole, which no parameter has.
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

// nextStep cuts the first step off steps: [] goes into a list, [key] to a
// member of an object.
func nextStep(steps string) (key string, list bool, rest string) {
	end := strings.IndexByte(steps, ']')
	key = steps[1:end]
	return key, key == "", steps[end+1:]
}

// insert puts a form field's value at the end of steps and grows the tree to
// reach it, by the rules of Rack: a[] appends, and a[][k] goes into the last
// element unless that has a k already, in which case it starts another one.
// It reports whether the steps fit what is there.
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

// has reports whether the object has a value at the end of steps. Lists on the
// way always have room for one more.
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

// manyKeys is the size from which an object keeps an index, so that a form of
// ten thousand keys costs no more than ten thousand look-ups.
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

// member returns the object's member, made when it is not there.
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

// ParseBool knows the words that the reference takes for a truth value. They
// are a fixed list: "tRuE" is not one.
func ParseBool(s string) (b, ok bool) {
	switch s {
	case "1", "t", "T", "true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "0", "f", "F", "false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

// parseInt reads digits, and a JSON number whatever way it is written as long
// as it is whole.
func parseInt(v *value) (int64, bool) {
	n, err := strconv.ParseInt(v.text, 10, 64)
	if err == nil {
		return n, true
	}
	if v.kind != valueNumber || !strings.ContainsAny(v.text, ".eE") {
		return 0, false
	}
	// Whole floats are exact up to 2^53; beyond it the client meant another number.
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// parseFloat reads a decimal number; infinities, hexadecimals and what is not
// a number are words of Go that no client means.
func parseFloat(s string) (float64, bool) {
	if strings.Trim(s, "+-.0123456789eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// parseTime reads a moment in ISO 8601 (extended form), in the RFC 3339 subset
// or as Ruby prints it. Without a zone it is UTC, without a time midnight.
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
	// A zone may push the first or last day out of the years that have four digits.
	return t, t.Year() >= 1 && t.Year() <= 9999
}

// parseDate reads a day. A moment is taken for the day it is written with, as
// some clients send one.
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

// cutNumber cuts exactly width digits off s, worth at most limit.
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

// cutFraction cuts the fraction of a second off s, in nanoseconds; further
// digits are dropped.
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
