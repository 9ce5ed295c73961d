package gittest

import (
	"strings"
	"testing"
)

func TestGenerate(t *testing.T) {
	t.Parallel()
	r := Generate(t, Size{Commits: 30, Files: 60})
	if n := r.Git("rev-list", "--count", "main"); n != "30" {
		t.Errorf("%s commits", n)
	}
	files := strings.Split(r.Git("ls-tree", "-r", "--name-only", "main"), "\n")
	if len(files) != 60 || files[0] != Path(0) || files[59] != Path(59) {
		t.Errorf("%d files, %s to %s", len(files), files[0], files[len(files)-1])
	}
	if again := Generate(t, Size{Commits: 30, Files: 60}); again.Tip("main") != r.Tip("main") {
		t.Error("not the same each time")
	}
}

func TestCommit(t *testing.T) {
	t.Parallel()
	r := New(t)
	first := r.Commit(Commit{Changes: []Change{{Path: "a \"b\"", Content: "1"}, {Path: "x", Content: "2", Mode: "100755"}}})
	second := r.Commit(Commit{Changes: []Change{{Path: "x", Delete: true}}})
	if got := r.Git("rev-list", "main"); got != second+"\n"+first {
		t.Error(got)
	}
	if got := r.Git("ls-tree", "-z", "--name-only", "main"); got != "a \"b\"\x00" {
		t.Errorf("%q", got)
	}
	other := r.Commit(Commit{Branch: "other", Root: true, Message: "merge", Parents: []string{first, second}})
	if got := r.Git("rev-list", "--parents", "-1", other); got != other+" "+first+" "+second {
		t.Error(got)
	}
}
