package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// firstWithHeader is the first migration that must name the oldest compatible
// release. Earlier migrations without a header are compatible with no older release.
const firstWithHeader = 54

// TestMigrationHeaders checks that each migration names the oldest compatible
// release, and that a migration that builds an index concurrently contains nothing
// else, because it is repeated from its start after an interruption.
func TestMigrationHeaders(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(root + "/internal/db/migrations/*.sql*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	oldest := regexp.MustCompile(`(?m)^-- oldest: (\d{4})$`)
	for _, file := range files {
		name := filepath.Base(file)
		number, err := strconv.Atoi(name[:4])
		if err != nil {
			t.Errorf("%s: the name begins with a number of four digits", name)
			continue
		}
		if number < firstWithHeader {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "INDEX CONCURRENTLY") {
			for _, statement := range strings.Split(string(text), ";") {
				if s := uncommented(statement); s != "" && !regexp.MustCompile(`^CREATE (UNIQUE )?INDEX CONCURRENTLY \w+ ON `).MatchString(s) {
					t.Errorf("%s: move %q to a separate migration", name, s)
				}
			}
		}
		if strings.HasSuffix(name, ".postgres") {
			continue // the header is in the other file
		}
		found := oldest.FindStringSubmatch(string(text))
		if found == nil {
			t.Errorf("%s: add a line \"-- oldest: NNNN\" below \"-- +goose Up\", with the number of the newest migration of the oldest release that may run beside this one; see docs/dev/add-a-migration.md", name)
			continue
		}
		if n, err := strconv.Atoi(found[1]); err != nil || n > number || n == 0 {
			t.Errorf("%s: oldest is %s, want at most %04d", name, found[1], number)
		}
	}
}

// uncommented returns a statement without comments and surrounding white space.
func uncommented(statement string) string {
	var lines []string
	for line := range strings.Lines(statement) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
