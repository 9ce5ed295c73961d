package repo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// formatDate writes a time by a strftime pattern, as configuration files hold
// it. What it does not know stays as it is. The result is one line: it is part
// of a heading.
func formatDate(pattern string, at time.Time) string {
	var out strings.Builder
	for pattern != "" {
		before, rest, found := strings.Cut(pattern, "%")
		out.WriteString(before)
		if !found {
			break
		}
		flag := byte(0)
		if len(rest) > 1 && strings.IndexByte("-_0^", rest[0]) >= 0 {
			flag, rest = rest[0], rest[1:]
		}
		if rest == "" {
			out.WriteByte('%')
			break
		}
		text, ok := dateDirective(rest[0], flag, at)
		if !ok {
			text = "%" + rest[:1]
			if flag != 0 {
				text = "%" + string(flag) + rest[:1]
			}
		}
		out.WriteString(text)
		pattern = rest[1:]
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

func dateDirective(c, flag byte, at time.Time) (string, bool) {
	pad := func(n, width int, with byte) string {
		switch flag {
		case '-':
			return strconv.Itoa(n)
		case '_':
			with = ' '
		case '0':
			with = '0'
		}
		if with == ' ' {
			return fmt.Sprintf("%*d", width, n)
		}
		return fmt.Sprintf("%0*d", width, n)
	}
	word := func(layout string) string {
		text := at.Format(layout)
		if flag == '^' {
			return strings.ToUpper(text)
		}
		return text
	}
	hour12 := (at.Hour()+11)%12 + 1
	switch c {
	case 'Y':
		return pad(at.Year(), 4, '0'), true
	case 'C':
		return pad(at.Year()/100, 2, '0'), true
	case 'y':
		return pad(at.Year()%100, 2, '0'), true
	case 'm':
		return pad(int(at.Month()), 2, '0'), true
	case 'B':
		return word("January"), true
	case 'b', 'h':
		return word("Jan"), true
	case 'd':
		return pad(at.Day(), 2, '0'), true
	case 'e':
		return pad(at.Day(), 2, ' '), true
	case 'j':
		return pad(at.YearDay(), 3, '0'), true
	case 'A':
		return word("Monday"), true
	case 'a':
		return word("Mon"), true
	case 'u':
		return strconv.Itoa((int(at.Weekday())+6)%7 + 1), true
	case 'w':
		return strconv.Itoa(int(at.Weekday())), true
	case 'G', 'V':
		year, week := at.ISOWeek()
		if c == 'G' {
			return pad(year, 4, '0'), true
		}
		return pad(week, 2, '0'), true
	case 'H':
		return pad(at.Hour(), 2, '0'), true
	case 'k':
		return pad(at.Hour(), 2, ' '), true
	case 'I':
		return pad(hour12, 2, '0'), true
	case 'l':
		return pad(hour12, 2, ' '), true
	case 'M':
		return pad(at.Minute(), 2, '0'), true
	case 'S':
		return pad(at.Second(), 2, '0'), true
	case 'p':
		return at.Format("PM"), true
	case 'P':
		return at.Format("pm"), true
	case 'z':
		return at.Format("-0700"), true
	case 'Z':
		return at.Format("MST"), true
	case 's':
		return strconv.FormatInt(at.Unix(), 10), true
	case 'F':
		return at.Format("2006-01-02"), true
	case 'D', 'x':
		return at.Format("01/02/06"), true
	case 'T', 'X':
		return at.Format("15:04:05"), true
	case 'R':
		return at.Format("15:04"), true
	case 'n', 't':
		return " ", true
	case '%':
		return "%", true
	}
	return "", false
}
