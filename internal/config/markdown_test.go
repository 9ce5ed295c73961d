package config

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/admin/configuration.md")

func TestDoc(t *testing.T) {
	t.Parallel()
	const path = "../../docs/admin/configuration.md"
	if *update {
		if err := os.WriteFile(path, []byte(Doc()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Doc(), string(got)); diff != "" {
		t.Errorf("%s is out of date; run go test ./internal/config -update (-want +got):\n%s", path, diff)
	}
}
