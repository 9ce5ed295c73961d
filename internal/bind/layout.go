package bind

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Layout is the description of a parameters struct, created once when its endpoint
// is registered. It binds requests, and the OpenAPI document is generated from its
// fields.
type Layout struct {
	Object
	typ   reflect.Type
	files bool // whether a parameter, at any depth, is an uploaded file
}

// Object is a struct whose fields are parameters: all parameters of an endpoint, or
// the members of a nested parameter.
type Object struct {
	Fields []Field // in the order of declaration, embedded structs flattened
	Rules  []Rule
	slots  map[string]int // numbers of the slots, by name and alias
}

// Field is one parameter.
//
// Its tags are `param:"name[,required][,nonblank][,blank][,csv]"`, with required: it
// must be sent, and must not be empty text unless blank is set; nonblank: if it is
// sent, it must not be null, empty or only white space; csv: a list that may be sent
// as comma-separated text. Further tags are `enum:"a,b"`, `default:"…"`, `max:"255"`
// (characters of a text, items of a list), `aliases:"old_name"`, `doc:"…"`,
// `tier:"premium"` and `secret:"true"`. Fields with `param:"-"` are ignored.
type Field struct {
	Name     string
	Aliases  []string // other names, used if name is not sent
	Doc      string
	Required bool
	Nonblank bool
	Blank    bool
	CSV      bool
	Path     bool // whether it is a segment of the route
	Secret   bool // whether it must not be logged or shown
	Tier     string
	Enum     []string
	Max      int
	Default  string // the default as in the tag; empty for none
	Shape    *Shape

	index    []int // index of the Go field
	slot     int   // slot of name; the slots of the aliases follow
	defValue reflect.Value
	enumInts []int64
}

// Location is the part of a request in which a parameter is documented. The binder
// accepts every parameter in all parts.
type Location string

const (
	InPath  Location = "path"
	InQuery Location = "query"
	InBody  Location = "body"
)

// Location returns the part of a request in which the parameter is documented.
func (f *Field) Location(method string) Location {
	switch {
	case f.Path:
		return InPath
	case method == http.MethodGet, method == http.MethodHead, method == http.MethodDelete:
		return InQuery
	}
	return InBody
}

// NewLayout returns the layout of a parameters struct. path are the names of the
// parameters that are segments of the route; each must have a field. An error is a
// mistake in the program: an invalid tag, or a type that is not supported.
func NewLayout(t reflect.Type, path ...string) (*Layout, error) {
	return rememberedLayout(layoutKey{t, strings.Join(path, "/")})
}

// layoutKey identifies a layout.
type layoutKey struct {
	params reflect.Type
	path   string // the names, separated by slashes
}

// rememberedLayout caches layouts, because each server of a process has the same
// endpoints, and tests start hundreds of servers.
var rememberedLayout = remember(func(k layoutKey) (*Layout, error) {
	var names []string
	if k.path != "" {
		names = strings.Split(k.path, "/")
	}
	return newLayout(k.params, names)
})

// remember returns a function that calls f once for each key, and again only after
// an error.
func remember[K comparable, V any](f func(K) (V, error)) func(K) (V, error) {
	var known sync.Map
	return func(key K) (V, error) {
		if v, ok := known.Load(key); ok {
			return v.(V), nil
		}
		v, err := f(key)
		if err == nil {
			known.Store(key, v)
		}
		return v, err
	}
}

func newLayout(t reflect.Type, path []string) (*Layout, error) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("parameters %v: not a struct", t)
	}
	var c compiler
	o, err := c.object(t)
	if err != nil {
		return nil, fmt.Errorf("parameters %v: %w", t, err)
	}
	for _, name := range path {
		i := slices.IndexFunc(o.Fields, func(f Field) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("parameters %v: no field for %q of the path", t, name)
		}
		if !o.Fields[i].Shape.Kind.scalar() {
			return nil, fmt.Errorf("parameters %v: %s: the type is not possible for a path segment", t, name)
		}
		o.Fields[i].Path = true
	}
	return &Layout{Object: *o, typ: t, files: c.files}, nil
}

