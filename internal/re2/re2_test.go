package re2

import (
	"strings"
	"testing"
)

func TestCompile(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`^(feature|fix)/[a-z0-9-]{1,100}$`: "",
		`a{1000}`:                          "",
		`^\p{L}{1,30}$`:                    "",
		`(`:                                "missing closing",
		`(?:.?.?.?.?.?.?){1000}`:           "too large",
		`((?:a?){30}){30}((?:b?){30}){30}((?:c?){30}){30}`: "too large",
		strings.Repeat("a", MaxLength+1):                   "too long",
		`\pL{1000}|` + strings.Repeat(`\pN`, 50):           "too large",
	} {
		_, err := Compile(expression)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.50s: %v, want %q", expression, err, want)
		}
	}
}

func TestMatcher(t *testing.T) {
	t.Parallel()
	m, err := NewMatcher(`^a+[bc]$`)
	if err != nil || !m.Match("aac") || m.Match("aad") || m.Exceeded() {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err = NewMatcher(`a?b{1000}`); err != nil {
		t.Fatal(err)
	}
	for i := 0; !m.Exceeded(); i++ {
		if m.Match("bb") {
			t.Error("it matches")
		}
		if i > maxWork {
			t.Fatal("there is no end")
		}
	}
}
