package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// errRefused marks requests of a job that cannot be fulfilled, for example an
// unknown archive format. The job causes them, not the runner.
var errRefused = errors.New("not possible")

// downloadArtifacts downloads the artifacts of other jobs into the working tree.
func (j *job) downloadArtifacts() error {
	for _, d := range j.Dependencies {
		if d.ArtifactsFile.Filename == "" {
			continue
		}
		err := j.attempt(j.vars.attempts("ARTIFACT_DOWNLOAD_ATTEMPTS", 5), func() error { return j.downloadFrom(d) })
		if err != nil {
			return fmt.Errorf("download artifacts of %s (%d): %w", d.Name, d.ID, err)
		}
	}
	return nil
}

func (j *job) downloadFrom(d dependency) error {
	f, err := os.Create(filepath.Join(j.root, "download.zip"))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	status, err := j.r.server.download(j.main, d, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if status == http.StatusNotFound || status == http.StatusForbidden || status == http.StatusUnauthorized {
		return fmt.Errorf("%w: the server answers with status %d", errRefused, status)
	}
	if status != http.StatusOK {
		return fmt.Errorf("the server answers with status %d", status)
	}
	n, err := unpack(j.main, f.Name(), j.dir)
	if err != nil {
		return err
	}
	j.say("%s (%d): %d files and directories", d.Name, d.ID, n)
	return nil
}

// uploadArtifacts uploads the artifacts of the job.
func (j *job) uploadArtifacts(failed bool) error {
	var wanted []artifact
	for _, a := range j.Artifacts {
		if applies(a.When, failed) {
			wanted = append(wanted, a)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	name := "upload_artifacts_on_success"
	if failed {
		name = "upload_artifacts_on_failure"
	}
	return j.section(name, "Uploading artifacts", func() error {
		var faults []error
		for _, a := range wanted {
			if err := j.uploadOne(a); err != nil {
				j.say("%s", red(fmt.Sprintf("ERROR: artifacts of type %s: %v", a.Type, err)))
				faults = append(faults, err)
			}
		}
		return errors.Join(faults...)
	})
}

func (j *job) uploadOne(a artifact) error {
	files, err := j.collect(selection{paths: j.vars.expandAll(a.Paths), exclude: j.vars.expandAll(a.Exclude), untracked: a.Untracked})
	if err != nil {
		return err
	}
	if len(files) == 0 { // does not fail the job
		j.say("%s", yellow("No files to upload for "+a.Type))
		return nil
	}
	path := filepath.Join(j.root, "upload")
	defer os.Remove(path)
	if err := pack(j.whole, j.dir, files, a.Format, path); err != nil {
		return err
	}
	return j.send(a, path, uploadName(a, j.vars.expand(a.Name)))
}

// uploadName returns the file name of an upload.
func uploadName(a artifact, name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r < ' ' {
			return '_'
		}
		return r
	}, name)
	if name == "" || name == "." || name == ".." {
		name = "artifacts"
	}
	switch a.Format {
	case "", "zip":
		return name + ".zip"
	case "gzip":
		return name + ".gz"
	}
	return name
}

// sendTime is how long an upload is retried while the server is unavailable.
const sendTime = 2 * time.Minute

// send uploads a file, with retries while the server is unavailable.
func (j *job) send(a artifact, path, name string) error {
	a.ExpireIn = j.vars.expand(a.ExpireIn)
	ctx, cancel := context.WithTimeout(j.whole, sendTime+time.Hour) // the file may be large
	defer cancel()
	wait := backoff{first: j.r.Pace.Retry, most: 10 * time.Second}
	for late := time.Now().Add(sendTime); ; {
		status, err := j.r.server.upload(ctx, j.ID, j.Token, a, path, name)
		switch {
		case err == nil && status == http.StatusCreated:
			j.say("Uploaded %s as %q", a.Type, name)
			return nil
		case err == nil && status == http.StatusRequestEntityTooLarge:
			return fmt.Errorf("%w: the server takes no file of this size", errRefused)
		case err == nil && status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
			return fmt.Errorf("%w: the server answers with status %d", errRefused, status)
		case err == nil:
			err = fmt.Errorf("the server answers with status %d", status)
		}
		if time.Now().After(late) || !wait.pause(ctx) {
			return err
		}
	}
}
