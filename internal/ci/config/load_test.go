package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var errDisk = errors.New("disk on fire")

// brokenFiles fail with an error that is not caused by the YAML.
type brokenFiles struct{}

func (brokenFiles) Read(context.Context, Place, string, int) ([]byte, error) { return nil, errDisk }
func (brokenFiles) Paths(context.Context, Place) ([]string, error)           { return nil, errDisk }
func (brokenFiles) Find(context.Context, string, string) (Place, error)      { return Place{}, errDisk }

// TestLoadFaults checks that errors of the server are distinguished from errors in the
// configuration.
func TestLoadFaults(t *testing.T) {
	t.Parallel()
	for _, yml := range []string{
		"include: a.yml",
		"include: 'ci/*.yml'",
		"include: {project: a/b, file: a.yml}",
		"include: {local: a.yml, rules: [{exists: [x]}]}",
		"job: {script: x, rules: [{exists: [x]}]}",
		"job: {script: x, rules: [{exists: {paths: [x], project: a/b}}]}",
		"job: {script: x, rules: [{changes: [x]}]}",
		"job: {script: x, only: {changes: [x]}}",
		"job: {script: x, except: {changes: [x]}}",
		"workflow: {rules: [{changes: [x]}]}\njob: {script: x}",
	} {
		src := scenario{}.source([]byte(yml))
		src.Input.Files = brokenFiles{}
		src.Input.Changed = func(context.Context, string) ([]string, bool, error) { return nil, false, errDisk }
		c, err := Load(t.Context(), src)
		if err == nil {
			_, err = c.Plan(t.Context(), src.Input)
		}
		var faults Errors
		if !errors.Is(err, errDisk) || errors.As(err, &faults) {
			t.Errorf("%s: %v", yml, err)
		}
		if _, err := Lint(t.Context(), src, true); !errors.Is(err, errDisk) {
			t.Errorf("lint %s: %v", yml, err)
		}
	}
}

func TestLoadMainFile(t *testing.T) {
	t.Parallel()
	src := scenario{Files: map[string]string{".svc-ci.yml": "job: {script: x}"}}.source(nil)
	src.Path = "/.svc-ci.yml"
	if _, err := Load(t.Context(), src); err != nil {
		t.Error(err)
	}
	src.Path = "none.yml"
	var faults Errors
	if _, err := Load(t.Context(), src); !errors.As(err, &faults) || faults[0].Message != "Missing CI config file" {
		t.Error(err)
	}
}

// TestCanceled checks that loading and planning stop at the deadline of the caller.
func TestCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	src := scenario{Files: map[string]string{"a.yml": "a: {script: x}"}}.source([]byte("include: a.yml\njob: {script: x}"))
	c, err := Load(ctx, src)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := Load(ctx, src); !errors.Is(err, context.Canceled) {
		t.Errorf("load: %v", err)
	}
	if _, err := c.Plan(ctx, src.Input); !errors.Is(err, context.Canceled) {
		t.Errorf("plan: %v", err)
	}
}

// TestPlanConcurrently plans one configuration from several goroutines, and checks that
// callbacks are called once per plan.
func TestPlanConcurrently(t *testing.T) {
	t.Parallel()
	var yml strings.Builder
	for i := range 50 {
		fmt.Fprintf(&yml, "job%d: {script: x, parallel: 3, environment: $NAME, rules: [{changes: [a], exists: [f]}]}\n", i)
	}
	s := scenario{Files: map[string]string{"f": ""}}
	src := s.source([]byte(yml.String()))
	c, err := Load(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			in := src.Input
			asked := 0
			name := fmt.Sprint("env", i)
			in.Variables = []Variable{{Key: "NAME", Value: name}}
			in.Changed = func(context.Context, string) ([]string, bool, error) {
				asked++
				return []string{"a"}, true, nil
			}
			plan, err := c.Plan(t.Context(), in)
			if err != nil {
				t.Error(err)
				return
			}
			if asked != 1 || len(plan.Jobs) != 150 || plan.Jobs[7].Environment.Name != name {
				t.Errorf("asked %d times, %d jobs, %s", asked, len(plan.Jobs), plan.Jobs[7].Environment.Name)
			}
		})
	}
	group.Wait()
}

