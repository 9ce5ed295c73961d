package git

import (
	"context"
	"path/filepath"
	"sync"
	"time"
)

// uses knows in which repositories of this node git works just now, so that a
// directory that was replaced by another is not taken away from someone who still
// reads it.
type uses struct {
	mu sync.Mutex
	of map[string]*use // by directory; only while someone works or waits there
}

type use struct {
	n     int       // calls under way
	waits int       // how many wait for their end
	last  time.Time // when the last one ended, while someone waits
}

func newUses() *uses { return &uses{of: map[string]*use{}} }

// begin counts a call that works in the directories, until what it gives is
// called.
func (u *uses) begin(dirs []string) (end func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, dir := range dirs {
		u.at(dir).n++
	}
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		for _, dir := range dirs {
			one := u.of[dir]
			one.n--
			one.last = time.Now()
			u.drop(dir, one)
		}
	}
}

func (u *uses) at(dir string) *use {
	one := u.of[dir]
	if one == nil {
		one = &use{}
		u.of[dir] = one
	}
	return one
}

func (u *uses) drop(dir string, one *use) {
	if one.n == 0 && one.waits == 0 {
		delete(u.of, dir)
	}
}

// wait returns when no one has worked in the directory for a while.
func (u *uses) wait(ctx context.Context, dir string, quiet time.Duration) error {
	u.mu.Lock()
	one := u.at(dir)
	one.waits++
	one.last = time.Now()
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		one.waits--
		u.drop(dir, one)
	}()
	pause := time.NewTicker(max(quiet/10, 10*time.Millisecond))
	defer pause.Stop()
	for {
		u.mu.Lock()
		over := one.n == 0 && time.Since(one.last) >= quiet
		u.mu.Unlock()
		if over {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pause.C:
		}
	}
}

// dirs are the directories that a call on r works in.
func (r Repo) dirs() []string {
	dirs := []string{r.path}
	for _, objects := range r.borrowed {
		dirs = append(dirs, filepath.Dir(objects))
	}
	return dirs
}

// Leave returns when no call of this Engine has worked in the repository for
// a while, and nothing of it is held open any more. It is for a directory
// whose place another has taken: callers who were before that come to their
// end. It says nothing of other nodes.
func (r Repo) Leave(ctx context.Context, quiet time.Duration) error {
	r.Forget() // readers at rest would only hold files
	if err := r.engine.uses.wait(ctx, r.path, quiet); err != nil {
		return err
	}
	r.Forget()
	return nil
}
