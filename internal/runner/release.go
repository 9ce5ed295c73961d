package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// releaseStep is the step of a job with the keyword release. Its script calls
// release-cli.
const releaseStep = "release"

// releaseProgram writes a script named release-cli, which calls this program, and
// returns env with its directory at the end of PATH: an installed release-cli is
// preferred.
func (j *job) releaseProgram(env []string) ([]string, error) {
	if j.r.Program == "" {
		return env, nil
	}
	dir := filepath.Join(j.root, "bin")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("provide release-cli: %w", err)
	}
	script := "#!/bin/sh\nexec " + quote(j.r.Program) + " release-cli \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "release-cli"), []byte(script), 0o700); err != nil {
		return nil, fmt.Errorf("provide release-cli: %w", err)
	}
	path := dir
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value + string(os.PathListSeparator) + dir
		}
	}
	return append(env, "PATH="+path), nil
}

// NewRelease is a release that the command release-cli creates.
type NewRelease struct {
	Name        string         `json:"name,omitempty"`
	Description string         `json:"description,omitempty"`
	TagName     string         `json:"tag_name"`
	TagMessage  string         `json:"tag_message,omitempty"`
	Ref         string         `json:"ref,omitempty"`
	ReleasedAt  string         `json:"released_at,omitempty"`
	Milestones  []string       `json:"milestones,omitempty"`
	Assets      *ReleaseAssets `json:"assets,omitempty"`
}

// ReleaseAssets are the links of a release, as JSON objects.
type ReleaseAssets struct {
	Links []json.RawMessage `json:"links"`
}

// maxNotes is the largest file that release notes are read from.
const maxNotes = 1 << 20

// releaseTimeout is the time limit of the request.
const releaseTimeout = 5 * time.Minute

// CreateRelease creates a release in the project of a job. The server and the
// token are read from its environment. A description that is the path of a file is
// read from the file.
func CreateRelease(ctx context.Context, environ func(string) string, r NewRelease, out io.Writer) error {
	token, at, id := environ("CI_JOB_TOKEN"), environ("CI_API_V4_URL"), environ("CI_PROJECT_ID")
	if token == "" || at == "" || id == "" {
		return errors.New("CI_API_V4_URL, CI_PROJECT_ID and CI_JOB_TOKEN are required: run this in a CI/CD job")
	}
	if notes, err := readNotes(r.Description); err != nil {
		return err
	} else if notes != "" {
		r.Description = notes
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/projects/"+url.PathEscape(id)+"/releases", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Job-Token", token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("create release: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return fmt.Errorf("create release: %w", err)
	}
	if response.StatusCode != http.StatusCreated {
		return fmt.Errorf("create release: %s: %.500s", response.Status, answer)
	}
	fmt.Fprintf(out, "Release %s created.\n", r.TagName)
	return nil
}

// readNotes returns the content of the file if the text is the path of a file, and
// otherwise "".
func readNotes(text string) (string, error) {
	if text == "" || len(text) > 4096 || strings.ContainsAny(text, "\n\x00") {
		return "", nil
	}
	info, err := os.Stat(text)
	if err != nil || !info.Mode().IsRegular() {
		return "", nil // the text is the description
	}
	if info.Size() > maxNotes {
		return "", fmt.Errorf("description: %s is larger than %d bytes", text, maxNotes)
	}
	content, err := os.ReadFile(text)
	if err != nil {
		return "", fmt.Errorf("description: %w", err)
	}
	return string(content), nil
}
