package web

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestPageFields checks that no field of a page hides a field of a struct that the
// page embeds, and that no two embedded structs have a field of the same name: a
// template would silently read the wrong one.
func TestPageFields(t *testing.T) {
	t.Parallel()
	checked := map[reflect.Type]bool{}
	var check func(reflect.Type)
	check = func(of reflect.Type) {
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, of.Kind()) {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || checked[of] || !strings.HasPrefix(of.PkgPath(), reflect.TypeFor[Web]().PkgPath()) {
			return
		}
		checked[of] = true
		for _, hidden := range hiddenFields(of) {
			if of != reflect.TypeFor[jobPage]() || !strings.Contains(hidden, " Project ") { // the page shows the project of the job
				t.Error(hidden)
			}
		}
		for i := range of.NumField() {
			check(of.Field(i).Type)
		}
	}
	for _, c := range allContents() {
		check(reflect.TypeOf(c))
	}
	if len(checked) < 100 {
		t.Errorf("%d structs were checked", len(checked))
	}
}

// hiddenFields returns a sentence for each field of an embedded struct that
// cannot be read by its name.
func hiddenFields(of reflect.Type) []string {
	first := map[string]string{}
	var found []string
	for _, f := range promotedFields(of, of.Name()) {
		if other, ok := first[f.name]; ok && !f.embedded {
			found = append(found, fmt.Sprintf("%s: the field %s of %s is hidden by that of %s", of, f.name, f.owner, other))
			continue
		}
		first[f.name] = f.owner
	}
	return found
}

type promotedField struct {
	name, owner string
	embedded    bool
}

// promotedFields returns the exported fields of a struct and of the structs that
// it embeds, the outer ones first.
func promotedFields(of reflect.Type, owner string) []promotedField {
	var list, inner []promotedField
	for i := range of.NumField() {
		f := of.Field(i)
		if f.IsExported() {
			list = append(list, promotedField{f.Name, owner, f.Anonymous})
		}
		if !f.Anonymous {
			continue
		}
		if t := f.Type; t.Kind() == reflect.Struct {
			inner = append(inner, promotedFields(t, owner+"."+f.Name)...)
		} else if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
			inner = append(inner, promotedFields(t.Elem(), owner+"."+f.Name)...)
		}
	}
	return append(list, inner...)
}

// TestHiddenFields checks the check itself.
func TestHiddenFields(t *testing.T) {
	t.Parallel()
	type Inner struct{ Code bool }
	type Other struct{ Code, Name string }
	type hides struct {
		Inner
		Code string
	}
	type twice struct {
		Inner
		Other
	}
	type fine struct {
		Inner
		Name string
	}
	for of, want := range map[reflect.Type]int{reflect.TypeFor[hides](): 1, reflect.TypeFor[twice](): 1, reflect.TypeFor[fine](): 0} {
		if got := hiddenFields(of); len(got) != want {
			t.Errorf("%s: %q, want %d findings", of, got, want)
		}
	}
}
