// Package badge implements the badges of projects and groups.
package badge

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Projects *project.Service
	Now      func() time.Time
}

// Service manages badges.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{d} }

// owner is the project or group that has a badge. One of them is set.
type owner struct {
	project *project.Project
	group   *project.Namespace
}

// ids returns the columns of a badge of the owner: one of them is null.
func (o owner) ids() (projectID, groupID *int64) {
	if o.project != nil {
		return &o.project.ID, nil
	}
	return nil, &o.group.ID
}

// require returns a project or group to an actor who can see it, or who may change
// it with the level.
func (s *Service) require(ctx context.Context, by actor.Actor, at project.Place, level project.Level) (owner, error) {
	if at.Group {
		g, err := s.Projects.RequireGroup(ctx, by, at.Ref, level)
		return owner{group: g}, err
	}
	p, err := s.Projects.Require(ctx, by, at.Ref, project.NoAccess)
	if err == nil && level > project.NoAccess {
		err = p.Change(by, project.WholePart, level)
	}
	return owner{project: p}, err
}

// Badge is an image with a link on the overview of a project.
type Badge struct {
	ID        int64
	ProjectID *int64 // one of these is set
	GroupID   *int64
	Name      string
	LinkURL   string // with %{…} placeholders
	ImageURL  string
	CreatedAt time.Time

	// Rendered for the project or group that was requested.
	RenderedLink  string
	RenderedImage string
}

// List lists the badges of a project or group, and for a project also those of its
// parent groups, for users who can see it.
func (s *Service) List(ctx context.Context, by actor.Actor, at project.Place, name string, p db.Paging) (db.Page[*Badge], error) {
	in, err := s.require(ctx, by, at, project.NoAccess)
	if err != nil {
		return db.Page[*Badge]{}, err
	}
	page, err := list(ctx, s.DB, in, name, p)
	if err != nil {
		return page, fmt.Errorf("list badges: %w", err)
	}
	for _, b := range page.Items {
		b.render(in)
	}
	return page, nil
}

// Get returns a badge of a project or group to users who can see it; NotFound.
func (s *Service) Get(ctx context.Context, by actor.Actor, at project.Place, id int64) (*Badge, error) {
	in, err := s.require(ctx, by, at, project.NoAccess)
	if err != nil {
		return nil, err
	}
	b, err := find(ctx, s.DB, in, id, true)
	if err != nil {
		return nil, db.NotFound(err, "Badge")
	}
	b.render(in)
	return b, nil
}

// Fields are the fields of a badge; nil leaves a field unchanged.
type Fields struct{ Name, LinkURL, ImageURL *string }

// changeLevel returns the role that may change badges.
func changeLevel(at project.Place) project.Level {
	if at.Group {
		return project.Owner
	}
	return project.Maintainer
}

// Preview renders a badge without storing it; Maintainers of a project and Owners of
// a group only. Invalid.
func (s *Service) Preview(ctx context.Context, by actor.Actor, at project.Place, f Fields) (*Badge, error) {
	in, err := s.require(ctx, by, at, changeLevel(at))
	if err != nil {
		return nil, err
	}
	b := &Badge{}
	if err := b.apply(f); err != nil {
		return nil, err
	}
	b.render(in)
	return b, nil
}

// Create creates a badge; Maintainers of a project and Owners of a group only.
// Invalid.
func (s *Service) Create(ctx context.Context, by actor.Actor, at project.Place, f Fields) (*Badge, error) {
	in, err := s.require(ctx, by, at, changeLevel(at))
	if err != nil {
		return nil, err
	}
	b := &Badge{CreatedAt: s.Now()}
	b.ProjectID, b.GroupID = in.ids()
	if err := b.apply(f); err != nil {
		return nil, err
	}
	if err := insert(ctx, s.DB, b); err != nil {
		return nil, fmt.Errorf("create badge: %w", err)
	}
	b.render(in)
	return b, nil
}

// Update changes a badge of the project or group itself; Maintainers of a project
// and Owners of a group only. NotFound; Invalid.
func (s *Service) Update(ctx context.Context, by actor.Actor, at project.Place, id int64, f Fields) (*Badge, error) {
	in, err := s.require(ctx, by, at, changeLevel(at))
	if err != nil {
		return nil, err
	}
	b, err := find(ctx, s.DB, in, id, false)
	if err != nil {
		return nil, db.NotFound(err, "Badge")
	}
	if err := b.apply(f); err != nil {
		return nil, err
	}
	if err := save(ctx, s.DB, b); err != nil {
		return nil, fmt.Errorf("update badge %d: %w", id, err)
	}
	b.render(in)
	return b, nil
}

// Delete deletes a badge of the project or group itself; Maintainers of a project
// and Owners of a group only. NotFound.
func (s *Service) Delete(ctx context.Context, by actor.Actor, at project.Place, id int64) error {
	in, err := s.require(ctx, by, at, changeLevel(at))
	if err != nil {
		return err
	}
	b, err := find(ctx, s.DB, in, id, false)
	if err != nil {
		return db.NotFound(err, "Badge")
	}
	if err := remove(ctx, s.DB, b.ID); err != nil {
		return fmt.Errorf("delete badge %d: %w", id, err)
	}
	return nil
}

func (b *Badge) apply(f Fields) error {
	patch.Set(&b.Name, f.Name)
	patch.Set(&b.LinkURL, f.LinkURL)
	patch.Set(&b.ImageURL, f.ImageURL)
	wrong := errs.Fields{}
	for field, address := range map[string]string{"link_url": b.LinkURL, "image_url": b.ImageURL} {
		// The placeholders are no part of an address.
		plain := strings.NewReplacer("%{", "", "}", "").Replace(address)
		u, err := url.Parse(plain)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(address) > 2048 {
			wrong.Set(field, "must be a valid URL")
		}
	}
	if len(b.Name) > 255 {
		wrong.Set("name", "is too long (maximum is 255 characters)")
	}
	return wrong.Err()
}

// render replaces the placeholders, which depend on the project. For a group, badges
// are returned unchanged.
func (b *Badge) render(in owner) {
	b.RenderedLink, b.RenderedImage = b.LinkURL, b.ImageURL
	p := in.project
	if p == nil {
		return
	}
	root, _, _ := strings.Cut(p.FullPath, "/")
	fill := strings.NewReplacer("%{project_path}", p.FullPath, "%{project_title}", url.PathEscape(p.Name), "%{project_name}", p.Path,
		"%{project_id}", strconv.FormatInt(p.ID, 10), "%{project_namespace}", p.Namespace.FullPath, "%{group_name}", root, "%{default_branch}", url.PathEscape(p.DefaultBranch))
	b.RenderedLink, b.RenderedImage = fill.Replace(b.LinkURL), fill.Replace(b.ImageURL)
}
