// Package memo caches rows during the rendering of one page. Each operation of a
// feature checks access and reads its subject itself, so a page with the results of
// ten operations would read the same rows ten times.
package memo

import (
	"context"
	"sync"
)

type contextKey struct{}

// found are the cached values of a page by key.
type found struct {
	mu     sync.Mutex
	values map[any]any // nil after End
}

// With returns a context with a cache. It is for a page that only reads: later
// writes to the database are not seen. It affects performance only, like
// limit.WithAddress.
func With(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, &found{values: map[any]any{}})
}

// End ends caching, for a response that continues after the page was read.
func End(ctx context.Context) {
	if f, _ := ctx.Value(contextKey{}).(*found); f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.values = nil
	}
}

// On reports whether a context has a cache.
func On(ctx context.Context) bool {
	f, _ := ctx.Value(contextKey{}).(*found)
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.values != nil
}

// Get returns the value of a key, and calls read if it is not cached. Errors are not
// cached. Each package uses its own key types, so that keys do not collide. Without
// With, Get always calls read. Values are shared: a caller must copy a value before
// changing it.
func Get[K comparable, V any](ctx context.Context, key K, read func() (V, error)) (V, error) {
	f, _ := ctx.Value(contextKey{}).(*found)
	if f == nil {
		return read()
	}
	f.mu.Lock()
	have, ok := f.values[key]
	f.mu.Unlock()
	if ok {
		return have.(V), nil
	}
	v, err := read()
	if err == nil {
		Put(ctx, key, v)
	}
	return v, err
}

// Put sets the cached value of a key, if the context has a cache.
func Put[K comparable, V any](ctx context.Context, key K, v V) {
	if f, _ := ctx.Value(contextKey{}).(*found); f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.values != nil {
			f.values[key] = v
		}
	}
}
