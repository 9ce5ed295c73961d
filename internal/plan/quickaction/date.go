package quickaction

import (
	"strconv"
	"strings"
	"time"
)

// ParseDate parses a date: 2026-12-31, December 31, Dec 31 2026, today, tomorrow,
// in 2 days, Friday, next month.
func ParseDate(text string, now time.Time) (string, bool) {
	now = now.UTC()
	text = strings.ToLower(strings.Join(strings.Fields(strings.NewReplacer("<", "", ">", "", ",", " ").Replace(text)), " "))
	for _, layout := range []string{time.DateOnly, "2006/01/02", "January 2 2006", "Jan 2 2006", "2 January 2006", "2 Jan 2006"} {
		if at, err := time.Parse(layout, withoutOrdinal(text)); err == nil {
			return at.Format(time.DateOnly), true
		}
	}
	for _, layout := range []string{"January 2", "Jan 2", "2 January", "2 Jan"} {
		if at, err := time.Parse(layout, withoutOrdinal(text)); err == nil {
			at = at.AddDate(now.Year(), 0, 0)
			if at.Before(now.AddDate(0, 0, -1)) {
				at = at.AddDate(1, 0, 0)
			}
			return at.Format(time.DateOnly), true
		}
	}
	fields := strings.Fields(strings.TrimPrefix(text, "in "))
	switch text {
	case "today":
		return now.Format(time.DateOnly), true
	case "tomorrow":
		return now.AddDate(0, 0, 1).Format(time.DateOnly), true
	case "next week":
		return now.AddDate(0, 0, 7).Format(time.DateOnly), true
	case "next month":
		return now.AddDate(0, 1, 0).Format(time.DateOnly), true
	}
	if len(fields) == 2 {
		n, err := strconv.Atoi(fields[0])
		if fields[0] == "a" || fields[0] == "one" {
			n, err = 1, nil
		}
		if err == nil && n >= 0 && n <= 10000 {
			switch strings.TrimSuffix(fields[1], "s") {
			case "day":
				return now.AddDate(0, 0, n).Format(time.DateOnly), true
			case "week":
				return now.AddDate(0, 0, 7*n).Format(time.DateOnly), true
			case "month":
				return now.AddDate(0, n, 0).Format(time.DateOnly), true
			case "year":
				return now.AddDate(min(n, 1000), 0, 0).Format(time.DateOnly), true
			}
		}
	}
	last := strings.TrimPrefix(strings.TrimPrefix(text, "this "), "next ")
	for d := 1; d <= 7; d++ {
		at := now.AddDate(0, 0, d)
		if name := strings.ToLower(at.Weekday().String()); last == name || last == name[:3] {
			return at.Format(time.DateOnly), true
		}
	}
	return "", false
}

// withoutOrdinal removes the ordinal suffix from a day of the month, as in
// "december 31st". time.Parse ignores the case of month names.
func withoutOrdinal(text string) string {
	fields := strings.Fields(text)
	for i, w := range fields {
		if len(w) > 2 && w[0] >= '0' && w[0] <= '9' {
			for _, end := range []string{"st", "nd", "rd", "th"} {
				fields[i] = strings.TrimSuffix(fields[i], end)
			}
		}
	}
	return strings.Join(fields, " ")
}
