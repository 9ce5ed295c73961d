package api

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// layout is a parameters struct, read once when its endpoint is registered: it
// binds requests, and the OpenAPI document is made from its fields.
type layout struct {
	object
	typ   reflect.Type
	files bool // some parameter, at any depth, is an uploaded file
}

// object is a struct whose fields are parameters: the whole set of an
// endpoint, or the members of one nested parameter.
type object struct {
	fields []field // in the order of declaration, embedded structs flattened
	rules  []rule
	slots  map[string]int // each name and alias, numbered
}

// field is one parameter.
//
// Its tags are `param:"name[,required][,nonblank][,blank][,csv]"`, with
// required: it must be sent, and not as empty text unless blank is set too;
// nonblank: if it is sent it is neither null, empty nor only white space;
// csv: a list that may be sent as comma separated text. Beside it stand
// `enum:"a,b"`, `default:"…"`, `max:"255"` (characters of a text, items of a
// list), `aliases:"old_name"`, `doc:"…"`, `tier:"premium"` and
// `secret:"true"`. `param:"-"` leaves a field of the struct alone.
type field struct {
	name     string
	aliases  []string // other names, used when name is not sent
	doc      string
	required bool
	nonblank bool
	blank    bool
	csv      bool
	path     bool // it is a segment of the route
	secret   bool // never to be logged or shown
	tier     string
	enum     []string
	max      int
	def      string // the default as written; empty for none
	shape    *shape

	index    []int // of the Go field
	slot     int   // of name; those of the aliases follow
	defValue reflect.Value
	enumInts []int64
}

// location is the part of a request that documents a parameter. The binder
// itself takes every parameter from everywhere.
type location string

const (
	inPath  location = "path"
	inQuery location = "query"
	inBody  location = "body"
)

// location says where clients are told to send the parameter.
func (f *field) location(method string) location {
	switch {
	case f.path:
		return inPath
	case method == http.MethodGet, method == http.MethodHead, method == http.MethodDelete:
		return inQuery
	}
	return inBody
}

// newLayout reads a parameters struct. path names the parameters that are
// segments of the endpoint's route; each must have a field. The error is a
// fault of the program: a tag that says nothing, or a type that can not be
// bound.
func newLayout(t reflect.Type, path ...string) (*layout, error) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("parameters %v: not a struct", t)
	}
	var c compiler
	o, err := c.object(t)
	if err != nil {
		return nil, fmt.Errorf("parameters %v: %w", t, err)
	}
	for _, name := range path {
		i := slices.IndexFunc(o.fields, func(f field) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("parameters %v: no field for %q of the path", t, name)
		}
		if !o.fields[i].shape.kind.scalar() {
			return nil, fmt.Errorf("parameters %v: %s: of a type that no path segment can give", t, name)
		}
		o.fields[i].path = true
	}
	return &layout{object: *o, typ: t, files: c.files}, nil
}

// compiler reads struct types; open are those it is inside of.
type compiler struct {
	open  []reflect.Type
	files bool
}

func (c *compiler) object(t reflect.Type) (*object, error) {
	if slices.Contains(c.open, t) {
		return nil, fmt.Errorf("%v contains itself", t)
	}
	c.open = append(c.open, t)
	defer func() { c.open = c.open[:len(c.open)-1] }()
	o := &object{slots: map[string]int{}}
	if err := c.addFields(o, t, nil); err != nil {
		return nil, err
	}
	rules, err := rulesOf(t)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		for _, name := range r.names {
			if !slices.ContainsFunc(o.fields, func(f field) bool { return f.name == name }) {
				return nil, fmt.Errorf("a rule names %q, which is no parameter", name)
			}
		}
		if len(r.names) < 2 {
			return nil, errors.New("a rule about fewer than two parameters")
		}
	}
	o.rules = rules
	return o, nil
}

func (c *compiler) addFields(o *object, t reflect.Type, index []int) error {
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
		f := field{index: at, slot: len(o.slots)}
		if err := c.readField(&f, sf, tag); err != nil {
			return fmt.Errorf("field %s: %w", sf.Name, err)
		}
		for _, name := range append([]string{f.name}, f.aliases...) {
			if _, taken := o.slots[name]; taken {
				return fmt.Errorf("field %s: the name %q is taken", sf.Name, name)
			}
			o.slots[name] = len(o.slots)
		}
		o.fields = append(o.fields, f)
	}
	return nil
}

