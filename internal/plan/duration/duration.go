// Package duration parses and formats the durations of time tracking, such as
// "1w 2d 3h 30m".
package duration

import (
	"regexp"
	"strconv"
	"strings"
)

// Units of time tracking, in seconds. A day has eight working hours, a week five
// days and a month four weeks.
const (
	minute = 60
	hour   = 60 * minute
	day    = 8 * hour
	week   = 5 * day
	month  = 4 * week
)

// Max is the longest duration in seconds: 1000 years of working time.
const Max = 1000 * 12 * month

var (
	pattern     = regexp.MustCompile(`^[+-]?(?:\s*\d{1,12}(?:\.\d{1,6})?\s*[a-z]*,?)+$`)
	partPattern = regexp.MustCompile(`(\d{1,12}(?:\.\d{1,6})?)\s*([a-z]*)`)
)

// unit returns the length of a unit in seconds, or 0 if it is unknown. The default
// unit is hours.
func unit(name string) float64 {
	switch name {
	case "s", "sec", "secs", "second", "seconds":
		return 1
	case "m", "min", "mins", "minute", "minutes":
		return minute
	case "", "h", "hr", "hrs", "hour", "hours":
		return hour
	case "d", "dy", "day", "days":
		return day
	case "w", "wk", "week", "weeks":
		return week
	case "mo", "mos", "month", "months":
		return month
	}
	return 0
}

// Parse parses a duration such as "1w 2d 3h 30m" and returns it in
// seconds. It may be negative.
func Parse(text string) (seconds int64, ok bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	if len(text) > 100 || !pattern.MatchString(text) {
		return 0, false
	}
	total := 0.0
	for _, part := range partPattern.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(part[1], 64)
		size := unit(part[2])
		if err != nil || size == 0 {
			return 0, false
		}
		total += n * size
	}
	if total > Max {
		return 0, false
	}
	if strings.HasPrefix(text, "-") {
		total = -total
	}
	return int64(total), true
}

// Format formats a duration in seconds for Parse. It returns an
// empty string for 0.
func Format(seconds int64) string {
	sign := ""
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	var parts []string
	for _, u := range []struct {
		size int64
		name string
	}{{month, "mo"}, {week, "w"}, {day, "d"}, {hour, "h"}, {minute, "m"}, {1, "s"}} {
		if n := seconds / u.size; n > 0 {
			parts = append(parts, strconv.FormatInt(n, 10)+u.name)
			seconds %= u.size
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return sign + strings.Join(parts, " ")
}
