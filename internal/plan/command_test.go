package plan

import (
	"strings"
	"testing"
	"time"

	"svc/internal/plan/duration"
	"svc/internal/plan/quickaction"
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
		for _, inv := range list {
			got = append(got, strings.TrimSpace(inv.Command.Name+" "+inv.Args))
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
		for _, inv := range list {
			quickaction.Names(inv.Args, '~')
			duration.Parse(inv.Args)
			quickaction.ParseDate(inv.Args, time.Unix(0, 0))
		}
	})
}
