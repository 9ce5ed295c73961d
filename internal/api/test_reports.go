package api

import (
	"svc/internal/ci/report"
	"svc/internal/project"
)

func (a *API) testReportRoutes() {
	a.tag("Pipelines")
	handle(a, "GET /projects/{id}/pipelines/{pipeline_id}/test_report", readAPI.orAnonymous(), a.getTestReport, summary("Get a test report for a pipeline"))
	handle(a, "GET /projects/{id}/pipelines/{pipeline_id}/test_report_summary", readAPI.orAnonymous(), a.getTestSummary, summary("Get a test report summary for a pipeline"))
}

type testReportParams struct {
	Project    project.Ref `param:"id" doc:"Project ID or full path."`
	PipelineID int64       `param:"pipeline_id"`
}

type testReportJSON struct {
	TotalTime    float64         `json:"total_time"`
	TotalCount   int             `json:"total_count"`
	SuccessCount int             `json:"success_count"`
	FailedCount  int             `json:"failed_count"`
	SkippedCount int             `json:"skipped_count"`
	ErrorCount   int             `json:"error_count"`
	TestSuites   []testSuiteJSON `json:"test_suites"`
}

type testSuiteJSON struct {
	Name         string         `json:"name"`
	TotalTime    float64        `json:"total_time"`
	TotalCount   int            `json:"total_count"`
	SuccessCount int            `json:"success_count"`
	FailedCount  int            `json:"failed_count"`
	SkippedCount int            `json:"skipped_count"`
	ErrorCount   int            `json:"error_count"`
	SuiteError   *string        `json:"suite_error"`
	TestCases    []testCaseJSON `json:"test_cases"`
}

type testCaseJSON struct {
	Status        string  `json:"status"`
	Name          string  `json:"name"`
	ClassName     string  `json:"classname"`
	File          *string `json:"file"`
	ExecutionTime float64 `json:"execution_time"`
	SystemOutput  *string `json:"system_output"`
	StackTrace    *string `json:"stack_trace"`
	// Always null: svc does not record these.
	AttachmentURL  *string   `json:"attachment_url"`
	RecentFailures *struct{} `json:"recent_failures"`
}

// getTestReport: https://docs.gitlab.com/api/pipelines/#get-a-test-report-for-a-pipeline
func (a *API) getTestReport(c *call, p testReportParams) (testReportJSON, error) {
	r, err := a.CI.TestReport(c, c.actor, p.Project, p.PipelineID, true)
	if err != nil {
		return testReportJSON{}, err
	}
	n := r.Counts
	return testReportJSON{n.Time, n.Total, n.Success, n.Failed, n.Skipped, n.Error, mapped(r.Suites, toTestSuite)}, nil
}

func toTestSuite(s *report.TestSuite) testSuiteJSON {
	n := s.Counts
	return testSuiteJSON{
		s.Name, n.Time, n.Total, n.Success, n.Failed, n.Skipped, n.Error, textOrNull(s.Fault), mapped(s.Cases, func(t report.TestCase) testCaseJSON {
			return testCaseJSON{string(t.Status), t.Name, t.ClassName, textOrNull(t.File), t.Time, textOrNull(t.Output), textOrNull(t.Trace), nil, nil}
		}),
	}
}

type testSummaryJSON struct {
	Total      testTotalJSON          `json:"total"`
	TestSuites []testSuiteSummaryJSON `json:"test_suites"`
}

type testTotalJSON struct {
	Time       float64 `json:"time"`
	Count      int     `json:"count"`
	Success    int     `json:"success"`
	Failed     int     `json:"failed"`
	Skipped    int     `json:"skipped"`
	Error      int     `json:"error"`
	SuiteError *string `json:"suite_error"`
}

type testSuiteSummaryJSON struct {
	Name         string  `json:"name"`
	TotalTime    float64 `json:"total_time"`
	TotalCount   int     `json:"total_count"`
	SuccessCount int     `json:"success_count"`
	FailedCount  int     `json:"failed_count"`
	SkippedCount int     `json:"skipped_count"`
	ErrorCount   int     `json:"error_count"`
	BuildIDs     []int64 `json:"build_ids"`
	SuiteError   *string `json:"suite_error"`
}

// getTestSummary: https://docs.gitlab.com/api/pipelines/#get-a-test-report-summary-for-a-pipeline
func (a *API) getTestSummary(c *call, p testReportParams) (testSummaryJSON, error) {
	r, err := a.CI.TestReport(c, c.actor, p.Project, p.PipelineID, false)
	if err != nil {
		return testSummaryJSON{}, err
	}
	n := r.Counts
	return testSummaryJSON{testTotalJSON{Time: n.Time, Count: n.Total, Success: n.Success, Failed: n.Failed, Skipped: n.Skipped, Error: n.Error},
		mapped(r.Suites, func(s *report.TestSuite) testSuiteSummaryJSON {
			n := s.Counts
			return testSuiteSummaryJSON{s.Name, n.Time, n.Total, n.Success, n.Failed, n.Skipped, n.Error, s.JobIDs, textOrNull(s.Fault)}
		})}, nil
}
