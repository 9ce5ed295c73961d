// Package servertest tests imports with a whole server.
package servertest
