package config

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// numbered returns n items of a format that contains the number of the item.
func numbered(n int, format string) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, format, i)
	}
	return out.String()
}

// TestLongLists loads and plans configurations with long lists. Anyone can have such
// files checked, so no check may compare the items of one list with those of another.
func TestLongLists(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ yml, want string }{
		"stages":    {"stages: [" + numbered(200_000, "s%d,") + "]\na: {script: x}\n", "stages config has more than 1000 stages"},
		"variables": {"variables: {" + numbered(2_001, "V%d: '',") + "}\na: {script: x}\n", "variables config has more than 2000 variables"},
		"own variables": {
			"a: {script: x, variables: {" + numbered(2_001, "V%d: '',") + "}}\n", "jobs:a:variables config has more than 2000 variables",
		},
		"dependencies": {
			"a: {script: x, needs: [" + numbered(10_000, "{job: n%d, optional: true},") + "], dependencies: [" + numbered(10_000, "n%d,") + "z]}\nz: {script: x}\n",
			"jobs:a dependencies the z should be part of needs",
		},
		"dependencies of a group": {
			"stages: [b, c]\ng: {script: x, stage: b, parallel: 200}\na: {script: x, stage: c, parallel: 200, dependencies: [" + strings.Repeat("g,", 20_000) + "]}\n", "",
		},
		"missing needs": {
			"n: {script: x, rules: [{when: never}]}\na: {script: x, parallel: 200, needs: [{job: n, optional: true}," + numbered(10_000, "{job: n%d, optional: true},") + "]}\n", "",
		},
		"inherited variables": {
			"variables: {" + numbered(2_000, "V%d: '',") + "}\na: {script: x, inherit: {variables: [" + numbered(50_000, "W%d,") + "]}}\n", "",
		},
		"matrix": {"a: {script: x, parallel: {matrix: [{" + numbered(20_000, "V%d: x,") + "}]}}\n", "jobs:a:parallel:matrix config generates the name of a job that is too long (maximum is 255 characters)"},
		"matrices": {
			".m: &m [{A: [" + numbered(200, "%d,") + "]}]\nz: {script: x}\na: {script: x, needs: [" + numbered(101, "{job: z%d, optional: true, parallel: {matrix: *m}},") + "]}\n",
			"jobs:a:needs:need:parallel:matrix config is one of too many: all matrices together have more than 20000 combinations",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := scenario{}.source([]byte(c.yml))
			got, err := Lint(t.Context(), src, true)
			if err != nil {
				t.Fatal(err)
			}
			if messages := strings.Join(got.Errors.Messages(), "\n"); messages != c.want {
				t.Errorf("got %.300q, want %q", messages, c.want)
			}
		})
	}
}

// TestBigPlan plans a small file whose jobs are big, because each gets a copy of what it
// inherits.
func TestBigPlan(t *testing.T) {
	t.Parallel()
	const big = "The jobs of the pipeline are too big: together, with what they inherit, they have more than 32768 KiB. " +
		"Try splitting the configuration with parent-child-pipelines"
	for name, c := range map[string]struct{ yml, want string }{
		"script":    {"default: {before_script: " + strings.Repeat("x", 1<<20) + "}\n" + numbered(40, "j%d: {script: x}\n"), big},
		"variables": {"variables: {" + numbered(2_000, "V%d: "+strings.Repeat("x", 50)+",") + "}\na: {script: x, parallel: 200}\nb: {script: x, parallel: 200}\n", big},
		"few":       {"default: {before_script: " + strings.Repeat("x", 1<<20) + "}\n" + numbered(20, "j%d: {script: x}\n"), ""},
		"jobs":      {numbered(501, "j%d: {script: x}\n"), "The number of jobs has exceeded the limit of 500. Try splitting the configuration with parent-child-pipelines"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := scenario{}.source([]byte(c.yml))
			got, err := Lint(t.Context(), src, true)
			if err != nil {
				t.Fatal(err)
			}
			if messages := strings.Join(got.Errors.Messages(), "\n"); messages != c.want {
				t.Errorf("got %.300q, want %q", messages, c.want)
			}
			static, err := Lint(t.Context(), src, false)
			if err != nil || !static.Valid() {
				t.Fatalf("without a plan: %v, %v", static, err)
			}
			if listed := len(static.Jobs) > 0; listed == (name == "script") {
				t.Errorf("%d jobs are listed, with %v", len(static.Jobs), static.Warnings)
			}
		})
	}
}

// TestLongMessages checks that errors do not repeat long texts of the author.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ö", 100_000)
	for name, yml := range map[string]string{
		"stage":  "stages: [" + long + "]\n" + numbered(100, "j%d: {script: x}\n"),
		"key":    "j: {script: x, " + long + ": 1}\n",
		"name":   long + ": {script: x}\n",
		"need":   "j: {script: x, needs: [" + long + "]}\n",
		"rule":   "j: {script: x, rules: [{exists: {paths: [x], project: " + long + "}}]}\n",
		"extend": "j: {script: x, extends: " + long + "}\n",
		"local":  "include: " + long + ".yml\n",
	} {
		got, err := Lint(t.Context(), scenario{}.source([]byte(yml)), true)
		if err != nil {
			t.Fatal(err)
		}
		if got.Valid() {
			t.Errorf("%s: no errors", name)
		}
		for _, e := range got.Errors {
			if len(e.Message) > maxMessage+len("…") || len(e.Key) > maxMessage+len("…") || !utf8.ValidString(e.Message) {
				t.Errorf("%s: a message of %d and a key of %d bytes", name, len(e.Message), len(e.Key))
			}
		}
	}
}
