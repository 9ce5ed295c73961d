package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// FuzzLoad loads any bytes as a CI file: loading ends in time with a plan or with errors
// for the author, and the merged file is equivalent to the original.
func FuzzLoad(f *testing.F) {
	names, err := filepath.Glob("testdata/*.yml")
	if err != nil || len(names) == 0 {
		f.Fatal(err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content, content)
	}
	f.Fuzz(func(t *testing.T, content, included []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := scenario{
			Files:     map[string]string{"a.yml": string(included), "ci/build.yml": string(included)},
			Changed:   []string{"docs/a/b.md"},
			Templates: map[string]string{"Go.gitlab-ci.yml": string(included)},
			Variables: map[string]string{"A": "a"},
		}
		src := s.source(content)
		if content == nil {
			src.Content = []byte{}
		}
		src.Limits = Limits{FileBytes: 64 << 10, Expanded: 1 << 20}
		r := newReader(ctx, src, src.Limits.withDefaults())
		root, err := r.main()
		if err == nil {
			roundTrip(t, root)
		}
		if _, err := Lint(ctx, src, false); err != nil {
			t.Fatal(err)
		}
		c, err := Load(ctx, src)
		if err == nil {
			_, err = c.Plan(ctx, src.Input)
		}
		var faults Errors
		var none *NoPipeline
		if err != nil && !errors.As(err, &faults) && !errors.As(err, &none) {
			t.Fatal(err)
		}
		for _, e := range faults {
			if e.Message == "" {
				t.Fatalf("an error without a message: %+v", e)
			}
		}
	})
}

// roundTrip writes a tree and reads it again.
func roundTrip(t *testing.T, root *node) {
	out, err := render(root)
	if err != nil {
		t.Fatal(err)
	}
	if root.has("spec") {
		return // it would be read as a header
	}
	limits := Limits{FileBytes: 1 << 30, Expanded: 1 << 30, Depth: 1000}
	again, err := parse("again.yml", []byte(out), limits, newBudget(limits))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !reflect.DeepEqual(bare(root), bare(again.content)) {
		t.Fatalf("reads differently:\n%s", out)
	}
}

// bare returns a tree without positions.
func bare(n *node) any {
	switch n.kind {
	case list, reference:
		out := []any{n.kind}
		for _, item := range n.items {
			out = append(out, bare(item))
		}
		return out
	case table:
		out := []any{}
		for _, f := range n.fields {
			out = append(out, f.key, bare(f.value))
		}
		return out
	}
	return [2]any{n.kind, n.text}
}
