package ci

import (
	"reflect"
	"testing"

	"svc/internal/ci/config"
	"svc/internal/ci/variable"
)

func TestPushOptions(t *testing.T) {
	t.Parallel()
	options := []string{"ci.skip", `ci.variable="MAX=10"`, "ci.variable=TEXT=a=b", "ci.variable=no", "ci.variable=$X=1", "ci.input=size=1=2", "merge_request.create"}
	want := []variable.Given{{Key: "MAX", Value: "10"}, {Key: "TEXT", Value: "a=b"}}
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
