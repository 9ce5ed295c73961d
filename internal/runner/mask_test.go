package runner

import (
	"bytes"
	"strings"
	"testing"
)

func TestMasker(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		phrases  []string
		prefixes []string
		in, want string
	}{
		{"none", nil, nil, "hello\n", "hello\n"},
		{"one", []string{"secret"}, nil, "a secret here", "a [MASKED] here"},
		{"twice", []string{"secret"}, nil, "secret,secret", "[MASKED],[MASKED]"},
		{"begun only", []string{"secret"}, nil, "secre", "secre"},
		{"begun twice", []string{"aab"}, nil, "aaab aa", "a[MASKED] aa"},
		{"empty", []string{""}, nil, "x", "x"},
		{"one within another", []string{"pass", "my password"}, nil, "my password, pass", "[MASKED], [MASKED]"},
		{"overlapping", []string{"abcd", "cdef"}, nil, "xabcdefx", "x[MASKED]x"},
		{"token", nil, []string{"glpat-"}, "use glpat-abc_12-3 now", "use glpat-[MASKED] now"},
		{"token without an end", nil, []string{"glpat-"}, "glpat-", "glpat-"},
		{"token that is a phrase", []string{"glpat-abc"}, []string{"glpat-"}, "glpat-abc,", "[MASKED],"},
		{"longer token than the phrase", []string{"glpat-abc"}, []string{"glpat-"}, "glpat-abcd,", "[MASKED],"},
		{"phrase that begins in a token", []string{"c d"}, []string{"t-"}, "t-abc d", "t-[MASKED]"},
		{"lines", []string{"one\ntwo"}, nil, "zero\none\ntwo\nthree", "zero\n[MASKED]\nthree"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for size := 1; size <= len(tt.in)+1; size++ {
				if got := masked(t, tt.phrases, tt.prefixes, tt.in, size); got != tt.want {
					t.Errorf("in pieces of %d: got %q, want %q", size, got, tt.want)
				}
			}
		})
	}
}

// TestMaskerShowsEarly checks that only a possible start of a secret is held back: a
// prompt without a line feed is written.
func TestMaskerShowsEarly(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	m := newMasker(&out, []string{"a very long secret"}, nil)
	if _, err := m.Write([]byte("waiting... a ve")); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "waiting... " {
		t.Errorf("got %q", got)
	}
	if _, err := m.Write([]byte("ry nice day")); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "waiting... a very nice day" {
		t.Errorf("got %q", got)
	}
}

// masked returns a text masked by a masker, written in pieces of a size.
func masked(t testing.TB, phrases, prefixes []string, in string, size int) string {
	t.Helper()
	var out bytes.Buffer
	m := newMasker(&out, phrases, prefixes)
	for text := []byte(in); len(text) > 0; {
		n := min(size, len(text))
		if _, err := m.Write(text[:n]); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
	if err := m.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func FuzzMasker(f *testing.F) {
	f.Add("a secret, glpat-abc", "secret", "cret, gl", "glpat-", 3)
	f.Add("aaaaaa", "aa", "aaa", "", 1)
	f.Add("xyxyxyx", "xyx", "yx", "x", 2)
	f.Fuzz(func(t *testing.T, text, one, two, prefix string, size int) {
		if size < 1 || size > 64 || len(text) > 2000 {
			return
		}
		phrases, prefixes := []string{one, two}, []string{prefix}
		got := masked(t, phrases, prefixes, text, size)
		if want := slowly(text, phrases, prefixes); got != want {
			t.Fatalf("in pieces of %d: got %q, want %q", size, got, want)
		}
		for _, p := range phrases {
			// Parts between masks must be parts of the input and contain no secret.
			for _, part := range strings.Split(got, maskedText) {
				if p != "" && strings.Contains(part, p) && strings.Contains(text, part) {
					t.Fatalf("%q shows %q", got, p)
				}
			}
		}
	})
}

// slowly is a simple reference implementation of a masker: it marks each byte, then
// writes the text.
func slowly(text string, phrases, prefixes []string) string {
	hidden := make([]bool, len(text))
	for i := range len(text) {
		for _, p := range phrases {
			if p != "" && strings.HasPrefix(text[i:], p) {
				for k := range len(p) {
					hidden[i+k] = true
				}
			}
		}
		for _, p := range prefixes {
			if p == "" || !strings.HasPrefix(text[i:], p) {
				continue
			}
			for k := i + len(p); k < len(text) && tokenByte(text[k]); k++ {
				hidden[k] = true
			}
		}
	}
	var out strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			out.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			out.WriteString(maskedText)
		}
	}
	return out.String()
}
