package report

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

const (
	// MaxFile is the maximum size of a report, uncompressed.
	MaxFile = 32 << 20
	// maxKeptCases is the maximum size of the cases of one report in its index.
	// Cases beyond that are only counted.
	maxKeptCases = 8 << 20
	maxSummary   = 4 << 10
)

// summary is the first line of the index of a report. The cases follow, one per
// line, as JSON.
type summary struct {
	Counts TestCounts
	Fault  string // why the report could not be read to its end
	Kept   int    // cases that follow
	Left   int    // cases that were only counted
}

// Index returns the index of a JUnit report: its numbers and test cases, within
// limits. Requests read it instead of the report. The index of a report that
// cannot be parsed says why.
func Index(ctx context.Context, in io.Reader) (io.Reader, error) {
	var head summary
	var cases []byte
	read := &countingReader{r: io.LimitReader(in, MaxFile)}
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
		return nil, ctx.Err()
	case read.n >= MaxFile:
		head.Fault = fmt.Sprintf("JUnit XML parsing failed: the file has more than %d MiB", MaxFile>>20)
	case fault != nil:
		head.Fault = "JUnit XML parsing failed: " + fault.Error()
	}
	return head.index(cases)
}

// FaultyIndex returns the index of a report that cannot be read.
func FaultyIndex(fault string) (io.Reader, error) {
	return summary{Fault: "JUnit XML parsing failed: " + fault}.index(nil)
}

func (s summary) index(cases []byte) (io.Reader, error) {
	line, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return io.MultiReader(bytes.NewReader(append(line, '\n')), bytes.NewReader(cases)), nil
}

// countingReader counts the bytes that are read.
type countingReader struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func readSummary(in *bufio.Reader) (summary, error) {
	line, err := in.ReadSlice('\n')
	if err != nil || len(line) > maxSummary {
		return summary{}, fmt.Errorf("index of a test report: %w", err)
	}
	var head summary
	return head, json.Unmarshal(line, &head)
}
