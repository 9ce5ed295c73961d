package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scenario is the input of a case in addition to its YAML, from <name>.input.json.
type scenario struct {
	Source       string
	Ref          string
	Tag          bool
	MergeRequest bool
	Variables    map[string]string
	Predefined   map[string]string
	Masked       []string                     // names of variables
	Changed      []string                     // nil: unknown
	Since        map[string][]string          // changed files by compare_to
	Files        map[string]string            // of the project
	Projects     map[string]map[string]string // files by project@ref
	Templates    map[string]string
	Remote       map[string]string
	Artifacts    map[string]string // by job/path
	Versions     map[string]string // refs of components by project@version
	Inputs       map[string]any
	Limits       Limits
	Lint         bool // also compare the merged YAML and the includes
}

// outcome is the content of the golden file.
type outcome struct {
	Plan       *Plan       `json:"plan,omitempty"`
	NoPipeline string      `json:"no_pipeline,omitempty"`
	Errors     []goldError `json:"errors,omitempty"`
	Warnings   []goldError `json:"warnings,omitempty"`
	Merged     []string    `json:"merged,omitempty"` // lines
	Included   []Included  `json:"included,omitempty"`
	Jobs       []LintJob   `json:"jobs,omitempty"`
}

type goldError struct {
	At      string `json:"at,omitempty"`
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

func TestGolden(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.yml")
	if err != nil || len(names) < 60 {
		t.Fatalf("%d cases, %v", len(names), err)
	}
	for _, name := range names {
		base := strings.TrimSuffix(name, ".yml")
		t.Run(filepath.Base(base), func(t *testing.T) {
			t.Parallel()
			golden(t, base)
		})
	}
}

func readScenario(t *testing.T, base string) (s scenario, content []byte) {
	t.Helper()
	content, err := os.ReadFile(base + ".yml")
	if err != nil {
		t.Fatal(err)
	}
	if given, err := os.ReadFile(base + ".input.json"); err == nil {
		dec := json.NewDecoder(bytes.NewReader(given))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&s); err != nil {
			t.Fatal(err)
		}
	}
	return s, content
}

func golden(t *testing.T, base string) {
	s, content := readScenario(t, base)
	got := s.run(t, content)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(got); err != nil {
		t.Fatal(err)
	}
	file := base + ".golden.json"
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", file, diff)
	}
}

func (s scenario) run(t *testing.T, content []byte) outcome {
	t.Helper()
	ctx := t.Context()
	src := s.source(content)
	var out outcome
	c, err := Load(ctx, src)
	if c != nil {
		out.Warnings = goldErrors(c.Warnings)
		var plan *Plan
		if plan, err = c.Plan(ctx, src.Input); err == nil {
			out.Plan = plan
		}
	}
	var faults Errors
	var none *NoPipeline
	switch {
	case errors.As(err, &faults):
		out.Errors = goldErrors(faults)
	case errors.As(err, &none):
		out.NoPipeline = none.Error()
	case err != nil:
		t.Fatal(err)
	}
	if !s.Lint {
		return out
	}
	lint, err := Lint(ctx, src, false)
	if err != nil {
		t.Fatal(err)
	}
	out.Merged = strings.Split(strings.TrimSuffix(lint.MergedYAML, "\n"), "\n")
	out.Included, out.Jobs = lint.Included, lint.Jobs
	return out
}

