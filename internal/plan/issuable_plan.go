package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/notify"
	"svc/internal/plan/color"
	"svc/internal/project"
	"svc/internal/user"
)

// ChangePlan saves the labels, users and milestone of an existing issue or merge
// request, queues notifications and returns the texts of the system notes.
// reviewers is nil if they do not change.
func (s *Service) ChangePlan(ctx context.Context, tx *db.Tx, by actor.Actor, proj *project.Project, was, i *Issuable, f Fields, reviewers *[]int64) ([]string, error) {
	var texts []string
	add := func(text string) {
		if text != "" {
			texts = append(texts, text)
		}
	}
	added, removed, err := s.SaveLabels(ctx, tx, by, proj, i.Target(), f.Labels)
	if err != nil {
		return nil, err
	}
	appointed, err := s.AppointAll(ctx, tx, i, f.Assignees, reviewers)
	if err != nil {
		return nil, err
	}
	i.Replanned = Replanned{LabelsAdded: added, LabelsRemoved: removed, Appointed: appointed}
	milestone, err := milestoneChange(ctx, tx, was.MilestoneID, i.MilestoneID)
	if err != nil {
		return nil, err
	}
	if err := s.RecordMilestone(ctx, tx, by, i, was.MilestoneID); err != nil {
		return nil, err
	}
	add(LabelChange(added, removed))
	for _, a := range appointed {
		add(a.Text)
	}
	if add(milestone); len(texts) > 0 {
		if err := s.Events.Planned.Publish(ctx, tx, Act{On: i.Target(), By: by.ID}); err != nil {
			return nil, err
		}
	}
	if len(added) > 0 {
		if err := s.NotifyOf(ctx, tx, by.ID, i, notify.Relabel, notify.Details{After: LabelIDs(added)}); err != nil {
			return nil, err
		}
	}
	if len(f.mentioned) > 0 {
		if err := s.NotifyOf(ctx, tx, by.ID, i, notify.Mention, notify.Details{Mentioned: f.mentioned}); err != nil {
			return nil, err
		}
	}
	for _, a := range appointed {
		if err := s.NotifyOf(ctx, tx, by.ID, i, a.event(i.Kind), notify.Details{Before: a.Before, After: a.After}); err != nil {
			return nil, err
		}
	}
	tracked, err := s.changeTime(ctx, tx, by, i, f.Time)
	return append(texts, tracked...), err
}

// LockChange returns the text of the system note about a locked or unlocked
// discussion, or an empty string if it has not changed.
func LockChange(was, i *Issuable) string {
	if was.IsLocked() == i.IsLocked() {
		return ""
	}
	return choose(i.IsLocked(), "locked", "unlocked") + " the discussion in this " + i.Kind.noun()
}

// Able returns the users among ids who exist, are active and can read a part of
// the project. name is the field to report if there are too many. Invalid.
func (s *Service) Able(ctx context.Context, proj *project.Project, name string, ids []int64, part project.Part) ([]int64, error) {
	const maxUsers = 200
	if len(ids) > maxUsers {
		return nil, errs.InvalidField(name, "are too many (maximum is %d)", maxUsers)
	}
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", name, err)
	}
	list := []int64{}
	for _, id := range ids {
		u := users[id]
		if u == nil || u.State != user.Active || slices.Contains(list, id) {
			continue
		}
		a := actor.Actor{ID: u.ID, Admin: u.Admin, Auditor: u.Auditor, External: u.External}
		found, err := s.Projects.Among(ctx, a, []int64{proj.ID})
		if err != nil {
			return nil, err
		}
		if len(found) == 1 && found[0].MayRead(a, part) {
			list = append(list, id)
		}
	}
	return list, nil
}

// Appointment is a change of assignees or reviewers.
type Appointment struct {
	As            Relation
	Before, After []int64
	Text          string // text of the system note; empty if nothing changed
}

// event returns the type of the notification about the change.
func (a Appointment) event(kind Kind) notify.EventType {
	switch {
	case a.As == Reviewers:
		return notify.ChangeReviewer
	case kind == MergeKind:
		return notify.ReassignMergeRequest
	}
	return notify.ReassignIssue
}

// AppointAll saves assignees and reviewers and returns the changes. nil keeps the
// current users.
func (s *Service) AppointAll(ctx context.Context, tx *db.Tx, i *Issuable, assignees, reviewers *[]int64) (done []Appointment, err error) {
	for n, ids := range []*[]int64{assignees, reviewers} {
		if ids == nil {
			continue
		}
		a, err := s.Appoint(ctx, tx, i.Target(), []Relation{Assignees, Reviewers}[n], *ids)
		if err != nil {
			return nil, err
		}
		if a.Text != "" {
			done = append(done, a)
		}
	}
	return done, nil
}

