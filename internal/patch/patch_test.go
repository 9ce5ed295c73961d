package patch_test

import (
	"fmt"
	"testing"

	"svc/internal/patch"
)

func TestSet(t *testing.T) {
	t.Parallel()
	name, empty := "old", ""
	if patch.Set(&name, nil); name != "old" {
		t.Errorf("a field that was not sent became %q", name)
	}
	if patch.Set(&name, &empty); name != "" {
		t.Errorf("a field that was sent empty is %q", name)
	}
}

func TestElement(t *testing.T) {
	t.Parallel()
	type rule struct{ id, level int64 }
	one, two, gone := int64(1), int64(2), int64(3)
	for _, tt := range []struct {
		name   string
		id     *int64
		remove bool
		want   string
		ok     bool
	}{
		{"changed", &two, false, "[1 2]", true},
		{"added", nil, false, "[1 2 0]", true},
		{"removed", &one, true, "[2]", true},
		{"nothing to remove", nil, true, "[1 2]", true},
		{"unknown", &gone, false, "[1 2]", false},
	} {
		first, second := &rule{1, 30}, &rule{2, 40}
		list, r, ok := patch.Element([]*rule{first, second}, tt.id, tt.remove, func(r *rule) int64 { return r.id })
		ids := []int64{}
		for _, e := range list {
			ids = append(ids, e.id)
		}
		if got := fmt.Sprint(ids); got != tt.want || ok != tt.ok || (r == nil) != (tt.remove || !tt.ok) {
			t.Errorf("%s: %s, %v, %v", tt.name, got, r, ok)
		}
		if r != nil {
			if r.level++; second.level != 40 {
				t.Errorf("%s: the element is not a copy", tt.name)
			}
		}
	}
}
