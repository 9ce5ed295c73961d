package report

import (
	"strings"
	"testing"
)

func TestDotenv(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"A=1\nB = two words \n\n# C=3\nexport D=\"4\"\nE='5'\n=x\nF-G=1\nnothing\nH=\n", "A=1 B=two words D=4 E=5 H="},
		{"A=1", "A=1"},
	} {
		got := ""
		for _, v := range ParseDotenv(strings.NewReader(tt.in)) {
			if got != "" {
				got += " "
			}
			got += v.Key + "=" + v.Value
		}
		if got != tt.want {
			t.Errorf("%q is %q, want %q", tt.in, got, tt.want)
		}
	}
}
