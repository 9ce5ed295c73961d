package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// TestSuite is the result of the tests of a job. The parallel jobs of one definition
// are one suite.
type TestSuite struct {
	Name   string
	JobIDs []int64
	Cases  []TestCase
	Fault  string // why a report could not be read
	Counts TestCounts
}

// TestCounts has the number of tests by result.
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

// TestReport is the test report of a pipeline.
type TestReport struct {
	Suites []*TestSuite
	Counts TestCounts
}

// maxServedCases and maxServedBytes bound the test cases of one report of a
// pipeline.
const (
	maxServedCases = 20_000
	maxServedBytes = 8 << 20
)

// Builder builds the report of a pipeline from the indexes of its jobs.
type Builder struct {
	Report TestReport
	keep   bool // the cases, not only their numbers
	cases  int  // that may still be added
	bytes  int
}

// NewBuilder returns a builder of an empty report. Without cases it has only the
// numbers.
func NewBuilder(cases bool) *Builder {
	return &Builder{Report: TestReport{Suites: []*TestSuite{}}, keep: cases, cases: maxServedCases, bytes: maxServedBytes}
}

// Add adds the index of a job to a suite.
func (b *Builder) Add(suiteName string, jobID int64, index io.Reader) error {
	lines := bufio.NewReaderSize(index, 16<<10)
	head, err := readSummary(lines)
	if err != nil {
		return err
	}
	suite := b.Report.suite(suiteName)
	suite.JobIDs = append(suite.JobIDs, jobID)
	if head.Fault != "" {
		suite.Fault = head.Fault
	}
	suite.Counts.add(head.Counts)
	b.Report.Counts.add(head.Counts)
	if !b.keep {
		return nil
	}
	left := head.Left
	for n := range head.Kept {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("test case %d: %w", n, err)
		}
		if b.cases--; b.cases < 0 || len(line) > b.bytes {
			left, b.bytes = left+head.Kept-n, 0
			break
		}
		b.bytes -= len(line)
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
