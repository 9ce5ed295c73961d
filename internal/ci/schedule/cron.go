package schedule

import (
	"errors"
	"strings"
	"time"

	"github.com/hashicorp/cronexpr"
)

// cron is a rule for points in time.
type cron struct{ *cronexpr.Expression }

// anyTime is where a rule is tried from.
var anyTime = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

var errCron = errors.New("not a cron rule")

// parseCron reads a rule of five fields, or one of the short names such as @daily.
// The library accepts rules with seconds and years too. A rule that never comes,
// such as the 31st of April or a range that ends before it starts, is refused.
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

// next returns the first point in time after another, in its zone; false when
// there is none.
func (c *cron) next(after time.Time) (time.Time, bool) {
	t := c.Next(after)
	return t, !t.IsZero()
}
