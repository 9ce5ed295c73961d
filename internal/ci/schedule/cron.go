package schedule

import (
	"errors"
	"strings"
	"time"

	"github.com/hashicorp/cronexpr"
)

// cron is a rule for points in time.
type cron struct{ *cronexpr.Expression }

// anyTime is the time from which rules are checked.
var anyTime = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

var errCron = errors.New("not a cron rule")

// parseCron parses a rule of five fields, or a short name such as @daily. The library also
// accepts rules with seconds and years, which are refused here. Rules that never match are
// refused too, such as April 31 or a range that ends before it starts.
func parseCron(text string) (*cron, error) {
	if len(strings.Fields(text)) != 5 && !strings.HasPrefix(text, "@") {
		return nil, errCron
	}
	e, err := cronexpr.Parse(text)
	if err != nil || e.Next(anyTime).IsZero() {
		return nil, errCron
	}
	return &cron{e}, nil
}

// next returns the next time of the rule after a time, in its time zone; false if there
// is none.
func (c *cron) next(after time.Time) (time.Time, bool) {
	t := c.Next(after)
	return t, !t.IsZero()
}
