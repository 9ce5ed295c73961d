package git

import (
	"hash/maphash"
	"strings"
	"sync"

	"svc/internal/lru"
)

// cacheKind distinguishes what is cached under one id.
type cacheKind uint8

const (
	kindInfo    cacheKind = iota // Info of an object
	kindContent                  // *Object
	kindTree                     // []Entry of a tree
	kindCommit                   // *Commit
	kindTag                      // *Tag
	kindPeel                     // Info of what a revision on top of an id leads to
	kindPacked                   // what refstore read from a directory
	kindAnswer                   // an answer of a command, under its arguments
	kindKept                     // what a caller made of immutable objects
)

// cacheKey names a value. The scope is part of it: an object is found only in
// the repositories in which it was found before.
type cacheKey struct {
	scope string
	kind  cacheKind
	id    string
}

// cache holds immutable values up to a number of bytes; the ones that were
// not used for longest go first. It is split so that its locks are not
// fought over.
type cache struct {
	seed   maphash.Seed
	shards [16]cacheShard
}

type cacheShard struct {
	mu     sync.Mutex
	budget int
	values *lru.Map[cacheKey, any]
}

// itemOverhead is about what an entry costs beside its value and key.
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

// put keeps a value of about size bytes; one that would push out most others
// is not kept.
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

// forget drops what is kept of a scope, and of the views that begin with it.
func (c *cache) forget(scope string) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.values.DeleteFunc(func(k cacheKey) bool { return k.scope == scope || strings.HasPrefix(k.scope, scope+"\x00") })
		s.mu.Unlock()
	}
}

// used is the number of bytes in use.
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

// Keep keeps what a caller made of immutable objects of the repository and the
// words of its name alone, of about size bytes, as long as there is room. It
// must not be changed.
func (r Repo) Keep(name string, value any, size int) {
	r.engine.cache.put(cacheKey{r.scope(), kindKept, name}, value, size)
}

// Kept returns what is kept under a name.
func (r Repo) Kept(name string) (any, bool) {
	return r.engine.cache.get(cacheKey{r.scope(), kindKept, name})
}

// refsCache is the part of the cache that refstore uses.
type refsCache struct{ *cache }

// Get implements refstore.Cache.
func (c refsCache) Get(dir string) any {
	v, _ := c.get(cacheKey{dir, kindPacked, ""})
	return v
}

// Put implements refstore.Cache.
func (c refsCache) Put(dir string, value any, size int) {
	c.put(cacheKey{dir, kindPacked, ""}, value, size)
}
