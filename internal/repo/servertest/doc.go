// Package servertest tests package repo by the front door. The tests stand apart
// from those of unexported code: a test package that has both makes the compiler
// compile everything between the two again, the API and the pages among it.
package servertest
