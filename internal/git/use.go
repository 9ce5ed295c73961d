package git

import (
	"context"
	"path/filepath"
	"sync"
	"time"
)

// uses counts the calls in progress by repository directory on this node, so that
// a replaced directory is not removed while it is in use.
type uses struct {
	mu sync.Mutex
	of map[string]*useCount // by directory; removed when unused
}

type useCount struct {
	n     int       // calls in progress
	waits int       // number of waiters
	last  time.Time // when the last call ended; valid while there are waiters
}

func newUses() *uses { return &uses{of: map[string]*useCount{}} }

// begin counts a call that uses the directories until end is called.
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
			use := u.of[dir]
			use.n--
			use.last = time.Now()
			u.drop(dir, use)
		}
	}
}

func (u *uses) at(dir string) *useCount {
	use := u.of[dir]
	if use == nil {
		use = &useCount{}
		u.of[dir] = use
	}
	return use
}

func (u *uses) drop(dir string, use *useCount) {
	if use.n == 0 && use.waits == 0 {
		delete(u.of, dir)
	}
}

// wait waits until the directory has not been used for a while.
func (u *uses) wait(ctx context.Context, dir string, quiet time.Duration) error {
	u.mu.Lock()
	use := u.at(dir)
	use.waits++
	use.last = time.Now()
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		use.waits--
		u.drop(dir, use)
	}()
	pause := time.NewTicker(max(quiet/10, 10*time.Millisecond))
	defer pause.Stop()
	for {
		u.mu.Lock()
		unused := use.n == 0 && time.Since(use.last) >= quiet
		u.mu.Unlock()
		if unused {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pause.C:
		}
	}
}

// dirs returns the directories that a call on r uses.
func (r Repo) dirs() []string {
	dirs := []string{r.path}
	for _, objects := range r.borrowed {
		dirs = append(dirs, filepath.Dir(objects))
	}
	return dirs
}

// Leave waits until no call of this Engine has used the repository for a while,
// and closes its files. It is called for a directory that was replaced, so that
// earlier callers can finish. Other nodes are not considered.
func (r Repo) Leave(ctx context.Context, quiet time.Duration) error {
	r.Forget() // idle readers would keep files open
	if err := r.engine.uses.wait(ctx, r.path, quiet); err != nil {
		return err
	}
	r.Forget()
	return nil
}
