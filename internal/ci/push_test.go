package ci

import (
	"reflect"
	"strings"
	"testing"

	"svc/internal/ci/config"
)

func TestPushOptions(t *testing.T) {
	t.Parallel()
	options := []string{"ci.skip", `ci.variable="MAX=10"`, "ci.variable=TEXT=a=b", "ci.variable=no", "ci.variable=$X=1", "ci.input=size=1=2", "merge_request.create"}
	want := []PipelineVariable{{Key: "MAX", Value: "10"}, {Key: "TEXT", Value: "a=b"}}
	if got := optionVariables(options); !reflect.DeepEqual(got, want) {
		t.Errorf("variables are %v", got)
	}
	if got := optionInputs(options); !reflect.DeepEqual(got, map[string]any{"size": config.Texts{"1=2"}}) {
		t.Errorf("inputs are %v", got)
	}
	if !hasOption(options, "ci.skip") || hasOption(options, "ci") {
		t.Error("ci.skip is not read")
	}
	for message, want := range map[string]bool{
		"x [ci skip]": true, "[skip ci] y": true, "[CI-SKIP]": true, "a\n\nb [skip_ci]": true, "ci skip": false, "[skip]": false,
	} {
		if got := skips(message); got != want {
			t.Errorf("%q: %v", message, got)
		}
	}
}

func TestDotenv(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"A=1\nB = two words \n\n# C=3\nexport D=\"4\"\nE='5'\n=x\nF-G=1\nnothing\nH=\n", "A=1 B=two words D=4 E=5 H="},
		{"A=1", "A=1"},
	} {
		got := ""
		for _, v := range parseDotenv(strings.NewReader(tt.in)) {
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
