// Package script runs scenarios with the programs that people use: git and
// ssh, against a whole server. Each testdata/*.txtar is one; the commands
// beside those of testscript are described at their functions.
package script
