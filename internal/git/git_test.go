package git

import (
	"regexp"
	"testing"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	got, err := Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^\d+\.\d+`).MatchString(got) {
		t.Errorf("version %q", got)
	}
}
