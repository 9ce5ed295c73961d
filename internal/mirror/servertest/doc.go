// Package servertest tests imports and mirrors with a whole server.
package servertest
