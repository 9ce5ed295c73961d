package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestArtifactMetadataBomb: one long path must not become all of its parent
// directories.
func TestArtifactMetadataBomb(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}\nb: {script: [x]}\n")
		b.pipeline(b.project)
		for _, c := range []struct {
			name  string
			files map[string]string
			want  string
		}{
			{"deep", map[string]string{strings.Repeat("a/", 2000) + "x": "1", strings.Repeat("b/", 2000) + "x": "2"}, "nested more than 100 levels deep; download it whole"},
			{"long", map[string]string{strings.Repeat("a", 60_000): "1"}, "a path of more than 4096 bytes; download it whole"},
		} {
			j := b.run()
			content := zipped(t, c.files)
			b.upload(j, "artifact_type=archive&artifact_format=zip", content, 201)
			var job struct {
				Artifacts []struct {
					Type string `json:"file_type"`
					Size int
				}
			}
			s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d", j.ID), As: b.owner, Status: 200}).JSON(t, &job)
			for _, a := range job.Artifacts {
				if a.Type == "metadata" && a.Size > 4<<10 {
					t.Errorf("%s: the list of files has %d bytes", c.name, a.Size)
				}
			}
			a := s.Check(t, apptest.Call{Name: c.name, Do: "GET " + b.at("/jobs/%d/artifacts/x", j.ID), As: b.owner, Status: 422})
			if !strings.Contains(string(a.Body), c.want) {
				t.Errorf("%s: %s", c.name, a.Body)
			}
			s.Check(t, apptest.Call{Name: c.name + " whole", Do: "GET " + b.at("/jobs/%d/artifacts", j.ID), As: b.owner, Status: 200})
		}
	})
}

// TestTestReportBomb: what an anonymous request reads of a report is bounded,
// regardless of the content of the report.
func TestTestReportBomb(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}\n")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", b.project), As: b.owner, JSON: `{"visibility":"public"}`, Status: 200})
		id := b.pipeline(b.project)
		j := b.run()
		const cases = 25_000
		report := "<testsuite>" + strings.Repeat(`<testcase name="n"><failure>`+strings.Repeat("x", 1000)+`</failure></testcase>`, cases) + "</testsuite>"
		b.upload(j, "artifact_type=junit&artifact_format=gzip", gzipped(t, report), 201)
		var got struct {
			Total  int `json:"total_count"`
			Suites []struct {
				Error *string                 `json:"suite_error"`
				Cases []struct{ Name string } `json:"test_cases"`
			} `json:"test_suites"`
		}
		a := s.Check(t, apptest.Call{Do: "GET " + b.at("/pipelines/%d/test_report", id), Status: 200})
		if len(a.Body) > 12<<20 {
			t.Errorf("an answer of %d bytes", len(a.Body))
		}
		a.JSON(t, &got)
		if got.Total != cases || len(got.Suites) != 1 || len(got.Suites[0].Cases) == 0 || len(got.Suites[0].Cases) >= cases {
			t.Fatalf("%d cases, %d suites", got.Total, len(got.Suites))
		}
		if e := got.Suites[0].Error; e == nil || !strings.Contains(*e, "test cases are not listed") {
			t.Errorf("%v", e)
		}
		s.Check(t, apptest.Call{Do: "GET " + b.at("/pipelines/%d/test_report_summary", id), Status: 200, Want: fmt.Sprintf(`{"total":{"count":%d,"failed":%d}}`, cases, cases)})
		// What is made of a report goes with it, and is not listed.
		var job struct {
			Artifacts []struct {
				Type string `json:"file_type"`
			}
		}
		s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d", j.ID), As: b.owner, Status: 200}).JSON(t, &job)
		if len(job.Artifacts) != 1 {
			t.Errorf("%+v", job.Artifacts)
		}
	})
}
