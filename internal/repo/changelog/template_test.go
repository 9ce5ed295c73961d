package changelog

import (
	"strings"
	"testing"
)

func TestTemplate(t *testing.T) {
	t.Parallel()
	data := map[string]any{
		"yes": true, "no": false, "count": 3, "title": "T", "empty": "", "none": []any{}, "bare": map[string]any{},
		"list":  []any{"a", "b"},
		"users": []any{map[string]any{"name": "Ann", "tags": []any{"x", "y"}}, map[string]any{"name": "Bob"}},
		"deep":  map[string]any{"in": map[string]any{"side": "here"}},
	}
	for _, tt := range []struct{ name, text, want string }{
		{"text", "plain { } % text", "plain { } % text"},
		{"print", "{{title}} {{ count }} {{yes}}{{no}}", "T 3 truefalse"},
		{"print nothing", "[{{missing}}{{list}}{{deep}}{{deep.no.way}}{{title.x}}]", "[]"},
		{"nested", "{{ deep.in.side }} {{users.1.name}} {{users.9.name}}{{users.-1.name}}{{users.x}}", "here Bob "},
		{"if", "{% if yes %}a{% end %}{% if no %}b{% end %}{% if no %}c{% else %}d{% end %}", "ad"},
		{"truth", "{% if title %}1{% end %}{% if empty %}2{% end %}{% if none %}3{% end %}{% if list %}4{% end %}{% if bare %}5{% end %}{% if count %}6{% end %}{% if deep %}7{% end %}{% if missing %}8{% end %}", "1467"},
		{"each", "{% each list %}<{{it}}>{% end %}", "<a><b>"},
		{"each has its own scope", "{% each users %}{{name}}{{title}}{% each tags %}-{{ it }}{% end %};{% end %}", "Ann-x-y;Bob;"},
		{"each of no list", "{% each title %}x{% end %}{% each missing %}x{% end %}{% each deep %}x{% end %}", ""},
		{"it is the whole", "{% if it %}{{it.title}}{% end %}", "T"},
		{"tags take the end of line", "---\n{% if yes %}\nbar\n{% end %}\n---\n", "---\nbar\n---\n"},
		{"with carriage returns", "a\r\n{% if yes %}\r\nb\\\r\nc\r\n{% end %}\r\n", "a\r\nbc\r\n"},
		{"prints keep it", "{{title}}\n{{title}}\n", "T\nT\n"},
		{"a backslash joins lines", "a \\\nb \\ c \\n", "a b \\ c \\n"},
		{"a backslash at the end", "{{title}}\\\n", "T"},
		{"spaces in tags", "{%if yes%}{{\ttitle\n}}{%  end  %}", "T"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			parsed, err := parseTemplate(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parsed.render(data)
			if err != nil || got != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestTemplateFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"open print":        {"{{ a", "not closed by }}"},
		"open tag":          {"a\nb {% if x", "line 2: {% is not closed"},
		"half a tag":        {"{%}", "is not closed"},
		"empty print":       {"{{ }}", "one variable"},
		"two variables":     {"{{ a b }}", "one variable"},
		"bad variable":      {"{{ a..b }}", "is not a variable"},
		"no end":            {"{% if a %}x", "has no {% end %}"},
		"no end of a loop":  {"{% each a %}x", "has no {% end %}"},
		"else in a loop":    {"{% each a %}x{% else %}y{% end %}", "has no {% end %}"},
		"two elses":         {"{% if a %}x{% else %}y{% else %}z{% end %}", "has no {% end %}"},
		"only an end":       {"x{% end %}", "without a statement"},
		"no argument":       {"{% if %}{% end %}", "is not a statement"},
		"many arguments":    {"{% if a b %}{% end %}", "is not a statement"},
		"unknown statement": {"{% for a %}{% end %}", "is not a statement"},
		"too deep":          {strings.Repeat("{% if a %}", 40) + strings.Repeat("{% end %}", 40), "nested more than 32 deep"},
		"too long":          {strings.Repeat("x", maxTemplate+1), "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseTemplate(tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestTemplateLimits renders templates that would fill memory or not end.
func TestTemplateLimits(t *testing.T) {
	t.Parallel()
	list := make([]any, 15_000)
	data := map[string]any{"list": list}
	for text, want := range map[string]string{
		"{% each list %}" + strings.Repeat("x", 4096) + "{% end %}":                    "exceeds",
		"{% each list %}" + strings.Repeat("{% if no %}{% end %}", 3000) + "{% end %}": "too long",
	} {
		parsed, err := parseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parsed.render(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %d bytes, %v, want %q", text, len(got), err, want)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add(sectionTemplate)
	f.Add("{% each users %}{{ name }}{% if it %}\\\n{% else %}{{users.0}}{% end %}{% end %}")
	f.Add("{{{%}}%}{% end %}")
	f.Add("{%}")
	f.Add("\\\n")
	data := map[string]any{
		"users":      []any{map[string]any{"name": "Ann"}, "x", 1, nil},
		"categories": []any{map[string]any{"title": "t", "count": 1, "single_change": true, "entries": []any{}}},
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseTemplate(text)
		if err != nil {
			return
		}
		got, err := parsed.render(data)
		if err == nil && len(got) > maxRendered {
			t.Errorf("%d bytes", len(got))
		}
		if !strings.ContainsAny(text, "{\\") && got != text {
			t.Errorf("text became %q", got)
		}
	})
}