// inlined tells whether the parameters of a struct stand beside the others: it is
// embedded, or has the tag "*" since Go does not embed a type parameter.
func inlined(sf reflect.StructField) bool {
	tag, tagged := sf.Tag.Lookup("param")
	return sf.Type.Kind() == reflect.Struct && (sf.Anonymous && !tagged || tag == "*" && sf.IsExported())
}

func (c *compiler) readField(f *field, sf reflect.StructField, tag string) error {
	options := strings.Split(tag, ",")
	f.name = options[0]
	for _, option := range options[1:] {
		switch option {
		case "required":
			f.required = true
		case "nonblank":
			f.nonblank = true
		case "blank":
			f.blank = true
		case "csv":
			f.csv = true
		default:
			return fmt.Errorf("unknown option %q", option)
		}
	}
	if aliases := sf.Tag.Get("aliases"); aliases != "" {
		f.aliases = strings.Split(aliases, ",")
	}
	for _, name := range append([]string{f.name}, f.aliases...) {
		if !goodName(name) {
			return fmt.Errorf("%q is not a parameter name", name)
		}
	}
	var err error
	if f.shape, err = c.shape(sf.Type); err != nil {
		return err
	}
	f.doc, f.tier, f.secret = sf.Tag.Get("doc"), sf.Tag.Get("tier"), sf.Tag.Get("secret") == "true"
	if text := sf.Tag.Get("max"); text != "" {
		if f.max, err = strconv.Atoi(text); err != nil || f.max < 1 {
			return fmt.Errorf("max %q is not a count", text)
		}
	}
	if text := sf.Tag.Get("enum"); text != "" {
		f.enum = strings.Split(text, ",")
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
func (f *field) check() error {
	scalar := f.shape
	if f.shape.kind == kindList {
		scalar = f.shape.elem
	}
	switch {
	case f.blank && (f.nonblank || !f.required):
		return errors.New("blank goes with required, and not with nonblank")
	case f.csv && (f.shape.kind != kindList || !scalar.kind.scalar()):
		return errors.New("csv is for lists of scalars")
	case f.max > 0 && f.shape.kind != kindText && f.shape.kind != kindList:
		return errors.New("max is for texts and lists")
	case f.tier != "" && f.tier != "premium" && f.tier != "ultimate":
		return fmt.Errorf("unknown tier %q", f.tier)
	}
	if f.enum == nil {
		return nil
	}
	switch scalar.kind {
	case kindText, kindBool, kindCustom:
		return nil
	case kindInt:
		for _, text := range f.enum {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return fmt.Errorf("enum value %q: %w", text, err)
			}
			f.enumInts = append(f.enumInts, n)
		}
		return nil
	}
	return fmt.Errorf("enum does not go with %v", f.shape.typ)
}

// readDefault binds the default once; a request that needs it gets a copy.
func (f *field) readDefault(text string) error {
	if text == "" {
		return nil
	}
	if f.required || f.shape.wrap != wrapNone {
		return errors.New("a default is for plain parameters that are not required")
	}
	v := value{kind: valueText, text: text}
	if f.shape.kind == kindList {
		v = value{kind: valueList}
		for part := range strings.SplitSeq(text, ",") {
			v.kids = append(v.kids, value{kind: valueText, text: part})
		}
	}
	var b binding
	dst := reflect.New(f.shape.typ).Elem()
	if t := b.put(f, f.shape, &v, dst); t != troubleNone || len(b.messages) > 0 {
		return fmt.Errorf("the default %q is not a value of the parameter", text)
	}
	f.def, f.defValue = text, dst
	return nil
}

// rulesOf asks a struct for its rules. Go hides the methods of two embedded
// structs from each other; rules that would be lost so are an error.
func rulesOf(t reflect.Type) ([]rule, error) {
	if r, ok := reflect.New(t).Interface().(ruled); ok {
		return r.paramRules(), nil
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
