package plan

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

// Badge is an image with a link on the overview of a project.
type Badge struct {
	ID        int64
	ProjectID *int64 // one of these is set
	GroupID   *int64
	Name      string
	LinkURL   string // with %{…} for what differs between projects
	ImageURL  string
	CreatedAt time.Time

	// As the place shows them that was asked for.
	RenderedLink  string
	RenderedImage string
}

// Badges lists the badges of a project or group, and of a project those of the
// groups above, for those who see it.
func (s *Service) Badges(ctx context.Context, by actor.Actor, at project.Place, name string, p db.Paging) (db.Page[*Badge], error) {
	in, err := s.at(ctx, by, at, project.NoAccess)
	if err != nil {
		return db.Page[*Badge]{}, err
	}
	page, err := listBadges(ctx, s.DB, in, name, p)
	if err != nil {
		return page, fmt.Errorf("list badges: %w", err)
	}
	for _, b := range page.Items {
		b.render(in)
	}
	return page, nil
}

// Badge returns a badge of a project or group to those who see it; NotFound.
func (s *Service) Badge(ctx context.Context, by actor.Actor, at project.Place, id int64) (*Badge, error) {
	in, err := s.at(ctx, by, at, project.NoAccess)
	if err != nil {
		return nil, err
	}
	b, err := findBadge(ctx, s.DB, in, id, true)
	if err != nil {
		return nil, db.NotFound(err, "Badge")
	}
	b.render(in)
	return b, nil
}

// BadgeFields are the fields of a badge; nil leaves a field as it is.
type BadgeFields struct{ Name, LinkURL, ImageURL *string }

// badgeLevel is the role that may change badges.
func badgeLevel(at project.Place) project.Level {
	if at.Group {
		return project.Owner
	}
	return project.Maintainer
}

// PreviewBadge shows how a badge would look; Maintainers of a project and Owners
// of a group only. Invalid.
func (s *Service) PreviewBadge(ctx context.Context, by actor.Actor, at project.Place, f BadgeFields) (*Badge, error) {
	in, err := s.at(ctx, by, at, badgeLevel(at))
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

// CreateBadge makes a badge; Maintainers of a project and Owners of a group may.
// Invalid.
func (s *Service) CreateBadge(ctx context.Context, by actor.Actor, at project.Place, f BadgeFields) (*Badge, error) {
	in, err := s.at(ctx, by, at, badgeLevel(at))
	if err != nil {
		return nil, err
	}
	b := &Badge{CreatedAt: s.Now()}
	b.ProjectID, b.GroupID = in.ids()
	if err := b.apply(f); err != nil {
		return nil, err
	}
	if err := insertBadge(ctx, s.DB, b); err != nil {
		return nil, fmt.Errorf("create badge: %w", err)
	}
	b.render(in)
	return b, nil
}

// UpdateBadge changes a badge of the place itself; Maintainers of a project and
// Owners of a group may. NotFound; Invalid.
func (s *Service) UpdateBadge(ctx context.Context, by actor.Actor, at project.Place, id int64, f BadgeFields) (*Badge, error) {
	in, err := s.at(ctx, by, at, badgeLevel(at))
	if err != nil {
		return nil, err
	}
	b, err := findBadge(ctx, s.DB, in, id, false)
	if err != nil {
		return nil, db.NotFound(err, "Badge")
	}
	if err := b.apply(f); err != nil {
		return nil, err
	}
	if err := saveBadge(ctx, s.DB, b); err != nil {
		return nil, fmt.Errorf("update badge %d: %w", id, err)
	}
	b.render(in)
	return b, nil
}

// DeleteBadge removes a badge of the place itself; Maintainers of a project and
// Owners of a group may. NotFound.
func (s *Service) DeleteBadge(ctx context.Context, by actor.Actor, at project.Place, id int64) error {
	in, err := s.at(ctx, by, at, badgeLevel(at))
	if err != nil {
		return err
	}
	b, err := findBadge(ctx, s.DB, in, id, false)
	if err != nil {
		return db.NotFound(err, "Badge")
	}
	if err := deleteBadge(ctx, s.DB, b.ID); err != nil {
		return fmt.Errorf("delete badge %d: %w", id, err)
	}
	return nil
}

func (b *Badge) apply(f BadgeFields) error {
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

// render fills in what differs between projects. A group shows its badges as
// they are.
func (b *Badge) render(in place) {
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
