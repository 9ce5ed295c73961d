package pages

import (
	"sync"
	"time"
)

const (
	// recentTTL bounds how long is believed what was read, even if no notice of
	// a change arrives.
	recentTTL = 10 * time.Second
	// recentMax bounds what is kept of a kind.
	recentMax = 5000
)

// recent keeps what was read last, by names of hosts.
type recent[T any] struct {
	mu      sync.RWMutex
	known   map[string]remembered[T]
	dropped int // how often all was dropped
}

type remembered[T any] struct {
	value T
	at    time.Time
}

// get returns what is known of a name, or reads it. What changes while it is
// read is not kept, and what is kept is not used unless fresh says that notices
// of changes arrive.
func (r *recent[T]) get(name string, now time.Time, fresh func() bool, read func() (T, error)) (T, error) {
	r.mu.RLock()
	have, ok := r.known[name]
	drops := r.dropped
	r.mu.RUnlock()
	if ok && now.Sub(have.at) < recentTTL && fresh() {
		return have.value, nil
	}
	value, err := read()
	if err != nil {
		return value, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped != drops {
		return value, nil
	}
	if r.known == nil || len(r.known) >= recentMax {
		r.known = map[string]remembered[T]{}
	}
	r.known[name] = remembered[T]{value, now}
	return value, nil
}

// drop forgets everything.
func (r *recent[T]) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = nil
	r.dropped++
}
