package config

import (
	"fmt"
	"strings"
	"testing"
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
			"stages: [b, c]\ng: {script: x, stage: b, parallel: 200}\na: {script: x, stage: c, parallel: 200, dependencies: [" + strings.Repeat("g,", 50_000) + "]}\n", "",
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
