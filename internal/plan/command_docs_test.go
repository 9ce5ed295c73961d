package plan

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/user/quick-actions.md")

// TestQuickActionsPage checks that docs/user/quick-actions.md lists every quick
// action.
func TestQuickActionsPage(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../docs/user/quick-actions.md", "<!-- commands:begin -->\n", "<!-- commands:end -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no table of commands", path)
	}
	var b strings.Builder
	b.WriteString(before + begin + "| Command | Issues | Merge requests | Effect |\n| --- | --- | --- | --- |\n")
	for _, c := range Commands() {
		mark := func(k Kind) string {
			if slices.Contains(c.Kinds(), k) {
				return "yes"
			}
			return ""
		}
		name := strings.TrimSpace("/" + c.Name + " " + c.Params)
		effect := c.Description
		if len(c.Aliases) > 0 {
			effect += ". Also `/" + strings.Join(c.Aliases, "`, `/") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s. |\n", strings.ReplaceAll(name, "|", `\|`), mark(IssueKind), mark(MergeKind), effect)
	}
	b.WriteString(end + after)
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if b.String() != string(text) {
		t.Errorf("%s is out of date; run go test ./internal/plan -run QuickActionsPage -update", path)
	}
}

// TestCommandTable checks that names are unique and sorted.
func TestCommandTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	last := ""
	for _, c := range Commands() {
		if c.Name < last {
			t.Errorf("%s is after %s", c.Name, last)
		}
		last = c.Name
		for _, name := range append([]string{c.Name}, c.Aliases...) {
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		if c.Description == "" || len(c.on) == 0 {
			t.Errorf("%s has no description or no objects", c.Name)
		}
	}
}
