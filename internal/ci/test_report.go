package ci

import (
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
	maxReportFile = 64 << 20 // bytes of one report, unpacked
	maxReports    = 200      // files of one pipeline
)

// TestReport gives what the tests of a pipeline say, for those who see the
// pipelines of the project. Without cases only the numbers are kept. NotFound.
func (s *Service) TestReport(ctx context.Context, by actor.Actor, ref project.Ref, pipelineID int64, cases bool) (*TestReport, error) {
	p, err := s.seePipelines(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	pipeline, err := findPipeline(ctx, s.DB, p.ID, pipelineID)
	if err != nil {
		return nil, err
	}
	list, err := db.All(ctx, s.DB, scanReport, `
		SELECT j.options, `+artifactColumns+` FROM jobs j JOIN job_artifacts a ON a.job_id = j.id AND a.kind = 'junit'
		WHERE j.pipeline_id = ? AND NOT j.retried ORDER BY j.stage_index, j.id LIMIT ?`, pipeline.ID, maxReports)
	if err != nil {
		return nil, fmt.Errorf("reports of pipeline %d: %w", pipelineID, err)
	}
	report := &TestReport{Suites: []*TestSuite{}}
	for _, r := range list {
		if err := s.addReport(ctx, report, r, cases); err != nil {
			return nil, fmt.Errorf("report of job %d: %w", r.file.JobID, err)
		}
	}
	return report, nil
}

// storedReport is the report of a job, and the name that its suite has.
type storedReport struct {
	suite string
	file  *Artifact
}

func (s *Service) addReport(ctx context.Context, report *TestReport, r storedReport, keep bool) error {
	in, err := s.openPlain(ctx, r.file, maxReportFile)
	if errs.Is(err, errs.KindNotFound) {
		return nil // it went meanwhile
	}
	suite := report.suite(r.suite)
	suite.JobIDs = append(suite.JobIDs, r.file.JobID)
	if errs.Is(err, errs.KindInvalid) {
		suite.Fault = "JUnit XML parsing failed: the file is not packed as it should be"
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	cases, fault := parseJUnit(in)
	if fault != nil {
		suite.Fault = "JUnit XML parsing failed: " + fault.Error()
	}
	counts := count(cases)
	suite.Counts.add(counts)
	report.Counts.add(counts)
	if keep {
		suite.Cases = append(suite.Cases, cases...)
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

func count(cases []TestCase) TestCounts {
	var c TestCounts
	for _, t := range cases {
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
	return c
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
