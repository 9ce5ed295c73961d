package emoji

import (
	"regexp"
	"slices"
	"testing"
	"unicode/utf8"
)

func TestFind(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"thumbsup": "👍", "+1": "👍", "-1": "👎", "tada": "🎉", "heart": "❤️", "1234": "🔢", "thumbsup_tone3": "👍🏽", "slight_smile": "🙂",
		"slightly_smiling_face": "🙂", "speech_balloon": "💬",
	} {
		e := Find(name)
		if e == nil || e.Text != want {
			t.Errorf("%s: %v, want %s", name, e, want)
			continue
		}
		if FindText(want) != e {
			t.Errorf("%s is not found by its characters", want)
		}
	}
	for _, name := range []string{"", "nonsense", ":tada:", "Tada"} {
		if e := Find(name); e != nil {
			t.Errorf("%q: %v", name, e)
		}
	}
	if e := Find("+1"); e.Name != "thumbsup" || e.Toned() || !Find("thumbsup_tone3").Toned() {
		t.Error(e.Name)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[a-z0-9_+-]+$`)
	groups := []string{"smileys", "people", "nature", "food", "travel", "activities", "objects", "symbols", "flags"}
	for _, e := range All() {
		if !slices.Contains(groups, e.Group) || !utf8.ValidString(e.Text) || e.Text == "" {
			t.Errorf("%+v", e)
		}
		for _, n := range append([]string{e.Name}, e.Aliases...) {
			if !name.MatchString(n) || len(n) > MaxName || Find(n) != e {
				t.Errorf("%s is not a name of %s", n, e.Text)
			}
		}
	}
	if len(All()) < 1800 {
		t.Errorf("%d emoji", len(All()))
	}
}
