package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/packages/npm"
	"svc/internal/project"
)

// Place is where a client looks for packages: a project, a group, or the whole
// instance if both are empty.
type Place struct{ Project, Group project.Ref }

// npmFile is the metadata of the file of an npm package.
type npmFile struct {
	Integrity string `json:"integrity,omitempty"`
}

// PublishNPM publishes a version of an npm package from the document that the client
// sends. A document without a file changes which versions are deprecated. Developers
// and above, deploy tokens that may write, and jobs. NotFound; Forbidden if the
// version exists or the package is protected; Invalid; TooLarge.
func (s *Service) PublishNPM(ctx context.Context, by actor.Actor, ref project.Ref, name string, body io.Reader) (*Package, error) {
	p, err := s.change(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if err := npm.CheckName(name); err != nil {
		return nil, err
	}
	if err := s.mayPush(ctx, s.DB, by, p, NPM, name); err != nil {
		return nil, err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	var stored *content
	var manifest npm.Manifest
	messages := map[string]string{}
	if limit := int64(settings.MaxNPMMegabytes) << 20; limit > 0 { // the file is sent as base64
		body = blob.LimitReader(body, limit/3*4+maxDocument, errs.TooLarge("the document is too large"))
	}
	doc, err := npm.Read(body, func(version string, text []byte) error {
		m, err := npm.ParseManifest(text)
		manifest, messages[version] = m, m.Deprecated
		return err
	}, func(_ string, file io.Reader) error {
		if stored != nil {
			return errs.Invalid("a version has one file")
		}
		var err error
		stored, err = s.store(ctx, file, settings.MaxNPMMegabytes)
		return err
	})
	if err == nil && doc.Name != "" && doc.Name != name {
		err = errs.Invalid("the name in the body is not that of the URL")
	}
	if err == nil && stored == nil {
		return nil, s.deprecate(ctx, p, name, messages)
	}
	if err == nil {
		err = checkNPM(name, doc, manifest, stored)
	}
	if err != nil {
		return nil, firstOf(err, s.drop(ctx, stored))
	}
	return s.publishNPM(ctx, by, p, name, doc, manifest, stored)
}

// maxDocument is the size of the document of an npm package in bytes, without files.
const maxDocument = 64 << 20

// firstOf returns the error for the caller, with the second error attached to it.
func firstOf(err, second error) error {
	if second == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", err, second)
}

// checkNPM compares a document with its name and its file.
func checkNPM(name string, doc npm.Document, m npm.Manifest, stored *content) error {
	if doc.Versions != 1 {
		return errs.Invalid("a document with a file has one version")
	}
	if err := npm.CheckVersion(m.Version); err != nil {
		return err
	}
	if m.Name != name {
		return errs.Invalid("the name of the version is not that of the URL")
	}
	if stored.size == 0 {
		return errs.Invalid("the file is empty")
	}
	if m.Shasum != "" && !strings.EqualFold(m.Shasum, stored.sha1) {
		return errs.Invalid("the file does not have the digest dist.shasum")
	}
	for sum := range strings.FieldsSeq(m.Integrity) {
		if digest, ok := strings.CutPrefix(sum, "sha512-"); ok {
			if digest, _, _ = strings.Cut(digest, "?"); digest != stored.sha512Base64 {
				return errs.Invalid("the file does not have the digest dist.integrity")
			}
		}
	}
	for tag, version := range doc.Tags {
		if err := npm.CheckTag(tag); err != nil {
			return err
		}
		if version != m.Version {
			return errs.Invalid("the tag %s is not for the version that is published", tag)
		}
	}
	return nil
}

func (s *Service) publishNPM(ctx context.Context, by actor.Actor, p *project.Project, name string, doc npm.Document, m npm.Manifest, stored *content) (*Package, error) {
	metadata, err := json.Marshal(npmFile{Integrity: "sha512-" + stored.sha512Base64})
	if err != nil {
		return nil, firstOf(err, s.drop(ctx, stored))
	}
	k, _, err := s.publish(ctx, by, p, draft{
		pkg:  Package{Type: NPM, Name: name, lookup: name, Version: m.Version, Status: Default, metadata: m.Kept},
		file: File{Name: path.Base(name) + "-" + m.Version + ".tgz", metadata: string(metadata)},
		admit: func(_ *db.Tx, _ *Package, added bool, _ *File) error {
			if !added {
				return errs.Forbidden("Package already exists.")
			}
			return nil
		},
		published: func(tx *db.Tx, k *Package, _ *File) error {
			for tag := range doc.Tags {
				if err := upsertTag(ctx, tx, k, tag, s.Now()); err != nil {
					return err
				}
			}
			return nil
		},
	}, stored)
	return k, err
}

// deprecate sets the deprecation messages of versions.
func (s *Service) deprecate(ctx context.Context, p *project.Project, name string, messages map[string]string) error {
	if len(messages) == 0 {
		return errs.Invalid("versions is missing")
	}
	known := false
	err := s.eachVersion(ctx, []int64{p.ID}, NPM, name, func(list []*Package) error {
		for _, k := range list {
			message, named := messages[k.Version]
			if !named {
				continue
			}
			known = true
			metadata, err := npm.Deprecate(k.metadata, message)
			if err != nil {
				return fmt.Errorf("manifest of package %d: %w", k.ID, err)
			}
			if metadata == k.metadata {
				continue
			}
			if err := s.DB.Tx(ctx, func(tx *db.Tx) error { return updatePackage(ctx, tx, k.ID, k.Status, metadata, s.Now()) }); err != nil {
				return fmt.Errorf("deprecate package %d: %w", k.ID, err)
			}
		}
		return nil
	})
	if err == nil && !known { // a new version
		return errs.Invalid("_attachments is missing")
	}
	return err
}

// versionsAtOnce is the number of versions that are read at once.
const versionsAtOnce = 200

// eachVersion reads all versions of a package.
func (s *Service) eachVersion(ctx context.Context, projects []int64, t Type, lookup string, f func([]*Package) error) error {
	var after int64
	for {
		list, err := findVersions(ctx, s.DB, projects, t, lookup, after, versionsAtOnce)
		if err != nil {
			return fmt.Errorf("versions of a package: %w", err)
		}
		if len(list) == 0 {
			return nil
		}
		if err := f(list); err != nil {
			return err
		}
		after = list[len(list)-1].ID
	}
}

// NPMPackage is an npm package with all versions that an actor may read.
type NPMPackage struct {
	Name     string
	Tags     map[string]string // versions by tag; there is always a tag latest
	Created  time.Time
	Modified time.Time
	Rev      string // changes with the versions

	service  *Service
	projects []*project.Project
}

// NPMVersion is a version of an npm package.
type NPMVersion struct {
	ProjectID int64
	Version   string
	Manifest  string // JSON text
	File      string
	SHA1      string
	Integrity string
	CreatedAt time.Time
}

// NPM returns an npm package. At the instance the scope of its name must be the
// top-level group or user of its project. NotFound.
func (s *Service) NPM(ctx context.Context, by actor.Actor, at Place, name string) (*NPMPackage, error) {
	projects, err := s.npmProjects(ctx, by, at, name)
	if err != nil {
		return nil, err
	}
	n := &NPMPackage{Name: name, Tags: map[string]string{}, service: s, projects: projects}
	ids := idsOf(projects)
	rows, err := versionRows(ctx, s.DB, ids, name)
	if err != nil {
		return nil, fmt.Errorf("npm package: %w", err)
	}
	if len(rows) == 0 {
		return nil, errs.NotFound("Package")
	}
	n.Rev = revisionOf(rows)
	latest, release := "", ""
	for _, r := range rows {
		if latest == "" || npm.Compare(r.version, latest) > 0 {
			latest = r.version
		}
		if !strings.Contains(r.version, "-") && (release == "" || npm.Compare(r.version, release) > 0) {
			release = r.version
		}
		if n.Created.IsZero() || r.createdAt.Before(n.Created) {
			n.Created = r.createdAt
		}
		if r.updatedAt.After(n.Modified) {
			n.Modified = r.updatedAt
		}
	}
	tags, err := tagsNamed(ctx, s.DB, ids, name)
	if err != nil {
		return nil, fmt.Errorf("npm package: %w", err)
	}
	maps.Copy(n.Tags, tags)
	if n.Tags["latest"] == "" {
		n.Tags["latest"] = latest
		if release != "" {
			n.Tags["latest"] = release
		}
	}
	return n, nil
}

// revisionOf returns the revision of an npm package with the versions.
func revisionOf(rows []versionRow) string {
	var changed int64
	for _, r := range rows {
		changed = max(changed, r.updatedAt.UnixMicro())
	}
	return fmt.Sprintf("%d-%x", len(rows), changed)
}

// Each calls f for each version. If several projects have a version, the first project
// wins.
func (n *NPMPackage) Each(ctx context.Context, f func(NPMVersion) error) error {
	seen := map[string]bool{}
	return n.service.eachVersion(ctx, idsOf(n.projects), NPM, n.Name, func(list []*Package) error {
		ids := make([]int64, len(list))
		for i, k := range list {
			ids[i] = k.ID
		}
		files, err := filesOf(ctx, n.service.DB, ids)
		if err != nil {
			return fmt.Errorf("files of an npm package: %w", err)
		}
		byPackage := map[int64]*File{}
		for _, file := range files {
			byPackage[file.PackageID] = file
		}
		for _, k := range list {
			file := byPackage[k.ID]
			if file == nil || seen[k.Version] { // its file was deleted
				continue
			}
			seen[k.Version] = true
			var m npmFile
			if err := json.Unmarshal([]byte(file.metadata), &m); err != nil {
				return fmt.Errorf("metadata of package file %d: %w", file.ID, err)
			}
			err := f(NPMVersion{
				ProjectID: k.ProjectID, Version: k.Version, Manifest: k.metadata, File: file.Name, SHA1: file.SHA1, Integrity: m.Integrity, CreatedAt: k.CreatedAt,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// npmProjects returns the projects at a place that have an npm package and that the
// actor may read. NotFound.
func (s *Service) npmProjects(ctx context.Context, by actor.Actor, at Place, name string) ([]*project.Project, error) {
	switch {
	case at.Project != "":
		p, err := s.view(ctx, by, at.Project)
		if err != nil {
			return nil, err
		}
		return []*project.Project{p}, nil
	case at.Group != "":
		return s.group(ctx, by, at.Group, func(groupID int64) ([]int64, error) {
			return findProjectsWith(ctx, s.DB, NPM, name, inGroup, maxCandidates, groupID)
		})
	}
	scope := npm.Scope(name)
	if scope == "" {
		return nil, errs.NotFound("Package")
	}
	pattern := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(scope)) + "/%"
	ids, err := findProjectsWith(ctx, s.DB, NPM, name, belowPath, maxCandidates, pattern)
	if err != nil {
		return nil, fmt.Errorf("find npm package: %w", err)
	}
	return s.readableAmong(ctx, by, ids)
}

// OpenNPM opens the file of a version of an npm package. NotFound.
func (s *Service) OpenNPM(ctx context.Context, by actor.Actor, ref project.Ref, name, file string) (*Content, error) {
	p, err := s.view(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	f, err := findNamedIn(ctx, s.DB, p.ID, NPM, name, path.Base(file))
	if err != nil {
		return nil, err
	}
	return s.open(ctx, f)
}

// SetTag assigns a tag of an npm package to a version, and removes it from the version
// that had it. The actor must be allowed to publish the package. NotFound; Forbidden;
// Invalid.
func (s *Service) SetTag(ctx context.Context, by actor.Actor, at Place, name, tag, version string) error {
	if err := npm.CheckTag(tag); err != nil {
		return err
	}
	projects, err := s.tagProjects(ctx, by, at, name)
	if err != nil {
		return err
	}
	for _, p := range projects {
		k, err := findVersion(ctx, s.DB, p.ID, NPM, name, version)
		if errs.Is(err, errs.KindNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		return s.changeTags(ctx, by, p, name, func(tx *db.Tx) error { return upsertTag(ctx, tx, k, tag, s.Now()) })
	}
	return errs.NotFound("Package")
}

// RemoveTag removes a tag of an npm package. The actor must be allowed to publish the
// package. NotFound; Forbidden.
func (s *Service) RemoveTag(ctx context.Context, by actor.Actor, at Place, name, tag string) error {
	projects, err := s.tagProjects(ctx, by, at, name)
	if err != nil {
		return err
	}
	for _, p := range projects {
		tags, err := tagsNamed(ctx, s.DB, []int64{p.ID}, name)
		if err != nil {
			return fmt.Errorf("tags of an npm package: %w", err)
		}
		if tags[tag] == "" {
			continue
		}
		return s.changeTags(ctx, by, p, name, func(tx *db.Tx) error { return deleteTag(ctx, tx, p.ID, name, tag) })
	}
	return errs.NotFound("Package tag")
}

// tagProjects is npmProjects for changes: if the place is a project, the actor must be
// allowed to publish in it.
func (s *Service) tagProjects(ctx context.Context, by actor.Actor, at Place, name string) ([]*project.Project, error) {
	if at.Project != "" {
		if _, err := s.change(ctx, by, at.Project); err != nil {
			return nil, err
		}
	}
	return s.npmProjects(ctx, by, at, name)
}

func (s *Service) changeTags(ctx context.Context, by actor.Actor, p *project.Project, name string, do func(tx *db.Tx) error) error {
	p, err := s.change(ctx, by, project.RefTo(p.ID))
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.mayPush(ctx, tx, by, p, NPM, name); err != nil {
			return err
		}
		return do(tx)
	})
	if err != nil {
		return fmt.Errorf("change tags of an npm package: %w", err)
	}
	return nil
}

// UnpublishNPM deletes versions of an npm package: all, or those that are missing from
// the document that the client sends. The actor must be allowed to delete the package.
// Tags of deleted versions are moved as the document says. If no version is missing, all
// tags are, for which the actor must be allowed to publish the package. NotFound; Forbidden;
// Conflict if the package has changed since the client read it.
func (s *Service) UnpublishNPM(ctx context.Context, by actor.Actor, ref project.Ref, name, rev string, body io.Reader) error {
	p, err := s.remove(ctx, by, ref)
	if err != nil {
		return err
	}
	kept, tags := map[string]bool{}, map[string]string{}
	if body != nil {
		body = blob.LimitReader(body, maxDocument, errs.TooLarge("the document is too large"))
		doc, err := npm.Read(body, func(version string, _ []byte) error {
			kept[version] = true
			return nil
		}, func(string, io.Reader) error { return errs.Invalid("versions are published without -rev") })
		if err != nil {
			return err
		}
		if len(kept) == 0 {
			return errs.Invalid("versions is missing")
		}
		tags = doc.Tags
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		// The revision and the versions to delete are of one read after the body was read,
		// which may take long: a version that was published in the meantime is not in the
		// document, and one that is published later is not in the rows.
		rows, err := versionRows(ctx, tx, []int64{p.ID}, name)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return errs.NotFound("Package")
		}
		if rev != revisionOf(rows) {
			return errs.Conflict("The package has changed. Read it again.")
		}
		var gone []int64
		deleted := map[string]bool{}
		for _, r := range rows {
			if !kept[r.version] {
				gone, deleted[r.version] = append(gone, r.id), true
			}
		}
		before, err := tagsNamed(ctx, tx, []int64{p.ID}, name)
		if err != nil {
			return err
		}
		move := maps.Clone(tags)
		maps.DeleteFunc(move, func(tag, version string) bool {
			return before[tag] == version || len(gone) > 0 && !deleted[before[tag]]
		})
		if len(gone) == 0 && len(move) > 0 {
			if err := s.mayPush(ctx, tx, by, p, NPM, name); err != nil {
				return err
			}
		}
		for _, id := range gone {
			k, err := findPackage(ctx, tx, p.ID, id)
			if errs.Is(err, errs.KindNotFound) {
				return errs.Conflict("The package has changed. Read it again.").Because(err)
			}
			if err != nil {
				return err
			}
			if err := s.deletePackage(ctx, tx, by, p, k); err != nil {
				return err
			}
		}
		return s.moveTags(ctx, tx, p, name, move)
	})
	if err != nil {
		return fmt.Errorf("unpublish npm package: %w", err)
	}
	return nil
}

// moveTags sets tags of a document to versions that exist.
func (s *Service) moveTags(ctx context.Context, tx *db.Tx, p *project.Project, name string, tags map[string]string) error {
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		if npm.CheckTag(tag) != nil {
			continue
		}
		k, err := findVersion(ctx, tx, p.ID, NPM, name, tags[tag])
		if errs.Is(err, errs.KindNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if err := upsertTag(ctx, tx, k, tag, s.Now()); err != nil {
			return err
		}
	}
	return nil
}

// UnpublishNPMFile deletes the version of an npm package that a file belongs to. Clients
// send it after they have removed the version; then there is nothing left to do.
func (s *Service) UnpublishNPMFile(ctx context.Context, by actor.Actor, ref project.Ref, name, file string) error {
	p, err := s.remove(ctx, by, ref)
	if err != nil {
		return err
	}
	f, err := findNamedIn(ctx, s.DB, p.ID, NPM, name, path.Base(file))
	if errs.Is(err, errs.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.Delete(ctx, by, ref, f.PackageID)
}
