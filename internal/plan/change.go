package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
)

// changes saves labels, assignees and milestone of an issue, and returns the texts
// of the system notes for all changes.
func (s *Service) changes(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, was, i *Issue, f IssueFields) ([]string, error) {
	var changes []string
	note := func(format string, args ...any) { changes = append(changes, fmt.Sprintf(format, args...)) }
	if was.Title != i.Title {
		note("changed title from **%s** to **%s**", was.Title, i.Title)
	}
	if was.Description != i.Description {
		note("changed the description")
	}
	planned, err := s.ChangePlan(ctx, tx, by, in, &was.Issuable, &i.Issuable, f.Fields, nil)
	if err != nil {
		return nil, err
	}
	changes = append(changes, planned...)
	if was.DueDate != i.DueDate {
		note("%s", dueChange(i.DueDate))
	}
	if !same(was.Weight, i.Weight) {
		if i.Weight == nil {
			note("removed the weight")
		} else {
			note("set weight to **%d**", *i.Weight)
		}
	}
	if was.Confidential != i.Confidential {
		note("%s", choose(i.Confidential, "made the issue confidential", "made the issue visible to everyone"))
	}
	if text := LockChange(&was.Issuable, &i.Issuable); text != "" {
		note("%s", text)
	}
	if was.Type != i.Type {
		note("changed type from %s to %s", was.Type, i.Type)
	}
	if was.State != i.State {
		done := choose(i.State == Closed, "closed", "reopened")
		if f.Via != "" {
			done += " via " + f.Via
		}
		note("%s", done)
	}
	return changes, nil
}

func choose(first bool, one, other string) string {
	if first {
		return one
	}
	return other
}

func same(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// quoted is a name as a reference has it: in quotes unless it is one word.
func quoted(name string) string {
	if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" {
		return name
	}
	return `"` + name + `"`
}

// LabelChange is the text of the system note about added and removed labels; empty
// for none.
func LabelChange(added, removed []*Label) string {
	list := func(word string, labels []*Label) string {
		if len(labels) == 0 {
			return ""
		}
		var names []string
		for _, l := range labels {
			names = append(names, "~"+quoted(l.Name))
		}
		return word + " " + strings.Join(names, " ")
	}
	parts := slices.DeleteFunc([]string{list("added", added), list("removed", removed)}, func(part string) bool { return part == "" })
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, " and ") + choose(len(added)+len(removed) == 1, " label", " labels")
}

// LabelIDs returns the ids of labels.
func LabelIDs(list []*Label) (ids []int64) {
	for _, l := range list {
		ids = append(ids, l.ID)
	}
	return ids
}

func dueChange(day string) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return "removed due date"
	}
	return "changed due date to " + at.Format("January 2, 2006")
}

// milestoneChange is the text of the system note about a milestone; empty if it
// has not changed.
func milestoneChange(ctx context.Context, q db.Q, was, now *int64) (string, error) {
	switch {
	case same(was, now):
		return "", nil
	case now == nil:
		return "removed milestone", nil
	}
	found, err := findMilestones(ctx, q, []int64{*now})
	if err != nil {
		return "", err
	}
	return "changed milestone to %" + quoted(found[*now].Title), nil
}
