// Package servertest tests package oauth with a whole server. It is separate from
// the tests of unexported code: a test package with both makes the compiler
// rebuild all packages that depend on oauth, including the API and the pages.
package servertest
