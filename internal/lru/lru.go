// Package lru implements a map of limited size that evicts its least recently
// used entries.
package lru

import "iter"

// Map is a map whose entries have costs, with a limit of their sum. It is not safe
// for concurrent use: its owner has a lock, which often protects more than the map.
type Map[K comparable, V any] struct {
	limit   int
	used    int
	entries map[K]*entry[K, V]
	root    entry[K, V] // root of a ring: next is the most recently used entry, prev the least recently used one
	evicted func(K, V)
}

type entry[K comparable, V any] struct {
	prev, next *entry[K, V]
	key        K
	value      V
	cost       int
}

// New returns an empty map with a limit of the sum of all costs. The function
// evicted, which may be nil, is called for each entry that is evicted to make room;
// it must not use the map.
func New[K comparable, V any](limit int, evicted func(K, V)) *Map[K, V] {
	m := &Map[K, V]{limit: limit, entries: map[K]*entry[K, V]{}, evicted: evicted}
	m.root.prev, m.root.next = &m.root, &m.root
	return m
}

// Get returns the value of a key and marks the entry as most recently used.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	e := m.entries[key]
	if e == nil {
		return value, false
	}
	if m.root.next != e {
		e.unlink()
		m.link(e)
	}
	return e.value, true
}

// Peek is Get without marking the entry as used.
func (m *Map[K, V]) Peek(key K) (value V, ok bool) {
	if e := m.entries[key]; e != nil {
		return e.value, true
	}
	return value, false
}

// Put stores or replaces the value of a key as the most recently used one, and
// evicts others until all fit. The only entry of a map is never evicted, whatever
// its cost.
func (m *Map[K, V]) Put(key K, value V, cost int) {
	e := m.entries[key]
	if e == nil {
		e = &entry[K, V]{key: key}
		m.entries[key] = e
	} else {
		e.unlink()
	}
	m.link(e)
	e.value = value
	m.used += cost - e.cost
	e.cost = cost
	m.evict()
}

// SetCost changes the cost of an entry, if it exists, and evicts entries until all
// fit. It does not mark the entry as used.
func (m *Map[K, V]) SetCost(key K, cost int) {
	if e := m.entries[key]; e != nil {
		m.used += cost - e.cost
		e.cost = cost
		m.evict()
	}
}

func (m *Map[K, V]) evict() {
	for m.used > m.limit && len(m.entries) > 1 {
		last := m.root.prev
		m.remove(last)
		if m.evicted != nil {
			m.evicted(last.key, last.value)
		}
	}
}

// DeleteFunc deletes the entries whose keys match.
func (m *Map[K, V]) DeleteFunc(match func(K) bool) {
	for key, e := range m.entries {
		if match(key) {
			m.remove(e)
		}
	}
}

// All iterates over the entries, most recently used first.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for e := m.root.next; e != &m.root; e = e.next {
			if !yield(e.key, e.value) {
				return
			}
		}
	}
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return len(m.entries) }

// Used returns the sum of all costs.
func (m *Map[K, V]) Used() int { return m.used }

func (m *Map[K, V]) remove(e *entry[K, V]) {
	e.unlink()
	delete(m.entries, e.key)
	m.used -= e.cost
}

// link makes an entry the most recently used one.
func (m *Map[K, V]) link(e *entry[K, V]) {
	e.prev, e.next = &m.root, m.root.next
	e.prev.next, e.next.prev = e, e
}

func (e *entry[K, V]) unlink() { e.prev.next, e.next.prev = e.next, e.prev }
