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

func TestFields(t *testing.T) {
	t.Parallel()
	wrong := errs.Fields{}
	if err := wrong.Err(); err != nil {
		t.Errorf("got %v without messages", err)
	}
	wrong.Add("name", "can't be blank")
	wrong.Add("name", "is 100% wrong")
	wrong.Set("path", "replaced")
	wrong.Set("path", "is too long (maximum is %d characters)", 255)
	err := wrong.Err()
	if want := "name can't be blank, is 100% wrong; path is too long (maximum is 255 characters)"; !errs.Is(err, errs.KindInvalid) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
