// Package script runs scenarios with git and ssh against a whole server. Each file
// testdata/*.txtar is a scenario; in testdata/ci, a simulated runner runs the jobs
// of pushes. The commands in addition to those of testscript are described at their
// functions.
package script
