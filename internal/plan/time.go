package plan

import (
	"context"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan/duration"
	"svc/internal/project"
)

// TimeChange is a change to the time tracking of an issue or merge request.
type TimeChange struct {
	Estimate *int64  // in seconds; 0 removes it
	Spend    []Spend // time to add
	Reset    bool    // removes the time spent before Spend is added
}

// Spend is time that a user spent on an issue or merge request.
type Spend struct {
	Seconds int64 // may be negative
	At      *time.Time
	Summary string
}

// Set reports whether there is a change.
func (c *TimeChange) Set() bool { return c.Estimate != nil || len(c.Spend) > 0 || c.Reset }

// maxSummary is the maximum length of a summary in bytes.
const maxSummary = 255

// changeTime saves the time tracking of an object that the caller has locked, and
// returns the texts of the system notes. Invalid.
func (s *Service) changeTime(ctx context.Context, tx *db.Tx, by actor.Actor, i *Issuable, c TimeChange) (texts []string, err error) {
	if !c.Set() {
		return nil, nil
	}
	if c.Estimate != nil && *c.Estimate != i.TimeEstimate {
		if *c.Estimate < 0 || *c.Estimate > duration.Max {
			return nil, errs.InvalidField("time_estimate", "must have a valid format and be greater than or equal to zero.")
		}
		i.TimeEstimate = *c.Estimate
		texts = append(texts, choose(i.TimeEstimate == 0, "removed time estimate", "changed time estimate to "+duration.Format(i.TimeEstimate)))
	}
	if c.Reset && i.TimeSpent != 0 {
		if err := deleteTimelogs(ctx, tx, i.Kind, []int64{i.ID}); err != nil {
			return nil, err
		}
		i.TimeSpent = 0
		texts = append(texts, "removed time spent")
	}
	for _, spent := range c.Spend {
		switch total := i.TimeSpent + spent.Seconds; {
		case spent.Seconds == 0:
			return nil, errs.InvalidField("time_spent", "can't be blank")
		case total < 0:
			return nil, errs.InvalidField("time_spent", "to subtract exceeds the total time spent")
		case spent.Seconds > duration.Max || total > duration.Max:
			return nil, errs.InvalidField("time_spent", "is too long")
		case len(spent.Summary) > maxSummary:
			return nil, errs.InvalidField("summary", "is too long (maximum is %d characters)", maxSummary)
		}
		text := "added " + duration.Format(spent.Seconds) + " of time spent"
		if spent.Seconds < 0 {
			text = "subtracted " + duration.Format(-spent.Seconds) + " of time spent"
		}
		at := s.Now()
		if spent.At != nil {
			if spent.At.After(at) {
				return nil, errs.InvalidField("spent_at", "can't be a future date")
			}
			at = *spent.At
			text += " at " + at.UTC().Format(time.DateOnly)
		}
		if err := insertTimelog(ctx, tx, i, by.ID, spent, at, s.Now()); err != nil {
			return nil, err
		}
		i.TimeSpent += spent.Seconds
		texts = append(texts, text)
	}
	return texts, saveTime(ctx, tx, i)
}

// TrackTime changes the time tracking of an issue. Requires permission to plan the
// issue. NotFound; Forbidden; Invalid.
func (s *Service) TrackTime(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, c TimeChange) (*Issue, error) {
	proj, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if err := i.editable(by, proj); err != nil {
		return nil, err
	}
	if !mayPlan(by, proj) {
		return nil, errs.Forbidden("")
	}
	return s.UpdateIssue(ctx, by, project.RefTo(proj.ID), iid, IssueFields{Fields: Fields{Time: c}})
}
