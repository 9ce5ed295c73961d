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

// saveChanges saves the labels, assignees and milestone of an issue, and returns
// the texts of the system notes for all changed fields.
func (s *Service) saveChanges(ctx context.Context, tx *db.Tx, by actor.Actor, proj *project.Project, was, i *Issue, f IssueFields) ([]string, error) {
	var changes []string
	add := func(format string, args ...any) { changes = append(changes, fmt.Sprintf(format, args...)) }
	if was.Title != i.Title {
		add("changed title from **%s** to **%s**", was.Title, i.Title)
	}
	if was.Description != i.Description {
		add("changed the description")
	}
	planned, err := s.ChangePlan(ctx, tx, by, proj, &was.Issuable, &i.Issuable, f.Fields, nil)
	if err != nil {
		return nil, err
	}
	changes = append(changes, planned...)
	if was.DueDate != i.DueDate {
		add("%s", dueChange(i.DueDate))
	}
	if !same(was.Weight, i.Weight) {
		if i.Weight == nil {
			add("removed the weight")
		} else {
			add("set weight to **%d**", *i.Weight)
		}
	}
	if was.Confidential != i.Confidential {
		add("%s", choose(i.Confidential, "made the issue confidential", "made the issue visible to everyone"))
	}
	if text := LockChange(&was.Issuable, &i.Issuable); text != "" {
		add("%s", text)
	}
	if was.Type != i.Type {
		add("changed type from %s to %s", was.Type, i.Type)
	}
	if was.State != i.State {
		done := choose(i.State == Closed, "closed", "reopened")
		if f.Via != "" {
			done += " via " + f.Via
		}
		add("%s", done)
	}
	return changes, nil
}

func choose(cond bool, yes, no string) string {
	if cond {
		return yes
	}
	return no
}

func same(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// quoted returns a name as references contain it: in quotes unless it is a single
// word.
func quoted(name string) string {
	if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" {
		return name
	}
	return `"` + name + `"`
}

// LabelChange returns the text of the system note about added and removed labels,
// or an empty string if there are none.
func LabelChange(added, removed []*Label) string {
	list := func(verb string, labels []*Label) string {
		if len(labels) == 0 {
			return ""
		}
		var names []string
		for _, l := range labels {
			names = append(names, "~"+quoted(l.Name))
		}
		return verb + " " + strings.Join(names, " ")
	}
	parts := slices.DeleteFunc([]string{list("added", added), list("removed", removed)}, func(part string) bool { return part == "" })
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, " and ") + choose(len(added)+len(removed) == 1, " label", " labels")
}

// LabelIDs returns the IDs of labels.
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

// milestoneChange returns the text of the system note about a changed milestone,
// or an empty string if it has not changed.
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
