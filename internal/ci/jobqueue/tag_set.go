package jobqueue

import (
	"context"
	"fmt"
	"sync"
)

// tagSets caches the tags of tag sets, which never change.
type tagSets struct {
	mu    sync.RWMutex
	known map[int64][]string
}

// maxTagSets limits the size of the cache.
const maxTagSets = 10_000

func (q *Queue) knownTags(id int64) ([]string, bool) {
	q.tagSets.mu.RLock()
	defer q.tagSets.mu.RUnlock()
	tags, ok := q.tagSets.known[id]
	return tags, ok
}

// tagsOf returns the tags of a tag set.
func (q *Queue) tagsOf(ctx context.Context, id int64) ([]string, error) {
	if tags, ok := q.knownTags(id); ok {
		return tags, nil
	}
	tags, err := findTagSet(ctx, q.DB, id)
	if err != nil {
		return nil, fmt.Errorf("tag set %d: %w", id, err)
	}
	q.tagSets.mu.Lock()
	defer q.tagSets.mu.Unlock()
	if len(q.tagSets.known) >= maxTagSets {
		clear(q.tagSets.known)
	}
	q.tagSets.known[id] = tags
	return tags, nil
}
