package codeowners

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// owned describes the entries that own a path.
func owned(f *File, path string) string {
	var list []string
	for _, e := range f.Owning(path) {
		text := ""
		if e.Section.Name != "" {
			text = "[" + e.Section.Name + "] "
		}
		var owners []string
		for _, name := range e.Owners.Names {
			owners = append(owners, "@"+name)
		}
		owners = append(owners, e.Owners.Emails...)
		for _, role := range e.Owners.Roles {
			owners = append(owners, "@@"+role)
		}
		list = append(list, text+e.Pattern+" "+strings.Join(owners, " "))
	}
	return strings.Join(list, "; ")
}

func TestOwning(t *testing.T) {
	t.Parallel()
	const text = `
# A comment
* @default
*.rb @ruby
\#file @hash
LICENSE @legal jane@example.com # why
README @group @group/with-nested/subgroup
/docs/ @all-docs
/docs/* @root-docs
/docs/**/*.md @markdown
lib/ @lib
/config/ @@maintainers @@Developer @@guest
path\ with\ spaces/ @space
!pom.xml

[Documentation] @docs
ee/docs
docs @own

^[Go][3] @go
*.go

[documentation]
more.txt @more

[DATABASE][2]
model/db/ @dba
config/db/nobody.md
`
	f := Parse(text)
	for path, want := range map[string]string{
		"a":                         "* @default",
		"x/a.rb":                    "*.rb @ruby",
		"#file":                     `\#file @hash`,
		"LICENSE":                   "LICENSE @legal jane@example.com",
		"sub/README":                "README @group @group/with-nested/subgroup",
		"docs/index.txt":            "/docs/* @root-docs",
		"docs/a/b.txt":              "/docs/ @all-docs",
		"docs/index.md":             "/docs/**/*.md @markdown",
		"docs/a/b/c.md":             "/docs/**/*.md @markdown",
		"a/lib/b/c":                 "lib/ @lib",
		"lib/c":                     "lib/ @lib",
		"config/x":                  "/config/ @@maintainer @@developer",
		"a/config/x":                "* @default",
		"path with spaces/a":        `path\ with\ spaces/ @space`,
		"pom.xml":                   "",
		"a/pom.xml":                 "",
		"a/ee/docs":                 "* @default; [Documentation] docs @own",
		"ee/docs/x":                 "* @default",
		"x/docs":                    "* @default; [Documentation] docs @own",
		"main.go":                   "* @default; [Go] *.go @go",
		"more.txt":                  "* @default; [Documentation] more.txt @more",
		"model/db/x":                "* @default; [DATABASE] model/db/ @dba",
		"config/db/nobody.md":       "/config/ @@maintainer @@developer",
		"model/db/config/db/nobody": "* @default; [DATABASE] model/db/ @dba",
	} {
		if got := owned(f, path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for name, want := range map[string]string{"": "1 1", "Documentation": "1 1", "Go": "3 0", "DATABASE": "2 2"} {
		s := f.section(name)
		if got := fmt.Sprint(s.Approvals, s.Required()); got != want {
			t.Errorf("section %q: %s, want %s", name, got, want)
		}
	}
}

// TestRepeated checks that a section that occurs twice is required if one of its
// headings is, and that a pattern that occurs twice in a section has the last
// owners.
func TestRepeated(t *testing.T) {
	t.Parallel()
	f := Parse("^[A]\n*.a @one\n[a][2]\n*.a @two\n^[B]\nx @b\n^[b]\ny @b\n[broken\n[]\n[C]x @c\n")
	if len(f.Sections) != 2 {
		t.Fatalf("%d sections", len(f.Sections))
	}
	if s := f.Sections[0]; s.Name != "A" || s.Required() != 2 || len(s.Entries) != 1 || owned(f, "1.a") != "[A] *.a @two" {
		t.Errorf("%+v, %s", s, owned(f, "1.a"))
	}
	if s := f.Sections[1]; s.Required() != 0 {
		t.Errorf("%+v", s)
	}
	list := f.Matching([]string{"1.a", "y", "z", "2.a"})
	if len(list) != 2 || list[0].Pattern != "*.a" || list[1].Pattern != "y" {
		t.Errorf("matching: %v", list)
	}
}

func TestMatchName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"a*b", "ab", true}, {"a*b", "axxb", true}, {"a*b", "axxc", false}, {"?", "é", true}, {"?", "", false},
		{"[a-c]x", "bx", true}, {"[!a-c]x", "bx", false}, {"[]]", "]", true}, {"[a", "[a", true}, {`\*`, "*", true}, {`\*`, "a", false},
		{"{a,b}", "{a,b}", true}, {"{a,b}", "a", false}, {".*", ".git", true}, {"*.rb", ".rb", true}, {`a\`, `a\`, true},
	} {
		steps := maxSteps
		if got := matchName(tt.pattern, tt.name, &steps); got != tt.want {
			t.Errorf("%s, %s: %v", tt.pattern, tt.name, got)
		}
	}
}

// TestHostile checks that the time to match a malicious file is limited.
func TestHostile(t *testing.T) {
	t.Parallel()
	star := strings.Repeat("*a", 400)
	deep := "/" + strings.Repeat("**/*a*a*a/", 90) + "b"
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "%s%d @a\n%s%d @b\n", star, i, deep, i)
	}
	f := Parse(text.String())
	if n := len(f.Sections[0].Entries); n > maxEntries {
		t.Errorf("%d entries", n)
	}
	paths := make([]string, 100_000)
	for i := range paths {
		paths[i] = strings.Repeat("aaaaaaaaaaaaaaaaaaaaaaaa/", 40) + strings.Repeat("a", 100)
	}
	start := time.Now()
	if found := f.Matching(paths); len(found) < len(f.Sections[0].Entries)-1 { // the last line may be truncated
		t.Errorf("%d owners are asked", len(found))
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %s", took)
	}
	text.Reset()
	for i := range MaxSize / 8 {
		fmt.Fprintf(&text, "[%x]\n", i)
	}
	if n := len(Parse(text.String()).Sections); n > maxEntries {
		t.Errorf("%d sections", n)
	}
	many := Parse(strings.Repeat("x", 10) + " @a\n" + strings.Repeat("y @b\n", 100))
	if n := len(many.Sections[0].Entries); n != 2 {
		t.Errorf("%d entries", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("* @a\n[S][2] @b\n/docs/**/*.md\n!x", "docs/a/b.md")
	f.Add("^[S]\n[a-z]/\\ x @@owner a@b", "a/ x")
	f.Fuzz(func(t *testing.T, text, path string) {
		if len(path) > 4096 || len(text) > 1<<16 {
			return
		}
		file := Parse(text)
		start := time.Now()
		for _, e := range file.Owning(path) {
			if e.Owners.Empty() || e.Section.Approvals < 1 || e.Section.Approvals > MaxApprovals {
				t.Errorf("%+v in %+v", e, e.Section)
			}
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("took %s", took)
		}
	})
}
