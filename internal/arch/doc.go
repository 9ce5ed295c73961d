// Package arch holds the tests that keep the house in its shape: which
// package may import which, and what no package may do. There is nothing in
// it to import.
//
// The plan that it enforces is drawn in docs/dev/architecture.md; the lists of
// packages are in rule_test.go.
package arch
