package errortrack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Status is the triage status of an error.
type Status string

// The statuses. A resolved error that occurs again becomes unresolved; an ignored
// error stays ignored.
const (
	Unresolved Status = "unresolved"
	Resolved   Status = "resolved"
	Ignored    Status = "ignored"
)

// Statuses returns all statuses.
func Statuses() []Status { return []Status{Unresolved, Resolved, Ignored} }

// Error is a group of similar events of a project.
type Error struct {
	ID           int64
	ProjectID    int64
	Type         string // of the exception; empty for a message
	Title        string
	Culprit      string
	Platform     string
	Level        string
	Status       Status
	Events       int64 // all events, including those that are no longer stored
	Users        int64 // affected users, counted up to CountedUsers
	FirstSeenAt  time.Time
	LastSeenAt   time.Time
	FirstRelease string
	LastRelease  string

	Hours []int64 // number of events in each of the last 24 hours, newest last
}

// Sort is the order of a list of errors.
type Sort string

// The orders; all are descending.
const (
	ByLastSeen  Sort = "last_seen"
	ByFirstSeen Sort = "first_seen"
	ByFrequency Sort = "frequency"
)

// Filter selects errors; zero values select all.
type Filter struct {
	Status      Status
	Environment string
	Search      string
	Sort        Sort
}

// Errors lists the errors of a project. Requires access to error tracking.
// NotFound.
func (s *Service) Errors(ctx context.Context, by actor.Actor, ref project.Ref, f Filter, p db.Paging) (db.Page[*Error], error) {
	in, err := s.reader(ctx, by, ref)
	if err != nil {
		return db.Page[*Error]{}, err
	}
	page, err := listErrors(ctx, s.DB, in.ID, f, p)
	if err != nil {
		return page, fmt.Errorf("list errors: %w", err)
	}
	if err := s.fillHours(ctx, page.Items); err != nil {
		return page, fmt.Errorf("frequency of errors: %w", err)
	}
	return page, nil
}

// dayHours is the number of hours in a day.
const dayHours = 24

// fillHours reads the hourly counts of the last day of each error.
func (s *Service) fillHours(ctx context.Context, list []*Error) error {
	if len(list) == 0 {
		return nil
	}
	var ids []int64
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	first := hourOf(s.Now()) - dayHours + 1
	counts, err := findHours(ctx, s.DB, ids, first)
	if err != nil {
		return err
	}
	for _, e := range list {
		e.Hours = spread(counts[e.ID], first, dayHours)
	}
	return nil
}

// spread converts counts by hour to a list of n hours.
func spread(counts map[int64]int64, first int64, n int) []int64 {
	list := make([]int64, n)
	for hour, events := range counts {
		if i := hour - first; i >= 0 && i < int64(n) {
			list[i] = events
		}
	}
	return list
}

// Overview is the summary above the list of errors of a project.
type Overview struct {
	Counts       map[Status]int
	Environments []string
	Active       bool // errors are collected by the integrated service
}

