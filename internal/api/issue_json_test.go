package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestTasks compares the number of tasks with the matches of a regular expression in
// random texts, and checks that counting does not allocate.
func TestTasks(t *testing.T) {
	t.Parallel()
	task := regexp.MustCompile(`(?m)^\s*(?:[-+*]|\d+[.)])\s+\[([ xX])\]\s`)
	parts := []string{"- [ ] ", "* [x]\n", "1. [X]\t", "12) [ ]\r\n", "-", "+", "7", ".", ")", "[", "]", " ", " ", "\n", "\n", "\t", "\f", "\v", "\r", "x", "é", "[ ]", "[x] "}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		var b strings.Builder
		for range random.IntN(14) {
			b.WriteString(parts[random.IntN(len(parts))])
		}
		var want taskStatusJSON
		for _, found := range task.FindAllStringSubmatch(b.String(), -1) {
			want.Count++
			if found[1] != " " {
				want.Completed++
			}
		}
		if got := toTasks(b.String()); got != want {
			t.Fatalf("%q: %+v, not %+v", b.String(), got, want)
		}
	}
}

func TestTasksAllocateNothing(t *testing.T) {
	text := strings.Repeat("- [ ] a\n1. [x] b\n", 1000)
	if n := testing.AllocsPerRun(10, func() { toTasks(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMappedWhile(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	_, err := mappedWhile(ctx, make([]int, 100), func(int) int {
		if calls++; calls == 2 {
			cancel()
		}
		return 0
	})
	if !errors.Is(err, context.Canceled) || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
