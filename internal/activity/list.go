package activity

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/user"
)

// Filter selects events; zero values select all.
type Filter struct {
	Action      Action
	TargetTypes []string
	Before      *time.Time // strictly before
	After       *time.Time // at or after
	Oldest      bool       // oldest first; otherwise newest first
}

// Own lists the actor's own events that they can still see.
func (s *Service) Own(ctx context.Context, by actor.Actor, f Filter, p db.Paging) (db.Page[*Event], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[*Event]{}, err
	}
	return s.ofAuthor(ctx, by, by.ID, f, p)
}

// OfMemberships lists the events of the projects that the actor is a member of.
func (s *Service) OfMemberships(ctx context.Context, by actor.Actor, f Filter, p db.Paging) (db.Page[*Event], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[*Event]{}, err
	}
	in, err := s.Projects.Joined(ctx, by)
	if err != nil {
		return db.Page[*Event]{}, err
	}
	return s.list(ctx, by, 0, in, f, p)
}

// OfUser lists the events of a user that the actor can see. NotFound; empty if the
// profile of the user is private.
func (s *Service) OfUser(ctx context.Context, by actor.Actor, ref user.Ref, f Filter, p db.Paging) (db.Page[*Event], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[*Event]{}, err
	}
	u, err := s.Users.Find(ctx, by, ref)
	if err != nil {
		return db.Page[*Event]{}, err
	}
	if !user.MayReadProfile(by, u) {
		return db.Page[*Event]{Items: []*Event{}}, nil
	}
	return s.ofAuthor(ctx, by, u.ID, f, p)
}

// OfProject lists the events of a project that the actor can see. NotFound.
func (s *Service) OfProject(ctx context.Context, by actor.Actor, ref project.Ref, f Filter, p db.Paging) (db.Page[*Event], error) {
	in, err := s.Projects.Require(ctx, by, ref, project.NoAccess)
	if err != nil {
		return db.Page[*Event]{}, err
	}
	return s.list(ctx, by, 0, []*project.Project{in}, f, p)
}

func (s *Service) ofAuthor(ctx context.Context, by actor.Actor, authorID int64, f Filter, p db.Paging) (db.Page[*Event], error) {
	ids, err := findProjects(ctx, s.DB, authorID)
	if err != nil {
		return db.Page[*Event]{}, fmt.Errorf("projects of user %d: %w", authorID, err)
	}
	in, err := s.Projects.Among(ctx, by, ids)
	if err != nil {
		return db.Page[*Event]{}, err
	}
	return s.list(ctx, by, authorID, in, f, p)
}

// lane is the events of a project that a user may see, or, if the project ID is 0,
// those outside of projects.
type lane struct {
	project int64
	mask    Audience
	mine    bool // whether to include events of confidential issues that the user wrote or is assigned to
}

// list returns the events of an author, or of all users if the ID is 0, in projects
// that the actor can see.
func (s *Service) list(ctx context.Context, by actor.Actor, authorID int64, in []*project.Project, f Filter, p db.Paging) (db.Page[*Event], error) {
	q := s.search(by, authorID, in, f)
	page, err := q.page(ctx, s.DB, p)
	if err != nil {
		return page, fmt.Errorf("list events: %w", err)
	}
	var authors []int64
	for _, e := range page.Items {
		authors = append(authors, e.AuthorID)
	}
	users, err := s.Users.FindAll(ctx, authors)
	if err != nil {
		return page, fmt.Errorf("list events: %w", err)
	}
	for _, e := range page.Items {
		e.Author = users[e.AuthorID]
	}
	return page, nil
}

func (s *Service) search(by actor.Actor, authorID int64, in []*project.Project, f Filter) search {
	q := search{db: s.DB, author: authorID, filter: f}
	for _, one := range in {
		q.lanes = append(q.lanes, laneOf(by, one))
	}
	if authorID != 0 {
		q.lanes = append(q.lanes, outside(by, authorID))
	}
	if s.concerns != nil && !by.Anonymous() {
		q.mine, q.mineArgs = s.concerns(by)
	}
	return q
}

// laneOf returns the events of a project that the actor may see.
func laneOf(by actor.Actor, in *project.Project) lane {
	l := lane{project: in.ID, mask: Viewers}
	for part, who := range map[project.Part]Audience{
		project.CodePart: CodeReaders, project.IssuePart: IssueReaders, project.ConfidentialPart: Planners | Insiders,
		project.MergePart: MergeReaders, project.SnippetPart: SnippetReaders, project.MemberSnippetPart: SnippetAccounts | SnippetMembers,
		project.WikiPart: WikiReaders,
	} {
		if in.MayRead(by, part) {
			l.mask |= who
		}
	}
	if l.mask&SnippetReaders != 0 && !by.Anonymous() && !by.External {
		l.mask |= SnippetAccounts
	}
	l.mine = l.mask&IssueReaders != 0 && l.mask&Planners == 0
	return l
}

// outside returns the events of a user outside of projects that the actor may see.
func outside(by actor.Actor, authorID int64) lane {
	l := lane{mask: Everyone}
	if !by.Anonymous() && !by.External {
		l.mask |= Accounts
	}
	if by.Is(authorID) || by.Admin || by.Auditor {
		l.mask |= Accounts | Alone
	}
	return l
}
