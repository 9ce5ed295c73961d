package repo

import (
	"slices"
	"testing"

	"svc/internal/git"
)

func TestOrderPushes(t *testing.T) {
	t.Parallel()
	// A push is identified by the ref that it changes.
	push := func(id int64, ref string) latePush { return latePush{id, []Change{{Ref: ref, Old: git.ZeroOID}}} }
	for name, test := range map[string]struct {
		recorded, left []latePush
		inDB           bool
		want           string
	}{
		"none":                      {nil, nil, false, ""},
		"in files":                  {[]latePush{push(7, "b"), push(6, "a")}, []latePush{push(8, "c")}, false, "abc"},
		"left earlier":              {[]latePush{push(7, "b"), push(8, "c")}, []latePush{push(6, "a")}, false, "abc"},
		"in the database":           {[]latePush{push(0, "a"), push(0, "b")}, nil, true, "ab"},
		"files, database":           {[]latePush{push(7, "b"), push(6, "a"), push(0, "c"), push(0, "d")}, nil, true, "abcd"},
		"database, files":           {[]latePush{push(0, "a"), push(8, "c"), push(7, "b")}, []latePush{push(9, "d")}, false, "abcd"},
		"files, database, files":    {[]latePush{push(3, "a"), push(0, "b"), push(5, "d"), push(4, "c")}, nil, false, "abcd"},
		"left before the database":  {[]latePush{push(7, "b"), push(0, "c")}, []latePush{push(6, "a")}, true, "abc"},
		"only left before database": {[]latePush{push(0, "b")}, []latePush{push(6, "a")}, true, "ab"},
		"only left after database":  {[]latePush{push(0, "a")}, []latePush{push(6, "b")}, false, "ab"},
	} {
		was := slices.Clone(test.recorded)
		got := ""
		for _, p := range orderPushes(test.recorded, test.left, test.inDB) {
			got += p.changes[0].Ref
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if len(was) > 0 && was[0].id != test.recorded[0].id {
			t.Errorf("%s: the argument was changed", name)
		}
	}
}
