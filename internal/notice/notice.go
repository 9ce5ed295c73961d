// Package notice publishes changes to all nodes, so that they drop stale cache
// entries.
//
// A notice is sent in the transaction of the change. After the commit, the
// subscribers on the same node are called before the writer continues, those on
// other nodes soon after (by LISTEN and NOTIFY of PostgreSQL). If notices may
// have been missed, all subscribers are called as if everything had changed. A
// cache must not store a value that was read before a notice and arrived after
// it, and must not use a value unless Fresh reports true after it was taken out
// of the cache.
package notice

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"svc/internal/db"
)

// Deps are what the bus needs.
type Deps struct {
	DB  *db.DB
	Log *slog.Logger
	Now func() time.Time
}

// Bus carries notices. It is safe for concurrent use.
type Bus struct {
	Deps
	node  string    // tells our own notices from those of others
	epoch time.Time // origin of the monotonic readings

	mu          sync.RWMutex
	subscribers map[string][]func(key string)

	// confirmed is a time at which every notice committed before it had been
	// delivered here; nil while this node does not listen.
	confirmed atomic.Pointer[reading]

	life sync.Mutex         // one Start or Stop at a time
	stop context.CancelFunc // nil when stopped
	done chan struct{}      // closed when what Start began has ended
}

// New returns a bus. Notices reach this node's subscribers at once, those of
// other nodes after Start.
func New(d Deps) *Bus {
	return &Bus{Deps: d, node: strings.ToLower(rand.Text()), epoch: d.Now(), subscribers: map[string][]func(string){}}
}

// Subscribe has f called with the key of each notice of the topic; an empty
// key says that everything of the topic may have changed. f must be quick,
// and is called from many goroutines.
func (b *Bus) Subscribe(topic string, f func(key string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscribers[topic] = append(b.subscribers[topic], f)
}

// Send adds a notice to what tx does. The key must not be empty; with the
// topic it may have some thousand bytes.
func (b *Bus) Send(ctx context.Context, tx *db.Tx, topic, key string) error {
	payload, err := b.encode(topic, key)
	if err != nil {
		return fmt.Errorf("send notice: %w", err)
	}
	if b.DB.Postgres() {
		if err := notify(ctx, tx, payload); err != nil {
			return fmt.Errorf("send notice: %w", err)
		}
	}
	tx.AfterCommit(func() { b.deliver(topic, key) })
	return nil
}

// Fresh reports whether what subscribers keep is up to date: every notice that
// was committed more than trustTime ago has been delivered. It is false when
// the connection is lost or silent, and after the process was stopped or the
// machine suspended, until the notices have been confirmed again. A cache asks
// after it has taken the value out, so that a stop between the two is noticed.
// It costs a load and a reading of the clock. SQLite has one node, whose
// notices cannot be late.
func (b *Bus) Fresh() bool {
	if !b.DB.Postgres() {
		return true
	}
	at := b.confirmed.Load()
	return at != nil && at.covers(b.read())
}

// trustTime is how long a confirmation of the notices counts.
const trustTime = 2 * time.Second

// reading is a time by both clocks. The monotonic clock runs on while the
// process is stopped, the wall clock also shows that the machine was suspended.
type reading struct {
	wall int64         // nanoseconds since 1970
	mono time.Duration // since the epoch of the bus
}

func (b *Bus) read() reading {
	now := b.Now()
	return reading{wall: now.UnixNano(), mono: now.Sub(b.epoch)}
}

// covers reports whether a confirmation at r still counts at now. A wall clock
// that was set back or forward ends it too.
func (r reading) covers(now reading) bool {
	wall := time.Duration(now.wall - r.wall)
	return now.mono-r.mono < trustTime && wall < trustTime && wall > -trustTime
}

const (
	// channel is the name by which PostgreSQL knows our notices.
	channel = "svc_notice"
	// beatChannel is followed by the name of a node: its heartbeats.
	beatChannel = channel + "_beat_"
	// maxPayload is one byte less than PostgreSQL refuses.
	maxPayload = 7999
)

// message is a notice on its way.
type message struct {
	Node  string `json:"n"`
	Topic string `json:"t"`
	Key   string `json:"k"`
}

// encode writes a notice for its way. It refuses the same on both databases.
func (b *Bus) encode(topic, key string) (string, error) {
	if key == "" || !utf8.ValidString(topic+key) {
		return "", fmt.Errorf("%q is no key of %q", key, topic)
	}
	payload, err := json.Marshal(message{b.node, topic, key})
	if err != nil {
		return "", err
	}
	if len(payload) > maxPayload {
		return "", fmt.Errorf("topic and key have %d bytes", len(topic)+len(key))
	}
	return string(payload), nil
}

// receive takes a notice from its way; ours have been delivered already.
func (b *Bus) receive(payload string) {
	var m message
	if err := json.Unmarshal([]byte(payload), &m); err != nil {
		b.Log.Warn("a notice cannot be read", "error", err)
		b.reset()
		return
	}
	if m.Node != b.node {
		b.deliver(m.Topic, m.Key)
	}
}

// reset tells all subscribers that everything may have changed.
func (b *Bus) reset() {
	b.mu.RLock()
	topics := make([]string, 0, len(b.subscribers))
	for topic := range b.subscribers {
		topics = append(topics, topic)
	}
	b.mu.RUnlock()
	for _, topic := range topics {
		b.deliver(topic, "")
	}
}

func (b *Bus) deliver(topic, key string) {
	b.mu.RLock()
	subscribers := b.subscribers[topic] // only ever appended to
	b.mu.RUnlock()
	for _, f := range subscribers {
		b.call(topic, key, f)
	}
}

// call keeps the fault of one subscriber from the others, and from the writer
// whose change is committed already.
func (b *Bus) call(topic, key string, f func(string)) {
	defer func() {
		if v := recover(); v != nil {
			b.Log.Error("a subscriber of notices panicked", "topic", topic, "error", v, "stack", string(debug.Stack()))
		}
	}()
	f(key)
}
