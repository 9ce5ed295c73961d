package bind

import (
	"strconv"
	"testing"
)

func TestSplitKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, name, steps string }{
		{"", "", ""},
		{"a", "a", ""},
		{"a[]", "a", "[]"},
		{"a[b]", "a", "[b]"},
		{"a[][b]", "a", "[][b]"},
		{"a[b c][d][]", "a", "[b c][d][]"},
		{"[]", "", "[]"},
		{"[a]", "", "[a]"},
		{"a]", "a]", ""},
		{"a[", "a[", ""},
		{"a[b", "a[b", ""},
		{"a[b]c", "a[b]c", ""},
		{"a[b]c[d]", "a[b]c[d]", ""},
		{"a[[b]]", "a[[b]]", ""},
		{"a[b][", "a[b][", ""},
	} {
		if name, steps := splitKey(c.key); name != c.name || steps != c.steps {
			t.Errorf("splitKey(%q) = %q, %q, want %q, %q", c.key, name, steps, c.name, c.steps)
		}
	}
}

// TestValueManyKeys checks an object with ten thousand keys, the maximum of a form:
// it must find all of them, with an index.
func TestValueManyKeys(t *testing.T) {
	t.Parallel()
	var v value
	for round := range 2 {
		for i := range 10 * manyKeys {
			key := strconv.Itoa(i)
			if !v.insert("["+key+"]", value{kind: valueText, text: key + "/" + strconv.Itoa(round)}) {
				t.Fatalf("key %d does not fit", i)
			}
			if indexed := len(v.kids) >= manyKeys; indexed && len(v.seen) != len(v.kids) {
				t.Fatalf("%d keys, %d in the index", len(v.kids), len(v.seen))
			}
		}
	}
	if len(v.kids) != 10*manyKeys || v.has("[x]") {
		t.Fatalf("%d keys", len(v.kids))
	}
	for i, kid := range v.kids {
		if key := strconv.Itoa(i); kid.key != key || kid.text != key+"/1" || !v.has("["+key+"]") {
			t.Errorf("key %d is %q with %q", i, kid.key, kid.text)
		}
	}
}
