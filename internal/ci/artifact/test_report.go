package artifact

import (
	"context"
	"fmt"
	"io"

	"svc/internal/ci/config"
	"svc/internal/ci/report"
	"svc/internal/db"
	"svc/internal/errs"
)

// maxReports is the maximum number of report files of one pipeline.
const maxReports = 200

// TestReport returns the test report of a pipeline. Without cases it has only the
// numbers.
func (s *Service) TestReport(ctx context.Context, pipelineID int64, cases bool) (*report.TestReport, error) {
	list, err := findReports(ctx, s.DB, pipelineID, maxReports)
	if err != nil {
		return nil, fmt.Errorf("reports of pipeline %d: %w", pipelineID, err)
	}
	b := report.NewBuilder(cases)
	for _, one := range list {
		if err := s.addReport(ctx, b, one); err != nil {
			return nil, fmt.Errorf("report of job %d: %w", one.file.JobID, err)
		}
	}
	return &b.Report, nil
}

func (s *Service) addReport(ctx context.Context, b *report.Builder, one storedReport) error {
	in, err := s.openCases(ctx, one.file)
	if errs.Is(err, errs.KindNotFound) {
		return nil // it was removed meanwhile
	}
	if err != nil {
		return err
	}
	defer in.Close()
	return b.Add(one.suite, one.file.JobID, in)
}

// indexReport stores the index of the JUnit report of a job.
func (s *Service) indexReport(ctx context.Context, file *File) (*File, error) {
	if err := s.indexing.enter(ctx); err != nil {
		return nil, err
	}
	defer s.indexing.leave()
	content, err := s.readReport(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("index report: %w", err)
	}
	index := &File{
		JobID: file.JobID, ProjectID: file.ProjectID, Kind: testCases, Format: Raw, Filename: "test_cases.jsonl",
		ExpiresAt: file.ExpiresAt, CreatedAt: s.Now(), blob: newKey(file.JobID, file.ProjectID, testCases),
	}
	return index, s.put(ctx, index, content)
}

func (s *Service) readReport(ctx context.Context, file *File) (io.Reader, error) {
	in, err := s.openPlain(ctx, file, report.MaxFile)
	if errs.Is(err, errs.KindInvalid) {
		return report.FaultyIndex("the file is not packed as it should be")
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return report.Index(ctx, in)
}

// openCases opens the index of a report. A report without one, of an older version,
// is indexed now. NotFound.
func (s *Service) openCases(ctx context.Context, file *File) (io.ReadCloser, error) {
	index, err := find(ctx, s.DB, file.JobID, testCases)
	if errs.Is(err, errs.KindNotFound) {
		index, err = s.addIndex(ctx, file)
	}
	if err != nil {
		return nil, err
	}
	return s.Blobs.Get(ctx, index.blob)
}

func (s *Service) addIndex(ctx context.Context, file *File) (*File, error) {
	index, err := s.indexReport(ctx, file)
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := deleteUpload(ctx, tx, index.blob); err != nil {
			return err
		}
		return insert(ctx, tx, index)
	})
	if db.IsUnique(err, "job_artifacts_job_id_kind") { // another request was faster
		if err := s.dropUploads(ctx, index.blob); err != nil {
			return nil, err
		}
		return find(ctx, s.DB, file.JobID, testCases)
	}
	return index, err
}

// Dotenv returns the variables of a dotenv report. There are none if the file is nil,
// has expired or cannot be read.
func (s *Service) Dotenv(ctx context.Context, a *File) ([]config.Variable, error) {
	if a == nil {
		return nil, nil
	}
	in, err := s.openPlain(ctx, a, report.MaxDotenv)
	if errs.Is(err, errs.KindNotFound) || errs.Is(err, errs.KindInvalid) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("dotenv report of job %d: %w", a.JobID, err)
	}
	defer in.Close()
	return report.ParseDotenv(in), nil
}
