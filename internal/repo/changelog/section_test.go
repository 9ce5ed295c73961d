package changelog

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"svc/internal/errs"
	"svc/internal/semver"
)

func TestAddSection(t *testing.T) {
	t.Parallel()
	section := func(v string) string { return "## " + v + " (2024-01-01)\n\n- new\n\n" }
	for _, tt := range []struct{ name, old, version, want string }{
		{"a new file", "", "1.0.0", "## 1.0.0 (2024-01-01)\n\n- new\n"},
		{"behind a title", "# Changelog\n", "1.0.0", "# Changelog\n\n## 1.0.0 (2024-01-01)\n\n- new\n"},
		{"no end of line", "# Changelog", "1.0.0", "# Changelog\n\n## 1.0.0 (2024-01-01)\n\n- new\n"},
		{"the newest first", "# Changelog\n\n## 1.0.0 (2023)\n\n- old\n", "2.0.0", "# Changelog\n\n## 2.0.0 (2024-01-01)\n\n- new\n\n## 1.0.0 (2023)\n\n- old\n"},
		{"in the middle", "## 3.0.0\n\n- c\n\n## v1.0.0\n\n- a\n", "2.0.0", "## 3.0.0\n\n- c\n\n## 2.0.0 (2024-01-01)\n\n- new\n\n## v1.0.0\n\n- a\n"},
		{"the oldest last", "## 3.0.0\n\n- c\n", "0.1.0", "## 3.0.0\n\n- c\n\n## 0.1.0 (2024-01-01)\n\n- new\n"},
		{"a release after its candidate", "## 2.0.0-rc1\n\n- c\n", "2.0.0", "## 2.0.0 (2024-01-01)\n\n- new\n\n## 2.0.0-rc1\n\n- c\n"},
		{"other headings stay", "## Unreleased\n\n### 9.9.9\n\n## 1.0.0\n", "1.1.0", "## Unreleased\n\n### 9.9.9\n\n## 1.1.0 (2024-01-01)\n\n- new\n\n## 1.0.0\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if HasSection(tt.old, tt.version) {
				t.Error("it is there already")
			}
			got := AddSection(tt.old, tt.version, section(tt.version))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if !HasSection(got, tt.version) || !HasSection(got, "v"+tt.version) {
				t.Error("it is not there")
			}
		})
	}
}

func TestFormatDate(t *testing.T) {
	t.Parallel()
	at := time.Date(2024, 3, 5, 15, 4, 9, 0, time.UTC)
	for pattern, want := range map[string]string{
		"%Y-%m-%d": "2024-03-05", "%F": "2024-03-05", "%d.%m.%y": "05.03.24", "%-d %B %Y": "5 March 2024", "%e %b": "5 Mar",
		"%H:%M:%S %I %p": "15:04:09 03 PM", "%j %u %w %G-W%V": "065 2 2 2024-W10", "%s": "1709651049", "%z %Z": "+0000 UTC", "%T %R %D": "15:04:09 15:04 03/05/24",
		"100%%": "100%", "%": "%", "%O %-O": "%O %-O", "a%nb": "a b", "x\ny": "x y", "%k %l %P %C %a %A %h": "15 3 pm 20 Tue Tuesday Mar",
	} {
		if got := formatDate(pattern, at); got != want {
			t.Errorf("%q gives %q, want %q", pattern, got, want)
		}
	}
}

func TestChangelogConfig(t *testing.T) {
	t.Parallel()
	c, err := Parse([]byte("date_format: '%F'\ncategories:\n  b: Bugs\n  a: Additions\n  1: One\ninclude_groups: [g/h]\ntag_regex: '^r(?P<major>\\d+)$'\nother: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Bugs", "Additions", "One"}, c.order); diff != "" {
		t.Error(diff)
	}
	if c.title("a") != "Additions" || c.title("z") != "z" || c.dateFormat != "%F" || len(c.Groups) != 1 {
		t.Errorf("%+v", c)
	}
	if _, ok := semver.ParseBy(c.Tags, "r5"); ok {
		t.Error("a tag without minor and patch has a version")
	}
	for text, want := range map[string]string{
		"categories: [a]":         "categories has to name",
		"categories: {a: {b: c}}": "categories has to name",
		"template: '{% if %}'":    "template cannot be parsed",
		"tag_regex: '('":          "tag_regex is invalid",
		"a: [":                    "configuration cannot be read",
		"- a":                     "configuration cannot be read",
		"template: {a: b}":        "configuration cannot be read",
		"a: &a [x]\nb: [*c]":      "configuration cannot be read",
		"tag_regex: " + strings.Repeat("x", 1001): "longer than",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzChangelogConfig(f *testing.F) {
	f.Add("date_format: '%F'\ncategories: {a: b}\ntemplate: '{{ x }}'\ntag_regex: '^v'\ninclude_groups: [g]\n")
	f.Add("a: &a [x, x]\nb: &b [*a, *a]\ncategories: *b\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse([]byte(text))
		if err != nil {
			if !errs.Is(err, errs.KindUnprocessable) {
				t.Fatalf("%v is a fault", err)
			}
			return
		}
		if heading := formatDate(c.dateFormat, time.Unix(0, 0).UTC()); strings.ContainsAny(heading, "\r\n") {
			t.Errorf("%q is more than one line", heading)
		}
	})
}
