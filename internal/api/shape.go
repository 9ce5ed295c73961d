package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// shape is the form in which a Go type takes a value.
type shape struct {
	kind   kind
	wrap   wrap
	typ    reflect.Type // without its wrap
	elem   *shape       // of a list or hash
	object *object      // of an object
	file   bool         // a text that may also be sent as a file
	empty  reflect.Value
}

type kind int

const (
	kindText kind = iota + 1
	kindBool
	kindInt
	kindFloat
	kindTime
	kindDate
	kindCustom // a type with UnmarshalParam
	kindFile
	kindList
	kindHash
	kindObject
	kindJSON // whatever JSON was sent
)

func (k kind) scalar() bool { return k < kindFile }

// wrap is what stands around a Go type to say that a value may be absent.
type wrap int

const (
	wrapNone wrap = iota
	wrapPointer
	wrapOpt
)

// shape finds the form of a type.
func (c *compiler) shape(t reflect.Type) (*shape, error) {
	if t.Implements(reflect.TypeFor[optional]()) && t.Kind() == reflect.Struct {
		value, _ := t.FieldByName("Value")
		return c.wrapped(value.Type, wrapOpt)
	}
	if t == reflect.TypeFor[*upload]() {
		c.files = true
		return &shape{kind: kindFile, typ: t}, nil
	}
	if t.Kind() == reflect.Pointer {
		return c.wrapped(t.Elem(), wrapPointer)
	}
	s := &shape{typ: t}
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[unmarshaler]()):
		s.kind = kindCustom
	case t == reflect.TypeFor[json.RawMessage]():
		s.kind = kindJSON
	case t == reflect.TypeFor[time.Time]():
		s.kind = kindTime
	case t == reflect.TypeFor[Date]():
		s.kind = kindDate
	case t == reflect.TypeFor[fileText]():
		s.kind, s.file, c.files = kindText, true, true
	case t.Kind() == reflect.String:
		s.kind = kindText
	case t.Kind() == reflect.Bool:
		s.kind = kindBool
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int32, t.Kind() == reflect.Int64:
		s.kind = kindInt
	case t.Kind() == reflect.Float64:
		s.kind = kindFloat
	case t.Kind() == reflect.Slice:
		s.kind, s.empty = kindList, reflect.MakeSlice(t, 0, 0)
		return s, c.elem(s)
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		s.kind = kindHash
		return s, c.elem(s)
	case t.Kind() == reflect.Struct && t != reflect.TypeFor[upload]():
		s.kind = kindObject
		var err error
		s.object, err = c.object(t)
		return s, err
	default:
		return nil, fmt.Errorf("no parameter can be of type %v", t)
	}
	return s, nil
}

func (c *compiler) elem(s *shape) error {
	var err error
	if s.elem, err = c.shape(s.typ.Elem()); err != nil {
		return err
	}
	if s.elem.wrap != wrapNone {
		return fmt.Errorf("%v: elements are always there", s.typ)
	}
	return nil
}

func (c *compiler) wrapped(t reflect.Type, w wrap) (*shape, error) {
	s, err := c.shape(t)
	if err != nil {
		return nil, err
	}
	if s.wrap != wrapNone {
		return nil, fmt.Errorf("%v is wrapped twice", t)
	}
	s.wrap = w
	return s, nil
}
