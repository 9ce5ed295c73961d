package setting

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/admin/settings.md")

// TestDocs checks that docs/admin/settings.md has the current table of settings.
func TestDocs(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../docs/admin/settings.md", "<!-- settings:begin -->\n", "<!-- settings:end -->\n"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), begin)
	got, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no section between %q and %q", file, begin, end)
	}
	want := docs()
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is out of date; run go test ./internal/setting -update (-want +got):\n%s", file, diff)
	}
}

// docs renders the table.
func docs() string {
	var b strings.Builder
	b.WriteString("\n| Setting | Default | Allowed | Meaning |\n| --- | --- | --- | --- |\n")
	for _, section := range new(Settings).Table() {
		fmt.Fprintf(&b, "| **%s** | | | |\n", section.Title)
		for _, s := range section.Settings {
			value := s.Default
			if w, ok := value.(Weights); ok {
				value = "`" + encode(w) + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %v | %s | %s |\n", s.Name, value, allowed(s), s.Doc)
		}
	}
	return b.String() + "\n"
}

func allowed(s Setting) string {
	switch s.Value.(type) {
	case *int:
		if s.Max == maxCount {
			return strconv.Itoa(s.Min) + " and up"
		}
		return fmt.Sprintf("%d–%d", s.Min, s.Max)
	case *string:
		return "text"
	case *[]string:
		if s.Addresses {
			return "names, addresses, networks"
		}
		return "host names"
	case *Weights:
		return fmt.Sprintf("names with %d–%d", s.Min, s.Max)
	case *Confirmation:
		return "off, soft, hard"
	}
	return "true, false"
}

// TestTable checks that each setting has a default of its type within its limits, a
// label and a description.
func TestTable(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	s := Default()
	if err := s.check(); err != nil {
		t.Errorf("the defaults are invalid: %v", err)
	}
	for _, row := range s.List() {
		if names[row.Name] || row.Label == "" || row.Doc == "" {
			t.Errorf("%s is there twice, or has no label or description", row.Name)
		}
		names[row.Name] = true
	}
	if len(names) < 40 {
		t.Errorf("there are only %d settings", len(names))
	}
}
