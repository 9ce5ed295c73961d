package dbtest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// runID identifies the test run: the process ID in TEST_RUN, which starts many test
// processes with their own directory for temporary files, or otherwise this process.
var runID = func() int {
	if id, err := strconv.Atoi(os.Getenv("TEST_RUN")); err == nil {
		return id
	}
	return os.Getpid()
}()

// once creates a value in the first test process of a run; the others read it from a file.
// Migrating takes longer than most tests.
func once[T any](name string, make func() (T, error)) (T, error) {
	if os.Getenv("TEST_RUN") == "" {
		return make()
	}
	var value T
	path := filepath.Join(os.TempDir(), "svc-dbtest-"+strconv.Itoa(runID)+"-"+name)
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return value, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return value, err
	}
	content, err := os.ReadFile(path)
	if err == nil {
		return value, json.Unmarshal(content, &value)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return value, err
	}
	if value, err = make(); err != nil {
		return value, err
	}
	if content, err = json.Marshal(value); err != nil {
		return value, err
	}
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return value, err
	}
	return value, os.Rename(path+".new", path)
}
