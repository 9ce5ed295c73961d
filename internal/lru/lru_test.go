package lru_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/lru"
)

// keys returns the keys of a map, most recently used first.
func keys(m *lru.Map[string, int]) string {
	var list []string
	for key := range m.All() {
		list = append(list, key)
	}
	return strings.Join(list, " ")
}

func TestMap(t *testing.T) {
	t.Parallel()
	var gone []string
	m := lru.New(10, func(key string, value int) { gone = append(gone, fmt.Sprint(key, value)) })
	want := func(list string, used int, evicted string) {
		t.Helper()
		if got := keys(m); got != list || m.Used() != used || m.Len() != len(strings.Fields(list)) {
			t.Errorf("%d entries %q with %d, want %q with %d", m.Len(), got, m.Used(), list, used)
		}
		if got := strings.Join(gone, " "); got != evicted {
			t.Errorf("evicted %q, want %q", got, evicted)
		}
		gone = nil
	}
	m.Put("a", 1, 4)
	m.Put("b", 2, 4)
	m.Put("c", 3, 2)
	want("c b a", 10, "")
	if v, ok := m.Get("a"); v != 1 || !ok {
		t.Errorf("a is %d, %t", v, ok)
	}
	if v, ok := m.Peek("b"); v != 2 || !ok {
		t.Errorf("b is %d, %t", v, ok)
	}
	if _, ok := m.Get("d"); ok {
		t.Error("d was not put")
	}
	want("a c b", 10, "")
	m.Put("d", 4, 1)
	want("d a c", 7, "b2")
	m.Put("c", 30, 5) // replaces another value
	want("c d a", 10, "")
	m.SetCost("d", 3)
	want("c d", 8, "a1")
	m.SetCost("x", 100) // does not exist
	m.SetCost("d", 100) // evicts d itself, because it is not the most recently used entry
	want("c", 5, "d4")
	m.Put("e", 5, 99)
	want("e", 99, "c30")
	m.Put("e", 6, 1)
	m.Put("f", 7, 1)
	m.Put("g", 8, 1)
	m.DeleteFunc(func(key string) bool { return key != "f" })
	want("f", 1, "")
	for key, value := range m.All() {
		if key != "f" || value != 7 {
			t.Errorf("%s is %d", key, value)
		}
		break
	}
}

func BenchmarkGet(b *testing.B) {
	m := lru.New[int, int](1000, nil)
	for i := range 1000 {
		m.Put(i, i, 1)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.Get(i % 1000)
	}
}
