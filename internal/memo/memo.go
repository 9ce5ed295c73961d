// Package memo keeps what the reading of one page has found, so that its parts do
// not read the same row again. Each operation of a feature checks access and reads
// its subject itself; a page that shows ten of them would read it ten times.
package memo

import (
	"context"
	"sync"
)

type contextKey struct{}

// found has the values of one page by key.
type found struct {
	mu     sync.Mutex
	values map[any]any // nil after End
}

// With returns a context whose reads are shared. It is for one page that only reads:
// what is written to the database later is not seen. It decides about cost only,
// like limit.WithAddress.
func With(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, &found{values: map[any]any{}})
}

// End ends the sharing, for an answer that goes on after the page was read.
func End(ctx context.Context) {
	if f, _ := ctx.Value(contextKey{}).(*found); f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.values = nil
	}
}

// On reports whether the reads of a context are shared.
func On(ctx context.Context) bool {
	f, _ := ctx.Value(contextKey{}).(*found)
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.values != nil
}

// Get returns the value of a key, which read returns if the page does not have it
// yet. Errors are not kept. A key is of a type of its own, so that packages do not
// meet. Without With, Get calls read. Values are shared: a caller copies what it
// changes.
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

// Put sets the value of a key for the rest of the page, if the context has one.
func Put[K comparable, V any](ctx context.Context, key K, v V) {
	if f, _ := ctx.Value(contextKey{}).(*found); f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.values != nil {
			f.values[key] = v
		}
	}
}
