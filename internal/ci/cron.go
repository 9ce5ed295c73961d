package ci

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// cron is a rule for points in time: minutes, hours, days, months and days of
// the week as sets of bits.
type cron struct {
	minute, hour, day, month, weekday uint64
	anyDay, anyWeekday                bool // the field was a star
}

// cronYears is how far ahead a point in time is looked for: the 29th of
// February on a certain day of the week comes every 40 years at worst.
const cronYears = 41

var errCron = errors.New("not a cron rule")

// parseCron reads a rule of five fields, or one of the short names.
func parseCron(text string) (*cron, error) {
	switch strings.TrimSpace(text) {
	case "@hourly":
		text = "0 * * * *"
	case "@daily", "@midnight":
		text = "0 0 * * *"
	case "@weekly":
		text = "0 0 * * 0"
	case "@monthly":
		text = "0 0 1 * *"
	case "@yearly", "@annually":
		text = "0 0 1 1 *"
	}
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return nil, errCron
	}
	c := &cron{anyDay: strings.HasPrefix(fields[2], "*"), anyWeekday: strings.HasPrefix(fields[4], "*")}
	for i, f := range []struct {
		set      *uint64
		from, to int
		names    string
	}{
		{&c.minute, 0, 59, ""}, {&c.hour, 0, 23, ""}, {&c.day, 1, 31, ""},
		{&c.month, 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"}, {&c.weekday, 0, 7, "sun mon tue wed thu fri sat"},
	} {
		var err error
		if *f.set, err = cronField(fields[i], f.from, f.to, strings.Fields(f.names)); err != nil {
			return nil, err
		}
	}
	if c.weekday&(1<<7) != 0 { // Sunday has two numbers
		c.weekday |= 1
	}
	return c, nil
}

// cronField reads a list of values, ranges and steps.
func cronField(text string, from, to int, names []string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > to {
				return 0, errCron
			}
		}
		first, last := from, to
		if span != "*" {
			low, high, isRange := strings.Cut(span, "-")
			if first, err = cronValue(low, from, to, names); err != nil {
				return 0, err
			}
			switch {
			case isRange:
				if last, err = cronValue(high, from, to, names); err != nil {
					return 0, err
				}
			case !stepped:
				last = first
			}
			if last < first {
				return 0, errCron
			}
		}
		for n := first; n <= last; n += step {
			set |= 1 << n
		}
	}
	return set, nil
}

func cronValue(text string, from, to int, names []string) (int, error) {
	for i, name := range names {
		if strings.EqualFold(text, name) {
			return i + from, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < from || n > to || strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-") {
		return 0, errCron
	}
	return n, nil
}

// next is the first point in time after another, in its zone; false when
// there is none.
func (c *cron) next(after time.Time) (time.Time, bool) {
	t := after.Truncate(time.Minute).Add(time.Minute)
	end := after.AddDate(cronYears, 0, 0)
	for t.Before(end) {
		switch {
		case c.month&(1<<t.Month()) == 0:
			t = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, t.Location())
		case !c.onDay(t):
			t = later(t, time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, t.Location()))
		case c.hour&(1<<t.Hour()) == 0:
			// By the clock: an hour that a change of the clock leaves out is
			// passed over.
			t = t.Add(time.Duration(60-t.Minute()) * time.Minute)
		case c.minute&(1<<t.Minute()) == 0:
			t = t.Add(time.Minute)
		default:
			return t, true
		}
	}
	return time.Time{}, false
}

// later makes sure that time goes forward where midnight is not on the clock.
func later(t, next time.Time) time.Time {
	if next.After(t) {
		return next
	}
	return t.Add(time.Hour)
}

// onDay reports whether the rule holds on a day. When both kinds of days are
// limited, one of them is enough.
func (c *cron) onDay(t time.Time) bool {
	day, weekday := c.day&(1<<t.Day()) != 0, c.weekday&(1<<t.Weekday()) != 0
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday
}
