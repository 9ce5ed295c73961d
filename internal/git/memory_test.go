package git

import (
	"errors"
	"io"
	"testing"

	"svc/internal/git/gittest"
)

// zeros is an endless reader of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestGitProcessMemory(t *testing.T) {
	t.Parallel()
	e, err := New(Deps{Limits: Limits{Memory: 128 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	r := e.Repo(gittest.New(t).Path)
	// Files below the threshold are read into memory.
	c := command{args: []string{"-c", "core.bigFileThreshold=4g", "hash-object", "--stdin"}, in: io.LimitReader(zeros{}, 512<<20)}
	if _, err := r.output(t.Context(), c); !errors.Is(err, ErrMemory) || !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	c = command{args: []string{"hash-object", "--stdin"}, in: io.LimitReader(zeros{}, 1<<20)}
	if _, err := r.output(t.Context(), c); err != nil {
		t.Error(err)
	}
}
