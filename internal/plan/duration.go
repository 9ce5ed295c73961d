package plan

import (
	"regexp"
	"strconv"
	"strings"
)

// The units of time tracking. A day has eight hours, a week five days and a month
// four weeks of work.
const (
	minute = 60
	hour   = 60 * minute
	day    = 8 * hour
	week   = 5 * day
	month  = 4 * week
)

// MaxDuration is the longest duration in seconds: a thousand years of work.
const MaxDuration = 1000 * 12 * month

var (
	durationText = regexp.MustCompile(`^[+-]?(?:\s*\d{1,12}(?:\.\d{1,6})?\s*[a-z]*,?)+$`)
	durationPart = regexp.MustCompile(`(\d{1,12}(?:\.\d{1,6})?)\s*([a-z]*)`)
)

// unit returns the seconds of a unit by its name; 0 for an unknown one. A number
// without a unit counts hours.
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

// ParseDuration reads a duration such as "1w 2d 3h 30m" in seconds. It can be
// negative.
func ParseDuration(text string) (seconds int64, ok bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	if len(text) > 100 || !durationText.MatchString(text) {
		return 0, false
	}
	total := 0.0
	for _, part := range durationPart.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(part[1], 64)
		size := unit(part[2])
		if err != nil || size == 0 {
			return 0, false
		}
		total += n * size
	}
	if total > MaxDuration {
		return 0, false
	}
	if strings.HasPrefix(text, "-") {
		total = -total
	}
	return int64(total), true
}

// FormatDuration is the inverse of ParseDuration; empty for 0.
func FormatDuration(seconds int64) string {
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
