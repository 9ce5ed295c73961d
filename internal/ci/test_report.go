package ci

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// TestSuite is what the tests of a job say; jobs of one definition are taken
// together.
type TestSuite struct {
	Name   string
	JobIDs []int64
	Cases  []TestCase
	Fault  string // why a report could not be read
	Counts TestCounts
}

// TestCounts are how many tests there are.
type TestCounts struct {
	Time                                   float64 // seconds
	Total, Success, Failed, Skipped, Error int
}

func (c *TestCounts) add(o TestCounts) {
	c.Time += o.Time
	c.Total += o.Total
	c.Success += o.Success
	c.Failed += o.Failed
	c.Skipped += o.Skipped
	c.Error += o.Error
}

// TestReport is what the tests of a pipeline say.
type TestReport struct {
	Suites []*TestSuite
	Counts TestCounts
}

const (
	maxReports = 200 // files of one pipeline
	// maxServedCases and maxServedBytes bound the test cases of one answer.
	maxServedCases = 20_000
	maxServedBytes = 8 << 20
)

// TestReport returns what the tests of a pipeline say, for those who see the
// pipelines of the project. Without cases only the numbers are kept. NotFound.
func (s *Service) TestReport(ctx context.Context, by actor.Actor, ref project.Ref, pipelineID int64, cases bool) (*TestReport, error) {
	p, err := s.seePipelines(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	pipeline, err := s.visiblePipeline(ctx, by, p, pipelineID)
	if err != nil {
		return nil, err
	}
	list, err := db.All(ctx, s.DB, scanReport, `
		SELECT j.options, `+artifactColumns+` FROM jobs j JOIN job_artifacts a ON a.job_id = j.id AND a.kind = 'junit'
		WHERE j.pipeline_id = ? AND NOT j.retried ORDER BY j.stage_index, j.id LIMIT ?`, pipeline.ID, maxReports)
	if err != nil {
		return nil, fmt.Errorf("reports of pipeline %d: %w", pipelineID, err)
	}
	r := &reportReader{service: s, report: &TestReport{Suites: []*TestSuite{}}, keep: cases, cases: maxServedCases, bytes: maxServedBytes}
	for _, one := range list {
		if err := r.add(ctx, one); err != nil {
			return nil, fmt.Errorf("report of job %d: %w", one.file.JobID, err)
		}
	}
	return r.report, nil
}

// storedReport is the report of a job, and the name that its suite has.
type storedReport struct {
	suite string
	file  *Artifact
}

// reportReader puts the report of a pipeline together out of the indexes of its
// files.
type reportReader struct {
	service *Service
	report  *TestReport
	keep    bool // the cases, not only their numbers
	cases   int  // that may still be kept
	bytes   int
}

func (r *reportReader) add(ctx context.Context, one storedReport) error {
	in, err := r.service.openCases(ctx, one.file)
	if errs.Is(err, errs.KindNotFound) {
		return nil // it went meanwhile
	}
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewReaderSize(in, 16<<10)
	head, err := readSummary(lines)
	if err != nil {
		return err
	}
	suite := r.report.suite(one.suite)
	suite.JobIDs = append(suite.JobIDs, one.file.JobID)
	if head.Fault != "" {
		suite.Fault = head.Fault
	}
	suite.Counts.add(head.Counts)
	r.report.Counts.add(head.Counts)
	if !r.keep {
		return nil
	}
	left := head.Left
	for n := range head.Kept {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("test case %d: %w", n, err)
		}
		if r.cases--; r.cases < 0 || len(line) > r.bytes {
			left, r.bytes = left+head.Kept-n, 0
			break
		}
		r.bytes -= len(line)
		var c TestCase
		if err := json.Unmarshal(line, &c); err != nil {
			return fmt.Errorf("test case %d: %w", n, err)
		}
		suite.Cases = append(suite.Cases, c)
	}
	if left > 0 && suite.Fault == "" {
		suite.Fault = fmt.Sprintf("%d test cases are not listed: the report is too large", left)
	}
	return nil
}

func (t *TestReport) suite(name string) *TestSuite {
	if i := slices.IndexFunc(t.Suites, func(s *TestSuite) bool { return s.Name == name }); i >= 0 {
		return t.Suites[i]
	}
	suite := &TestSuite{Name: name, Cases: []TestCase{}}
	t.Suites = append(t.Suites, suite)
	return suite
}

// count adds one test.
func (c *TestCounts) count(t TestCase) {
	c.Total++
	c.Time += t.Time
	switch t.Status {
	case TestSuccess:
		c.Success++
	case TestFailed:
		c.Failed++
	case TestSkipped:
		c.Skipped++
	case TestError:
		c.Error++
	}
}

func scanReport(s db.Scanner) (storedReport, error) {
	a := &Artifact{}
	var options string
	err := s.Scan(&options, &a.ID, &a.JobID, &a.ProjectID, &a.Kind, &a.Format, &a.Filename, &a.Size, &a.SHA256, &a.blob, db.NullTime(&a.ExpiresAt), db.Time(&a.CreatedAt))
	if err != nil {
		return storedReport{}, err
	}
	var job struct {
		Group string `json:"group"`
		Name  string `json:"name"`
	}
	if err := json.Unmarshal([]byte(options), &job); err != nil {
		return storedReport{}, fmt.Errorf("options of job %d: %w", a.JobID, err)
	}
	if job.Group == "" {
		job.Group = job.Name
	}
	return storedReport{suite: job.Group, file: a}, nil
}
