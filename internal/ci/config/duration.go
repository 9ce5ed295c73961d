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

// numberWords are the names of numbers, after which a unit follows.
var numberWords = map[string]int{
	"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
	"eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
	"eighty": 80, "ninety": 90,
}

var numberPattern = regexp.MustCompile(`^([a-z]+)(?:[- ]([a-z]+))?\s`)

// withDigits replaces the name of a number at the beginning of a text, from one to
// ninety-nine, by its digits.
func withDigits(in string) string {
	m := numberPattern.FindStringSubmatch(in)
	if m == nil {
		return in
	}
	tens, ones := numberWords[m[1]], numberWords[m[2]]
	switch {
	case tens == 0:
		return in
	case tens >= 20 && ones > 0 && ones < 10:
		return strconv.Itoa(tens+ones) + in[len(m[0])-1:]
	}
	return strconv.Itoa(tens) + in[len(m[1]):]
}

// ParseDuration parses a duration: 1h 30m, 2 weeks and 3 days, one week, 1:30:00, or 90
// for seconds.
func ParseDuration(in string) (time.Duration, error) {
	rest := strings.ToLower(strings.TrimSpace(in))
	if strings.Contains(rest, ":") {
		return clockDuration(rest)
	}
	var sum float64
	for first := true; rest != "" || first; first = false {
		rest = withDigits(rest)
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
