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

// changes writes what stands beside the row of an issue, and tells in sentences
// what has become of the whole.
func (s *Service) changes(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, was, i *Issue, f IssueFields) ([]string, error) {
	var told []string
	tell := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	if was.Title != i.Title {
		tell("changed title from **%s** to **%s**", was.Title, i.Title)
	}
	if was.Description != i.Description {
		tell("changed the description")
	}
	added, removed, err := s.saveLabels(ctx, tx, by, in, i, f)
	if err != nil {
		return nil, err
	}
	if text := labelChange(added, removed); text != "" {
		tell("%s", text)
	}
	if f.Assignees != nil {
		text, err := s.reassign(ctx, tx, i, *f.Assignees)
		if err != nil {
			return nil, err
		}
		if text != "" {
			tell("%s", text)
		}
	}
	if !same(was.MilestoneID, i.MilestoneID) {
		text := "removed milestone"
		if i.MilestoneID != nil {
			found, err := findMilestones(ctx, tx, []int64{*i.MilestoneID})
			if err != nil {
				return nil, err
			}
			text = "changed milestone to %" + quoted(found[*i.MilestoneID].Title)
		}
		tell("%s", text)
	}
	if was.DueDate != i.DueDate {
		tell("%s", dueChange(i.DueDate))
	}
	if !same(was.Weight, i.Weight) {
		if i.Weight == nil {
			tell("removed the weight")
		} else {
			tell("set weight to **%d**", *i.Weight)
		}
	}
	if was.Confidential != i.Confidential {
		tell("%s", choose(i.Confidential, "made the issue confidential", "made the issue visible to everyone"))
	}
	if locked := i.Locked != nil && *i.Locked; locked != (was.Locked != nil && *was.Locked) {
		tell("%s", choose(locked, "locked the discussion in this issue", "unlocked the discussion in this issue"))
	}
	if was.Type != i.Type {
		tell("changed type from %s to %s", was.Type, i.Type)
	}
	if was.State != i.State {
		tell("%s", choose(i.State == Closed, "closed", "reopened"))
	}
	return told, nil
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

func labelChange(added, removed []*Label) string {
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

func dueChange(day string) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return "removed due date"
	}
	return "changed due date to " + at.Format("January 2, 2006")
}

// reassign writes who is to do an issue.
func (s *Service) reassign(ctx context.Context, tx *db.Tx, i *Issue, want []int64) (string, error) {
	found, err := findAssignees(ctx, tx, []int64{i.ID})
	if err != nil {
		return "", err
	}
	have := found[i.ID]
	slices.Sort(want)
	if slices.Equal(have, want) {
		return "", nil
	}
	if err := saveAssignees(ctx, tx, i.ID, want); err != nil {
		return "", err
	}
	names, err := findUsernames(ctx, tx, append(slices.Clone(have), want...))
	if err != nil {
		return "", err
	}
	list := func(word string, ids, but []int64) string {
		var at []string
		for _, id := range ids {
			if !slices.Contains(but, id) {
				at = append(at, "@"+names[id])
			}
		}
		if len(at) == 0 {
			return ""
		}
		return word + " " + strings.Join(at, ", ")
	}
	for _, id := range want {
		if err := joinSubscription(ctx, tx, i.thing(), id, s.Now()); err != nil {
			return "", err
		}
	}
	parts := slices.DeleteFunc([]string{list("assigned to", want, have), list("unassigned", have, want)}, func(part string) bool { return part == "" })
	return strings.Join(parts, " and "), nil
}
