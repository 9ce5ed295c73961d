package api

import (
	"bytes"
	"encoding"
	"encoding/json"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"
)

// appendJSON appends the JSON encoding of a body to b. The output is identical to
// that of encoding/json without HTML escapes. encoding/json inspects the type of
// every value, whereas appendJSON compiles each type once to an encoder that reads
// its values from memory. A page of large objects takes a quarter of the time.
//
// encoding/json encodes maps, floats and types with their own encoding. A type with
// MarshalJSON on its pointer always uses it, even where encoding/json has no
// addressable value.
func (es *encoders) appendJSON(b []byte, body any) ([]byte, error) {
	if body == nil {
		return append(b, "null"...), nil
	}
	return es.appendBoxed(b, reflect.ValueOf(body))
}

// appendBoxed appends the encoding of the dynamic value of an interface.
func (es *encoders) appendBoxed(b []byte, v reflect.Value) ([]byte, error) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return append(b, "null"...), nil
		}
		return es.of(v.Type().Elem())(b, v.UnsafePointer())
	}
	at := reflect.New(v.Type())
	at.Elem().Set(v)
	return es.of(v.Type())(b, at.UnsafePointer())
}

// list is a body that is encoded item by item.
type list struct {
	items reflect.Value // a slice
	item  encoder
	at    int // the next item
}

// list returns the items of a body that is a slice, or nil for other bodies.
func (es *encoders) list(body any) *list {
	v := reflect.ValueOf(body)
	if !v.IsValid() || v.Kind() != reflect.Slice || v.IsNil() {
		return nil
	}
	e, known := es.lists.Load(v.Type())
	if !known {
		var item encoder
		if !marshals(v.Type()) && v.Type().Elem().Kind() != reflect.Uint8 {
			item = es.of(v.Type().Elem())
		}
		e, _ = es.lists.LoadOrStore(v.Type(), item)
	}
	if item := e.(encoder); item != nil {
		return &list{items: v, item: item}
	}
	return nil
}

// append appends items to b until all are encoded or b has more than most bytes.
func (l *list) append(b []byte, most int) ([]byte, error) {
	size := l.items.Type().Elem().Size()
	first := l.items.UnsafePointer()
	if l.at == 0 {
		b = append(b, '[')
	}
	var err error
	for n := l.items.Len(); l.at < n; l.at++ {
		if len(b) > most {
			return b, nil
		}
		if l.at > 0 {
			b = append(b, ',')
		}
		if b, err = l.item(b, unsafe.Add(first, uintptr(l.at)*size)); err != nil {
			return b, err
		}
	}
	l.at++ // the end is written
	return append(b, ']'), nil
}

// whole reports whether all items are encoded.
func (l *list) whole() bool { return l.at > l.items.Len() }

// writeTo writes b and then the rest of the list. It clears the written items, so
// that their memory can be freed while the rest is written. Therefore a handler must
// not return a slice that is used elsewhere.
func (l *list) writeTo(out io.Writer, b []byte) (err error) {
	gone := 0
	for {
		for ; gone < min(l.at, l.items.Len()); gone++ {
			l.items.Index(gone).SetZero()
		}
		if _, err := out.Write(b); err != nil || l.whole() {
			return err
		}
		if b, err = l.append(b[:0], 64<<10); err != nil {
			return err
		}
	}
}

// encoder encodes the value of one type at an address.
type encoder func(b []byte, at unsafe.Pointer) ([]byte, error)

// encoders encodes JSON and caches an encoder for each type.
type encoders struct {
	known sync.Map // of reflect.Type to encoder
	lists sync.Map // of reflect.Type of a slice to the encoder of its items
}

func (es *encoders) of(t reflect.Type) encoder {
	if e, ok := es.known.Load(t); ok {
		return e.(encoder)
	}
	e := es.make(t, map[reflect.Type]*encoder{})
	es.known.Store(t, e)
	return e
}

