package report

import (
	"io"
	"regexp"
	"strconv"
	"strings"

	"svc/internal/ci/config"
)

// coverageBlock is the size of the blocks in which a log is searched, from its end.
const coverageBlock = 64 << 10

var (
	coverageNumber = regexp.MustCompile(`\d+(?:\.\d+)?`)
	colors         = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
)

// Coverage returns the coverage in a job log of size bytes: the last number that the
// pattern of the CI/CD configuration matches. Nil if there is none.
func Coverage(log io.ReadSeeker, size int64, pattern string) (*float64, error) {
	re, err := config.Regexp("/" + strings.Trim(pattern, "/") + "/")
	if err != nil {
		return nil, nil // the pattern was accepted by an older version
	}
	return lastCoverage(log, size, re)
}

// lastCoverage searches the lines from the end.
func lastCoverage(r io.ReadSeeker, size int64, pattern *regexp.Regexp) (*float64, error) {
	var rest []byte // the end of a line whose start is in the previous block
	for end := size; end > 0; {
		from := max(0, end-coverageBlock)
		block := make([]byte, end-from, end-from+int64(len(rest)))
		if _, err := r.Seek(from, io.SeekStart); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(r, block); err != nil {
			return nil, err
		}
		block = append(block, rest...)
		lines := strings.Split(string(block), "\n")
		first := 0
		if from > 0 {
			first = 1
			if rest = []byte(lines[0]); len(rest) > coverageBlock {
				rest = rest[:coverageBlock] // longer lines are cut
			}
		}
		for i := len(lines) - 1; i >= first; i-- {
			if found := coverageIn(lines[i], pattern); found != nil {
				return found, nil
			}
		}
		end = from
	}
	return nil, nil
}

func coverageIn(line string, pattern *regexp.Regexp) *float64 {
	all := pattern.FindAllStringSubmatch(colors.ReplaceAllString(line, ""), -1)
	if len(all) == 0 {
		return nil
	}
	match := all[len(all)-1]
	text := match[0]
	for _, group := range match[1:] {
		if group != "" && group[0] >= '0' && group[0] <= '9' { // a group may match the decimals only
			text = group
		}
	}
	n, err := strconv.ParseFloat(coverageNumber.FindString(text), 64)
	if err != nil {
		return nil
	}
	return &n
}