// Appoint saves the assignees or reviewers of a target and subscribes them.
func (s *Service) Appoint(ctx context.Context, tx *db.Tx, of Target, as Relation, ids []int64) (Appointment, error) {
	found, err := findRelated(ctx, tx, of.Kind, as, []int64{of.ID})
	if err != nil {
		return Appointment{}, err
	}
	before := found[of.ID]
	slices.Sort(ids)
	if slices.Equal(before, ids) {
		return Appointment{As: as, Before: before, After: ids}, nil
	}
	if err := saveRelated(ctx, tx, of, as, ids); err != nil {
		return Appointment{}, err
	}
	names, err := findUsernames(ctx, tx, append(slices.Clone(before), ids...))
	if err != nil {
		return Appointment{}, err
	}
	list := func(verb string, ids, except []int64) string {
		var mentions []string
		for _, id := range ids {
			if !slices.Contains(except, id) {
				mentions = append(mentions, "@"+names[id])
			}
		}
		if len(mentions) == 0 {
			return ""
		}
		return verb + " " + strings.Join(mentions, ", ")
	}
	for _, id := range ids {
		if err := joinSubscription(ctx, tx, of, id, s.Now()); err != nil {
			return Appointment{}, err
		}
	}
	addedVerb, removedVerb := "assigned to", "unassigned"
	if as == Reviewers {
		addedVerb, removedVerb = "requested review from", "removed review request for"
	}
	parts := slices.DeleteFunc([]string{list(addedVerb, ids, before), list(removedVerb, before, ids)}, func(part string) bool { return part == "" })
	return Appointment{as, before, ids, strings.Join(parts, " and ")}, nil
}

// Labelling is a change to the labels of an issue or merge request.
type Labelling struct {
	Names       *[]string // replaces all labels; nil keeps them
	Add, Remove []string
}

// SaveLabels saves the labels of a target and returns the added and removed ones.
// Unknown names create labels if the actor may plan in the project.
func (s *Service) SaveLabels(ctx context.Context, tx *db.Tx, by actor.Actor, proj *project.Project, of Target, l Labelling) (added, removed []*Label, err error) {
	if l.Names == nil && len(l.Add) == 0 && len(l.Remove) == 0 {
		return nil, nil, nil
	}
	found, err := findLabelsOf(ctx, tx, of.Kind, []int64{of.ID})
	if err != nil {
		return nil, nil, err
	}
	before := found[of.ID]
	names := make([]string, 0, len(before))
	for _, l := range before {
		names = append(names, l.Name)
	}
	if l.Names != nil {
		names = *l.Names
	}
	names = slices.DeleteFunc(append(slices.Clone(names), l.Add...), func(name string) bool {
		return slices.ContainsFunc(l.Remove, func(gone string) bool { return strings.TrimSpace(gone) == strings.TrimSpace(name) })
	})
	after, err := s.labelsNamed(ctx, tx, by, proj, names)
	if err != nil {
		return nil, nil, err
	}
	without := func(list, other []*Label) (rest []*Label) {
		for _, l := range list {
			if !slices.ContainsFunc(other, func(o *Label) bool { return o.ID == l.ID }) {
				rest = append(rest, l)
			}
		}
		return rest
	}
	added, removed = without(after, before), without(before, after)
	if err := changeLabels(ctx, tx, of, added, removed); err != nil {
		return nil, nil, err
	}
	return added, removed, s.recordLabels(ctx, tx, by, proj.ID, of, added, removed)
}

// labelsNamed returns the labels with these names, and creates missing ones if the
// actor may plan in the project.
func (s *Service) labelsNamed(ctx context.Context, tx *db.Tx, by actor.Actor, proj *project.Project, names []string) ([]*Label, error) {
	var list []*Label
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name == "" || slices.ContainsFunc(list, func(l *Label) bool { return l.Name == name }) {
			continue
		}
		l, err := findLabelNamed(ctx, tx, place{project: proj}, name)
		if errs.Is(db.NotFound(err, "Label"), errs.KindNotFound) {
			if !mayPlan(by, proj) {
				continue
			}
			now, defaultColor := s.Now(), color.Default
			l = &Label{ProjectID: &proj.ID, CreatedAt: now, UpdatedAt: now}
			if err := l.apply(LabelFields{Name: &name, Color: &defaultColor}); err != nil {
				return nil, err
			}
			err = insertLabel(ctx, tx, l)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}
