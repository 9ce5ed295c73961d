// Package notice publishes changes to all nodes, so that they drop stale cache
// entries.
//
// A notice is sent in the transaction of the change. After the commit, also one whose
// reply was lost, the subscribers on the same node are called before the writer
// continues, those on other nodes soon after (by LISTEN and NOTIFY of PostgreSQL). If
// notices may have been missed, all subscribers are called as if everything had changed. A
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

// Deps are the dependencies of a Bus.
type Deps struct {
	DB  *db.DB
	Log *slog.Logger
	Now func() time.Time
}

// Bus sends and receives notices. It is safe for concurrent use.
type Bus struct {
	Deps
	node  string    // identifies the notices of this node
	epoch time.Time // origin of the monotonic readings

	// hearOwn is whether notices of this node that arrive from the database are delivered. It
	// is set when a commit has failed: such a transaction may still be committed later.
	hearOwn atomic.Bool

	mu          sync.RWMutex
	subscribers map[string][]func(key string)

	// confirmed is a time before which every committed notice was delivered to this
	// node; nil while the node does not receive notices.
	confirmed atomic.Pointer[reading]

	life sync.Mutex         // held by Start and Stop
	stop context.CancelFunc // nil when stopped
	done chan struct{}      // closed when the goroutine of Start has ended
}

// New returns a Bus. Its subscribers receive notices of this node immediately, those
// of other nodes after Start.
func New(d Deps) *Bus {
	return &Bus{Deps: d, node: strings.ToLower(rand.Text()), epoch: d.Now(), subscribers: map[string][]func(string){}}
}

// Subscribe registers f, which is called with the key of each notice of the topic;
// an empty key means that everything of the topic may have changed. f must be fast
// and safe for concurrent use.
func (b *Bus) Subscribe(topic string, f func(key string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscribers[topic] = append(b.subscribers[topic], f)
}

// Send sends a notice when tx is committed. The key must not be empty; key and topic
// together may have several thousand bytes.
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
	tx.AfterUnsure(func() {
		b.hearOwn.Store(true)
		b.deliver(topic, key) // harmless if nothing was committed
	})
	return nil
}

// Fresh reports whether the values of subscribers are up to date: every notice that
// was committed more than trustTime ago has been delivered. It is false if the
// connection is lost or receives nothing, and after the process was stopped or the
// machine suspended, until notices are confirmed again. A cache calls it after
// reading a value, so that a stop in between is detected. It costs one atomic load
// and a reading of the clock. With SQLite it is always true, because there is only
// one node.
func (b *Bus) Fresh() bool {
	if !b.DB.Postgres() {
		return true
	}
	at := b.confirmed.Load()
	return at != nil && at.covers(b.read())
}

// trustTime is how long a confirmation of the notices is valid.
const trustTime = 2 * time.Second

// reading is a time on both clocks. The monotonic clock advances while the process
// is stopped, the wall clock also while the machine is suspended.
type reading struct {
	wall int64         // Unix time in nanoseconds
	mono time.Duration // time since the epoch of the bus
}

func (b *Bus) read() reading {
	now := b.Now()
	return reading{wall: now.UnixNano(), mono: now.Sub(b.epoch)}
}

// covers reports whether a confirmation at r is still valid at now. It becomes
// invalid if the wall clock is set.
func (r reading) covers(now reading) bool {
	wall := time.Duration(now.wall - r.wall)
	return now.mono-r.mono < trustTime && wall < trustTime && wall > -trustTime
}

const (
	// channel is the PostgreSQL channel of the notices.
	channel = "svc_notice"
	// beatChannel is followed by the name of a node: the channel of its heartbeats.
	beatChannel = channel + "_beat_"
	// maxPayload is the maximum size of a notification in PostgreSQL.
	maxPayload = 7999
)

// message is an encoded notice.
type message struct {
	Node  string `json:"n"`
	Topic string `json:"t"`
	Key   string `json:"k"`
}

// encode encodes a notice. The limits are the same for both databases.
func (b *Bus) encode(topic, key string) (string, error) {
	if key == "" || !utf8.ValidString(topic+key) {
		return "", fmt.Errorf("%q is not a valid key of %q", key, topic)
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

// receive decodes and delivers a notice. Those of this node were delivered already, unless
// their commit failed.
func (b *Bus) receive(payload string) {
	var m message
	if err := json.Unmarshal([]byte(payload), &m); err != nil {
		b.Log.Warn("invalid notice", "error", err)
		b.reset()
		return
	}
	if m.Node != b.node || b.hearOwn.Load() {
		b.deliver(m.Topic, m.Key)
	}
}

// reset calls all subscribers with an empty key: everything may have changed.
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
	subscribers := b.subscribers[topic] // subscribers are never removed
	b.mu.RUnlock()
	for _, f := range subscribers {
		b.call(topic, key, f)
	}
}

// call calls a subscriber and recovers from a panic, which must not affect other
// subscribers or the writer, whose change is already committed.
func (b *Bus) call(topic, key string, f func(string)) {
	defer func() {
		if v := recover(); v != nil {
			b.Log.Error("a subscriber of notices panicked", "topic", topic, "error", v, "stack", string(debug.Stack()))
		}
	}()
	f(key)
}
