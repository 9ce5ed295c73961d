package runner

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestVariables(t *testing.T) {
	t.Parallel()
	v := newVariables([]variable{
		{Key: "A", Value: "old"}, {Key: "A", Value: "a"}, {Key: "B", Value: "$A-${C}-$NONE."}, {Key: "C", Value: "c$A"},
		{Key: "RAW", Value: "$A", Raw: true}, {Key: "PRICE", Value: "5$$"}, {Key: "SELF", Value: "x$SELF"}, {Key: "P", Value: "$Q"}, {Key: "Q", Value: "q$P"},
		{Key: "ON", Value: "true"}, {Key: "FILE", Value: "$A\n", File: true}, {Key: "SECRET", Value: "s-$A", Masked: true},
		{Key: "not a name", Value: "x"}, {Key: "ZERO", Value: "a\x00b"},
	})
	for name, want := range map[string]string{
		"A": "a", "B": "a-ca-.", "RAW": "$A", "PRICE": "5$", "SELF": "x", "P": "q", "Q": "q", "NONE": "", "FILE": "$A\n",
	} {
		if got := v.get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := v.expand("$A/${B}/$$/$RAW"); got != "a/a-ca-./$/$A" {
		t.Errorf("expand: %q", got)
	}
	if !v.is("ON") || v.is("A") || v.is("NONE") {
		t.Error("a switch is read wrongly")
	}
	if got := v.secrets(); !slices.Equal(got, []string{"s-$A", "s-a"}) {
		t.Errorf("secrets: %v", got)
	}
	env, err := v.environ([]string{"PATH=/bin"}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(env, "PATH=/bin") || !slices.Contains(env, "B=a-ca-.") || strings.Contains(strings.Join(env, "\n"), "ZERO") || strings.Contains(strings.Join(env, "\n"), "not a name") {
		t.Errorf("environment: %q", env)
	}
	at := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, "FILE=") })
	if text, err := os.ReadFile(strings.TrimPrefix(env[at], "FILE=")); err != nil || string(text) != "$A\n" {
		t.Errorf("file: %q %v", text, err)
	}
	if got := inherited([]string{"PATH=/bin", "SVC_ROOT_TOKEN=x", "AWS_SECRET=x", "LC_ALL=C"}); !slices.Equal(got, []string{"PATH=/bin", "LC_ALL=C"}) {
		t.Errorf("inherited: %v", got)
	}
}

func TestCloneURL(t *testing.T) {
	t.Parallel()
	tests := []struct{ clone, repo, want string }{
		{"", "https://u:t@git.example/g/p.git", "https://u:t@git.example/g/p.git"},
		{"http://127.0.0.1:8080", "https://u:t@git.example/g/p.git", "http://u:t@127.0.0.1:8080/g/p.git"},
		{"http://127.0.0.1:8080/below/", "https://u:t@git.example/g/p.git", "http://u:t@127.0.0.1:8080/below/g/p.git"},
	}
	for _, tt := range tests {
		j := testJob(t)
		j.r.CloneURL, j.GitInfo.RepoURL = tt.clone, tt.repo
		if got, err := j.cloneURL(); err != nil || got != tt.want {
			t.Errorf("%s at %q: got %s %v", tt.repo, tt.clone, got, err)
		}
	}
}
