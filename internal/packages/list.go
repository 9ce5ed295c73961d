package packages

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/ci"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Filter selects and sorts packages.
type Filter struct {
	Type    Type
	Name    string // a part of it
	Version string
	Status  Status // Default unless given
	OrderBy string // created_at, name, version, type; project_path in a group
	Desc    bool
	// ExcludeSubgroups limits a group to its own projects.
	ExcludeSubgroups bool
}

// List lists the packages of a project, for those who may read them.
func (s *Service) List(ctx context.Context, by actor.Actor, ref project.Ref, f Filter, pg db.Paging) (*project.Project, db.Page[*Package], error) {
	p, err := s.view(ctx, by, ref)
	if err != nil {
		return nil, db.Page[*Package]{}, err
	}
	page, err := listPackages(ctx, s.DB, p.ID, f, pg, inProject, p.ID)
	if err == nil {
		err = s.fill(ctx, by, []*project.Project{p}, page.Items)
	}
	if err != nil {
		return nil, page, fmt.Errorf("list packages: %w", err)
	}
	return p, page, nil
}

// ListGroup lists the packages of the projects of a group that the actor may read.
// NotFound.
func (s *Service) ListGroup(ctx context.Context, by actor.Actor, ref project.Ref, f Filter, pg db.Paging) (*project.Namespace, db.Page[*Package], error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.NoAccess)
	if err != nil {
		return nil, db.Page[*Package]{}, err
	}
	cond, args := s.Projects.Readable(by, project.PackagePart)
	in := inGroup
	if f.ExcludeSubgroups {
		in = directlyIn
	}
	page, err := listPackages(ctx, s.DB, 0, f, pg, both(in, cond), append([]any{g.ID}, args...)...)
	if err != nil {
		return nil, page, fmt.Errorf("list packages: %w", err)
	}
	var ids []int64
	for _, k := range page.Items {
		ids = append(ids, k.ProjectID)
	}
	projects, err := s.Projects.Among(ctx, by, ids)
	if err == nil {
		err = s.fill(ctx, by, projects, page.Items)
	}
	if err != nil {
		return nil, page, fmt.Errorf("list packages: %w", err)
	}
	return g, page, nil
}

