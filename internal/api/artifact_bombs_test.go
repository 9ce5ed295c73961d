package api_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestArtifactMetadataBomb checks that one long path does not expand to entries for
// all of its parent directories.
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

// TestTestReportBomb checks that an anonymous request reads a bounded amount of a
// report, regardless of its content.
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
		// The summary of a report is stored with the report and not listed.
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

// forgedZip returns an archive with one file, whose header may be false.
func forgedZip(t testing.TB, h zip.FileHeader, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	h.CompressedSize64 = uint64(len(content))
	w, err := z.CreateRaw(&h)
	if err == nil {
		_, err = w.Write([]byte(content))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestForgedArtifactArchives checks that an archive with false headers is refused as
// unreadable, which is not a server error, and can still be downloaded.
func TestForgedArtifactArchives(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x], artifacts: {paths: [x]}}\nb: {script: [x]}\nc: {script: [x]}\n")
		b.pipeline(b.project)
		for _, c := range []struct {
			name, want string
			header     zip.FileHeader
			content    string
		}{
			{"negative size", "The archive cannot be read", zip.FileHeader{Name: "x", Method: zip.Store, UncompressedSize64: 1<<64 - 5}, "text"},
			{"huge size", "The archive cannot be read", zip.FileHeader{Name: "x", Method: zip.Store, UncompressedSize64: 1 << 62}, "text"},
			{"corrupt content", "The file cannot be read out of the archive", zip.FileHeader{Name: "x", Method: zip.Deflate, UncompressedSize64: 4}, "\xff\xff\xff\xff"},
		} {
			j := b.run()
			content := forgedZip(t, c.header, c.content)
			b.upload(j, "artifact_type=archive&artifact_format=zip", content, 201)
			a := s.Check(t, apptest.Call{Name: c.name, Do: "GET " + b.at("/jobs/%d/artifacts/x", j.ID), As: b.owner, Status: 422})
			if !strings.Contains(string(a.Body), c.want) {
				t.Errorf("%s: %s", c.name, a.Body)
			}
			a = s.Check(t, apptest.Call{Name: c.name + " whole", Do: "GET " + b.at("/jobs/%d/artifacts", j.ID), As: b.owner, Status: 200})
			if !bytes.Equal(a.Body, content) {
				t.Errorf("%s: the archive has %d bytes, not %d", c.name, len(a.Body), len(content))
			}
		}
	})
}

// TestForgedChildConfiguration checks that a trigger job fails if the archive with
// the configuration of its child pipeline is damaged, instead of waiting forever.
func TestForgedChildConfiguration(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x], artifacts: {paths: [made.yml]}}\nchild: {needs: [a], trigger: {include: [{artifact: made.yml, job: a}]}}\n")
		id := b.pipeline(b.project)
		j := b.run()
		b.upload(j, "artifact_type=archive&artifact_format=zip",
			forgedZip(t, zip.FileHeader{Name: "made.yml", Method: zip.Deflate, UncompressedSize64: 4}, "\xff\xff\xff\xff"), 201)
		b.update(j, 200, `{"state":"success"}`)
		b.settled()
		s.Check(t, apptest.Call{Do: "GET " + b.at("/pipelines/%d/bridges", id), As: b.owner, Status: 200, Want: `[{"name":"child","status":"failed"}]`})
	})
}
