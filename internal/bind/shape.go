package bind

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Shape describes how a Go type represents a value.
type Shape struct {
	Kind   Kind
	Wrap   Wrap
	Type   reflect.Type // without its wrapper
	Elem   *Shape       // elements of a list or hash
	Object *Object      // members of an object
	file   bool         // whether the text may also be sent as a file
	empty  reflect.Value
}

// Kind is the kind of a value, which determines its conversion.
type Kind int

const (
	KindText Kind = iota + 1
	KindBool
	KindInt
	KindFloat
	KindTime
	KindDate
	KindCustom // a type with UnmarshalParam
	KindFile
	KindList
	KindHash
	KindObject
	KindJSON // any JSON value
)

func (k Kind) scalar() bool { return k < KindFile }

// Wrap is the wrapper of a Go type for a value that may be absent.
type Wrap int

const (
	WrapNone Wrap = iota
	WrapPointer
	WrapOpt
)

// shape returns the shape of a type.
func (c *compiler) shape(t reflect.Type) (*Shape, error) {
	if t.Implements(reflect.TypeFor[optional]()) && t.Kind() == reflect.Struct {
		value, _ := t.FieldByName("Value")
		return c.wrapped(value.Type, WrapOpt)
	}
	if t == reflect.TypeFor[*Upload]() {
		c.files = true
		return &Shape{Kind: KindFile, Type: t}, nil
	}
	if t.Kind() == reflect.Pointer {
		return c.wrapped(t.Elem(), WrapPointer)
	}
	s := &Shape{Type: t}
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[Unmarshaler]()):
		s.Kind = KindCustom
	case t == reflect.TypeFor[json.RawMessage]():
		s.Kind = KindJSON
	case t == reflect.TypeFor[time.Time]():
		s.Kind = KindTime
	case t == reflect.TypeFor[Date]():
		s.Kind = KindDate
	case t == reflect.TypeFor[FileText]():
		s.Kind, s.file, c.files = KindText, true, true
	case t.Kind() == reflect.String:
		s.Kind = KindText
	case t.Kind() == reflect.Bool:
		s.Kind = KindBool
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int32, t.Kind() == reflect.Int64:
		s.Kind = KindInt
	case t.Kind() == reflect.Float64:
		s.Kind = KindFloat
	case t.Kind() == reflect.Slice:
		s.Kind, s.empty = KindList, reflect.MakeSlice(t, 0, 0)
		return s, c.elem(s)
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		s.Kind = KindHash
		return s, c.elem(s)
	case t.Kind() == reflect.Struct && t != reflect.TypeFor[Upload]():
		s.Kind = KindObject
		var err error
		s.Object, err = c.object(t)
		return s, err
	default:
		return nil, fmt.Errorf("type %v is not supported for parameters", t)
	}
	return s, nil
}

func (c *compiler) elem(s *Shape) error {
	var err error
	if s.Elem, err = c.shape(s.Type.Elem()); err != nil {
		return err
	}
	if s.Elem.Wrap != WrapNone {
		return fmt.Errorf("%v: elements must not be optional", s.Type)
	}
	return nil
}

func (c *compiler) wrapped(t reflect.Type, w Wrap) (*Shape, error) {
	s, err := c.shape(t)
	if err != nil {
		return nil, err
	}
	if s.Wrap != WrapNone {
		return nil, fmt.Errorf("%v is wrapped twice", t)
	}
	s.Wrap = w
	return s, nil
}
