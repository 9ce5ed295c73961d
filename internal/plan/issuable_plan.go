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
	"svc/internal/project"
	"svc/internal/user"
)

// ChangePlan saves the labels, users and milestone of an existing issue or merge
// request, notifies of the changes and returns the texts of the system notes.
// Reviewers are nil if they do not change.
func (s *Service) ChangePlan(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, was, i *Issuable, f Fields, reviewers *[]int64) ([]string, error) {
	var texts []string
	note := func(text string) {
		if text != "" {
			texts = append(texts, text)
		}
	}
	added, removed, err := s.SaveLabels(ctx, tx, by, in, i.Target(), f.Labels)
	if err != nil {
		return nil, err
	}
	appointed, err := s.AppointAll(ctx, tx, i, f.Assignees, reviewers)
	if err != nil {
		return nil, err
	}
	i.Replanned = Replanned{LabelsAdded: added, LabelsRemoved: removed, Appointed: appointed}
	goal, err := milestoneChange(ctx, tx, was.MilestoneID, i.MilestoneID)
	if err != nil {
		return nil, err
	}
	if err := s.RecordMilestone(ctx, tx, by, i, was.MilestoneID); err != nil {
		return nil, err
	}
	note(LabelChange(added, removed))
	for _, a := range appointed {
		note(a.Text)
	}
	if note(goal); len(texts) > 0 {
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

// LockChange is the text of the system note about a locked or unlocked
// discussion; empty if it has not changed.
func LockChange(was, i *Issuable) string {
	if was.IsLocked() == i.IsLocked() {
		return ""
	}
	return choose(i.IsLocked(), "locked", "unlocked") + " the discussion in this " + i.Kind.noun()
}

// Able returns those of the users who read a part of the project: those who do
// not, or are not there, are left out. Invalid when there are too many.
func (s *Service) Able(ctx context.Context, in *project.Project, name string, ids []int64, part project.Part) ([]int64, error) {
	const most = 200
	if len(ids) > most {
		return nil, errs.InvalidField(name, "are too many (maximum is %d)", most)
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
		as := actor.Actor{ID: u.ID, Admin: u.Admin, Auditor: u.Auditor, External: u.External}
		found, err := s.Projects.Among(ctx, as, []int64{in.ID})
		if err != nil {
			return nil, err
		}
		if len(found) == 1 && found[0].MayRead(as, part) {
			list = append(list, id)
		}
	}
	return list, nil
}

// Appointment is a change of assignees or reviewers.
type Appointment struct {
	As            Relation
	Before, After []int64
	Text          string // of the system note; empty when nothing changes
}

// event is the notification of the change.
func (a Appointment) event(kind Kind) notify.EventType {
	switch {
	case a.As == Reviewers:
		return notify.ChangeReviewer
	case kind == MergeKind:
		return notify.ReassignMergeRequest
	}
	return notify.ReassignIssue
}

// AppointAll saves assignees and reviewers and returns the changes; nil leaves
// the current users.
func (s *Service) AppointAll(ctx context.Context, tx *db.Tx, i *Issuable, assignees, reviewers *[]int64) (done []Appointment, err error) {
	for n, want := range []*[]int64{assignees, reviewers} {
		if want == nil {
			continue
		}
		a, err := s.Appoint(ctx, tx, i.Target(), []Relation{Assignees, Reviewers}[n], *want)
		if err != nil {
			return nil, err
		}
		if a.Text != "" {
			done = append(done, a)
		}
	}
	return done, nil
}

// Appoint writes who is related to a target. Those who come are subscribed.
func (s *Service) Appoint(ctx context.Context, tx *db.Tx, of Target, as Relation, want []int64) (Appointment, error) {
	found, err := findRelated(ctx, tx, of.Kind, as, []int64{of.ID})
	if err != nil {
		return Appointment{}, err
	}
	have := found[of.ID]
	slices.Sort(want)
	if slices.Equal(have, want) {
		return Appointment{As: as, Before: have, After: want}, nil
	}
	if err := saveRelated(ctx, tx, of, as, want); err != nil {
		return Appointment{}, err
	}
	names, err := findUsernames(ctx, tx, append(slices.Clone(have), want...))
	if err != nil {
		return Appointment{}, err
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
		if err := joinSubscription(ctx, tx, of, id, s.Now()); err != nil {
			return Appointment{}, err
		}
	}
	came, went := "assigned to", "unassigned"
	if as == Reviewers {
		came, went = "requested review from", "removed review request for"
	}
	parts := slices.DeleteFunc([]string{list(came, want, have), list(went, have, want)}, func(part string) bool { return part == "" })
	return Appointment{as, have, want, strings.Join(parts, " and ")}, nil
}

// Labelling is a change of the labels of an issue or merge request.
type Labelling struct {
	Names       *[]string // these and no others; nil leaves what there is
	Add, Remove []string
}

// SaveLabels writes the labels of a target and gives those that came and went. A
// name that no label has makes one, where the actor may make labels.
func (s *Service) SaveLabels(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, of Target, l Labelling) (added, removed []*Label, err error) {
	if l.Names == nil && len(l.Add) == 0 && len(l.Remove) == 0 {
		return nil, nil, nil
	}
	found, err := findLabelsOf(ctx, tx, of.Kind, []int64{of.ID})
	if err != nil {
		return nil, nil, err
	}
	have := found[of.ID]
	want := make([]string, 0, len(have))
	for _, l := range have {
		want = append(want, l.Name)
	}
	if l.Names != nil {
		want = *l.Names
	}
	want = slices.DeleteFunc(append(slices.Clone(want), l.Add...), func(name string) bool {
		return slices.ContainsFunc(l.Remove, func(gone string) bool { return strings.TrimSpace(gone) == strings.TrimSpace(name) })
	})
	wanted, err := s.labelsNamed(ctx, tx, by, in, want)
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
	added, removed = without(wanted, have), without(have, wanted)
	if err := changeLabels(ctx, tx, of, added, removed); err != nil {
		return nil, nil, err
	}
	return added, removed, s.recordLabels(ctx, tx, by, in.ID, of, added, removed)
}

// labelsNamed returns the labels that a project has by these names.
func (s *Service) labelsNamed(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, names []string) ([]*Label, error) {
	var list []*Label
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name == "" || slices.ContainsFunc(list, func(l *Label) bool { return l.Name == name }) {
			continue
		}
		l, err := findLabelNamed(ctx, tx, place{project: in}, name)
		if errs.Is(db.NotFound(err, "Label"), errs.KindNotFound) {
			if !planner(by, in) {
				continue
			}
			now, color := s.Now(), defaultColor
			l = &Label{ProjectID: &in.ID, CreatedAt: now, UpdatedAt: now}
			if err := l.apply(LabelFields{Name: &name, Color: &color}); err != nil {
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
