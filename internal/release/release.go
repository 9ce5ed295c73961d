// Package release implements releases: notes and links to assets for a tag of a
// project.
package release

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/event"
	"svc/internal/git"
	"svc/internal/notify"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// Limits of a release.
const (
	MaxName        = 255     // characters
	MaxDescription = 1 << 20 // bytes
	MaxLinks       = 1000
	MaxMilestones  = 100
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Users    *user.Service
	Projects *project.Service
	Repos    *repo.Service
	Plan     *plan.Service
	Notify   *notify.Service
	Now      func() time.Time
}

// Service manages releases.
type Service struct {
	Deps
	Events Events
}

// Events are the events of releases. Changes of links are updates.
type Events struct {
	// Created is published when a release is created.
	Created event.Event[Change]
	// Updated is published when a release or its links change.
	Updated event.Event[Change]
	// Deleted is published when a release is deleted.
	Deleted event.Event[Change]
}

// Change is what a user did to a release.
type Change struct {
	Project *project.Project
	Release *Release
	By      actor.Actor
}

// New returns the service.
func New(d Deps) *Service { return &Service{Deps: d} }

// Release is a release of a project.
type Release struct {
	ID          int64
	ProjectID   int64
	Tag         string
	Name        string
	Description string
	SHA         string // the commit of the tag when the release was created
	AuthorID    *int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
	ReleasedAt  time.Time

	Project    *project.Project
	Author     *user.User // nil if the account was deleted
	Links      []Link     // newest first
	Milestones []*plan.Milestone
	Issues     map[int64]plan.Counts // by the ID of the milestone
	// Commit is nil if the reader may not read the code, or the commit is gone.
	Commit *git.Commit
	// Code says whether the reader may read the code. Others get no tag, commit or
	// source archives.
	Code bool
	// Plans says whether the reader may read milestones.
	Plans bool
}

// Upcoming reports whether the release date is in the future.
func (r *Release) Upcoming(now time.Time) bool { return r.ReleasedAt.After(now) }

// Historical reports whether the release date was in the past when the release was
// created.
func (r *Release) Historical() bool { return r.ReleasedAt.Before(r.CreatedAt.Add(-time.Minute)) }

// DisplayName returns the name for a reader. Without access to the code it does not
// contain the tag.
func (r *Release) DisplayName() string {
	if !r.Code {
		return fmt.Sprintf("Release-%d", r.ID)
	}
	return r.Name
}

// Filter selects and orders releases. The zero value selects all, the newest
// release date first.
type Filter struct {
	ByCreated bool // order by the date of creation instead of the release date
	Asc       bool
	UpdatedAt [2]*time.Time // not before, not after
}

// List lists the releases of a project, for users who can see its releases.
// NotFound.
func (s *Service) List(ctx context.Context, by actor.Actor, ref project.Ref, f Filter, pg db.Paging) (*project.Project, db.Page[*Release], error) {
	p, err := s.Projects.RequireView(ctx, by, ref, project.ReleasePart)
	if err != nil {
		return nil, db.Page[*Release]{}, err
	}
	page, err := listReleases(ctx, s.DB, p.ID, f, pg)
	if err != nil {
		return nil, page, fmt.Errorf("list releases of project %d: %w", p.ID, err)
	}
	return p, page, s.fill(ctx, by, p, page.Items...)
}

