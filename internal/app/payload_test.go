package app_test

import (
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
)

var updatePayloads = flag.Bool("update-payloads", false, "add new fields to testdata/payloads.txt")

// TestPayloads checks that the arguments of background jobs only gain fields,
// because a node of the previous release may add a job that a node of this release
// runs, or the reverse.
func TestPayloads(t *testing.T) {
	t.Parallel()
	const file = "testdata/payloads.txt"
	s := apptest.Start(t, dbtest.SQLite(t))
	have := map[string]bool{}
	for kind, args := range s.Queue.Arguments() {
		have[kind] = true
		fields(kind, args, have)
	}
	text, err := os.ReadFile(file)
	if err != nil && !*updatePayloads {
		t.Fatal(err)
	}
	known := strings.Fields(string(text))
	for _, line := range known {
		if !have[line] {
			t.Errorf("%s was removed or has another type: nodes of the other release would lose it. Add a field or kind of job; remove the old one in the next release (here too)", line)
		}
	}
	var added []string
	for line := range have {
		if !slices.Contains(known, line) {
			added = append(added, line)
		}
	}
	if len(added) == 0 {
		return
	}
	if !*updatePayloads {
		t.Errorf("%q are new: add them to %s with -update-payloads", added, file)
		return
	}
	all := append(known, added...)
	slices.Sort(all)
	if err := os.WriteFile(file, []byte(strings.Join(all, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fields adds a line for each field of a type in JSON.
func fields(path string, typ reflect.Type, to map[string]bool) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ.PkgPath() == "time" || strings.Count(path, ".") > 4 { // a type may be recursive
		return
	}
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "":
			fields(path, f.Type, to)
			continue
		case name == "":
			name = f.Name
		}
		kind := f.Type.Kind().String()
		if f.Type.Kind() == reflect.Pointer {
			kind = f.Type.Elem().Kind().String()
		}
		to[path+"."+name+":"+kind] = true
		fields(path+"."+name, f.Type, to)
	}
}
