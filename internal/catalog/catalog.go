// Package catalog implements the CI/CD Catalog: projects that publish CI/CD
// components for others.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/ci/config"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/release"
	"svc/internal/repo"
	"svc/internal/semver"
)

// Limits of a published version.
const (
	MaxComponents  = 100
	maxFile        = 1 << 20 // size of a component in bytes
	maxDescription = 1 << 10 // size of its description in bytes
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Projects *project.Service
	Repos    *repo.Service
	Releases *release.Service
	Now      func() time.Time
}

// Service manages the CI/CD Catalog.
type Service struct{ Deps }

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{d}
	queue.Handle(d.Queue, s.workPublish)
	return s
}

// Resource is a project in the catalog.
type Resource struct {
	Project    *project.Project
	ReleasedAt time.Time // of the newest version
	Latest     *Version  // the highest version
}

// Version is a published version of the components of a project.
type Version struct {
	ID         int64
	Name       string // the tag
	Components []Component
	CreatedAt  time.Time
}

// Component is a file that other projects include.
type Component struct {
	Name        string  `json:"name"`
	Description string  `json:"description,omitempty"`
	Inputs      []Input `json:"inputs,omitempty"`
}

// Input is an input of a component.
type Input struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
	Default     string `json:"default,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// Listed reports whether a project is in the catalog, for actors who can see the
// project.
func (s *Service) Listed(ctx context.Context, projectID int64) (bool, error) {
	ok, err := hasResource(ctx, s.DB, projectID)
	if err != nil {
		return false, fmt.Errorf("catalog project %d: %w", projectID, err)
	}
	return ok, nil
}

// List adds a project to the catalog, or removes it with its published versions.
// Requires Owner. NotFound; Forbidden; Unprocessable if a project without a
// description is added.
func (s *Service) List(ctx context.Context, by actor.Actor, ref project.Ref, on bool) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.CodePart, project.Owner)
	if err != nil {
		return err
	}
	if on && strings.TrimSpace(p.Description) == "" {
		return errs.Unprocessable("The project needs a description before it can be a catalog project.")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		kind, message := "catalog_project_added", "Added the project to the CI/CD Catalog"
		change := insertResource
		if !on {
			kind, message, change = "catalog_project_removed", "Removed the project from the CI/CD Catalog", deleteResource
		}
		if changed, err := change(ctx, tx, p.ID, s.Now()); err != nil || !changed {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: kind, Entity: audit.Entity{Type: audit.ProjectEntity, ID: p.ID, Path: p.FullPath}, Details: audit.Details{Message: message},
		})
	})
	if err != nil {
		return fmt.Errorf("catalog project %d: %w", p.ID, err)
	}
	return nil
}

// Resources lists the projects in the catalog with a published version whose code
// the actor can read, newest release first. search is a part of the name.
func (s *Service) Resources(ctx context.Context, by actor.Actor, search string, pg db.Paging) (db.Page[*Resource], error) {
	seen, args := s.Projects.Readable(by, project.CodePart)
	page, err := listResources(ctx, s.DB, seen, args, search, pg)
	out := db.Page[*Resource]{More: page.More, Total: page.Total, Over: page.Over}
	if err != nil {
		return out, fmt.Errorf("list the catalog: %w", err)
	}
	ids, at := make([]int64, len(page.Items)), map[int64]time.Time{}
	for i, r := range page.Items {
		ids[i], at[r.projectID] = r.projectID, r.releasedAt
	}
	list, err := s.Projects.Among(ctx, by, ids)
	if err != nil {
		return out, err
	}
	known := map[int64]*project.Project{}
	for _, p := range list {
		known[p.ID] = p
	}
	versions, err := findVersions(ctx, s.DB, shownVersions, ids...)
	if err != nil {
		return out, fmt.Errorf("versions of projects: %w", err)
	}
	for _, id := range ids {
		if p := known[id]; p != nil {
			out.Items = append(out.Items, &Resource{Project: p, ReleasedAt: at[id], Latest: highest(versions[id])})
		}
	}
	return out, nil
}

// Get returns a project in the catalog with its versions, highest first. The actor
// must be able to read its code. NotFound.
func (s *Service) Get(ctx context.Context, by actor.Actor, ref project.Ref) (*Resource, []*Version, error) {
	p, err := s.Projects.ReadCode(ctx, by, ref)
	if errs.IsRefusal(err) && !errs.Is(err, errs.KindNotFound) {
		return nil, nil, errs.NotFound("")
	}
	if err != nil {
		return nil, nil, err
	}
	found, err := findVersions(ctx, s.DB, maxVersions, p.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("versions of project %d: %w", p.ID, err)
	}
	versions := found[p.ID]
	if len(versions) == 0 {
		return nil, nil, errs.NotFound("")
	}
	sortVersions(versions)
	return &Resource{Project: p, ReleasedAt: versions[0].CreatedAt, Latest: highest(versions)}, versions, nil
}

// Publish publishes the release of a version in the catalog. Requires Developer; for
// a protected tag, permission to create it. NotFound if there is no such release;
// Unprocessable if the project is not in the catalog or has no valid components.
func (s *Service) Publish(ctx context.Context, by actor.Actor, ref project.Ref, version string) (*project.Project, *Version, error) {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.ReleasePart, project.Developer)
	if err != nil {
		return nil, nil, err
	}
	_, r, err := s.Releases.Get(ctx, by, ref, version)
	if err != nil {
		return nil, nil, err
	}
	may, err := s.Releases.MayChange(ctx, by, p, version)
	if err == nil && !may {
		err = errs.Forbidden("")
	}
	if err != nil {
		return nil, nil, err
	}
	v, err := s.publish(ctx, by, p, r)
	return p, v, err
}

func (s *Service) publish(ctx context.Context, by actor.Actor, p *project.Project, r *release.Release) (*Version, error) {
	if _, ok := semver.Parse(r.Tag); !ok {
		return nil, errs.Unprocessable("The version must be a semantic version, such as 1.2.3.")
	}
	listed, err := s.Listed(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	if !listed {
		return nil, errs.Unprocessable("The project is not a CI/CD Catalog project.")
	}
	src, err := s.Repos.SourceOf(by, p)
	if err != nil {
		return nil, err
	}
	v := &Version{Name: r.Tag, CreatedAt: s.Now()}
	if v.Components, err = readComponents(ctx, src, r.SHA); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		return saveVersion(ctx, tx, p.ID, r, v)
	})
	if db.IsForeignKey(err) {
		return nil, errs.Unprocessable("The project is not a CI/CD Catalog project.")
	}
	if err != nil {
		return nil, fmt.Errorf("publish version of project %d: %w", p.ID, err)
	}
	return v, nil
}

// componentPath matches the paths of component files.
var componentPath = regexp.MustCompile(`^templates/([\w-]+)(?:\.yml|/template\.yml)$`)

// readComponents reads the components of a commit.
func readComponents(ctx context.Context, src *repo.Source, commit string) ([]Component, error) {
	paths, err := src.Paths(ctx, commit, "templates")
	if err != nil && !errs.Is(err, errs.KindNotFound) {
		return nil, err
	}
	var list []Component
	for _, path := range paths {
		name := componentPath.FindStringSubmatch(path)
		if name == nil {
			continue
		}
		if len(list) == MaxComponents {
			return nil, errs.Unprocessable("A project can have at most %d components.", MaxComponents)
		}
		content, err := src.Read(ctx, commit, path, maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		h, err := config.ReadHeader(ctx, config.Source{Path: path, Content: content})
		if faults, ok := errors.AsType[config.Errors](err); ok {
			return nil, errs.Unprocessable("%s: %s", path, faults.Error())
		}
		if fault, ok := errors.AsType[*config.Error](err); ok {
			return nil, errs.Unprocessable("%s: %s", path, fault.Message)
		}
		if err != nil {
			return nil, err
		}
		c := Component{Name: name[1], Description: clip(h.Description)}
		for _, i := range h.Inputs {
			c.Inputs = append(c.Inputs, toInput(i))
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errs.Unprocessable("The project has no components: add files to the directory templates.")
	}
	return list, nil
}

// publishWork is the background job that publishes a new release of a catalog
// project.
type publishWork struct {
	ProjectID int64  `json:"project_id"`
	Tag       string `json:"tag"`
}

// Kind implements queue.Work.
func (publishWork) Kind() string { return "catalog_publish" }

// ReleaseCreated queues a job that publishes the release of a catalog project.
func (s *Service) ReleaseCreated(ctx context.Context, tx *db.Tx, c release.Change) error {
	if _, ok := semver.Parse(c.Release.Tag); !ok {
		return nil
	}
	listed, err := hasResource(ctx, tx, c.Project.ID)
	if err != nil || !listed {
		return err
	}
	return s.Queue.Add(ctx, tx, publishWork{c.Project.ID, c.Release.Tag})
}

func (s *Service) workPublish(ctx context.Context, w publishWork) error {
	by := actor.System()
	p, r, err := s.Releases.Get(ctx, by, project.RefTo(w.ProjectID), w.Tag)
	if err == nil {
		_, err = s.publish(ctx, by, p, r)
	}
	if errs.IsRefusal(err) {
		return nil // a corrected release can be published with the API
	}
	return err
}
