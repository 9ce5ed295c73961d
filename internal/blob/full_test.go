package blob

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/errs"
)

// TestPutToFullDisk checks the error of a Put to a full disk, and that it leaves no
// files.
func TestPutToFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := openDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	d := s.(*disk)
	create := d.create
	var temp string
	d.create = func() (*os.File, string, error) {
		f, name, err := create()
		if err != nil || f.Close() != nil {
			return nil, name, err
		}
		temp = name
		f, err = os.OpenFile("/dev/full", os.O_WRONLY, 0)
		return f, name, err
	}
	if _, err := s.Put(t.Context(), "a/b", strings.NewReader("text"), Options{}); !errs.Is(err, errs.KindUnavailable) || !strings.Contains(err.Error(), "no space") {
		t.Errorf("put: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, temp)); temp == "" || !os.IsNotExist(err) {
		t.Errorf("the temporary file %q is still there: %v", temp, err)
	}
	if _, err := s.Stat(t.Context(), "a/b"); !errs.Is(err, errs.KindNotFound) {
		t.Errorf("stat: %v", err)
	}
}
