package app

import (
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	s := newSampler(nil)
	count := func(took time.Duration, n int) {
		for range n {
			s.answered("/x", "text/html", took)
		}
	}
	read := func() float64 {
		var answers []int64
		var all int64
		for i := range s.answers {
			answers = append(answers, s.answers[i].Load())
			all += answers[i]
		}
		return quantile(0.95, answers, all)
	}
	if got := read(); got != 0 {
		t.Errorf("without answers: %v", got)
	}
	s.answered("/jobs/request", "application/json", time.Minute) // a long poll is not counted
	s.answered("/y", "text/event-stream", time.Minute)
	count(2*time.Millisecond, 95)
	count(90*time.Millisecond, 5)
	if got := read(); got != .0025 {
		t.Errorf("95 of 100 in 2 ms: %v", got)
	}
	count(90*time.Millisecond, 1)
	if got := read(); got != .1 {
		t.Errorf("fewer in 2 ms: %v", got)
	}
	count(time.Hour, 100)
	if got := read(); got != 30 {
		t.Errorf("beyond all bounds: %v", got)
	}
}
