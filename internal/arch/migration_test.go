package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// firstWithHeader is the first migration that must name the oldest release. Those
// before it without a header allow no older release.
const firstWithHeader = 54

// TestMigrationHeaders checks that each migration names the oldest release that may
// run beside it, and that indexes that are built concurrently are alone in their
// file: it runs again from its beginning if it was interrupted.
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
					t.Errorf("%s: put %q into a migration of its own", name, s)
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

// uncommented is a statement without comments and white space around it.
func uncommented(statement string) string {
	var lines []string
	for line := range strings.Lines(statement) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
