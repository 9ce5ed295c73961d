package db

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCountKey(t *testing.T) {
	t.Parallel()
	one, two := int64(1), int64(2)
	now := time.Now()
	type list struct {
		from string
		args []any
	}
	lists := []list{
		{"a", nil},
		{"a", []any{nil}},
		{"a", []any{""}},
		{"a1", nil},
		{"a", []any{1}},
		{"a", []any{"1"}},
		{"a", []any{1, 2}},
		{"a", []any{"1 2"}},
		{"a", []any{"1", "2"}},
		{"a", []any{12}},
		{"a", []any{"x", "yz"}},
		{"a", []any{"xy", "z"}},
		{"a", []any{"x|string:1:y"}},
		{"a", []any{"x", "y"}},
		{"a", []any{true}},
		{"a", []any{"true"}},
		{"a", []any{&two}},
		{"a", []any{now}},
		{"a", []any{now.Add(time.Microsecond)}},
		{"a|int64:1:1", nil},
	}
	seen := map[string]int{}
	for i, l := range lists {
		key, ok := countKey(l.from, l.args)
		if !ok {
			t.Errorf("%v has no key", l)
		}
		if j, ok := seen[key]; ok {
			t.Errorf("%v and %v have the same key", lists[j], l)
		}
		seen[key] = i
	}
	value, _ := countKey("a", []any{1})
	if pointer, _ := countKey("a", []any{&one}); pointer != value {
		t.Error("a pointer has another key than what it points to")
	}
	if _, ok := countKey("a", []any{struct{}{}}); ok {
		t.Error("an argument of an unknown type has a key")
	}
}

func TestOverCacheForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c overCache
		c.remember("a")
		time.Sleep(overTTL - time.Second)
		if !c.over("a") || c.over("b") {
			t.Error("the list is not remembered alone")
		}
		time.Sleep(2 * time.Second)
		if c.over("a") {
			t.Error("the list is remembered too long")
		}
		for i := range overMax * 3 {
			c.remember(fmt.Sprint(i))
		}
		if c.seen.Len() > overMax {
			t.Errorf("%d lists are remembered", c.seen.Len())
		}
	})
}

func TestWhere(t *testing.T) {
	t.Parallel()
	var w Where
	if w.SQL() != "" || len(w.Args()) != 0 {
		t.Errorf("without conditions: %q %v", w.SQL(), w.Args())
	}
	w.And("a = ? OR b = ?", 1, 2)
	w.And("c IN "+In(3), Any([]string{"x", "y", "z"})...)
	if got := w.SQL(); got != " WHERE (a = ? OR b = ?) AND (c IN (?, ?, ?))" {
		t.Error(got)
	}
	first, second := w.Args("first"), w.Args("second")
	if fmt.Sprint(first, second) != "[1 2 x y z first] [1 2 x y z second]" {
		t.Error(first, second)
	}
	if strings.Count(w.SQL(), "?") != len(w.Args()) {
		t.Error("placeholders and arguments differ in number")
	}
}
