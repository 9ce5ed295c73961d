package codesearch

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/sourcegraph/zoekt"

	"svc/internal/lru"
)

// maxOpen is the number of shards that are kept open. Each needs some kilobytes and one
// memory mapping of the process; Linux allows 65,530 of these.
const maxOpen = 4096

// shardCache keeps the most recently searched shards open. A shard is closed when the
// cache and all searches have released it, because search results point into the
// mapping.
type shardCache struct {
	mu     sync.Mutex
	shards *lru.Map[string, *shard]
}

// shard is an open file of the index.
type shard struct {
	zoekt.Searcher
	users   int // searches, and 1 for the cache
	release func()
}

func newShardCache(limit int) *shardCache {
	c := &shardCache{}
	c.shards = lru.New(limit, func(_ string, s *shard) { c.drop(s) })
	return c
}

// acquire opens a shard, or returns it if it is open. The caller releases it.
func (c *shardCache) acquire(path string) (*shard, error) {
	c.mu.Lock()
	if s, ok := c.shards.Get(path); ok {
		s.users++
		c.mu.Unlock()
		return s, nil
	}
	c.mu.Unlock()
	opened, err := openShard(path)
	if err != nil {
		return nil, err
	}
	s := &shard{Searcher: opened, users: 2}
	s.release = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drop(s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, ok := c.shards.Get(path); ok { // opened by another search meanwhile
		opened.Close()
		other.users++
		return other, nil
	}
	c.shards.Put(path, s, 1)
	return s, nil
}

// forget removes an unreadable shard from the cache, so that it is opened again after it
// was rebuilt.
func (c *shardCache) forget(path string, s *shard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in, ok := c.shards.Peek(path); ok && in == s {
		c.shards.DeleteFunc(func(key string) bool { return key == path })
		c.drop(s)
	}
}

// drop releases a shard. The caller holds the lock.
func (c *shardCache) drop(s *shard) {
	if s.users--; s.users == 0 {
		s.Close()
	}
}

func (c *shardCache) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.shards.All() {
		c.drop(s)
	}
	c.shards.DeleteFunc(func(string) bool { return true })
}

// openShard maps a file. A damaged one may panic while it is read.
func openShard(path string) (s zoekt.Searcher, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("open shard %s: %v", path, p)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	file, err := zoekt.NewIndexFile(f)
	if err != nil {
		return nil, fmt.Errorf("open shard %s: %w", path, err)
	}
	s, err = zoekt.NewSearcher(file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("open shard %s: %w", path, err)
	}
	return s, nil
}
