package setting

import (
	"fmt"
	"testing"
)

func TestPick(t *testing.T) {
	t.Parallel()
	tests := []struct {
		weights  Weights
		storages []string
		want     string // for each number
	}{
		{Weights{"default": 2}, []string{"default", "second"}, "map[default:2]"},
		{Weights{"default": 2, "second": 1, "third": 0}, []string{"default", "second", "third"}, "map[default:2 second:1]"},
		{Weights{"default": 2, "gone": 5}, []string{"default"}, "map[default:2]"},
		{Weights{"gone": 5}, []string{"default"}, "map[:1]"},
		{Weights{"default": 0}, []string{"default"}, "map[:1]"},
	}
	for _, tt := range tests {
		got := map[string]int{}
		for i, sum := 0, 1; i < sum; i++ {
			got[tt.weights.Pick(tt.storages, func(n int) int { sum = n; return i })]++
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%v of %v: got %v, want %s", tt.weights, tt.storages, got, tt.want)
		}
	}
}
