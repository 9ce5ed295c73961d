package hook

import (
	"testing"
	"time"
)

func TestRenderTemplate(t *testing.T) {
	t.Parallel()
	payload := []byte(`{"user":{"name":"A \"B\"\n"},"id":7,"list":[{"t":"x"}],"o":{"k":"v"}}`)
	for template, want := range map[string]string{
		`{"a":"{{user.name}}","b":{{id}},"c":"{{id}}"}`:     `{"a":"A \"B\"\n","b":7,"c":"7"}`,
		`{"a":"{{ list.0.t }}","b":{{o}},"c":"{{o}}"}`:      `{"a":"x","b":{"k":"v"},"c":"{\"k\":\"v\"}"}`,
		`{"a":"{{none}}","b":{{none.x}},"c":{{user.name}}}`: `{"a":"","b":null,"c":"A \"B\"\n"}`,
		`{"a":"\"{{id}}"}`: `{"a":"\"7"}`,
		`{"a":{{list.9}}}`: `{"a":null}`,
	} {
		got, err := renderTemplate(template, payload)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", template, got, err)
		}
	}
	for _, broken := range []string{`{`, `{{id}`, `{"a":{{id}}`, ``} {
		if got, err := renderTemplate(broken, payload); err == nil {
			t.Errorf("%s: %s", broken, got)
		}
	}
}

func TestBranchFilter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		strategy       Strategy
		filter, branch string
		want           bool
	}{
		{Wildcard, "", "x", true}, {Wildcard, "main", "main", true}, {Wildcard, "main", "mainx", false}, {Wildcard, "release-*", "release-1", true},
		{Wildcard, "*-stable", "1-stable", true}, {Wildcard, "a*b*c", "aXbYc", true}, {Wildcard, "a*a", "a", false}, {Wildcard, "*", "x/y", true},
		{Regex, "^(main|dev)$", "dev", true}, {Regex, "^(main|dev)$", "devs", false}, {Regex, "(", "x", false}, {AllBranches, "main", "x", true},
	} {
		if got := newBranchFilter(c.strategy, c.filter)(c.branch); got != c.want {
			t.Errorf("%s %q %q: %v", c.strategy, c.filter, c.branch, got)
		}
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int64]time.Duration{4: time.Minute, 5: 2 * time.Minute, 10: 64 * time.Minute, 15: 24 * time.Hour, 39: 24 * time.Hour} {
		if got := pause(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
}

// TestChatMessage checks that text of users is escaped: a title must not become a link
// or a mention of a channel.
func TestChatMessage(t *testing.T) {
	t.Parallel()
	h := &Hook{Kind: Slack, Options: Options{Channel: "general", Channels: map[string]string{string(Issues): "issues"}}}
	_, got, err := h.chat(&Delivery{Trigger: Issues}, []byte(`{"object_attributes":{"action":"close","iid":1,"title":"<!channel> | x","url":"http://x/1"},
		"project":{"path_with_namespace":"g/p","web_url":"http://x/g/p"},"user":{"name":"A","username":"a"}}`))
	const want = `{"attachments":[],"channel":"issues","text":"A (a) closed issue \u003chttp://x/1|#1\u003e in \u003chttp://x/g/p|g/p\u003e: *\u0026lt;!channel\u0026gt; | x*"}`
	if err != nil || string(got) != want {
		t.Errorf("%s %v", got, err)
	}
}