// compiler creates the objects of struct types; open are the types in progress, to
// detect recursion.
type compiler struct {
	open  []reflect.Type
	files bool
}

func (c *compiler) object(t reflect.Type) (*Object, error) {
	if slices.Contains(c.open, t) {
		return nil, fmt.Errorf("%v contains itself", t)
	}
	c.open = append(c.open, t)
	defer func() { c.open = c.open[:len(c.open)-1] }()
	o := &Object{slots: map[string]int{}}
	if err := c.addFields(o, t, nil); err != nil {
		return nil, err
	}
	rules, err := rulesOf(t)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		for _, name := range r.Names {
			if !slices.ContainsFunc(o.Fields, func(f Field) bool { return f.Name == name }) {
				return nil, fmt.Errorf("a rule has %q, which is not a parameter", name)
			}
		}
		if len(r.Names) < 2 {
			return nil, errors.New("a rule has fewer than two parameters")
		}
	}
	o.Rules = rules
	return o, nil
}

func (c *compiler) addFields(o *Object, t reflect.Type, index []int) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(slices.Clone(index), i)
		tag, tagged := sf.Tag.Lookup("param")
		switch {
		case tag == "-":
			continue
		case inlined(sf):
			if err := c.addFields(o, sf.Type, at); err != nil {
				return err
			}
			continue
		case !tagged && !sf.IsExported() && !sf.Anonymous:
			continue
		case !tagged:
			return fmt.Errorf("field %s has no param tag", sf.Name)
		case !sf.IsExported():
			return fmt.Errorf("field %s is not exported", sf.Name)
		}
		f := Field{index: at, slot: len(o.slots)}
		if err := c.readField(&f, sf, tag); err != nil {
			return fmt.Errorf("field %s: %w", sf.Name, err)
		}
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			if _, taken := o.slots[name]; taken {
				return fmt.Errorf("field %s: the name %q is taken", sf.Name, name)
			}
			o.slots[name] = len(o.slots)
		}
		o.Fields = append(o.Fields, f)
	}
	return nil
}

// inlined reports whether the parameters of a struct belong to the enclosing struct:
// it is embedded, or has the tag "*", because Go cannot embed a type parameter.
func inlined(sf reflect.StructField) bool {
	tag, tagged := sf.Tag.Lookup("param")
	return sf.Type.Kind() == reflect.Struct && (sf.Anonymous && !tagged || tag == "*" && sf.IsExported())
}

func (c *compiler) readField(f *Field, sf reflect.StructField, tag string) error {
	options := strings.Split(tag, ",")
	f.Name = options[0]
	for _, option := range options[1:] {
		switch option {
		case "required":
			f.Required = true
		case "nonblank":
			f.Nonblank = true
		case "blank":
			f.Blank = true
		case "csv":
			f.CSV = true
		default:
			return fmt.Errorf("unknown option %q", option)
		}
	}
	if aliases := sf.Tag.Get("aliases"); aliases != "" {
		f.Aliases = strings.Split(aliases, ",")
	}
	for _, name := range append([]string{f.Name}, f.Aliases...) {
		if !goodName(name) {
			return fmt.Errorf("%q is not a parameter name", name)
		}
	}
	var err error
	if f.Shape, err = c.shape(sf.Type); err != nil {
		return err
	}
	f.Doc, f.Tier, f.Secret = sf.Tag.Get("doc"), sf.Tag.Get("tier"), sf.Tag.Get("secret") == "true"
	if text := sf.Tag.Get("max"); text != "" {
		if f.Max, err = strconv.Atoi(text); err != nil || f.Max < 1 {
			return fmt.Errorf("max %q is not a count", text)
		}
	}
	if text := sf.Tag.Get("enum"); text != "" {
		f.Enum = strings.Split(text, ",")
	}
	if err := f.check(); err != nil {
		return err
	}
	return f.readDefault(sf.Tag.Get("default"))
}

