package git

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

// TestFullDiskIsNoDamage checks that a full disk is not taken for corruption, because git
// reports both for an object that could not be written.
func TestFullDiskIsNoDamage(t *testing.T) {
	t.Parallel()
	for stderr, want := range map[string]error{
		"fatal: write error: No space left on device\nfatal: index-pack failed\n":                              syscall.ENOSPC,
		"error: unable to write file ./objects/0c/tmp_obj_x: No space left on device\nfatal: unable to unpack": syscall.ENOSPC,
		"error: file write error: Disk quota exceeded\nfatal: failed to write object":                          syscall.EDQUOT,
		"error: inflate: data stream error":                                                                    ErrCorrupt,
	} {
		err := &Error{Kind: kindOf(stderr), Name: "index-pack", Exit: 128, Stderr: stderr}
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", stderr, err, want)
		}
	}
	if why := reason(&Error{Kind: syscall.EDQUOT}, "internal error"); !strings.Contains(why, "storage is full") {
		t.Error(why)
	}
}
