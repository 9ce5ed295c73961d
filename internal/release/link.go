package release

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
)

// Link is a link to an asset of a release.
type Link struct {
	ID        int64
	ReleaseID int64
	Name      string
	URL       string
	Path      string // of the permanent URL, with a leading slash; empty for none
	Type      string // other, runbook, image or package
	CreatedAt time.Time
}

// LinkFields are changes to a link; nil leaves the default or the current value.
type LinkFields struct {
	Name *string
	URL  *string
	Path *string
	Type *string
}

// LinkTypes are the types of links.
func LinkTypes() []string { return []string{"other", "runbook", "image", "package"} }

const maxURL = 2048

// linkPath is what the permanent URL of an asset can end with.
var linkPath = regexp.MustCompile(`\A/(?:[-.\w]+/?)*[\da-zA-Z]+\z`)

func (l *Link) apply(f LinkFields) error {
	patch.Set(&l.Name, f.Name)
	patch.Set(&l.URL, f.URL)
	patch.Set(&l.Path, f.Path)
	patch.Set(&l.Type, f.Type)
	l.Name, l.URL = strings.TrimSpace(l.Name), strings.TrimSpace(l.URL)
	wrong := errs.Fields{}
	switch {
	case l.Name == "":
		wrong.Set("name", "can't be blank")
	case utf8.RuneCountInString(l.Name) > MaxName:
		wrong.Set("name", "is too long (maximum is %d characters)", MaxName)
	}
	u, err := url.Parse(l.URL)
	switch {
	case l.URL == "":
		wrong.Set("url", "can't be blank")
	case len(l.URL) > maxURL:
		wrong.Set("url", "is too long (maximum is %d characters)", maxURL)
	case err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "ftp"}, u.Scheme):
		wrong.Set("url", "is blocked: Only allowed schemes are http, https, ftp")
	}
	if l.Path != "" && (len(l.Path) > 128 || !linkPath.MatchString(l.Path) || strings.Contains(l.Path, "..")) {
		wrong.Set("filepath", "is in an invalid format")
	}
	if !slices.Contains(LinkTypes(), l.Type) {
		wrong.Set("link_type", "is not included in the list")
	}
	return wrong.Err()
}

// newLinks returns the links of a new release, which are unique.
func newLinks(list []LinkFields, now time.Time) ([]Link, error) {
	if len(list) > MaxLinks {
		return nil, errs.InvalidField("links", "are too many (maximum is %d)", MaxLinks)
	}
	links := make([]Link, len(list))
	seen := map[string]bool{}
	for i, f := range list {
		l := Link{Type: "other", CreatedAt: now}
		if err := l.apply(f); err != nil {
			return nil, err
		}
		for kind, value := range map[string]string{"name": l.Name, "url": l.URL, "filepath": l.Path} {
			key := kind + " " + value
			if value != "" && seen[key] {
				return nil, errs.InvalidField("links", "have duplicate values (%s)", value)
			}
			seen[key] = true
		}
		links[i] = l
	}
	return links, nil
}

// Links lists the links of a release, the newest first. The permissions are those
// of Get. NotFound.
func (s *Service) Links(ctx context.Context, by actor.Actor, ref project.Ref, tag string, pg db.Paging) (*Release, db.Page[Link], error) {
	_, r, err := s.Get(ctx, by, ref, tag)
	if err != nil {
		return nil, db.Page[Link]{}, err
	}
	page, err := db.Pick(r.Links, pg, func(l Link) (Link, error) { return l, nil })
	return r, page, err
}

// Link returns a link of a release. The permissions are those of Get. NotFound.
func (s *Service) Link(ctx context.Context, by actor.Actor, ref project.Ref, tag string, id int64) (*Release, *Link, error) {
	_, r, err := s.Get(ctx, by, ref, tag)
	if err != nil {
		return nil, nil, err
	}
	for i := range r.Links {
		if r.Links[i].ID == id {
			return r, &r.Links[i], nil
		}
	}
	return nil, nil, errs.NotFound("")
}

// Asset returns the link with a permanent path, for users who can see the releases
// and the code of the project. NotFound.
func (s *Service) Asset(ctx context.Context, by actor.Actor, ref project.Ref, tag, path string) (*Link, error) {
	_, r, err := s.Get(ctx, by, ref, tag)
	if err != nil {
		return nil, err
	}
	path = "/" + strings.TrimLeft(path, "/")
	for i := range r.Links {
		if r.Links[i].Path == path {
			return &r.Links[i], nil
		}
	}
	return nil, errs.NotFound("")
}