// goodName reports whether a parameter name has no brackets or other characters that
// have a meaning in keys or error texts.
func goodName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.') {
			return false
		}
	}
	return name != ""
}

// check rejects tags that contradict each other or the type.
func (f *Field) check() error {
	scalar := f.Shape
	if f.Shape.Kind == KindList {
		scalar = f.Shape.Elem
	}
	switch {
	case f.Blank && (f.Nonblank || !f.Required):
		return errors.New("blank requires required, and excludes nonblank")
	case f.CSV && (f.Shape.Kind != KindList || !scalar.Kind.scalar()):
		return errors.New("csv is only allowed for lists of scalars")
	case f.Max > 0 && f.Shape.Kind != KindText && f.Shape.Kind != KindList:
		return errors.New("max is only allowed for texts and lists")
	case f.Tier != "" && f.Tier != "premium" && f.Tier != "ultimate":
		return fmt.Errorf("unknown tier %q", f.Tier)
	}
	if f.Enum == nil {
		return nil
	}
	switch scalar.Kind {
	case KindText, KindBool, KindCustom:
		return nil
	case KindInt:
		for _, text := range f.Enum {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return fmt.Errorf("enum value %q: %w", text, err)
			}
			f.enumInts = append(f.enumInts, n)
		}
		return nil
	}
	return fmt.Errorf("enum is not allowed for %v", f.Shape.Type)
}

// readDefault binds the default once; requests get copies of it.
func (f *Field) readDefault(text string) error {
	if text == "" {
		return nil
	}
	if f.Required || f.Shape.Wrap != WrapNone {
		return errors.New("a default is only allowed for parameters that are neither required nor wrapped")
	}
	v := value{kind: valueText, text: text}
	if f.Shape.Kind == KindList {
		v = value{kind: valueList}
		for part := range strings.SplitSeq(text, ",") {
			v.kids = append(v.kids, value{kind: valueText, text: part})
		}
	}
	var b binding
	dst := reflect.New(f.Shape.Type).Elem()
	if t := b.put(f, f.Shape, &v, dst); t != troubleNone || len(b.messages) > 0 {
		return fmt.Errorf("the default %q is not a value of the parameter", text)
	}
	f.Default, f.defValue = text, dst
	return nil
}

// rulesOf returns the rules of a struct. In Go, methods of two embedded structs hide
// each other; rules that would be lost in this way are an error.
func rulesOf(t reflect.Type) ([]Rule, error) {
	if r, ok := reflect.New(t).Interface().(Ruled); ok {
		return r.ParamRules(), nil
	}
	for i := range t.NumField() {
		sf := t.Field(i)
		if !inlined(sf) {
			continue
		}
		lost, err := rulesOf(sf.Type)
		if err != nil {
			return nil, err
		}
		if len(lost) > 0 {
			return nil, fmt.Errorf("the rules of %v are hidden: %v needs its own paramRules", sf.Type, t)
		}
	}
	return nil, nil
}

// EnumValues returns the allowed values of a parameter of a kind, as in JSON.
func (f *Field) EnumValues(k Kind) []any {
	var values []any
	for i, text := range f.Enum {
		switch k {
		case KindInt:
			values = append(values, f.enumInts[i])
		case KindBool:
			values = append(values, text == "true")
		default:
			values = append(values, text)
		}
	}
	return values
}

// DefaultValue returns the default as in JSON, or nil.
func (f *Field) DefaultValue() any {
	if !f.defValue.IsValid() {
		return nil
	}
	switch f.Shape.Kind {
	case KindTime, KindDate, KindCustom:
		return f.Default
	}
	return f.defValue.Interface()
}