// make compiles the encoder of a type. begun has the encoders of the structs that
// are being compiled, for recursive types.
func (es *encoders) make(t reflect.Type, begun map[reflect.Type]*encoder) encoder {
	if marshals(t) {
		return other(t)
	}
	switch t.Kind() {
	case reflect.String:
		return appendText
	case reflect.Bool:
		return func(b []byte, at unsafe.Pointer) ([]byte, error) { return strconv.AppendBool(b, *(*bool)(at)), nil }
	case reflect.Int64:
		return func(b []byte, at unsafe.Pointer) ([]byte, error) { return strconv.AppendInt(b, *(*int64)(at), 10), nil }
	case reflect.Int:
		return func(b []byte, at unsafe.Pointer) ([]byte, error) {
			return strconv.AppendInt(b, int64(*(*int)(at)), 10), nil
		}
	case reflect.Pointer:
		return encodePointer(es.make(t.Elem(), begun))
	case reflect.Interface:
		return es.encodeInterface(t)
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 { // bytes are encoded as base64
			return encodeSlice(es.make(t.Elem(), begun), t.Elem().Size())
		}
	case reflect.Struct:
		if e := begun[t]; e != nil {
			return func(b []byte, at unsafe.Pointer) ([]byte, error) { return (*e)(b, at) }
		}
		e := new(encoder)
		begun[t] = e
		*e = es.encodeStruct(t, begun)
		return *e
	}
	return other(t)
}

// marshals reports whether a type has its own encoding.
func marshals(t reflect.Type) bool {
	for _, own := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(own) || reflect.PointerTo(t).Implements(own) {
			return true
		}
	}
	return t == reflect.TypeFor[json.Number]()
}

// other returns an encoder that uses encoding/json.
func other(t reflect.Type) encoder {
	return func(b []byte, at unsafe.Pointer) ([]byte, error) {
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(reflect.NewAt(t, at).Interface()); err != nil {
			return b, err
		}
		return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...), nil
	}
}

func encodePointer(to encoder) encoder {
	return func(b []byte, at unsafe.Pointer) ([]byte, error) {
		p := *(*unsafe.Pointer)(at)
		if p == nil {
			return append(b, "null"...), nil
		}
		return to(b, p)
	}
}

func (es *encoders) encodeInterface(t reflect.Type) encoder {
	return func(b []byte, at unsafe.Pointer) ([]byte, error) {
		v := reflect.NewAt(t, at).Elem().Elem()
		if !v.IsValid() {
			return append(b, "null"...), nil
		}
		return es.appendBoxed(b, v)
	}
}

