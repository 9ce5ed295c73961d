package app

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"svc/internal/git"
)

// Finding is the result of a check of the instance.
type Finding struct {
	Part    string
	Text    string // name of the check, or the warning
	Warning bool   // it works, but should be changed; Text describes it
	Err     error  // the problem
}

// String returns the finding as text.
func (f Finding) String() string {
	if f.Err != nil {
		return f.Err.Error()
	}
	return f.Text
}

// minFree is the free disk space below which the check of a directory fails.
const minFree = 1 << 30

// Examine checks everything the server needs, one part at a time. It changes
// nothing, except that it creates a file in each directory and removes it.
func (a *App) Examine(ctx context.Context) iter.Seq[Finding] {
	checks := []struct {
		part string
		do   func(context.Context) (string, error)
	}{
		{"data", a.examineData},
		{"database", a.examineDatabase},
		{"key", a.examineKey},
		{"blobs", a.examineBlobs},
		{"git", examineGit},
	}
	return func(yield func(Finding) bool) {
		for _, c := range checks {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			text, err := c.do(ctx)
			cancel()
			if !yield(Finding{Part: c.part, Text: text, Err: err}) {
				return
			}
		}
		if warning := a.Config.PagesWarning(); warning != "" {
			yield(Finding{Part: "pages", Text: warning, Warning: true})
		}
	}
}

func (a *App) examineData(context.Context) (string, error) {
	dir := a.Config.DataDir
	probe := filepath.Join(dir, ".doctor")
	if err := os.WriteFile(probe, []byte("probe"), 0o600); err != nil {
		return "", fmt.Errorf("%s cannot be written: %w", dir, err)
	}
	if err := os.Remove(probe); err != nil {
		return "", err
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return "", err
	}
	free := fs.Bavail * uint64(fs.Bsize)
	if free < minFree {
		return "", fmt.Errorf("%s has only %d MiB of free space", dir, free>>20)
	}
	return fmt.Sprintf("%s is writable, %d GiB free", dir, free>>30), nil
}

func (a *App) examineDatabase(ctx context.Context) (string, error) {
	s, err := a.DB.Schema(ctx)
	if err != nil {
		return "", err
	}
	if err := s.Refused(); err != nil {
		return "", err
	}
	if len(s.Pending) > 0 && s.Have <= s.Know {
		return "", fmt.Errorf("schema version %d is older than the version of this program, %d: run \"svc migrate\"", s.Have, s.Know)
	}
	kind, err := a.DB.Check(ctx)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%s, schema version %d", kind, s.Have)
	switch {
	case s.Have > s.Know:
		text += fmt.Sprintf(" of a newer release, which this one (%d) may run beside", s.Know)
	case len(s.Post) > 0:
		text += ", post-deployment migrations to run: " + strings.Join(s.Post, ", ")
	}
	return text, nil
}

// examineKey decrypts every sealed value, to detect a lost key while there is still
// a backup of it.
func (a *App) examineKey(ctx context.Context) (string, error) {
	n := 0
	for _, s := range a.sealed() {
		rows, err := s.read(ctx, a.DB)
		if err != nil {
			return "", err
		}
		for _, r := range rows {
			if _, _, err := a.Keys.Reseal(r.text); err != nil {
				return "", fmt.Errorf("%s of %s %d: %w", s.column, s.table, r.id, err)
			}
			n++
		}
	}
	return fmt.Sprintf("%s decrypts all %d stored secrets", a.KeyFile(), n), nil
}

func (a *App) examineBlobs(ctx context.Context) (string, error) {
	if err := a.Blobs.Ping(ctx); err != nil {
		return "", err
	}
	return "the object storage is reachable", nil
}

func examineGit(ctx context.Context) (string, error) {
	version, err := git.Version(ctx)
	if err != nil {
		return "", err
	}
	return "git " + version, nil
}
