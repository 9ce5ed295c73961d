package config

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
	// GitLab counts a month as 30 days, and a year as 365.25.
	month = 30 * day
	year  = 8766 * time.Hour
)

// maxDuration is the longest duration that is accepted.
const maxDuration = 100 * year

var durationWord = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([a-z]*)`)

// ParseDuration parses a duration: 1h 30m, 2 weeks and 3 days, 1:30:00, or 90 for
// seconds.
func ParseDuration(in string) (time.Duration, error) {
	rest := strings.ToLower(strings.TrimSpace(in))
	if strings.Contains(rest, ":") {
		return clockDuration(rest)
	}
	var sum float64
	for first := true; rest != "" || first; first = false {
		m := durationWord.FindStringSubmatch(rest)
		if m == nil {
			return 0, errors.New("not a duration")
		}
		unit, ok := durationUnit(m[2])
		if !ok {
			return 0, errors.New("not a unit of time")
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, errors.New("not a number")
		}
		sum += n * float64(unit)
		rest = strings.TrimLeft(rest[len(m[0]):], " ,\t")
		rest = strings.TrimLeft(strings.TrimPrefix(rest, "and "), " ")
	}
	if sum > float64(maxDuration) {
		return 0, errors.New("the duration is too long")
	}
	return time.Duration(math.Round(sum/float64(time.Second))) * time.Second, nil
}

func durationUnit(word string) (time.Duration, bool) {
	switch word {
	case "", "s", "sec", "secs", "second", "seconds":
		return time.Second, true
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute, true
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour, true
	case "d", "dy", "day", "days":
		return day, true
	case "w", "wk", "wks", "week", "weeks":
		return week, true
	case "mo", "mos", "mon", "mons", "month", "months":
		return month, true
	case "y", "yr", "yrs", "year", "years":
		return year, true
	}
	return 0, false
}

// clockDuration parses 1:30 as minutes and seconds, and 1:30:00 with hours.
func clockDuration(in string) (time.Duration, error) {
	parts := strings.Split(in, ":")
	if len(parts) > 3 {
		return 0, errors.New("not a duration")
	}
	var sum time.Duration
	for _, part := range parts {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return 0, errors.New("not a duration")
		}
		sum = sum*60 + time.Duration(n)*time.Second
		if sum > maxDuration {
			return 0, errors.New("the duration is too long")
		}
	}
	return sum, nil
}