func (s scenario) source(content []byte) Source {
	in := Input{
		At:           Place{Project: "group/project", Commit: "c0ffee"},
		Files:        fakeFiles{s},
		Source:       s.Source,
		Ref:          s.Ref,
		Tag:          s.Tag,
		MergeRequest: s.MergeRequest,
	}
	if in.Source == "" {
		in.Source = "push"
	}
	if in.Ref == "" {
		in.Ref = "main"
	}
	in.Predefined = []Variable{
		{Key: "CI_COMMIT_REF_NAME", Value: in.Ref},
		{Key: "CI_PIPELINE_SOURCE", Value: in.Source},
		{Key: "CI_DEFAULT_BRANCH", Value: "main"},
		{Key: "CI_PROJECT_PATH", Value: "group/project"},
	}
	switch {
	case in.Tag:
		in.Predefined = append(in.Predefined, Variable{Key: "CI_COMMIT_TAG", Value: in.Ref})
	case !in.MergeRequest:
		in.Predefined = append(in.Predefined, Variable{Key: "CI_COMMIT_BRANCH", Value: in.Ref})
	}
	for _, key := range slices.Sorted(maps.Keys(s.Predefined)) {
		in.Predefined = append(in.Predefined, Variable{Key: key, Value: s.Predefined[key]})
	}
	for _, key := range slices.Sorted(maps.Keys(s.Variables)) {
		in.Variables = append(in.Variables, Variable{Key: key, Value: s.Variables[key], Masked: slices.Contains(s.Masked, key)})
	}
	in.Changed = func(_ context.Context, compareTo string) ([]string, bool, error) {
		if compareTo == "" {
			return s.Changed, s.Changed != nil, nil
		}
		paths, ok := s.Since[compareTo]
		if !ok {
			return nil, false, fs.ErrNotExist
		}
		return paths, true, nil
	}
	src := Source{Input: in, Path: ".gitlab-ci.yml", Content: content, Inputs: s.Inputs, Limits: s.Limits, Host: "forge.example.com:8443"}
	if s.Versions != nil {
		src.Component = func(ctx context.Context, project, version string) (Place, string, error) {
			ref, ok := s.Versions[project+"@"+version]
			if !ok {
				return Place{Project: project}, "", nil
			}
			at, err := fakeFiles{s}.Find(ctx, project, ref)
			return at, ref, err
		}
	}
	if s.Templates != nil {
		templates := fstest.MapFS{}
		for name, text := range s.Templates {
			templates[name] = &fstest.MapFile{Data: []byte(text)}
		}
		src.Templates = templates
	}
	if s.Remote != nil {
		src.Remote = func(_ context.Context, url string, _ int) ([]byte, error) {
			if text, ok := s.Remote[url]; ok {
				return []byte(text), nil
			}
			return nil, errors.New("404 Not Found")
		}
	}
	if s.Artifacts != nil {
		src.Artifact = func(_ context.Context, job, path string, _ int) ([]byte, error) {
			return read(s.Artifacts, job+"/"+path)
		}
	}
	return src
}

func goldErrors(errs Errors) []goldError {
	var out []goldError
	for _, e := range errs {
		g := goldError{Key: e.Key, Message: e.Message}
		if e.File != "" {
			g.At = fmt.Sprintf("%s:%d", e.File, e.Line)
		}
		out = append(out, g)
	}
	return out
}

func read(files map[string]string, path string) ([]byte, error) {
	text, ok := files[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

// fakeFiles are repositories in memory; the ID of a commit is the ref that was resolved.
type fakeFiles struct{ s scenario }

func (f fakeFiles) at(at Place) map[string]string {
	if at.Project == "group/project" && at.Commit == "c0ffee" {
		return f.s.Files
	}
	return f.s.Projects[at.Project+"@"+at.Commit]
}

func (f fakeFiles) Read(_ context.Context, at Place, path string, _ int) ([]byte, error) {
	return read(f.at(at), path)
}

func (f fakeFiles) Paths(_ context.Context, at Place) ([]string, error) {
	return slices.Sorted(maps.Keys(f.at(at))), nil
}

func (f fakeFiles) Find(_ context.Context, project, ref string) (Place, error) {
	if ref == "" {
		ref = "HEAD"
	}
	known := false
	for name := range f.s.Projects {
		known = known || strings.HasPrefix(name, project+"@")
	}
	switch _, ok := f.s.Projects[project+"@"+ref]; {
	case !known:
		return Place{}, fs.ErrNotExist
	case !ok:
		return Place{Project: project}, nil
	}
	return Place{Project: project, Commit: ref}, nil
}