func encodeSlice(item encoder, size uintptr) encoder {
	return func(b []byte, at unsafe.Pointer) ([]byte, error) {
		s := *(*[]struct{})(at) // any type: only the pointer and the length are used
		if s == nil {
			return append(b, "null"...), nil
		}
		first := unsafe.Pointer(unsafe.SliceData(s))
		b = append(b, '[')
		var err error
		for i := range len(s) {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = item(b, unsafe.Add(first, uintptr(i)*size)); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
}

// encodedField is a field of a struct.
type encodedField struct {
	key    string // with a comma before, quotes, and a colon after
	offset uintptr
	write  encoder
	empty  func(at unsafe.Pointer) bool // nil unless the field is omitted when empty
	inner  []encodedField               // of an embedded pointer: the fields that it adds
}

func (es *encoders) encodeStruct(t reflect.Type, begun map[reflect.Type]*encoder) encoder {
	fields, ok := es.addFields(nil, t, 0, begun, map[string]bool{})
	if !ok {
		return other(t)
	}
	return func(b []byte, at unsafe.Pointer) ([]byte, error) {
		start := len(b)
		b, err := appendFields(b, fields, at)
		if err != nil {
			return b, err
		}
		if len(b) == start {
			return append(b, "{}"...), nil
		}
		b[start] = '{' // in place of the first comma
		return append(b, '}'), nil
	}
}

func appendFields(b []byte, fields []encodedField, at unsafe.Pointer) ([]byte, error) {
	var err error
	for i := range fields {
		p := &fields[i]
		value := unsafe.Add(at, p.offset)
		if p.inner != nil {
			if to := *(*unsafe.Pointer)(value); to != nil {
				b, err = appendFields(b, p.inner, to)
			}
		} else if p.empty == nil || !p.empty(value) {
			b, err = p.write(append(b, p.key...), value)
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// addFields adds the fields of a struct at an offset. It returns false if
// encoding/json must encode the struct: if two fields have the same name, or a tag
// option is not supported.
func (es *encoders) addFields(fields []encodedField, t reflect.Type, offset uintptr, begun map[reflect.Type]*encoder, seen map[string]bool) ([]encodedField, bool) {
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, option, _ := strings.Cut(tag, ",")
		at, ok := offset+f.Offset, true
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct && !marshals(f.Type):
			fields, ok = es.addFields(fields, f.Type, at, begun, seen)
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct && !marshals(f.Type):
			p := encodedField{offset: at}
			p.inner, ok = es.addFields([]encodedField{}, f.Type.Elem(), 0, begun, seen)
			fields = append(fields, p)
		case f.Anonymous && name == "":
			return nil, false
		case !f.IsExported(), tag == "-":
			continue
		default:
			if name == "" {
				name = f.Name
			}
			p := encodedField{key: `,"` + name + `":`, offset: at, write: es.make(f.Type, begun)}
			if option == "omitempty" {
				p.empty = emptyOf(f.Type)
			}
			ok = !seen[name] && plainText(name) && (option == "" || option == "omitempty")
			seen[name] = true
			fields = append(fields, p)
		}
		if !ok {
			return nil, false
		}
	}
	return fields, true
}

// emptyOf returns a function that reports whether omitempty omits a value of a type.
func emptyOf(t reflect.Type) func(at unsafe.Pointer) bool {
	return func(at unsafe.Pointer) bool {
		v := reflect.NewAt(t, at).Elem()
		switch t.Kind() {
		case reflect.Slice, reflect.Map, reflect.Array:
			return v.Len() == 0
		case reflect.Struct:
			return false
		}
		return v.IsZero()
	}
}

func appendText(b []byte, at unsafe.Pointer) ([]byte, error) {
	text := *(*string)(at)
	b = append(b, '"')
	done := 0 // the text before this index is written
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(text[i:]); plainRune(r, size) {
				i += size
				continue
			}
		}
		b = append(b, text[done:i]...)
		b = appendEscape(b, text[i:i+size])
		i += size
		done = i
	}
	b = append(b, text[done:]...)
	return append(b, '"'), nil
}

// appendEscape appends the escape of a character.
func appendEscape(b []byte, char string) []byte {
	const hex = "0123456789abcdef"
	switch c := char[0]; {
	case c == '"', c == '\\':
		return append(b, '\\', c)
	case c == '\n':
		return append(b, '\\', 'n')
	case c == '\t':
		return append(b, '\\', 't')
	case c == '\r':
		return append(b, '\\', 'r')
	case c == '\b':
		return append(b, '\\', 'b')
	case c == '\f':
		return append(b, '\\', 'f')
	case c < ' ':
		return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
	case len(char) == 1: // invalid UTF-8
		return append(b, `\ufffd`...)
	}
	return append(b, '\\', 'u', '2', '0', '2', hex[char[2]&0xf]) // U+2028 and U+2029
}

// plainRune reports whether a character needs no escape. U+2028 and U+2029 are line
// terminators in JavaScript; RuneError with a size of 1 is invalid UTF-8.
func plainRune(r rune, size int) bool {
	return r != '\u2028' && r != '\u2029' && (r != utf8.RuneError || size > 1)
}

// plainText reports whether a text needs no escapes.
func plainText(text string) bool {
	written, err := appendText(nil, unsafe.Pointer(&text))
	return err == nil && string(written) == `"`+text+`"`
}
