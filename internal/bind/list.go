package bind

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// putList reads a list: a JSON array, a[]=x, a[0]=x, or a single value. Empty
// elements are dropped, because a[]= is how a form sends an empty list; null is not
// allowed as an element. The result is not nil.
func (b *binding) putList(f *Field, s *Shape, v *value, dst reflect.Value) trouble {
	kids, ok := elements(v)
	if ok && f.CSV && f.Shape == s {
		kids, ok = splitCSV(kids)
	}
	// A struct needs much more memory than the few bytes of an empty one in the
	// request.
	if !ok || s.Elem.Kind == KindObject && len(kids) > maxParams {
		return troubleInvalid
	}
	dst.Set(s.empty)
	dst.Grow(len(kids))
	n := 0
	for i := range kids {
		kid := &kids[i]
		if kid.blank() {
			continue
		}
		dst.SetLen(n + 1)
		b.trail = append(b.trail, step{index: n})
		t := b.put(f, s.Elem, kid, dst.Index(n))
		b.trail = b.trail[:len(b.trail)-1]
		if t != troubleNone {
			return t
		}
		n++
	}
	return troubleNone
}

// elements returns the elements of a value that was sent for a list.
func elements(v *value) ([]value, bool) {
	switch v.kind {
	case valueList:
		return v.kids, true
	case valueObject:
		return indexed(v.kids)
	case valueNull, valueBad:
		return nil, false
	}
	return []value{*v}, true
}

// indexed sorts elements such as a[2]=x&a[0]=y by their indexes, which may have
// gaps.
func indexed(kids []value) ([]value, bool) {
	for i := range kids {
		if _, err := strconv.ParseUint(kids[i].key, 10, 31); err != nil {
			return nil, false
		}
	}
	kids = slices.Clone(kids)
	slices.SortStableFunc(kids, func(a, b value) int { return index(a.key) - index(b.key) })
	return kids, true
}

func index(key string) int {
	n, err := strconv.ParseUint(key, 10, 31)
	if err != nil {
		return math.MaxInt32
	}
	return int(n)
}

// splitCSV splits the elements at commas.
func splitCSV(kids []value) ([]value, bool) {
	if !slices.ContainsFunc(kids, func(v value) bool { return v.kind == valueText }) {
		return kids, true
	}
	var out []value
	for _, kid := range kids {
		if kid.kind != valueText {
			out = append(out, kid)
			continue
		}
		for part := range strings.SplitSeq(kid.text, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			if len(out) == maxValues {
				return nil, false
			}
			out = append(out, value{kind: valueText, text: part})
		}
	}
	return out, true
}

// putHash reads an object with any keys: h[k]=v or JSON.
func (b *binding) putHash(f *Field, s *Shape, v *value, dst reflect.Value) trouble {
	dst.Set(reflect.MakeMapWithSize(s.Type, len(v.kids)))
	if v.blank() {
		return troubleNone
	}
	if v.kind != valueObject {
		return troubleInvalid
	}
	for i := range v.kids {
		kid := &v.kids[i]
		if !Clean(kid.key) {
			return troubleInvalid
		}
		elem := reflect.New(s.Elem.Type).Elem()
		if kid.kind != valueNull && !(kid.blank() && s.Elem.blankIsNull()) {
			// The key is a part of the input, so errors contain only the name of the
			// hash.
			var inner binding
			if inner.put(f, s.Elem, kid, elem) != troubleNone || len(inner.messages) > 0 {
				return troubleInvalid
			}
		}
		dst.SetMapIndex(reflect.ValueOf(kid.key).Convert(s.Type.Key()), elem)
	}
	return troubleNone
}

// putObject reads a nested struct. If JSON repeats a member, the last one is used.
// Errors are recorded with the names of the members.
func (b *binding) putObject(o *Object, v *value, dst reflect.Value) trouble {
	if v.kind != valueObject {
		return troubleInvalid
	}
	members := make([]*value, len(o.slots))
	for i := range v.kids {
		if n, known := o.slots[v.kids[i].key]; known {
			members[n] = &v.kids[i]
		}
	}
	sent := b.sent(o)
	for i := range o.Fields {
		f := &o.Fields[i]
		name, member := f.Name, members[f.slot]
		for n, alias := range f.Aliases {
			if member == nil && members[f.slot+1+n] != nil {
				name, member = alias, members[f.slot+1+n]
			}
		}
		if member == nil {
			member = &value{}
		}
		if sent != nil {
			sent[i] = member.kind != valueNone
		}
		b.field(f, name, member, dst)
	}
	b.rules(o, sent)
	return troubleNone
}

// putJSON stores any value as JSON: values of a JSON body as they are, and text if
// it is valid JSON, which is how forms send it.
func putJSON(v *value, dst reflect.Value) trouble {
	text, ok := appendValue(nil, v)
	if v.kind == valueText {
		text, ok = []byte(v.text), json.Valid([]byte(v.text)) && Clean(v.text)
	}
	if !ok {
		return troubleInvalid
	}
	dst.SetBytes(text)
	return troubleNone
}

// appendValue appends a value as JSON; it returns false for values that JSON cannot
// represent.
func appendValue(b []byte, v *value) ([]byte, bool) {
	switch v.kind {
	case valueNull:
		return append(b, "null"...), true
	case valueNumber, valueBool:
		return append(b, v.text...), true
	case valueText:
		return appendString(b, v.text)
	case valueList:
		b = append(b, '[')
		for i := range v.kids {
			var ok bool
			if i > 0 {
				b = append(b, ',')
			}
			if b, ok = appendValue(b, &v.kids[i]); !ok {
				return b, false
			}
		}
		return append(b, ']'), true
	case valueObject:
		b = append(b, '{')
		for i := range v.kids {
			var ok bool
			if i > 0 {
				b = append(b, ',')
			}
			if b, ok = appendString(b, v.kids[i].key); !ok {
				return b, false
			}
			if b, ok = appendValue(append(b, ':'), &v.kids[i]); !ok {
				return b, false
			}
		}
		return append(b, '}'), true
	}
	return b, false
}

func appendString(b []byte, text string) ([]byte, bool) {
	quoted, err := json.Marshal(text)
	return append(b, quoted...), err == nil && utf8.ValidString(text)
}
