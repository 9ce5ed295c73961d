// Package servertest tests package repo with a whole server. It is separate from
// the tests of unexported code: a test package with both makes the compiler
// rebuild everything in between, including the API and the pages.
package servertest
