package web

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"svc/internal/user"
)

// calendar has the contributions of a user in the last year that the visitor
// can see.
type calendar struct {
	Total  int
	Days   template.HTML // the picture
	Months []monthRow    // the same as text, for screen readers
}

// monthRow has the contributions of a month.
type monthRow struct {
	Name string
	N    int
}

// cell is the distance between days in the picture, in pixels.
const cell = 13

func (w *Web) calendar(v *visit, u *user.User) (*calendar, error) {
	today := w.Now().UTC().Truncate(24 * time.Hour)
	first := today.AddDate(-1, 0, 1)
	days, err := w.Activity.Days(v, v.actor, u, first)
	if err != nil {
		return nil, err
	}
	begin := time.Monday
	if v.session != nil {
		begin = time.Weekday(v.session.User.Appearance.Sunday())
	}
	return drawCalendar(first, today, begin, days), nil
}

// drawCalendar draws a week as a column, from the day that it begins with down. Days without
// anything are one line of the picture, the others a square each: a page stays
// small that way.
func drawCalendar(first, last time.Time, begin time.Weekday, days map[string]int) *calendar {
	c := &calendar{}
	week := first.AddDate(0, 0, -(int(first.Weekday())+7-int(begin))%7)
	var full, empty, names strings.Builder
	for day := first; !day.After(last); day = day.AddDate(0, 0, 1) {
		since := int(day.Sub(week).Hours()) / 24
		x, y := since/7*cell, 14+since%7*cell
		month := day.Format("January 2006")
		if len(c.Months) == 0 || c.Months[len(c.Months)-1].Name != month {
			c.Months = append(c.Months, monthRow{Name: month})
			if day.Day() == 1 || day.Equal(first) && day.Day() < 20 {
				fmt.Fprintf(&names, `<text x="%d" y="9">%s</text>`, x, day.Format("Jan"))
			}
		}
		n := days[day.Format(time.DateOnly)]
		if n == 0 {
			fmt.Fprintf(&empty, "M%d %dh11v11h-11z", x, y)
			continue
		}
		c.Total += n
		c.Months[len(c.Months)-1].N += n
		fmt.Fprintf(&full, `<rect x="%d" y="%d" class="q%d"><title>%s: %d</title></rect>`, x, y, shade(n), day.Format("2 Jan 2006"), n)
	}
	weeks := int(last.Sub(week).Hours())/24/7 + 1
	c.Days = template.HTML(fmt.Sprintf(`<svg class="calendar" viewBox="0 0 %d %d" role="img" aria-label="%s in the last year">%s<path d="%s"/>%s</svg>`,
		weeks*cell, 14+7*cell, plural(c.Total, "contribution"), names.String(), empty.String(), full.String()))
	return c
}

// shade returns the color intensity of a day.
func shade(n int) int {
	switch {
	case n < 3:
		return 1
	case n < 8:
		return 2
	case n < 20:
		return 3
	}
	return 4
}
