package setting

import (
	"maps"
	"slices"

	"svc/internal/errs"
)

// Weights are the weights of storages for new repositories, by storage name.
type Weights map[string]int

const (
	maxStorages = 100
	maxName     = 255 // bytes of the name of a storage
)

// check validates the weights of a setting.
func (w Weights) check(wrong errs.Fields, s Setting) {
	sum := 0
	for name, n := range w {
		if n < s.Min || n > s.Max || name == "" || len(name) > maxName || len(w) > maxStorages {
			wrong.Set(s.Name, "must be at most %d names with weights from %d to %d", maxStorages, s.Min, s.Max)
			return
		}
		sum += n
	}
	if sum == 0 {
		wrong.Set(s.Name, "must have a weight greater than 0")
	}
}

// Pick selects one of the storages at random, by weight. random returns a number
// less than its argument. If none of the storages has a weight, Pick returns "".
func (w Weights) Pick(storages []string, random func(n int) int) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(w)), func(name string) bool { return !slices.Contains(storages, name) })
	sum := 0
	for _, name := range names {
		sum += w[name]
	}
	if sum == 0 {
		return ""
	}
	at := random(sum)
	for _, name := range names {
		if at < w[name] {
			return name
		}
		at -= w[name]
	}
	return ""
}
