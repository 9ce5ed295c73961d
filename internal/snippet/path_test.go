package snippet

import (
	"strconv"
	"testing"

	"svc/internal/project"
)

func TestParsePath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]struct {
		in project.Ref
		id int64
	}{
		"snippets/1":                {"", 1},
		"group/project/snippets/12": {"group/project", 12},
		"a/b/c/snippets/3":          {"a/b/c", 3},
		"group/project":             {},
		"snippets/x":                {},
		"snippets/0":                {},
		"snippets/-1":               {},
		"snippets/+1":               {},
		"snippets/":                 {},
		"group/snippets/1":          {}, // may be a project
		"/snippets/1":               {},
		"1/snippets/1":              {},
		"snippets/1/2":              {},
	} {
		in, id, ok := parsePath(path)
		if ok != (want.id != 0) || id != want.id || in == nil != (want.in == "") || in != nil && *in != want.in {
			t.Errorf("%q is %v %d %t", path, in, id, ok)
		}
	}
}

// FuzzParsePath checks that a parsed path, formatted again, gives the same path.
func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"snippets/1", "g/p/snippets/1", "g//snippets/01", "/snippets/1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		in, id, ok := parsePath(path)
		if !ok {
			return
		}
		if id < 1 {
			t.Fatalf("%q has the id %d", path, id)
		}
		if again, same, ok := parsePath((&Snippet{ID: id, In: at(in)}).Path("")); !ok || same != id || (again == nil) != (in == nil) || in != nil && *again != *in {
			t.Fatalf("%q becomes %v %s", path, again, strconv.FormatInt(same, 10))
		}
	})
}

func at(in *project.Ref) *project.Project {
	if in == nil {
		return nil
	}
	return &project.Project{FullPath: string(*in)}
}
