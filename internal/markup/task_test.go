package markup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestTasks checks which checkboxes can be changed, and that text that only looks
// like a checkbox cannot.
func TestTasks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source string
		tasks  []bool
		n      int
		want   string // empty if SetTask fails
	}{
		{"- [ ] one\n- [x] two\n", []bool{false, true}, 0, "- [x] one\n- [x] two\n"},
		{"- [ ] one\n- [X] two\n", []bool{false, true}, 1, "- [ ] one\n- [ ] two\n"},
		{"1. [ ] one\n   - [ ] within\n", []bool{false, false}, 1, "1. [ ] one\n   - [x] within\n"},
		{"> - [ ] quoted\n", []bool{false}, 0, "> - [x] quoted\n"},
		{"*   [ ] far\r\n", []bool{false}, 0, "*   [x] far\r\n"},
		{"ü [ ] no\n\n- [ ] ü\n", []bool{false}, 0, "ü [ ] no\n\n- [x] ü\n"},
		{"```\n- [ ] code\n```\n- [y] no\n", nil, 0, ""},
		{"- [ ] one", []bool{false}, 1, ""},
		{"- [ ] one", []bool{false}, -1, ""},
	} {
		if got := tasksOf(t, c.source); !slices.Equal(got, c.tasks) {
			t.Errorf("tasks of %q: %v", c.source, got)
			continue
		}
		done := c.n >= 0 && c.n < len(c.tasks) && !c.tasks[c.n]
		got, ok := SetTask(t.Context(), c.source, c.n, done)
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%q with box %d: %q, %v", c.source, c.n, got, ok)
		}
		if _, ok := SetTask(t.Context(), c.source, c.n, !done); ok {
			t.Errorf("%q: box %d was set to what it is", c.source, c.n)
		}
	}
}

// TestTaskBoxes checks that checkboxes are inserted after sanitizing, and only for
// tasks.
func TestTaskBoxes(t *testing.T) {
	t.Parallel()
	source := "- [ ] one &#xE0F0;x0&#xE0F1;\n- [x] <button>two</button>\n\n<input type=\"checkbox\" checked>\n\n`- [ ] code`\n"
	html, err := New(Deps{}).Markdown(t.Context(), source, Options{Task: func(n int, done bool) string { return fmt.Sprintf("<button value=%q>%v</button>", fmt.Sprint(n), done) }})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(html, "<button") != 2 || !strings.Contains(html, `<li><button value="0">false</button>`) || !strings.Contains(html, `<li><button value="1">true</button>`) {
		t.Errorf("rendered: %s", html)
	}
}

// FuzzTasks checks that the checkboxes that are rendered and those that SetTask
// changes are the same.
func FuzzTasks(f *testing.F) {
	for _, s := range []string{"- [ ] a\n- [x] b", "> 1. [ ] a\n>    * [X] b", "\t- [ ] a", "- [ ]\ta\n\n  - [ ] b", "- \xff[ ] a", "-\t[ ] x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		var drawn []bool
		if _, err := New(Deps{}).Markdown(t.Context(), source, Options{Task: func(_ int, done bool) string { drawn = append(drawn, done); return "" }}); err != nil {
			t.Fatal(err)
		}
		list := tasksOf(t, source)
		if !slices.Equal(drawn, list) {
			t.Fatalf("drawn %v, found %v", drawn, list)
		}
		for n, done := range list {
			changed, ok := SetTask(t.Context(), source, n, !done)
			if !ok || len(changed) != len(source) {
				t.Fatalf("box %d of %q can not be set: %q", n, source, changed)
			}
			if after := tasksOf(t, changed); len(after) != len(list) || after[n] == done {
				t.Fatalf("box %d of %q: %v became %v", n, source, list, after)
			}
		}
	})
}

func tasksOf(t *testing.T, source string) []bool {
	t.Helper()
	list, err := New(Deps{}).Tasks(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
