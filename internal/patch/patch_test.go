package patch_test

import (
	"testing"

	"svc/internal/patch"
)

func TestSet(t *testing.T) {
	t.Parallel()
	name, empty := "old", ""
	if patch.Set(&name, nil); name != "old" {
		t.Errorf("a field that was not sent became %q", name)
	}
	if patch.Set(&name, &empty); name != "" {
		t.Errorf("a field that was sent empty is %q", name)
	}
}
