package plan

import (
	"context"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

// Owner is a project or a group that owns boards. Exactly one field is set.
type Owner struct {
	Project *project.Project
	Group   *project.Namespace
}

func (o Owner) place() place { return place{project: o.Project, group: o.Group} }

// IssueSet is a set of issues that match conditions, such as a column of a board.
type IssueSet struct {
	where  db.Where
	traits []Trait // of all its issues
}

// Trait is a label, an assignee or a milestone that issues can have, by ID. Exactly
// one field is set.
type Trait struct{ LabelID, AssigneeID, MilestoneID *int64 }

// IssueSet returns the issues of an owner that the actor can see and that match all
// filters.
func (s *Service) IssueSet(by actor.Actor, o Owner, filters ...IssueFilter) IssueSet {
	w := s.issuesIn(by, o.place())
	for _, f := range filters {
		s.narrow(&w, by, f)
	}
	return IssueSet{where: w}
}

// With returns the issues of the set that have a trait.
func (set IssueSet) With(t Trait) IssueSet {
	cond, args := t.where()
	return IssueSet{*set.where.With(cond, args...), append(slices.Clone(set.traits), t)}
}

// Without returns the issues of the set that do not have a trait.
func (set IssueSet) Without(t Trait) IssueSet {
	cond, args := t.where()
	return IssueSet{*set.where.With(listing.Negated(cond), args...), set.traits}
}

// ListSet lists the issues of a set, without their related objects: see FillIssues.
func (s *Service) ListSet(ctx context.Context, set IssueSet, order listing.Sort, p db.Paging) (db.Page[*Issue], error) {
	var rare []listing.Candidates
	for _, t := range set.traits {
		rare = append(rare, t.candidates())
	}
	found, err := listing.Rarest(ctx, s.DB, rare)
	if err != nil {
		return db.Page[*Issue]{}, err
	}
	return listIssues(ctx, s.DB, set.where, listing.Selection{Among: found}, order, p)
}

// CountSet counts the issues of a set up to db.CountLimit; over reports that there
// are more.
func (s *Service) CountSet(ctx context.Context, set IssueSet) (n int, over bool, err error) {
	return totalIssues(ctx, s.DB, set.where)
}

// Lock locks an issue and reports whether it is in the set.
func (set IssueSet) Lock(ctx context.Context, tx *db.Tx, id int64) (bool, error) {
	if err := tx.Lock(ctx, "issues", id); err != nil {
		return false, err
	}
	return inSet(ctx, tx, set.where, id)
}

// Move moves an issue of the set between two others in the manual order. A neighbor
// that is 0 or not in the set is ignored.
func (set IssueSet) Move(ctx context.Context, tx *db.Tx, id, after, before int64) error {
	return moveInSet(ctx, tx, set.where, id, after, before)
}
