package plan

import (
	"strings"
	"testing"
	"time"
)

func find(name string) *Command {
	for _, c := range commandTable() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func TestParseCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, rest, commands string }{
		{"hello", "hello", ""},
		{"/close", "", "close"},
		{"/label ~bug\nDone.\n/close", "Done.", "label ~bug|close"},
		{"/CLOSE  ", "", "close"},
		{"/unknown thing", "/unknown thing", ""},
		{" /close", " /close", ""},
		{"see /close", "see /close", ""},
		{"> /close", "> /close", ""},
		{"```\n/close\n```\n/reopen", "```\n/close\n```", "reopen"},
		{"````\n```\n/close\n````\n/reopen", "````\n```\n/close\n````", "reopen"},
		{"~~~ go\n/close\n~~~\n", "~~~ go\n/close\n~~~\n", ""},
		{"```inline``` code\n/close", "```inline``` code", "close"},
		{">>>\n/close\n>>>\n/lock", ">>>\n/close\n>>>", "lock"},
		{"<!--\n/close\n-->\n/lock", "<!--\n/close\n-->", "lock"},
		{"<!-- one line -->\n/lock", "<!-- one line -->", "lock"},
		{"<pre>\n/close\n</pre>\n/lock", "<pre>\n/close\n</pre>", "lock"},
		{"```\n/close", "```\n/close", ""},
		{"/shrug oh", `oh ¯\_(ツ)_/¯`, ""},
		{"/cc @ada", "/cc @ada", ""},
		{"a\r\n/close\r\nb", "a\r\nb", "close"},
		{"/usr/bin/env", "/usr/bin/env", ""},
		{strings.Repeat("/close\n", maxInvocations) + "/lock", "/lock", strings.TrimSuffix(strings.Repeat("close|", maxInvocations), "|")},
	} {
		rest, list := parseCommands(c.text, find)
		var got []string
		for _, one := range list {
			got = append(got, strings.TrimSpace(one.Command.Name+" "+one.Args))
		}
		if rest != c.rest || strings.Join(got, "|") != c.commands {
			t.Errorf("%q: rest %q, commands %q; want %q, %q", c.text, rest, strings.Join(got, "|"), c.rest, c.commands)
		}
	}
}

func FuzzParseCommands(f *testing.F) {
	for _, seed := range []string{"/close", "```\n/close\n```", ">>>\n/a", "<!--\n/lock -->\n/lock", "/label ~\"a b\", ~c\n~~~\n/close", "/spend 1h 2020-01-01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rest, list := parseCommands(text, find)
		if len(list) == 0 && !strings.Contains(text, "/") && rest != text {
			t.Errorf("text without commands was changed: %q", rest)
		}
		if len(list) > maxInvocations {
			t.Errorf("%d commands", len(list))
		}
		for _, one := range list {
			names(one.Args, '~')
			ParseDuration(one.Args)
			parseDay(one.Args, time.Unix(0, 0))
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	got := strings.Join(names(`~bug ~"to do", plain,~"open`, '~'), "|")
	if want := "bug|to do|plain|open"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1h": 3600, "1h 30m": 5400, "1h30m": 5400, "-30m": -1800, "1w 2d": 7 * 8 * 3600, "1mo": 20 * 8 * 3600, "2": 7200, "1.5 hours": 5400, "90s": 90, "1 day, 1 hour": 9 * 3600,
	} {
		got, ok := ParseDuration(text)
		if !ok || got != want {
			t.Errorf("%q: got %d, %t; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "h", "1x", "soon", "--1h", "1h -30m", "999999999999mo"} {
		if got, ok := ParseDuration(text); ok {
			t.Errorf("%q: got %d; want an error", text, got)
		}
	}
	for seconds, want := range map[int64]string{0: "", 5400: "1h 30m", -1800: "-30m", 7 * 8 * 3600: "1w 2d", 20 * 8 * 3600: "1mo", 61: "1m 1s"} {
		if got := FormatDuration(seconds); got != want {
			t.Errorf("%d: got %q, want %q", seconds, got, want)
		}
	}
}

func TestParseDay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC) // a Monday
	for text, want := range map[string]string{
		"2026-12-31": "2026-12-31", "tomorrow": "2026-11-17", "in 2 days": "2026-11-18", "this Friday": "2026-11-20", "December 31st": "2026-12-31", "Jan 2nd": "2027-01-02",
		"next month": "2026-12-16", "in 2 weeks": "2026-11-30", "31 December 2026": "2026-12-31", "friday": "2026-11-20",
	} {
		if got, ok := parseDay(text, now); !ok || got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"", "soon", "2026-13-01", "in -1 days"} {
		if got, ok := parseDay(text, now); ok {
			t.Errorf("%q: got %q; want an error", text, got)
		}
	}
}