// CreateLink adds a link to a release. The permissions are those of Update.
// NotFound; Invalid.
func (s *Service) CreateLink(ctx context.Context, by actor.Actor, ref project.Ref, tag string, f LinkFields) (*Release, *Link, error) {
	l := &Link{Type: "other", CreatedAt: s.Now()}
	if err := l.apply(f); err != nil {
		return nil, nil, err
	}
	r, err := s.changeLinks(ctx, by, ref, tag, func(tx *db.Tx, r *Release) error {
		n, err := countLinks(ctx, tx, r.ID)
		if err == nil && n >= MaxLinks {
			err = errs.InvalidField("links", "are too many (maximum is %d)", MaxLinks)
		}
		if err != nil {
			return err
		}
		l.ReleaseID = r.ID
		return insertLink(ctx, tx, l)
	})
	return r, l, err
}

// UpdateLink changes a link of a release. The permissions are those of Update.
// NotFound; Invalid.
func (s *Service) UpdateLink(ctx context.Context, by actor.Actor, ref project.Ref, tag string, id int64, f LinkFields) (*Release, *Link, error) {
	var l *Link
	r, err := s.changeLinks(ctx, by, ref, tag, func(tx *db.Tx, r *Release) (err error) {
		if l, err = findLink(ctx, tx, r.ID, id); err != nil {
			return db.NotFound(err, "")
		}
		if err := l.apply(f); err != nil {
			return err
		}
		return saveLink(ctx, tx, l)
	})
	return r, l, err
}

// DeleteLink removes a link from a release. The permissions are those of Update.
// NotFound.
func (s *Service) DeleteLink(ctx context.Context, by actor.Actor, ref project.Ref, tag string, id int64) (*Release, *Link, error) {
	var l *Link
	r, err := s.changeLinks(ctx, by, ref, tag, func(tx *db.Tx, r *Release) (err error) {
		if l, err = findLink(ctx, tx, r.ID, id); err != nil {
			return db.NotFound(err, "")
		}
		return deleteLink(ctx, tx, id)
	})
	return r, l, err
}

func (s *Service) changeLinks(ctx context.Context, by actor.Actor, ref project.Ref, tag string, do func(*db.Tx, *Release) error) (*Release, error) {
	p, err := s.existing(ctx, by, ref, tag)
	if err != nil {
		return nil, err
	}
	r, err := s.change(ctx, by, p, tag, s.Events.Updated, "release_updated", "Changed the assets of release "+tag, do)
	if err != nil {
		return nil, fmt.Errorf("change links of release: %w", err)
	}
	r.Project = p
	return r, nil
}

// SetLinks replaces the links of a release by a list: an ID keeps a link, 0 adds one, and
// all others are removed. The permissions are those of Update. NotFound; Invalid.
func (s *Service) SetLinks(ctx context.Context, by actor.Actor, ref project.Ref, tag string, ids []int64, list []LinkFields) error {
	if _, err := newLinks(list, s.Now()); err != nil {
		return err
	}
	_, r, err := s.Get(ctx, by, ref, tag)
	if err != nil {
		return err
	}
	if sameLinks(r.Links, ids, list) {
		return nil
	}
	_, err = s.changeLinks(ctx, by, ref, tag, func(tx *db.Tx, r *Release) error {
		was, err := findLinks(ctx, tx, []int64{r.ID})
		if err != nil {
			return err
		}
		known := map[int64]Link{}
		for _, l := range was {
			known[l.ID] = l
			if err := deleteLink(ctx, tx, l.ID); err != nil { // names may be exchanged
				return err
			}
		}
		for i, f := range list {
			l, ok := known[ids[i]]
			if !ok {
				l = Link{ReleaseID: r.ID, Type: "other", CreatedAt: s.Now()}
			}
			if err := l.apply(f); err != nil {
				return err
			}
			if err := putLink(ctx, tx, &l); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// sameLinks reports whether a list changes nothing.
func sameLinks(have []Link, ids []int64, list []LinkFields) bool {
	if len(have) != len(list) {
		return false
	}
	for i, f := range list {
		at := slices.IndexFunc(have, func(l Link) bool { return l.ID == ids[i] })
		if at < 0 {
			return false
		}
		l := have[at]
		if err := l.apply(f); err != nil || l != have[at] {
			return false
		}
	}
	return true
}
