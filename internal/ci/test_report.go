package ci

import (
	"context"
	"fmt"
	"io"

	"svc/internal/actor"
	"svc/internal/ci/report"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// maxReports is the maximum number of report files of one pipeline.
const maxReports = 200

// TestReport returns the test report of a pipeline, for users who can see the
// pipelines of the project. Without cases it has only the numbers. NotFound.
func (s *Service) TestReport(ctx context.Context, by actor.Actor, ref project.Ref, pipelineID int64, cases bool) (*report.TestReport, error) {
	p, err := s.seePipelines(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	pipeline, err := s.visiblePipeline(ctx, by, p, pipelineID)
	if err != nil {
		return nil, err
	}
	list, err := findReports(ctx, s.DB, pipeline.ID, maxReports)
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
	if err != nil {
		return ignoreNotFound(err) // it was removed meanwhile
	}
	defer in.Close()
	return b.Add(one.suite, one.file.JobID, in)
}

// coverage returns the coverage in the log of a job that has a pattern for it. Nil
// if there is none.
func (s *Service) coverage(ctx context.Context, j *Job) (*float64, error) {
	if j.Options.Coverage == "" {
		return nil, nil
	}
	l, err := s.logs.OpenLive(ctx, j.ID)
	if l == nil || err != nil {
		return nil, err
	}
	defer l.Close()
	return report.Coverage(l, l.Size, j.Options.Coverage)
}

// indexReport stores the index of the JUnit report of a job.
func (s *Service) indexReport(ctx context.Context, file *Artifact) (*Artifact, error) {
	if err := s.indexing.enter(ctx); err != nil {
		return nil, err
	}
	defer s.indexing.leave()
	content, err := s.readReport(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("index report: %w", err)
	}
	index := &Artifact{
		JobID: file.JobID, ProjectID: file.ProjectID, Kind: testCases, Format: RawFormat, Filename: "test_cases.jsonl",
		ExpiresAt: file.ExpiresAt, CreatedAt: s.Now(), blob: artifactKey(file.JobID, file.ProjectID, testCases),
	}
	return index, s.storeArtifact(ctx, index, content)
}

func (s *Service) readReport(ctx context.Context, file *Artifact) (io.Reader, error) {
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
