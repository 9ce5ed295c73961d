package hook

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"

	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/release"
)

// ReleaseCreated sends the event of a new release.
func (s *Service) ReleaseCreated(ctx context.Context, tx *db.Tx, c release.Change) error {
	return s.releaseChanged(ctx, tx, c, "create")
}

// ReleaseUpdated sends the event of a changed release.
func (s *Service) ReleaseUpdated(ctx context.Context, tx *db.Tx, c release.Change) error {
	return s.releaseChanged(ctx, tx, c, "update")
}

// ReleaseDeleted sends the event of a deleted release.
func (s *Service) ReleaseDeleted(ctx context.Context, tx *db.Tx, c release.Change) error {
	return s.releaseChanged(ctx, tx, c, "delete")
}

func (s *Service) releaseChanged(ctx context.Context, tx *db.Tx, c release.Change, action string) error {
	list, err := s.listening(ctx, tx, c.Project.ID)
	if err != nil || !wants(list, Releases) {
		return err
	}
	o, err := s.releaseEvent(ctx, tx, c.Project.ID, c.Release, action)
	if err != nil {
		return fmt.Errorf("hooks of release %s: %w", c.Release.Tag, err)
	}
	return s.emit(ctx, tx, list, o)
}

func (s *Service) releaseEvent(ctx context.Context, q db.Q, projectID int64, r *release.Release, action string) (occurrence, error) {
	in, err := project.In(ctx, q, projectID)
	if err != nil {
		return occurrence{}, err
	}
	links, err := findReleaseLinks(ctx, q, r.ID)
	if err != nil {
		return occurrence{}, err
	}
	tag := (&url.URL{Path: r.Tag}).EscapedPath()
	name := path.Base(in.FullPath) + "-" + strings.ReplaceAll(r.Tag, "/", "-")
	sources, base := []any{}, s.webURL(in)+"/-/archive/"+tag+"/"+url.PathEscape(name)
	for _, format := range []string{"zip", "tar.gz", "tar.bz2", "tar"} {
		sources = append(sources, object{"format": format, "url": base + "." + format})
	}
	return occurrence{
		projectID: in.ID, trigger: Releases, pending: pending{Commits: map[string]string{"commit": r.SHA}},
		payload: object{
			"id": r.ID, "created_at": zone(r.CreatedAt), "description": r.Description, "name": r.Name, "released_at": zone(r.ReleasedAt), "tag": r.Tag,
			"object_kind": "release", "project": s.projectObject(in), "url": s.webURL(in) + "/-/releases/" + tag, "action": action,
			"assets": object{"count": len(links) + len(sources), "links": links, "sources": sources}, "commit": nil,
		},
	}, nil
}
