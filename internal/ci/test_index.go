package ci

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"svc/internal/db"
	"svc/internal/errs"
)

const (
	maxReportFile = 32 << 20 // bytes of one report, unpacked
	// maxKeptCases is the most bytes of the cases of one report that are kept.
	// Cases beyond that are counted.
	maxKeptCases = 8 << 20
	maxSummary   = 4 << 10
)

// testSummary is the first line of the index of a report. The cases follow, one in
// a line, as JSON.
type testSummary struct {
	Counts TestCounts
	Fault  string // why the report could not be read to its end
	Kept   int    // cases that follow
	Left   int    // cases that were counted only
}

// indexReport reads the JUnit report of a job once, and stores its numbers and
// cases within limits: requests read that.
func (s *Service) indexReport(ctx context.Context, file *Artifact) (*Artifact, error) {
	if err := s.indexing.enter(ctx); err != nil {
		return nil, err
	}
	defer s.indexing.leave()
	head, cases, err := s.readReport(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("index report: %w", err)
	}
	line, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	index := &Artifact{
		JobID: file.JobID, ProjectID: file.ProjectID, Kind: testCases, Format: RawFormat, Filename: "test_cases.jsonl",
		ExpiresAt: file.ExpiresAt, CreatedAt: s.Now(), blob: artifactKey(file.JobID, file.ProjectID, testCases),
	}
	return index, s.storeArtifact(ctx, index, io.MultiReader(bytes.NewReader(append(line, '\n')), bytes.NewReader(cases)))
}

// readReport reads a report. A report that makes no sense has a fault.
func (s *Service) readReport(ctx context.Context, file *Artifact) (head testSummary, cases []byte, err error) {
	in, err := s.openPlain(ctx, file, maxReportFile)
	if errs.Is(err, errs.KindInvalid) {
		head.Fault = "JUnit XML parsing failed: the file is not packed as it should be"
		return head, nil, nil
	}
	if err != nil {
		return head, nil, err
	}
	defer in.Close()
	read := &unpackedReader{r: in}
	fault := parseJUnit(read, func(c TestCase) {
		head.Counts.count(c)
		// A struct of texts and numbers can be written.
		line, _ := json.Marshal(c)
		if len(cases)+len(line) >= maxKeptCases {
			head.Left++
			return
		}
		head.Kept++
		cases = append(append(cases, line...), '\n')
	})
	switch {
	case ctx.Err() != nil:
		return head, nil, ctx.Err()
	case read.n >= maxReportFile:
		head.Fault = fmt.Sprintf("JUnit XML parsing failed: the file has more than %d MiB", maxReportFile>>20)
	case fault != nil:
		head.Fault = "JUnit XML parsing failed: " + fault.Error()
	}
	return head, cases, nil
}

// unpackedReader counts what is read of a report.
type unpackedReader struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *unpackedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// openCases opens the index of a report. One that an older version left without is
// indexed now, once. NotFound.
func (s *Service) openCases(ctx context.Context, file *Artifact) (io.ReadCloser, error) {
	index, err := findArtifact(ctx, s.DB, file.JobID, testCases)
	if errs.Is(err, errs.KindNotFound) {
		index, err = s.addIndex(ctx, file)
	}
	if err != nil {
		return nil, err
	}
	return s.Blobs.Get(ctx, index.blob)
}

func (s *Service) addIndex(ctx context.Context, file *Artifact) (*Artifact, error) {
	index, err := s.indexReport(ctx, file)
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := deleteUpload(ctx, tx, index.blob); err != nil {
			return err
		}
		return insertArtifact(ctx, tx, index)
	})
	if db.IsUnique(err, "job_artifacts_job_id_kind") { // another request was faster
		if err := s.dropUpload(ctx, index.blob); err != nil {
			return nil, err
		}
		return findArtifact(ctx, s.DB, file.JobID, testCases)
	}
	return index, err
}

func readSummary(in *bufio.Reader) (testSummary, error) {
	line, err := in.ReadSlice('\n')
	if err != nil || len(line) > maxSummary {
		return testSummary{}, fmt.Errorf("index of a test report: %w", err)
	}
	var head testSummary
	return head, json.Unmarshal(line, &head)
}
