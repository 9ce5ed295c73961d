package ci

import (
	"context"
	"io"
	"regexp"
	"strconv"
	"strings"

	"svc/internal/ci/config"
)

// coverageBlock is how much of a log is looked at at once, from its end on.
const coverageBlock = 64 << 10

var (
	coverageNumber = regexp.MustCompile(`\d+(?:\.\d+)?`)
	colors         = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
)

// coverage finds the coverage in the log of a job that asks for it: the last
// number that its pattern matches. Nil when there is none.
func (s *Service) coverage(ctx context.Context, j *Job) (*float64, error) {
	if j.Options.Coverage == "" {
		return nil, nil
	}
	pattern, err := config.Regexp("/" + strings.Trim(j.Options.Coverage, "/") + "/")
	if err != nil {
		return nil, nil // the CI file was checked, so it is of another time
	}
	l, err := s.logs.OpenLive(ctx, j.ID)
	if l == nil || err != nil {
		return nil, err
	}
	defer l.Close()
	return lastCoverage(l, l.Size, pattern)
}

// lastCoverage looks through the lines from the end on.
func lastCoverage(r io.ReadSeeker, size int64, pattern *regexp.Regexp) (*float64, error) {
	var rest []byte // the beginning of a line whose end was looked at
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
				rest = rest[:coverageBlock] // no line that users wrote is that long
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
		if group != "" && group[0] >= '0' && group[0] <= '9' { // a group may be the decimals alone
			text = group
		}
	}
	n, err := strconv.ParseFloat(coverageNumber.FindString(text), 64)
	if err != nil {
		return nil
	}
	return &n
}
