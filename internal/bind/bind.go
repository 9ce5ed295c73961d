package bind

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Bind fills into, a pointer to a zero value of the layout's struct, from a request.
// It returns a ParamError with all errors, in the order of declaration; into must
// not be used then.
func (p *Layout) Bind(in *Input, into any) error {
	dst := reflect.ValueOf(into)
	if !dst.IsValid() || dst.Kind() != reflect.Pointer || dst.Type().Elem() != p.typ {
		return fmt.Errorf("bind %T: the layout is for %v", into, p.typ)
	}
	dst = dst.Elem()
	var room [32]slot
	slots := room[:]
	if len(p.slots) > len(room) {
		slots = make([]slot, len(p.slots))
	}
	in.sort(&p.Object, slots)
	var b binding
	sent := b.sent(&p.Object)
	for i := range p.Fields {
		f := &p.Fields[i]
		name, v := in.find(f, slots)
		if sent != nil {
			sent[i] = v.kind != valueNone
		}
		b.field(f, name, &v, dst)
	}
	b.rules(&p.Object, sent)
	if len(b.messages) > 0 {
		return &ParamError{b.messages}
	}
	return nil
}

// slot collects the values that were sent with one name.
type slot struct {
	head, tail int32  // first and last pair, by position from 1; 0 for none
	json       *value // a member of the JSON body
	from       source
	nested     bool // a pair has steps after the name
}

// sort assigns the values to the slots of their names. Unknown names are ignored.
func (in *Input) sort(o *Object, slots []slot) {
	for i := range in.pairs {
		p := &in.pairs[i]
		n, known := o.slots[p.key[:p.steps]]
		if !known {
			continue
		}
		s, at := &slots[n], int32(i+1)
		p.next = 0
		if s.head == 0 || s.from != p.from {
			*s = slot{head: at, from: p.from}
		} else {
			in.pairs[s.tail-1].next = at
		}
		s.tail = at
		s.nested = s.nested || int(p.steps) < len(p.key)
	}
	for i := range in.json.kids {
		if n, known := o.slots[in.json.kids[i].key]; known {
			slots[n].json = &in.json.kids[i]
		}
	}
}

// find returns the value of a parameter, of kind valueNone if it was not sent, and
// the name that was used.
func (in *Input) find(f *Field, slots []slot) (name string, v value) {
	if f.Path && in.path != nil {
		if text, ok := in.path(f.Name); ok {
			return f.Name, value{kind: valueText, text: text}
		}
	}
	for i := range 1 + len(f.Aliases) {
		name := f.Name
		if i > 0 {
			name = f.Aliases[i-1]
		}
		switch s := &slots[f.slot+i]; {
		case s.json != nil:
			return name, *s.json
		case s.head != 0:
			return name, in.gather(s, f.Shape.Kind == KindList)
		}
	}
	return f.Name, value{}
}

// gather returns one value for the pairs of a slot. If a parameter is sent more than
// once, the last value is used, but a list has all values.
func (in *Input) gather(s *slot, list bool) value {
	if !s.nested && (!list || s.head == s.tail) {
		return in.pairs[s.tail-1].value()
	}
	var v value
	for at := s.head; at != 0; at = in.pairs[at-1].next {
		p := &in.pairs[at-1]
		steps := p.key[p.steps:]
		if !s.nested {
			steps = "[]"
		}
		if !v.insert(steps, p.value()) {
			return value{kind: valueBad}
		}
	}
	return v
}

func (p *pair) value() value {
	switch {
	case p.isFile:
		return value{kind: valueFile, file: p.file}
	case !p.given:
		return value{kind: valueNull}
	}
	return value{kind: valueText, text: p.text}
}

// binding is the state of a call of bind: the errors so far, and the path of the
// nested parameter.
type binding struct {
	messages []string
	trail    []step
}

// step is a member of an object or an element of a list, as a part of a path.
type step struct {
	name  string
	index int // used if name is empty
}

// maxMessages limits the number of messages in an error, for long lists with invalid
// items.
const maxMessages = 100

func (b *binding) add(name, text string) {
	if len(b.messages) < maxMessages {
		b.messages = append(b.messages, b.full(name)+" "+text)
	}
}

// full returns the path of a parameter, such as variables[0][key].
func (b *binding) full(name string) string {
	if len(b.trail) == 0 {
		return name
	}
	var out strings.Builder
	for i, s := range append(slices.Clip(b.trail), step{name: name}) {
		switch {
		case i == 0:
			out.WriteString(s.name)
		case s.name != "":
			out.WriteString("[" + s.name + "]")
		default:
			out.WriteString("[" + strconv.Itoa(s.index) + "]")
		}
	}
	return out.String()
}

// sent allocates the list of fields that were sent, if the object has rules.
func (b *binding) sent(o *Object) []bool {
	if len(o.Rules) == 0 {
		return nil
	}
	return make([]bool, len(o.Fields))
}

func (b *binding) rules(o *Object, sent []bool) {
	for _, r := range o.Rules {
		var given []string
		for _, name := range r.Names {
			if sent[slices.IndexFunc(o.Fields, func(f Field) bool { return f.Name == name })] {
				given = append(given, name)
			}
		}
		blame, text := r.broken(given)
		if blame == nil {
			continue
		}
		full := make([]string, len(blame))
		for i, name := range blame {
			full[i] = b.full(name)
		}
		if len(b.messages) < maxMessages {
			b.messages = append(b.messages, strings.Join(full, ", ")+" "+text)
		}
	}
}

// trouble is what is wrong with a value.
type trouble int

