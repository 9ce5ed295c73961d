package secret

import "testing"

func TestMask(t *testing.T) {
	t.Parallel()
	const token = "a token of a form"
	a, b := Mask(token), Mask(token)
	if a == b {
		t.Errorf("two masks are alike: %s", a)
	}
	for _, c := range []struct {
		given string
		want  bool
	}{{a, true}, {b, true}, {token, true}, {"", false}, {a[1:], false}, {a + "AA", false}, {Mask("a token of a farm"), false}, {Mask(a), false}, {"a token of a farm", false}} {
		if got := EqualMasked(c.given, token); got != c.want {
			t.Errorf("%q: %t", c.given, got)
		}
	}
}
