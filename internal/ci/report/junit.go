// Package report parses the reports of jobs: JUnit test reports, for which it writes
// indexes, dotenv reports, and the coverage in a job log.
package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// TestCase is one test of a report.
type TestCase struct {
	Status    TestStatus
	Name      string
	ClassName string
	File      string
	Time      float64 // seconds
	Output    string  // the message of a failure
	Trace     string
}

// TestStatus is the result of a test.
type TestStatus string

// The results of tests.
const (
	TestSuccess TestStatus = "success"
	TestFailed  TestStatus = "failed"
	TestSkipped TestStatus = "skipped"
	TestError   TestStatus = "error"
)

const (
	maxTestCases  = 100_000
	maxTestOutput = 16 << 10 // bytes that are stored of the output and of the trace of a test
	maxTestName   = 1 << 10  // bytes that are stored of each name of a test
)

// junitCase is a testcase as JUnit writes it.
type junitCase struct {
	Name      string         `xml:"name,attr"`
	ClassName string         `xml:"classname,attr"`
	File      string         `xml:"file,attr"`
	Time      string         `xml:"time,attr"`
	Failures  []junitProblem `xml:"failure"`
	Errors    []junitProblem `xml:"error"`
	Skipped   []junitProblem `xml:"skipped"`
	SystemErr string         `xml:"system-err"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// parseJUnit calls with for each test case of a report, which may consist of several
// concatenated files, as runners join them. It returns an error if the rest cannot
// be parsed.
func parseJUnit(in io.Reader, with func(TestCase)) error {
	decoder := xml.NewDecoder(in)
	decoder.Strict = false
	decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	depth, cases := 0, 0
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return errors.New("the XML cannot be read")
		}
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name.Local != "testcase" {
				if depth++; depth > 100 {
					return errors.New("the XML is nested too deep")
				}
				continue
			}
			var c junitCase
			if err := decoder.DecodeElement(&c, &t); err != nil {
				return errors.New("a test case cannot be read")
			}
			if cases++; cases > maxTestCases {
				return fmt.Errorf("there are more than %d test cases", maxTestCases)
			}
			with(c.plain())
		case xml.EndElement:
			depth--
		}
	}
}

func (c *junitCase) plain() TestCase {
	out := TestCase{Status: TestSuccess, Name: cut(c.Name, maxTestName), ClassName: cut(c.ClassName, maxTestName), File: cut(c.File, maxTestName)}
	if n, err := strconv.ParseFloat(strings.ReplaceAll(c.Time, ",", ""), 64); err == nil && n >= 0 && n < 1e9 {
		out.Time = n
	}
	report := func(status TestStatus, list []junitProblem) {
		out.Status = status
		var parts []string
		for _, p := range list {
			text := strings.TrimSpace(p.Text)
			if text == "" {
				text = p.Message
			}
			parts = append(parts, text)
		}
		out.Output = cut(strings.Join(parts, "\n"), maxTestOutput)
		out.Trace = cut(c.SystemErr, maxTestOutput)
	}
	switch {
	case len(c.Failures) > 0:
		report(TestFailed, c.Failures)
	case len(c.Errors) > 0:
		report(TestError, c.Errors)
	case len(c.Skipped) > 0:
		report(TestSkipped, c.Skipped)
	}
	return out
}

func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
