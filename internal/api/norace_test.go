//go:build !race

package api_test

// underRace says that the race detector watches.
const underRace = false
