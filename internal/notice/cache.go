package notice

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/db"
)

// CacheOptions are the options of a Cache.
type CacheOptions[V any] struct {
	Bus *Bus
	// TTL limits how long a value is used even if no notice of a change arrives; 0
	// means no limit. It requires Now.
	TTL time.Duration
	Now func() time.Time
	// Max is the maximum number of values. When it is reached, all values are
	// dropped; those in use are read again.
	Max int
	// Group returns the ID with which DropGroup drops a value; nil if values are
	// only dropped all at once.
	Group func(V) int64
}

// Cache keeps values that were read from the database until a notice says that
// they may have changed. The owner subscribes to the notices and calls Drop or
// DropGroup. These rules prevent a node from using a value after it was changed:
//
//   - A value that was read before a drop is not stored after it, because it may be
//     outdated.
//   - A value is used only if, after it was read from the cache, the bus is fresh and
//     nothing was dropped in between. Otherwise a notice about the value may be late,
//     or may have just arrived.
//   - A value is used for at most the TTL, even if notices fail.
//
// A Cache is safe for concurrent use. Values are shared by all callers.
type Cache[K comparable, V any] struct {
	options CacheOptions[V]

	mu     sync.RWMutex
	values map[K]cached[V]
	groups map[int64][]K // empty if Group is nil
	drops  atomic.Int64  // number of drops; changed with mu locked
}

type cached[V any] struct {
	value V
	at    time.Time // zero if there is no TTL
}

// NewCache returns an empty cache.
func NewCache[K comparable, V any](o CacheOptions[V]) *Cache[K, V] {
	return &Cache[K, V]{options: o}
}

// Get returns the value of a key. If it is not in the cache, Get calls read, and
// stores the value if keep is true and there is no error.
func (c *Cache[K, V]) Get(key K, read func() (value V, keep bool, err error)) (V, error) {
	var now time.Time
	if c.options.TTL > 0 {
		now = c.options.Now()
	}
	c.mu.RLock()
	have, ok := c.values[key]
	drops := c.drops.Load()
	c.mu.RUnlock()
	if ok && (c.options.TTL == 0 || now.Sub(have.at) < c.options.TTL) && c.options.Bus.Fresh() && c.drops.Load() == drops {
		return have.value, nil
	}
	drops = c.drops.Load()
	value, keep, err := read()
	if keep && err == nil {
		c.put(key, cached[V]{value, now}, drops)
	}
	return value, err
}

func (c *Cache[K, V]) put(key K, v cached[V], drops int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops.Load() != drops {
		return
	}
	if c.values == nil || len(c.values) >= c.options.Max {
		c.values, c.groups = map[K]cached[V]{}, map[int64][]K{}
	}
	if _, have := c.values[key]; !have && c.options.Group != nil {
		id := c.options.Group(v.value)
		c.groups[id] = append(c.groups[id], key)
	}
	c.values[key] = v
}

// Drop drops all values.
func (c *Cache[K, V]) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values, c.groups = nil, nil
	c.drops.Add(1)
}

// DropGroup drops the values of a group.
func (c *Cache[K, V]) DropGroup(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range c.groups[id] {
		delete(c.values, key)
	}
	delete(c.groups, id)
	c.drops.Add(1)
}

// Len returns the number of values.
func (c *Cache[K, V]) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.values)
}

// SendOnWrite sends a notice of the topic with each transaction that writes to one
// of the tables; see db.OnWrite. It is called at startup.
func (b *Bus) SendOnWrite(topic string, tables ...string) {
	b.DB.OnWrite(tables, func(ctx context.Context, tx *db.Tx) error { return b.Send(ctx, tx, topic, "all") })
}