// Overview counts the errors of a project. Requires access to error tracking.
// NotFound.
func (s *Service) Overview(ctx context.Context, by actor.Actor, ref project.Ref) (*Overview, error) {
	in, err := s.reader(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	o := &Overview{}
	if o.Counts, err = countStatuses(ctx, s.DB, in.ID); err == nil {
		o.Environments, err = listEnvironments(ctx, s.DB, in.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("overview of errors: %w", err)
	}
	setup, err := findSetup(ctx, s.DB, in.ID)
	if errors.Is(err, db.ErrNoRows) {
		return o, nil
	}
	if err != nil {
		return nil, fmt.Errorf("overview of errors: %w", err)
	}
	o.Active = setup.Active && setup.Integrated
	return o, nil
}

// Frequency is the number of events of an error over time.
type Frequency struct {
	Hours []int64 // in each of the last 24 hours
	Days  []int64 // in each of the last 30 days (UTC), today last
}

// plotDays is the number of days in a plot.
const plotDays = 30

// Story is an error with its details.
type Story struct {
	*Error
	Event        *Event // the requested event
	Newer, Older string // IDs of the adjacent events; empty if there are none
	Frequency    Frequency
	Environments []Tally
	Tags         []TagTally // of the stored events
	Kept         int        // number of stored events
	Recent       []*Event   // the latest, without details
}

// Tally is the number of events with a value.
type Tally struct {
	Value  string
	Events int64
}

// TagTally counts the events with each value of a tag.
type TagTally struct {
	Name   string
	Values []Tally
}

// Error returns an error with one of its events, by default the latest. Requires
// access to error tracking. NotFound.
func (s *Service) Error(ctx context.Context, by actor.Actor, ref project.Ref, id int64, eventID string) (*Story, error) {
	in, err := s.reader(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	st := &Story{}
	if st.Error, err = findError(ctx, s.DB, in.ID, id); err != nil {
		return nil, db.NotFound(err, "")
	}
	if st.Recent, err = listEvents(ctx, s.DB, id); err != nil {
		return nil, fmt.Errorf("events of error %d: %w", id, err)
	}
	if err := s.pick(ctx, st, eventID); err != nil {
		return nil, err
	}
	if st.Environments, err = tallyEnvironments(ctx, s.DB, id); err != nil {
		return nil, fmt.Errorf("environments of error %d: %w", id, err)
	}
	st.Kept, st.Tags = len(st.Recent), tallyTags(st.Recent)
	if st.Frequency, err = s.frequency(ctx, id); err != nil {
		return nil, fmt.Errorf("frequency of error %d: %w", id, err)
	}
	return st, nil
}

// pick reads the event to show and finds the adjacent ones.
func (s *Service) pick(ctx context.Context, st *Story, eventID string) error {
	at := 0
	if eventID != "" {
		at = slices.IndexFunc(st.Recent, func(e *Event) bool { return e.ID == eventID })
	}
	if at < 0 || at >= len(st.Recent) {
		return errs.NotFound("")
	}
	if at > 0 {
		st.Newer = st.Recent[at-1].ID
	}
	if at+1 < len(st.Recent) {
		st.Older = st.Recent[at+1].ID
	}
	e, err := findEvent(ctx, s.DB, st.ID, st.Recent[at].ID)
	if err != nil {
		return db.NotFound(err, "")
	}
	st.Event = e
	return nil
}

func (s *Service) frequency(ctx context.Context, id int64) (Frequency, error) {
	last := hourOf(s.Now())
	// Days begin at midnight UTC.
	today := last / dayHours
	first := (today - plotDays + 1) * dayHours
	counts, err := findHours(ctx, s.DB, []int64{id}, first)
	if err != nil {
		return Frequency{}, err
	}
	f := Frequency{Hours: spread(counts[id], last-dayHours+1, dayHours), Days: make([]int64, plotDays)}
	for hour, events := range counts[id] {
		if day := hour/dayHours - first/dayHours; day >= 0 && day < plotDays {
			f.Days[day] += events
		}
	}
	return f, nil
}

// shownValues is the maximum number of values of a tag that are shown.
const shownValues = 4

// tallyTags counts the tags of events.
func tallyTags(list []*Event) []TagTally {
	counts := map[string]map[string]int64{}
	for _, e := range list {
		for _, t := range e.Tags {
			if counts[t.Name] == nil {
				counts[t.Name] = map[string]int64{}
			}
			counts[t.Name][t.Value]++
		}
	}
	var all []TagTally
	for name, values := range counts {
		one := TagTally{Name: name}
		for value, n := range values {
			one.Values = append(one.Values, Tally{value, n})
		}
		slices.SortFunc(one.Values, func(a, b Tally) int {
			if a.Events != b.Events {
				return int(b.Events - a.Events)
			}
			return compare(a.Value, b.Value)
		})
		one.Values = one.Values[:min(len(one.Values), shownValues)]
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b TagTally) int { return compare(a.Name, b.Name) })
	return all
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Mark changes the status of an error. Requires Developer. NotFound; Forbidden.
func (s *Service) Mark(ctx context.Context, by actor.Actor, ref project.Ref, id int64, to Status) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.ErrorPart, project.Developer)
	if err != nil {
		return err
	}
	if !slices.Contains(Statuses(), to) {
		return errs.Invalid("status does not have a valid value")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "errors", id); err != nil {
			return err
		}
		was, err := findError(ctx, tx, p.ID, id)
		if err != nil {
			return db.NotFound(err, "")
		}
		if was.Status == to {
			return nil
		}
		if err := saveStatus(ctx, tx, id, to); err != nil {
			return err
		}
		target := audit.Target{Type: "ErrorTracking::Error", ID: id, Details: was.Title}
		return s.record(ctx, tx, by, p, "error_tracking_error_updated", target, audit.Details{Change: "status", From: string(was.Status), To: string(to)})
	})
	if err != nil {
		return fmt.Errorf("mark error %d: %w", id, err)
	}
	return nil
}
