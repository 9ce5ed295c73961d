package bench

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const (
	largeArtifact = 1000 * mebi // with its archive headers, below the default limit
	largeLog      = 200 * mebi
	largePatch    = mebi
)

// BenchmarkCILarge measures the memory that the server uses for large artifacts and
// logs. It is run by make bench-large.
func BenchmarkCILarge(b *testing.B) {
	t := &table{}
	b.Run("memory", func(b *testing.B) {
		var up, down, log []float64
		for b.Loop() {
			addr := freeAddr(b)
			p := start(b, b.TempDir(), addr)
			s := newSite(b, addr)
			check(b, s.allowLogs(largeLog/mebi+1))
			s.pushPipeline(b, 1)
			r := s.newRunner(b)
			j, err := r.await()
			check(b, err)
			check(b, r.state(j, "running", nil))
			grown := func(do func() error) float64 {
				before := p.resident(b)
				peak := p.watch(b)
				check(b, do())
				return (peak() - before) / mebi
			}
			up = append(up, grown(func() error { return r.upload(j, largeArtifact) }))
			log = append(log, grown(func() error { return r.longLog(j, largeLog) }))
			down = append(down, grown(func() error {
				n, err := s.size(fmt.Sprintf("jobs/%d/artifacts", j.ID))
				if err == nil && n < largeArtifact {
					err = fmt.Errorf("an artifact of %d bytes", n)
				}
				return err
			}))
			log = append(log, grown(func() error {
				n, err := s.size(fmt.Sprintf("jobs/%d/trace", j.ID))
				if err == nil && n != largeLog {
					err = fmt.Errorf("a log of %d bytes", n)
				}
				return err
			}))
			p.stop(b)
		}
		for _, m := range []struct {
			name  string
			grown []float64
		}{{"an artifact of 1 GiB, up", up}, {"an artifact of 1 GiB, down", down}, {"a log of 200 MiB", log}} {
			t.add(b, figure{name: "memory for " + m.name, measured: slices.Max(m.grown), limit: 32, unit: "MiB"})
		}
	})
	t.finish(b)
}

// allowLogs sets the maximum size of logs.
func (s site) allowLogs(megabytes int) error {
	return s.configure(fmt.Sprintf(`{"ci_max_log_megabytes":%d}`, megabytes))
}

// configure changes application settings.
func (s site) configure(settings string) error {
	q, err := http.NewRequest(http.MethodPut, "http://"+s.addr+"/api/v4/application/settings", strings.NewReader(settings))
	if err != nil {
		return err
	}
	q.Header = http.Header{"Content-Type": {"application/json"}, "Private-Token": {rootToken}}
	res, err := s.client.Do(q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("settings: %s", res.Status)
	}
	return nil
}

// upload sends an archive with one incompressible file.
func (r *runner) upload(j *job, size int) error {
	out, in := io.Pipe()
	form := multipart.NewWriter(in)
	go func() { in.CloseWithError(writeArchive(form, size)) }()
	q, err := http.NewRequest(http.MethodPost, fmt.Sprintf("http://%s/api/v4/jobs/%d/artifacts?artifact_type=archive&artifact_format=zip", r.addr, j.ID), out)
	if err != nil {
		return err
	}
	q.Header = http.Header{"Job-Token": {j.Token}, "Content-Type": {form.FormDataContentType()}}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		return fmt.Errorf("upload: %s", res.Status)
	}
	return nil
}

func writeArchive(form *multipart.Writer, size int) error {
	part, err := form.CreateFormFile("file", "artifacts.zip")
	if err != nil {
		return err
	}
	archive := zip.NewWriter(part)
	file, err := archive.CreateHeader(&zip.FileHeader{Name: "large.bin", Method: zip.Store})
	if err != nil {
		return err
	}
	if _, err := io.CopyN(file, rand.NewChaCha8([32]byte{2}), int64(size)); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return form.Close()
}

// longLog sends a log in parts and ends the job.
func (r *runner) longLog(j *job, size int) error {
	log := bytes.Repeat(sampleLog(largePatch), size/largePatch)
	for at := 0; at < size; at += largePatch {
		if err := r.trace(j, at, log[at:at+largePatch]); err != nil {
			return err
		}
	}
	return r.state(j, "success", log)
}

// TestCILarge checks that the benchmark uploads and downloads artifacts and logs
// completely.
func TestCILarge(t *testing.T) {
	t.Parallel()
	s := newSite(t, serve(t, "").Addr())
	check(t, s.allowLogs(3))
	s.pushPipeline(t, 1)
	r := s.newRunner(t)
	j, err := r.await()
	check(t, err)
	check(t, r.state(j, "running", nil))
	check(t, r.upload(j, 3*mebi))
	check(t, r.longLog(j, 2*mebi))
	if n, err := s.size(fmt.Sprintf("jobs/%d/artifacts/large.bin", j.ID)); err != nil || n != 3*mebi {
		t.Errorf("%d bytes of the artifact: %v", n, err)
	}
	if n, err := s.size(fmt.Sprintf("jobs/%d/trace", j.ID)); err != nil || n != 2*mebi {
		t.Errorf("%d bytes of the log: %v", n, err)
	}
}
