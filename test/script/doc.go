// Package script runs scenarios with the programs that users use: git and ssh,
// against a whole server. Each testdata/*.txtar is one; in testdata/ci a runner
// of the test works off what the pushes start. The commands beside those of
// testscript are described at their functions.
package script
