package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// LinkKind is the type of a link between two issues.
type LinkKind string

// The types of links. IsBlockedBy is Blocks as seen from the target; it is not
// stored.
const (
	RelatesTo   LinkKind = "relates_to"
	Blocks      LinkKind = "blocks"
	IsBlockedBy LinkKind = "is_blocked_by"
)

// Link is a link between two issues.
type Link struct {
	ID        int64
	SourceID  int64
	TargetID  int64
	Kind      LinkKind
	CreatedAt time.Time
	UpdatedAt time.Time

	Source, Target *Issue // Source is the issue that the link was requested for
}

// kindFrom returns the type of the link as seen from one of its issues.
func (l *Link) kindFrom(id int64) LinkKind {
	if l.Kind == Blocks && l.TargetID == id {
		return IsBlockedBy
	}
	return l.Kind
}

// other returns the issue at the other end of the link.
func (l *Link) other(id int64) int64 {
	if l.TargetID == id {
		return l.SourceID
	}
	return l.TargetID
}

// IssueLinks lists the links of an issue to issues that the actor can see. The
// issue is the source of all of them. NotFound.
func (s *Service) IssueLinks(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) ([]*Link, error) {
	_, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	list, err := findLinks(ctx, s.DB, i.ID)
	if err != nil {
		return nil, fmt.Errorf("links of issue %d: %w", i.ID, err)
	}
	return s.visibleLinks(ctx, by, i, list)
}

// visibleLinks reads the linked issues of an issue, and drops links to issues that
// the actor cannot see.
func (s *Service) visibleLinks(ctx context.Context, by actor.Actor, i *Issue, list []*Link) ([]*Link, error) {
	visible := []*Link{}
	if len(list) == 0 {
		return visible, nil
	}
	ids := make([]int64, len(list))
	for n, l := range list {
		ids[n] = l.other(i.ID)
	}
	issues, err := findIssues(ctx, s.DB, s.issuesIn(by, place{}), ids)
	if err != nil {
		return nil, fmt.Errorf("linked issues of issue %d: %w", i.ID, err)
	}
	if err := s.FillIssues(ctx, slices.Collect(maps.Values(issues))...); err != nil {
		return nil, err
	}
	for _, l := range list {
		if found := issues[l.other(i.ID)]; found != nil {
			l.Kind, l.Source, l.Target = l.kindFrom(i.ID), i, found
			visible = append(visible, l)
		}
	}
	return visible, nil
}

// IssueLink returns a link of an issue if the actor can see both issues. NotFound.
func (s *Service) IssueLink(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64) (*Link, error) {
	_, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	l, err := findLink(ctx, s.DB, i.ID, id)
	if err != nil {
		return nil, db.NotFound(err, "")
	}
	visible, err := s.visibleLinks(ctx, by, i, []*Link{l})
	if err == nil && len(visible) == 0 {
		err = errs.NotFound("")
	}
	return l, err
}

// LinkIssues links two issues. Requires Guest in both projects. NotFound;
// Forbidden; Conflict if they are linked already.
func (s *Service) LinkIssues(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, to project.Ref, toIID int64, kind LinkKind) (*Link, error) {
	proj, i, err := s.issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	other, target, err := s.issue(ctx, by, to, toIID)
	if err != nil {
		return nil, err
	}
	for _, p := range []*project.Project{proj, other} {
		if err := p.Change(by, project.IssuePart, project.Guest); err != nil {
			return nil, err
		}
	}
	if i.ID == target.ID {
		return nil, errs.Invalid("An issue cannot be linked to itself")
	}
	var l *Link
	err = s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		l, err = s.addLink(ctx, tx, by, i, target, kind, false)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("link issue %d: %w", i.ID, err)
	}
	l.Kind, l.Source, l.Target = l.kindFrom(i.ID), i, target
	return l, nil
}

// addLink links two issues in a transaction. If a link exists, it returns
// Conflict, or no error with ignoreExisting.
func (s *Service) addLink(ctx context.Context, tx *db.Tx, by actor.Actor, i, target *Issue, kind LinkKind, ignoreExisting bool) (*Link, error) {
	now := s.Now()
	l := &Link{SourceID: i.ID, TargetID: target.ID, Kind: kind, CreatedAt: now, UpdatedAt: now}
	if kind == IsBlockedBy {
		l.SourceID, l.TargetID, l.Kind = target.ID, i.ID, Blocks
	}
	if err := insertLink(ctx, tx, l); err != nil {
		if ignoreExisting && errs.Is(err, errs.KindConflict) {
			return l, nil
		}
		return nil, err
	}
	return l, s.addLinkNotes(ctx, tx, by, i, target, func(on *Issue) string { return linkText(l.kindFrom(on.ID)) })
}

// linkText returns the text of the system note about a new link, without the
// reference to the other issue.
func linkText(kind LinkKind) string {
	switch kind {
	case Blocks:
		return "marked this issue as blocking"
	case IsBlockedBy:
		return "marked this issue as blocked by"
	}
	return "marked this issue as related to"
}

// addLinkNotes adds system notes to both issues of a link. text returns the note
// for one issue, without the reference to the other one.
func (s *Service) addLinkNotes(ctx context.Context, tx *db.Tx, by actor.Actor, i, target *Issue, text func(on *Issue) string) error {
	for _, end := range [][2]*Issue{{i, target}, {target, i}} {
		if err := s.AddSystemNote(ctx, tx, by, end[0].Target(), end[0].IID, end[0].ProjectID, text(end[0])+" "+nameFor(end[0], end[1])); err != nil {
			return err
		}
	}
	return nil
}

// UnlinkIssues deletes a link. Requires Guest in both projects. NotFound;
// Forbidden.
func (s *Service) UnlinkIssues(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64) (*Link, error) {
	if _, err := s.Projects.RequireChange(ctx, by, ref, project.IssuePart, project.NoAccess); err != nil {
		return nil, err
	}
	l, err := s.IssueLink(ctx, by, ref, iid, id)
	if err != nil {
		return nil, err
	}
	for _, end := range []*Issue{l.Source, l.Target} {
		if _, err := s.Projects.RequireChange(ctx, by, project.RefTo(end.ProjectID), project.IssuePart, project.Guest); err != nil {
			return nil, err
		}
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := deleteLink(ctx, tx, l.ID); err != nil {
			return err
		}
		return s.addLinkNotes(ctx, tx, by, l.Source, l.Target, func(*Issue) string { return "removed the relation with" })
	})
	if err != nil {
		return nil, fmt.Errorf("unlink issue %d: %w", l.Source.ID, err)
	}
	return l, nil
}
