package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseJUnit(t *testing.T) {
	t.Parallel()
	const one = `<?xml version="1.0" encoding="UTF-8"?><testsuites><testsuite name="s">
		<testcase name="good" classname="c" file="a_test.go" time="1.5"/>
		<testcase name="bad" time="1,000.25"><failure message="short">long text</failure><system-err>trace</system-err></testcase>
		<testcase name="worse"><error message="boom"/></testcase>
		<testcase name="later"><skipped/></testcase></testsuite></testsuites>`
	var got []TestCase
	var n TestCounts
	err := parseJUnit(strings.NewReader(one+one[strings.Index(one, "<testsuites>"):]), func(c TestCase) {
		got = append(got, c)
		n.count(c)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []TestCase{
		{Status: TestSuccess, Name: "good", ClassName: "c", File: "a_test.go", Time: 1.5},
		{Status: TestFailed, Name: "bad", Time: 1000.25, Output: "long text", Trace: "trace"},
		{Status: TestError, Name: "worse", Output: "boom"},
		{Status: TestSkipped, Name: "later"},
	}
	if diff := cmp.Diff(append(want, want...), got); diff != "" {
		t.Error(diff)
	}
	if n.Total != 8 || n.Failed != 2 || n.Error != 2 || n.Skipped != 2 || n.Success != 2 || n.Time != 2003.5 {
		t.Errorf("counts: %+v", n)
	}
	for _, text := range []string{"<testcase", `<testcase name="x"><failure>`, strings.Repeat("<a>", 200)} {
		if err := parseJUnit(strings.NewReader(text), func(TestCase) {}); err == nil {
			t.Errorf("%.20q was read", text)
		}
	}
}

func FuzzParseJUnit(f *testing.F) {
	f.Add(`<testsuite><testcase name="a" time="1"><failure>x</failure></testcase></testsuite>`)
	f.Add("\xff<testcase>")
	f.Fuzz(func(t *testing.T, text string) {
		// Invalid input returns an error and does not panic.
		_ = parseJUnit(strings.NewReader(text), func(c TestCase) {
			if c.Status == "" || c.Time < 0 || len(c.Output) > 2*maxTestOutput {
				t.Errorf("%+v", c)
			}
		})
	})
}