// Get returns a package. NotFound.
func (s *Service) Get(ctx context.Context, by actor.Actor, ref project.Ref, id int64) (*project.Project, *Package, error) {
	p, err := s.view(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	k, err := findPackage(ctx, s.DB, p.ID, id)
	if err != nil {
		return nil, nil, err
	}
	return p, k, s.fill(ctx, by, []*project.Project{p}, []*Package{k})
}

// maxOtherVersions is the number of versions that a package shows of its others.
const maxOtherVersions = 100

// Versions returns the newest other versions of a package, for an actor who has
// read it.
func (s *Service) Versions(ctx context.Context, by actor.Actor, p *project.Project, k *Package) ([]*Package, error) {
	list, err := newestVersions(ctx, s.DB, k.ProjectID, k.Type, k.lookup, maxOtherVersions+1)
	if err != nil {
		return nil, fmt.Errorf("versions of package %d: %w", k.ID, err)
	}
	others := make([]*Package, 0, len(list))
	for _, other := range list {
		if other.ID != k.ID && len(others) < maxOtherVersions {
			others = append(others, other)
		}
	}
	return others, s.fill(ctx, by, []*project.Project{p}, others)
}

// fill adds tags and pipelines to packages of projects that the actor can see.
func (s *Service) fill(ctx context.Context, by actor.Actor, projects []*project.Project, list []*Package) error {
	if len(list) == 0 {
		return nil
	}
	byID, ids := make(map[int64]*Package, len(list)), make([]int64, len(list))
	for i, k := range list {
		byID[k.ID], ids[i] = k, k.ID
	}
	tags, err := tagsOf(ctx, s.DB, ids)
	if err != nil {
		return err
	}
	for _, t := range tags {
		byID[t.PackageID].Tags = append(byID[t.PackageID].Tags, t)
	}
	links, err := pipelinesOf(ctx, s.DB, ids)
	if err != nil || len(links) == 0 {
		return err
	}
	pipelineIDs := make([]int64, len(links))
	for i, l := range links {
		pipelineIDs[i] = l.pipelineID
	}
	seen := map[int64]*ci.Pipeline{}
	if by.Job == nil && by.Deploy == nil {
		if seen, err = s.CI.VisiblePipelines(ctx, by, projects, pipelineIDs); err != nil {
			return err
		}
	}
	for _, l := range links {
		if found := seen[l.pipelineID]; found != nil {
			byID[l.packageID].Pipelines = append(byID[l.packageID].Pipelines, found)
		}
	}
	return nil
}

// Pipelines lists the pipelines that published a package, newest first, as far as
// the actor can see them. NotFound.
func (s *Service) Pipelines(ctx context.Context, by actor.Actor, ref project.Ref, id int64, pg db.Paging) (*project.Project, db.Page[*ci.Pipeline], error) {
	var page db.Page[*ci.Pipeline]
	p, err := s.view(ctx, by, ref)
	if err != nil {
		return nil, page, err
	}
	if _, err := findPackage(ctx, s.DB, p.ID, id); err != nil {
		return nil, page, err
	}
	ids, err := listPipelineIDs(ctx, s.DB, id, pg)
	if err != nil {
		return nil, page, fmt.Errorf("pipelines of package %d: %w", id, err)
	}
	page = db.Page[*ci.Pipeline]{Items: []*ci.Pipeline{}, More: ids.More, Last: ids.Last, Total: ids.Total, Over: ids.Over}
	as, err := s.actorFor(ctx, by, ref)
	if err != nil {
		return nil, page, err
	}
	seen, err := s.CI.VisiblePipelines(ctx, as, []*project.Project{p}, ids.Items)
	for _, id := range ids.Items {
		if found := seen[id]; found != nil {
			page.Items = append(page.Items, found)
		}
	}
	return p, page, err
}

// Files lists the files of a package. NotFound.
func (s *Service) Files(ctx context.Context, by actor.Actor, ref project.Ref, id int64, f FileFilter, pg db.Paging) (*Package, db.Page[*File], error) {
	_, k, err := s.Get(ctx, by, ref, id)
	if err != nil {
		return nil, db.Page[*File]{}, err
	}
	page, err := listFiles(ctx, s.DB, id, f, pg)
	if err != nil {
		return nil, page, fmt.Errorf("files of package %d: %w", id, err)
	}
	return k, page, nil
}

// FileFilter sorts the files of a package.
type FileFilter struct {
	OrderBy string // id, created_at or file_name
	Desc    bool
}

// Open opens a file of a package by its ID. NotFound.
func (s *Service) Open(ctx context.Context, by actor.Actor, ref project.Ref, fileID int64) (*Content, error) {
	p, err := s.view(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	f, err := findFile(ctx, s.DB, p.ID, fileID)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, f)
}

// group returns a group and the projects in it that have a package, as far as the
// actor may read their packages. A deploy token or job that cannot see the group
// itself can still read packages of its projects. NotFound if the actor sees neither
// the group nor a package. An old path returns Moved to those who see one of them.
func (s *Service) group(ctx context.Context, by actor.Actor, ref project.Ref, find func(groupID int64) ([]int64, error)) ([]*project.Project, error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.NoAccess)
	seen := err == nil
	if errs.Is(err, errs.KindNotFound) && (by.Deploy != nil || by.Job != nil) {
		g, err = s.Projects.RequireGroup(ctx, actor.System(), ref, project.NoAccess)
	}
	moved, isMoved := errors.AsType[*project.Moved](err)
	if isMoved && !seen && (by.Deploy != nil || by.Job != nil) {
		g, err = s.Projects.RequireGroup(ctx, actor.System(), project.RefTo(moved.ID), project.NoAccess)
	}
	if err != nil {
		return nil, err
	}
	ids, err := find(g.ID)
	if err != nil {
		return nil, fmt.Errorf("packages of group %d: %w", g.ID, err)
	}
	found, err := s.readableAmong(ctx, by, ids)
	if err == nil && len(found) == 0 && !seen {
		return nil, errs.NotFound("Group")
	}
	if err == nil && isMoved {
		return nil, moved
	}
	return found, err
}

// maxCandidates is the number of projects that are searched for a package.
const maxCandidates = 200

// readableAmong returns those of the projects whose packages the actor may read.
func (s *Service) readableAmong(ctx context.Context, by actor.Actor, ids []int64) ([]*project.Project, error) {
	var found []*project.Project
	for _, id := range ids {
		p, err := s.view(ctx, by, project.RefTo(id))
		if errs.IsRefusal(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found, nil
}

func idsOf(list []*project.Project) []int64 {
	ids := make([]int64, len(list))
	for i, p := range list {
		ids[i] = p.ID
	}
	return ids
}
