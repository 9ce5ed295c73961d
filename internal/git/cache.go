package git

import (
	"hash/maphash"
	"strings"
	"sync"

	"svc/internal/lru"
)

// cacheKind distinguishes the kinds of values cached for one ID.
type cacheKind uint8

const (
	kindInfo    cacheKind = iota // Info of an object
	kindContent                  // *Object
	kindTree                     // []Entry of a tree
	kindCommit                   // *Commit
	kindTag                      // *Tag
	kindPeel                     // Info of the object that a revision expression such as <id>^{tree} refers to
	kindPacked                   // packed refs and other state of refstore, per directory
	kindAnswer                   // result of a command, by its arguments
	kindKept                     // values stored by callers with Keep
)

// cacheKey identifies a value. The scope makes sure that an object cached for one
// repository is not found through another.
type cacheKey struct {
	scope string
	kind  cacheKind
	id    string
}

// cache is an LRU cache of immutable values, limited by size. It is sharded to
// reduce lock contention.
type cache struct {
	seed   maphash.Seed
	shards [16]cacheShard
}

type cacheShard struct {
	mu     sync.Mutex
	budget int
	values *lru.Map[cacheKey, any]
}

// itemOverhead is the approximate size of an entry, in addition to its value and
// key.
const itemOverhead = 256

func newCache(budget int64) *cache {
	c := &cache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		share := int(budget) / len(c.shards)
		c.shards[i] = cacheShard{budget: share, values: lru.New[cacheKey, any](share, nil)}
	}
	return c
}

func (c *cache) shard(k cacheKey) *cacheShard {
	return &c.shards[maphash.Comparable(c.seed, k)%uint64(len(c.shards))]
}

func (c *cache) get(k cacheKey) (any, bool) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values.Get(k)
}

// put stores a value of about size bytes. A value that would evict most of its
// shard is not stored.
func (c *cache) put(k cacheKey, value any, size int) {
	size += itemOverhead + len(k.id)
	s := c.shard(k)
	if size > s.budget/2 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values.Put(k, value, size)
}

// forget removes the entries of a scope, including those of its quarantines.
func (c *cache) forget(scope string) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.values.DeleteFunc(func(k cacheKey) bool { return k.scope == scope || strings.HasPrefix(k.scope, scope+"\x00") })
		s.mu.Unlock()
	}
}

// used returns the number of bytes in use.
func (c *cache) used() int {
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += s.values.Used()
		s.mu.Unlock()
	}
	return n
}

// Keep caches a value of about size bytes that depends only on its name and on
// immutable objects of the repository. The value must not be modified.
func (r Repo) Keep(name string, value any, size int) {
	r.engine.cache.put(cacheKey{r.scope(), kindKept, name}, value, size)
}

// Kept returns a value stored by Keep.
func (r Repo) Kept(name string) (any, bool) {
	return r.engine.cache.get(cacheKey{r.scope(), kindKept, name})
}

// refsCache implements refstore.Cache.
type refsCache struct{ *cache }

func (c refsCache) Get(dir string) any {
	v, _ := c.get(cacheKey{dir, kindPacked, ""})
	return v
}

func (c refsCache) Put(dir string, value any, size int) {
	c.put(cacheKey{dir, kindPacked, ""}, value, size)
}
