package markup

import "testing"

func TestRewrite(t *testing.T) {
	t.Parallel()
	resolve := func(refs []Reference) (map[Reference]string, error) {
		found := map[Reference]string{}
		for _, ref := range refs {
			if ref.Kind == Issue && ref.Project == "" && ref.Name != "9" {
				found[ref] = "a/p#" + ref.Name
			}
		}
		return found, nil
	}
	for source, want := range map[string]string{
		"":                             "",
		"nothing":                      "nothing",
		"#1":                           "a/p#1",
		"See #1, #9 and b/q#1 (#12).":  "See a/p#1, #9 and b/q#1 (a/p#12).",
		"**#1** and _x_ #2":            "**a/p#1** and _x_ a/p#2",
		"`#1` [#1](x) ![#1](y) #1":     "`#1` [#1](x) ![#1](y) a/p#1",
		"```\n#1\n```\n\n    #1\n\n#1": "```\n#1\n```\n\n    #1\n\na/p#1",
		"- #1\n  - [ ] #2\n\n> #3\n#4": "- a/p#1\n  - [ ] a/p#2\n\n> a/p#3\na/p#4",
		"| a |\n|---|\n| #1 |":         "| a |\n|---|\n| a/p#1 |",
		"# Title #1\n\n&#35;1 \\#1":    "# Title a/p#1\n\n&#35;1 \\#1",
		"a_b!c #1 ! ~x #1":             "a_b!c a/p#1 ! ~x a/p#1",
	} {
		got, err := Rewrite(t.Context(), source, resolve)
		if err != nil || got != want {
			t.Errorf("%q becomes %q (%v), want %q", source, got, err, want)
		}
	}
}
