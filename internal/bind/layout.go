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

// Layout is a parameters struct, read once when its endpoint is registered: it
// binds requests, and the OpenAPI document is made from its fields.
type Layout struct {
	Object
	typ   reflect.Type
	files bool // some parameter, at any depth, is an uploaded file
}

// Object is a struct whose fields are parameters: the whole set of an
// endpoint, or the members of one nested parameter.
type Object struct {
	Fields []Field // in the order of declaration, embedded structs flattened
	Rules  []Rule
	slots  map[string]int // each name and alias, numbered
}

// Field is one parameter.
//
// Its tags are `param:"name[,required][,nonblank][,blank][,csv]"`, with
// required: it must be sent, and not as empty text unless blank is set too;
// nonblank: if it is sent it is neither null, empty nor only white space;
// csv: a list that may be sent as comma separated text. Beside it stand
// `enum:"a,b"`, `default:"…"`, `max:"255"` (characters of a text, items of a
// list), `aliases:"old_name"`, `doc:"…"`, `tier:"premium"` and
// `secret:"true"`. `param:"-"` leaves a field of the struct alone.
type Field struct {
	Name     string
	Aliases  []string // other names, used when name is not sent
	Doc      string
	Required bool
	Nonblank bool
	Blank    bool
	CSV      bool
	Path     bool // it is a segment of the route
	Secret   bool // never to be logged or shown
	Tier     string
	Enum     []string
	Max      int
	Default  string // the default as written; empty for none
	Shape    *Shape

	index    []int // of the Go field
	slot     int   // of name; those of the aliases follow
	defValue reflect.Value
	enumInts []int64
}

// Location is the part of a request that documents a parameter. The binder
// itself takes every parameter from everywhere.
type Location string

const (
	InPath  Location = "path"
	InQuery Location = "query"
	InBody  Location = "body"
)

// Location is the part of a request where the documentation puts the parameter.
func (f *Field) Location(method string) Location {
	switch {
	case f.Path:
		return InPath
	case method == http.MethodGet, method == http.MethodHead, method == http.MethodDelete:
		return InQuery
	}
	return InBody
}

// NewLayout reads a parameters struct. path names the parameters that are
// segments of the endpoint's route; each must have a field. The error is a
// fault of the program: a tag that says nothing, or a type that cannot be
// bound.
func NewLayout(t reflect.Type, path ...string) (*Layout, error) {
	return rememberedLayout(layoutKey{t, strings.Join(path, "/")})
}

// layoutKey is what a layout depends on.
type layoutKey struct {
	params reflect.Type
	path   string // the names, with slashes between them
}

// rememberedLayout returns the same layout for the same key: each server of a
// process has the same endpoints, and tests start hundreds of servers.
var rememberedLayout = remember(func(k layoutKey) (*Layout, error) {
	var names []string
	if k.path != "" {
		names = strings.Split(k.path, "/")
	}
	return newLayout(k.params, names)
})

// remember returns a function that calls f once for each key, unless it fails.
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
			return nil, fmt.Errorf("parameters %v: %s: of a type that no path segment can give", t, name)
		}
		o.Fields[i].Path = true
	}
	return &Layout{Object: *o, typ: t, files: c.files}, nil
}

// compiler reads struct types; open are those it is inside of.
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
				return nil, fmt.Errorf("a rule names %q, which is no parameter", name)
			}
		}
		if len(r.Names) < 2 {
			return nil, errors.New("a rule about fewer than two parameters")
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

// inlined reports whether the parameters of a struct stand beside the others: it
// is embedded, or has the tag "*" since Go does not embed a type parameter.
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

// goodName keeps brackets and whatever else would be read as structure or
// break the texts of errors out of parameter names.
func goodName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.') {
			return false
		}
	}
	return name != ""
}

// check refuses tags that contradict each other or the type.
func (f *Field) check() error {
	scalar := f.Shape
	if f.Shape.Kind == KindList {
		scalar = f.Shape.Elem
	}
	switch {
	case f.Blank && (f.Nonblank || !f.Required):
		return errors.New("blank goes with required, and not with nonblank")
	case f.CSV && (f.Shape.Kind != KindList || !scalar.Kind.scalar()):
		return errors.New("csv is for lists of scalars")
	case f.Max > 0 && f.Shape.Kind != KindText && f.Shape.Kind != KindList:
		return errors.New("max is for texts and lists")
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
	return fmt.Errorf("enum does not go with %v", f.Shape.Type)
}

// readDefault binds the default once; a request that needs it gets a copy.
func (f *Field) readDefault(text string) error {
	if text == "" {
		return nil
	}
	if f.Required || f.Shape.Wrap != WrapNone {
		return errors.New("a default is for plain parameters that are not required")
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

// rulesOf asks a struct for its rules. Go hides the methods of two embedded
// structs from each other; rules that would be lost so are an error.
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

// EnumValues are the values that a parameter of a kind may have, as JSON has
// them.
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

// DefaultValue is the default as JSON has it, nil for none.
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