// TestJobJSON checks that jobs are unchanged after they were stored and read.
func TestJobJSON(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	jobs := 0
	for _, name := range names {
		s, content := readScenario(t, strings.TrimSuffix(name, ".yml"))
		plan := s.run(t, content).Plan
		if plan == nil {
			continue
		}
		for _, j := range plan.Jobs {
			stored, err := json.Marshal(j)
			if err != nil {
				t.Fatal(err)
			}
			var back Job
			if err := json.Unmarshal(stored, &back); err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(back)
			if err != nil {
				t.Fatal(err)
			}
			if string(again) != string(stored) || (back.Needs == nil) != (j.Needs == nil) || (back.Dependencies == nil) != (j.Dependencies == nil) {
				t.Errorf("%s: %s", name, cmp.Diff(string(stored), string(again)))
			}
			jobs++
		}
	}
	if jobs < 100 {
		t.Errorf("only %d jobs", jobs)
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	_, err := Load(t.Context(), scenario{}.source([]byte("a:\n  script: x\n  foo: 1\nb:\n  script: x\n  stage: none\n")))
	if want := ".gitlab-ci.yml:3: jobs:a config contains unknown keys: foo"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	var faults Errors
	errors.As(err, &faults)
	if faults[0].Column != 3 || faults.Messages()[0] != "jobs:a config contains unknown keys: foo" {
		t.Errorf("%+v", faults[0])
	}
}

func TestTriggerContent(t *testing.T) {
	t.Parallel()
	s := scenario{Files: map[string]string{"child.yml": "spec: {inputs: {n: {type: number}}}\n---\nmade: {script: x, parallel: '$[[ inputs.n ]]'}\n"}}
	src := s.source([]byte("run:\n  trigger: {include: [{local: child.yml, inputs: {n: 2}}]}\n"))
	c, err := Load(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := c.Plan(t.Context(), src.Input)
	if err != nil {
		t.Fatal(err)
	}
	src.Content = plan.Jobs[0].Trigger.Content()
	if c, err = Load(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	if plan, err = c.Plan(t.Context(), src.Input); err != nil || len(plan.Jobs) != 2 || plan.Jobs[1].Name != "made 2/2" {
		t.Errorf("%+v, %v", plan, err)
	}
}

// TestLintPlan checks that CI Lint with a plan reports what a push would create.
func TestLintPlan(t *testing.T) {
	t.Parallel()
	for yml, want := range map[string]string{
		"a: {script: x, rules: [{if: $NO}]}":                              "The resulting pipeline would have been empty. Review the rules configuration for the relevant jobs.",
		"workflow: {rules: [{if: $NO}]}\na: {script: x}":                  "Pipeline filtered out by workflow rules.",
		"a: {script: x, needs: [b]}\nb: {script: x, rules: [{if: $NO}]}":  "'a' job needs 'b' job, but 'b' does not exist in the pipeline. This might be because of the only, except, or rules keywords. To need a job that sometimes does not exist in the pipeline, use needs:optional.",
		"a: {script: x, parallel: 2}\nb: {script: x, rules: [{if: $NO}]}": "",
	} {
		src := scenario{}.source([]byte(yml))
		got, err := Lint(t.Context(), src, true)
		if err != nil {
			t.Fatal(err)
		}
		if message := strings.Join(got.Errors.Messages(), "|"); message != want || got.Valid() != (want == "") {
			t.Errorf("%s: %s", yml, message)
		}
		if want == "" && (len(got.Jobs) != 2 || got.Jobs[0].Name != "a 1/2") {
			t.Errorf("%+v", got.Jobs)
		}
		static, err := Lint(t.Context(), src, false)
		if err != nil || !static.Valid() {
			t.Errorf("static lint of %s: %v, %v", yml, static, err)
		}
	}
}

// TestMasked checks that error messages contain no masked values.
func TestMasked(t *testing.T) {
	t.Parallel()
	s := scenario{Variables: map[string]string{"S": "verysecret"}, Masked: []string{"S"}}
	for _, yml := range []string{
		"include: $S.yml", "include: {local: $S.yml}", "include: {project: $S, file: a.yml}", "include: {template: $S.yml}",
		"include: {remote: 'https://$S/a.yml'}", "include: {component: $S}", "include: {artifact: $S.yml, job: x}",
		"include: {file: $S}", "include: {project: a/b, ref: $S, file: a.yml}", "include: $S", "include: {local: a.yml, inputs: {x: $S}}",
	} {
		src := s.source([]byte(yml))
		_, err := Load(t.Context(), src)
		if err == nil || strings.Contains(err.Error(), "verysecret") {
			t.Errorf("%s: %v", yml, err)
		}
	}
}

func TestRemoteDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	src := scenario{}.source([]byte("include: https://example.com/a.yml"))
	src.Remote = func(context.Context, string, int) ([]byte, error) {
		cancel()
		return nil, fs.ErrClosed
	}
	if _, err := Load(ctx, src); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
