package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// What issues have, merge requests have too: labels, users, milestones, notes
// and subscribers. The feature that has the thing asks who may, and calls what
// is here.

// Plans is the related rows of an issue or merge request.
type Plans struct {
	Labels    []*Label // by name
	Milestone *Milestone
	Users     map[Relation][]*user.User
	Others    map[int64]*user.User // of all things that were asked for
}

// Planned is an issue or merge request whose related rows are read.
type Planned struct {
	ID        int64
	Milestone *int64
	Others    []*int64 // users who are to be read along; nil for none
}

// Other gives one of the users who were to be read along; nil for none.
func (p *Plans) Other(id *int64) *user.User {
	if id == nil {
		return nil
	}
	return p.Others[*id]
}

// PlansOf reads the related rows of things of a kind.
func (s *Service) PlansOf(ctx context.Context, kind Kind, list []Planned, ways ...Relation) (map[int64]*Plans, error) {
	plans := map[int64]*Plans{}
	if len(list) == 0 {
		return plans, nil
	}
	var ids, goals, userIDs []int64
	for _, t := range list {
		ids = append(ids, t.ID)
		for _, id := range t.Others {
			if id != nil {
				userIDs = append(userIDs, *id)
			}
		}
		plans[t.ID] = &Plans{Users: map[Relation][]*user.User{}}
		if t.Milestone != nil && !slices.Contains(goals, *t.Milestone) {
			goals = append(goals, *t.Milestone)
		}
	}
	labels, err := findLabelsOf(ctx, s.DB, kind, ids)
	if err != nil {
		return nil, fmt.Errorf("labels of things: %w", err)
	}
	milestones, err := findMilestones(ctx, s.DB, goals)
	if err != nil {
		return nil, fmt.Errorf("milestones of things: %w", err)
	}
	found := map[Relation]map[int64][]int64{}
	for _, as := range ways {
		if found[as], err = findRelated(ctx, s.DB, kind, as, ids); err != nil {
			return nil, fmt.Errorf("%s of things: %w", as, err)
		}
		for _, of := range found[as] {
			userIDs = append(userIDs, of...)
		}
	}
	slices.Sort(userIDs)
	users, err := s.Users.FindAll(ctx, slices.Compact(userIDs))
	if err != nil {
		return nil, fmt.Errorf("users of issues or merge requests: %w", err)
	}
	for _, t := range list {
		p := plans[t.ID]
		p.Labels, p.Others = labels[t.ID], users
		if t.Milestone != nil {
			p.Milestone = milestones[*t.Milestone]
		}
		for _, as := range ways {
			p.Users[as] = []*user.User{}
			for _, id := range found[as][t.ID] {
				if u := users[id]; u != nil {
					p.Users[as] = append(p.Users[as], u)
				}
			}
		}
	}
	return plans, nil
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
	Before, After []int64
	Text          string // tells who came and went; empty when nothing changes
}

// Appoint writes who is related to a thing. Those who come are subscribed.
func (s *Service) Appoint(ctx context.Context, tx *db.Tx, of Thing, as Relation, want []int64) (Appointment, error) {
	found, err := findRelated(ctx, tx, of.Kind, as, []int64{of.ID})
	if err != nil {
		return Appointment{}, err
	}
	have := found[of.ID]
	slices.Sort(want)
	if slices.Equal(have, want) {
		return Appointment{Before: have, After: want}, nil
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
	return Appointment{have, want, strings.Join(parts, " and ")}, nil
}

// Labelling is a change of the labels of an issue or merge request.
type Labelling struct {
	Names       *[]string // these and no others; nil leaves what there is
	Add, Remove []string
}

// SaveLabels writes the labels of a thing and gives those that came and went. A
// name that no label has makes one, where the actor may make labels.
func (s *Service) SaveLabels(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, of Thing, l Labelling) (added, removed []*Label, err error) {
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
	return added, removed, changeLabels(ctx, tx, of, added, removed)
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
		if errs.Is(notFound(err, "Label"), errs.KindNotFound) {
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

// Writers returns who wrote notes on a thing, in the order of their first one.
func (s *Service) Writers(ctx context.Context, of Thing, insider bool) ([]int64, error) {
	return findWriters(ctx, s.DB, of, insider)
}

// OpenThreads counts the threads of things that no one has settled.
func (s *Service) OpenThreads(ctx context.Context, kind Kind, ids ...int64) (map[int64]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := countOpenThreads(ctx, s.DB, kind, ids)
	if err != nil {
		return nil, fmt.Errorf("count open threads: %w", err)
	}
	return found, nil
}
