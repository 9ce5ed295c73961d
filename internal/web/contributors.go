package web

import (
	"html/template"
	"strings"
	"time"

	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/user"
)

func (w *Web) contributorPages() {
	w.projectPage("GET graphs", anyone, w.contributors)
	w.projectPage("GET graphs/*", anyone, w.contributors)
}

// contributorsPage lists the authors of the commits of a revision.
type contributorsPage struct {
	head
	Ref          string
	Plot         template.HTML
	Span         string
	Contributors []person
	Count        int // of contributors
	Commits      int
	Counting     bool // more commits are being read
	// Lines counts the changed lines. The count starts when the commits are counted;
	// nil before that, and for visitors who have not signed in.
	Lines *git.AuthorCount
}

// person is a contributor.
type person struct {
	git.Contributor
	By   *user.User // the account, if there is one
	Plot template.HTML
	// Lined reports whether the changed lines of the contributor were counted.
	Lined bool
}

func (contributorsPage) view() string    { return "project/contributors" }
func (p contributorsPage) title() string { return "Contributors · " + p.Project.FullName() }

// lineWait is how long a page waits for the counts of commits and of changed lines, if
// those of commits do not take longer.
const lineWait = 100 * time.Millisecond

// shownPeople is the maximum number of contributors on a page.
const shownPeople = 30

func (w *Web) contributors(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "contributors")
	if err != nil {
		return err
	}
	p := contributorsPage{head: h, Ref: v.rest()}
	began := w.Now()
	count, err := w.Repos.CountAuthors(v, v.actor, h.in(), p.Ref)
	if err != nil {
		return err
	}
	list := count.Authors
	p.Count, p.Counting = len(list), !count.Done
	if p.Counting { // the browser loads the page again, without a script
		v.w.Header().Set("Refresh", "1")
	}
	lines := map[string]git.Stat{}
	// Counting takes minutes in a large repository, so visitors who have not signed
	// in do not start it.
	if count.Done && len(list) > 0 && !v.actor.Anonymous() {
		if p.Lines, err = w.Repos.CountLines(v, v.actor, h.in(), p.Ref, lineWait-w.Now().Sub(began)); err != nil {
			return err
		}
		for _, c := range p.Lines.Authors {
			lines[strings.ToLower(c.Email)] = c.Stat
		}
		if !p.Lines.Done {
			v.w.Header().Set("Refresh", "5")
		}
	}
	all := map[int64]int{}
	for _, c := range list {
		p.Commits += c.Commits
		for week, n := range c.Weeks {
			all[week] += n
		}
	}
	first, last := span(all)
	p.Plot = plot(all, first, last, "Commits over time")
	if len(all) > 0 {
		p.Span = weekStart(first).Format("January 2006")
		if until := weekStart(last).Format("January 2006"); until != p.Span {
			p.Span += " to " + until
		}
	}
	list = list[:min(len(list), shownPeople)]
	addresses := make([]string, len(list))
	for i, c := range list {
		addresses[i] = c.Email
	}
	users, err := w.Users.FindByEmails(v, addresses)
	if err != nil {
		return err
	}
	for _, c := range list {
		one := person{Contributor: c, By: users[strings.ToLower(c.Email)], Plot: plot(c.Weeks, first, last, "Commits of "+shown(c.Name)+" over time")}
		one.Stat, one.Lined = lines[strings.ToLower(c.Email)]
		p.Contributors = append(p.Contributors, one)
	}
	return v.show(p)
}

// span is the first and the last week that has commits.
func span(weeks map[int64]int) (first, last int64) {
	for week := range weeks {
		if first == 0 || week < first {
			first = week
		}
		last = max(last, week)
	}
	return first, last
}

func weekStart(week int64) time.Time {
	return time.Unix(week*int64(git.Week/time.Second), 0).UTC()
}

// plotBars is the maximum number of bars of a plot.
const plotBars = 80

// plot draws commits over time as bars, as many weeks in each as are needed.
func plot(weeks map[int64]int, first, last int64, label string) template.HTML {
	if len(weeks) == 0 {
		return ""
	}
	step := (last-first)/plotBars + 1
	n := (last-first)/step + 1
	bars := make([]int64, n)
	for week, commits := range weeks {
		bars[(week-first)/step] += int64(commits)
	}
	return drawColumns(bars, max(int(n), 26), "plot", label, func(i int) string { // few bars are not drawn as wide as the page
		return plural(int(bars[i]), "commit") + " from " + weekStart(first+int64(i)*step).Format("2 Jan 2006")
	})
}
