package bind

import (
	"strings"
	"testing"
)

func TestParseJSONErrors(t *testing.T) {
	t.Parallel()
	const prefix = "the body is not valid JSON: "
	for _, c := range []struct{ body, want string }{
		{``, prefix + "unexpected end at line 1, column 1"},
		{`{`, prefix + "unexpected end at line 1, column 2"},
		{`{"a"`, prefix + "unexpected end at line 1, column 5"},
		{`{"a":`, prefix + "unexpected end at line 1, column 6"},
		{`{"a":1`, prefix + "unexpected end at line 1, column 7"},
		{`{"a":"`, prefix + "unexpected end at line 1, column 7"},
		{`{"a":"\`, prefix + "unexpected end at line 1, column 8"},
		{`{"a":"\u12`, prefix + "unexpected end at line 1, column 11"},
		{`{a:1}`, prefix + "unexpected character at line 1, column 2"},
		{`{"a" 1}`, prefix + "unexpected character at line 1, column 6"},
		{`{"a":1,}`, prefix + "unexpected character at line 1, column 8"},
		{`{"a":[1,]}`, prefix + "unexpected character at line 1, column 9"},
		{`{"a":[1 2]}`, prefix + "unexpected character at line 1, column 9"},
		{`{"a":01}`, prefix + "unexpected character at line 1, column 7"},
		{`{"a":1.}`, prefix + "unexpected character at line 1, column 8"},
		{`{"a":-}`, prefix + "unexpected character at line 1, column 7"},
		{`{"a":1e}`, prefix + "unexpected character at line 1, column 8"},
		{`{"a":+1}`, prefix + "unexpected character at line 1, column 6"},
		{`{"a":nul}`, prefix + "unexpected character at line 1, column 6"},
		{`{"a":'x'}`, prefix + "unexpected character at line 1, column 6"},
		{"{\"a\":\"x\ny\"}", prefix + "unexpected character at line 1, column 8"},
		{"{\"a\":\"\\n\n\"}", prefix + "unexpected character at line 1, column 9"},
		{`{"a":"\ud800\u12g4"}`, prefix + "unexpected character at line 1, column 17"},
		{`{1:2}`, prefix + "unexpected character at line 1, column 2"},
		{`{"\x":2}`, prefix + "unexpected character at line 1, column 4"},
		{`{"a":"\x"}`, prefix + "unexpected character at line 1, column 8"},
		{`{"a":"\u12g4"}`, prefix + "unexpected character at line 1, column 11"},
		{"{\n \"é\": 1,\n \"ü\": ?}", prefix + "unexpected character at line 3, column 7"},
		{`{} x`, prefix + "unexpected text after the end at line 1, column 4"},
		{`{}{}`, prefix + "unexpected text after the end at line 1, column 3"},
		{`[]`, "the JSON body must be an object"},
		{`"x"`, "the JSON body must be an object"},
		{`null`, "the JSON body must be an object"},
		{`7`, "the JSON body must be an object"},
		{strings.Repeat(`{"a":`, 33), prefix + "more than 32 levels at line 1, column 161"},
		{`{"a":[` + strings.Repeat("1,", maxValues) + `1]}`, "the JSON body has more than 100000 values"},
	} {
		_, err := parseJSON(c.body)
		if _, text := faultOf(t, err); text != c.want {
			t.Errorf("%.40q gave %q, want %q", c.body, text, c.want)
		}
	}
	if _, err := parseJSON(strings.Repeat(`{"a":`, 31) + "[]" + strings.Repeat("}", 31)); err != nil {
		t.Errorf("32 levels: %v", err)
	}
}