// Get returns the release of a tag, for users who can see the releases and the code
// of the project. NotFound, Forbidden.
func (s *Service) Get(ctx context.Context, by actor.Actor, ref project.Ref, tag string) (*project.Project, *Release, error) {
	p, err := s.readable(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	r, err := findRelease(ctx, s.DB, p.ID, tag)
	if err != nil {
		return nil, nil, db.NotFound(err, "")
	}
	return p, r, s.fill(ctx, by, p, r)
}

// Latest returns the release with the newest release date that is not in the
// future. The errors are those of Get.
func (s *Service) Latest(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, *Release, error) {
	p, err := s.readable(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	r, err := findLatest(ctx, s.DB, p.ID, s.Now())
	if err != nil {
		return nil, nil, db.NotFound(err, "")
	}
	return p, r, s.fill(ctx, by, p, r)
}

// readable returns a project to a user who can see its releases and its code.
func (s *Service) readable(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	p, err := s.Projects.RequireView(ctx, by, ref, project.ReleasePart)
	if err != nil {
		return nil, err
	}
	return p, p.View(by, project.CodePart)
}

// Summary is the tag and name of a release.
type Summary struct {
	Tag         string
	Name        string
	Description string
	ReleasedAt  time.Time
}

// OfTags returns the releases of some tags by the name of the tag, for a caller who
// has checked that the actor can read the code of the project. It is empty if the
// actor cannot see the releases.
func (s *Service) OfTags(ctx context.Context, by actor.Actor, p *project.Project, tags []string) (map[string]Summary, error) {
	if len(tags) == 0 || !p.MayRead(by, project.ReleasePart) {
		return map[string]Summary{}, nil
	}
	found, err := findOfTags(ctx, s.DB, p.ID, tags)
	if err != nil {
		return nil, fmt.Errorf("releases of tags: %w", err)
	}
	return found, nil
}

// Newest returns the latest release, and how many there are, for the page of a
// project. The release is nil if there is none that the actor can see.
func (s *Service) Newest(ctx context.Context, by actor.Actor, p *project.Project) (*Summary, int, error) {
	if !p.MayRead(by, project.ReleasePart) || !p.MayRead(by, project.CodePart) {
		return nil, 0, nil
	}
	r, err := findLatest(ctx, s.DB, p.ID, s.Now())
	if errs.Is(db.NotFound(err, ""), errs.KindNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("latest release of project %d: %w", p.ID, err)
	}
	n, err := countReleases(ctx, s.DB, p.ID)
	return &Summary{Tag: r.Tag, Name: r.Name, ReleasedAt: r.ReleasedAt}, n, err
}

// Description returns the description of the release of a tag for CI/CD variables;
// empty if there is none. The caller has checked the permissions.
func (s *Service) Description(ctx context.Context, projectID int64, tag string) (string, error) {
	r, err := findRelease(ctx, s.DB, projectID, tag)
	if errs.Is(db.NotFound(err, ""), errs.KindNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("release of tag: %w", err)
	}
	return r.Description, nil
}

// fill adds data of other tables to the releases of a project, as far as the actor may
// see it.
func (s *Service) fill(ctx context.Context, by actor.Actor, p *project.Project, list ...*Release) error {
	if len(list) == 0 {
		return nil
	}
	if err := s.fillRows(ctx, list); err != nil {
		return err
	}
	return s.fillProject(ctx, by, p, list)
}

// fillProject is fill without links and authors.
func (s *Service) fillProject(ctx context.Context, by actor.Actor, p *project.Project, list []*Release) error {
	for _, r := range list {
		r.Project = p
		r.Code = p.MayRead(by, project.CodePart)
		r.Plans = p.MayRead(by, project.IssuePart) || p.MayRead(by, project.MergePart)
	}
	if err := s.fillMilestones(ctx, by, p, list); err != nil {
		return err
	}
	if !list[0].Code {
		return nil
	}
	src, err := s.Repos.SourceOf(by, p)
	if err != nil {
		return err
	}
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = r.SHA
	}
	commits, err := src.Commits(ctx, ids)
	if err != nil {
		return err
	}
	for _, r := range list {
		r.Commit = commits[r.SHA]
	}
	return nil
}

// fillRows adds links and authors.
func (s *Service) fillRows(ctx context.Context, list []*Release) error {
	ids, authors, byID := make([]int64, len(list)), []int64{}, make(map[int64]*Release, len(list))
	for i, r := range list {
		ids[i], byID[r.ID], r.Links = r.ID, r, []Link{}
		if r.AuthorID != nil {
			authors = append(authors, *r.AuthorID)
		}
	}
	links, err := findLinks(ctx, s.DB, ids)
	if err != nil {
		return fmt.Errorf("find links of releases: %w", err)
	}
	for _, l := range links {
		r := byID[l.ReleaseID]
		r.Links = append(r.Links, l)
	}
	users, err := s.Users.FindAll(ctx, authors)
	if err != nil {
		return fmt.Errorf("find authors of releases: %w", err)
	}
	for _, r := range list {
		if r.AuthorID != nil {
			r.Author = users[*r.AuthorID]
		}
	}
	return nil
}

// fillMilestones adds the milestones, with the number of their issues that the
// actor can see.
func (s *Service) fillMilestones(ctx context.Context, by actor.Actor, p *project.Project, list []*Release) error {
	if !list[0].Plans {
		return nil
	}
	ids := make([]int64, len(list))
	for i, r := range list {
		ids[i] = r.ID
	}
	pairs, err := findMilestones(ctx, s.DB, ids)
	if err != nil || len(pairs) == 0 {
		return err
	}
	goals := make([]int64, len(pairs))
	for i, pair := range pairs {
		goals[i] = pair.milestone
	}
	found, err := s.Plan.MilestonesByID(ctx, goals)
	if err != nil {
		return err
	}
	counts, err := s.Plan.CountByMilestone(ctx, by, project.Place{Ref: project.RefTo(p.ID)}, goals...)
	if err != nil {
		return err
	}
	for _, r := range list {
		r.Issues = counts
		for _, pair := range pairs {
			if m := found[pair.milestone]; m != nil && pair.release == r.ID {
				r.Milestones = append(r.Milestones, m)
			}
		}
	}
	return nil
}

// UserDeleted makes the ghost user the author of the releases of a deleted user.
func (s *Service) UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	return replaceAuthor(ctx, tx, d.UserID, d.GhostID)
}
