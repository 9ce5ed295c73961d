// Package arch contains tests of the source tree: which imports are allowed, what no
// package may do, and which words are not used. It has no code to import.
//
// The rules are described in docs/dev/architecture.md; the lists of packages are
// in rule_test.go, the retired words in docs/glossary.md.
package arch