const (
	troubleNone trouble = iota
	troubleInvalid
	troubleEnum
	troubleEmpty
	troubleMax
)

// field checks a parameter and sets its field of the struct dst.
func (b *binding) field(f *Field, name string, v *value, dst reflect.Value) {
	for _, i := range f.index {
		dst = dst.Field(i)
	}
	if v.kind == valueNone {
		if f.Required {
			b.add(name, "is missing")
		}
		f.setDefault(dst)
		return
	}
	null := v.kind == valueNull || v.blank() && f.Shape.blankIsNull()
	if null && (f.Nonblank || f.Required && f.Shape.Wrap != WrapOpt) {
		b.add(name, "is empty")
		return
	}
	switch f.Shape.Wrap {
	case WrapOpt:
		dst.Field(0).SetBool(true)
		dst.Field(1).SetBool(null)
		dst = dst.Field(2)
	case WrapPointer:
		if !null {
			dst.Set(reflect.New(f.Shape.Type))
			dst = dst.Elem()
		}
	case WrapNone:
		if null {
			f.setDefault(dst)
		}
	}
	if null {
		return
	}
	var t trouble
	if f.Shape.Kind.scalar() {
		t = putScalar(f, f.Shape, v, dst)
	} else {
		b.trail = append(b.trail, step{name: name})
		t = b.put(f, f.Shape, v, dst)
		b.trail = b.trail[:len(b.trail)-1]
	}
	if t == troubleNone {
		t = f.inspect(dst)
	}
	switch t {
	case troubleInvalid:
		b.add(name, "is invalid")
	case troubleEnum:
		b.add(name, "does not have a valid value")
	case troubleEmpty:
		b.add(name, "is empty")
	case troubleMax:
		if f.Shape.Kind == KindList {
			b.add(name, "must contain at most "+strconv.Itoa(f.Max)+" items")
			return
		}
		b.add(name, "must be less than "+strconv.Itoa(f.Max)+" characters")
	}
}

// RefusesBlank reports whether an empty text or list is an error.
func (f *Field) RefusesBlank() bool { return f.Nonblank || f.Required && !f.Blank }

// blankIsNull reports whether empty text means null for a shape.
func (s *Shape) blankIsNull() bool {
	return s.Kind != KindText && s.Kind != KindList && s.Kind != KindHash
}

func (f *Field) setDefault(dst reflect.Value) {
	switch {
	case !f.defValue.IsValid():
	case f.Shape.Kind == KindList:
		dst.Set(reflect.AppendSlice(f.Shape.empty, f.defValue))
	default:
		dst.Set(f.defValue)
	}
}

// inspect checks the value in dst: whether it is empty, and its size.
func (f *Field) inspect(dst reflect.Value) trouble {
	switch f.Shape.Kind {
	case KindText:
		text := dst.String()
		switch {
		case text == "" && f.RefusesBlank(), f.Nonblank && strings.TrimSpace(text) == "":
			return troubleEmpty
		case f.Max > 0 && len(text) > f.Max && utf8.RuneCountInString(text) > f.Max:
			return troubleMax
		}
	case KindList, KindHash:
		switch {
		case dst.Len() == 0 && f.RefusesBlank():
			return troubleEmpty
		case f.Max > 0 && dst.Len() > f.Max:
			return troubleMax
		}
	}
	return troubleNone
}

// put converts a value that is not null and stores it in dst.
func (b *binding) put(f *Field, s *Shape, v *value, dst reflect.Value) trouble {
	switch s.Kind {
	case KindFile:
		if v.kind != valueFile || v.file == nil {
			return troubleInvalid
		}
		dst.Set(reflect.ValueOf(v.file))
		return troubleNone
	case KindList:
		return b.putList(f, s, v, dst)
	case KindHash:
		return b.putHash(f, s, v, dst)
	case KindObject:
		return b.putObject(s.Object, v, dst)
	case KindJSON:
		return putJSON(v, dst)
	}
	return putScalar(f, s, v, dst)
}

func putScalar(f *Field, s *Shape, v *value, dst reflect.Value) trouble {
	text, ok := v.scalar()
	if s.file && v.kind == valueFile && v.file != nil {
		text, ok = v.file.text()
	}
	if !ok {
		return troubleInvalid
	}
	listed := true
	switch s.Kind {
	case KindText:
		dst.SetString(text)
		// Empty text is reported as empty if it must not be empty, otherwise as a
		// value that is not in the list.
		listed = f.Enum == nil || slices.Contains(f.Enum, text) || text == "" && f.RefusesBlank()
	case KindBool:
		var b bool
		b, ok = ParseBool(text)
		dst.SetBool(b)
		listed = f.Enum == nil || slices.Contains(f.Enum, strconv.FormatBool(b))
	case KindInt:
		var n int64
		n, ok = parseInt(v)
		ok = ok && !dst.OverflowInt(n)
		dst.SetInt(n)
		listed = f.Enum == nil || slices.Contains(f.enumInts, n)
	case KindFloat:
		var n float64
		n, ok = parseFloat(text)
		dst.SetFloat(n)
	case KindTime:
		*dst.Addr().Interface().(*time.Time), ok = parseTime(text)
	case KindDate:
		*dst.Addr().Interface().(*Date), ok = parseDate(text)
	case KindCustom:
		ok = dst.Addr().Interface().(Unmarshaler).UnmarshalParam(text) == nil
		listed = f.Enum == nil || slices.Contains(f.Enum, text)
	}
	switch {
	case !ok:
		return troubleInvalid
	case !listed:
		return troubleEnum
	}
	return troubleNone
}
