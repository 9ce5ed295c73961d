package errs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"svc/internal/errs"
)

func TestStorageFull(t *testing.T) {
	t.Parallel()
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		system := &fs.PathError{Op: "write", Path: "/srv/secret/x", Err: errno}
		for _, err := range []error{
			system,
			fmt.Errorf("put object: %w", system),
			errors.Join(errors.New("close"), system),
			errs.Invalid("The archive cannot be read.").Because(system),
		} {
			e, ok := errs.As(err)
			if !ok || e.Kind != errs.KindUnavailable || !errs.Is(err, errs.KindUnavailable) || errs.RetryAfter(err) != "60" {
				t.Errorf("%v: %+v, Retry-After %s", err, e, errs.RetryAfter(err))
			}
			if !strings.Contains(e.Text, "storage is full") || strings.Contains(e.Text, "secret") || !errors.Is(e, errno) {
				t.Errorf("%v: %q", err, e.Text)
			}
		}
	}
	for err, want := range map[error]bool{
		nil: false, syscall.EIO: false, errs.NotFound("User"): true, errs.Unavailable("no"): false, syscall.ENOSPC: false,
	} {
		if errs.IsRefusal(err) != want {
			t.Errorf("IsRefusal(%v) is %v", err, !want)
		}
	}
}
