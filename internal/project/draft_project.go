package project

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project/topic"
)

// FromFile is the type of an import from an export file.
const FromFile = "gitlab_project"

// DefaultSettings returns the settings of a new project.
func DefaultSettings() Settings { return defaultSettings() }

// CheckProject returns the error that Create would return for the name, the path and
// the namespace. Unauthorized; Forbidden; NotFound; Invalid.
func (s *Service) CheckProject(ctx context.Context, by actor.Actor, n NewProject) error {
	_, p, err := s.draftOf(ctx, by, n)
	if err != nil {
		return err
	}
	return requireFree(ctx, s.DB, p.FullPath)
}

// OwnNamespace returns the ID of the actor's namespace. Requires a signed-in user.
// NotFound if they have none.
func (s *Service) OwnNamespace(ctx context.Context, by actor.Actor) (int64, error) {
	n, err := s.placeFor(ctx, by, nil)
	if err != nil {
		return 0, err
	}
	return n.ID, nil
}

// draftOf returns a new project that is imported from a file, and its namespace.
func (s *Service) draftOf(ctx context.Context, by actor.Actor, n NewProject) (*Namespace, *Project, error) {
	place, err := s.placeFor(ctx, by, n.NamespaceID)
	if err != nil {
		return nil, nil, err
	}
	p := s.newProject(by, n)
	p.Import, p.ImportType = ImportStarted, FromFile
	wrong := errs.Fields{}
	checkPath(wrong, p.Path, false)
	checkName(wrong, p.Name)
	if err := wrong.Err(); err != nil {
		return nil, nil, err
	}
	if err := s.underLimit(ctx, s.DB, place); err != nil {
		return nil, nil, err
	}
	if err := s.chooseStorage(ctx, p); err != nil {
		return nil, nil, err
	}
	return place, p, p.putInto(place, nil)
}

// BeginProject creates a draft of a project. The draft reserves its path but is
// hidden until ShowProject. The errors are those of CheckProject.
func (s *Service) BeginProject(ctx context.Context, tx *db.Tx, by actor.Actor, n NewProject) (*Project, error) {
	place, p, err := s.draftOf(ctx, by, n)
	if err != nil {
		return nil, err
	}
	if err := tx.Lock(ctx, "namespaces", place.ID); err != nil {
		return nil, err
	}
	if place, err = findNamespace(ctx, tx, place.ID); err != nil { // it may have moved
		return nil, err
	}
	if err := p.putInto(place, nil); err != nil {
		return nil, err
	}
	if err := s.underLimit(ctx, tx, place); err != nil {
		return nil, err
	}
	if err := requireFree(ctx, tx, p.FullPath); err != nil {
		return nil, err
	}
	if err := insertProject(ctx, tx, p); err != nil {
		return nil, err
	}
	return p, hideNewProject(ctx, tx, p)
}

// DraftProject returns a draft. NotFound if it was deleted, for example with its
// group.
func (s *Service) DraftProject(ctx context.Context, q db.Q, id int64) (*Project, error) {
	p, err := findDraftProject(ctx, q, id)
	return p, db.NotFound(err, "Project")
}

// ShowProject saves the fields of a draft and makes it visible. The visibility is at
// most that of the namespace. Permissions are checked again. NotFound; Forbidden;
// Invalid.
func (s *Service) ShowProject(ctx context.Context, tx *db.Tx, by actor.Actor, p *Project, message string) error {
	if err := tx.Lock(ctx, "projects", p.ID); err != nil {
		return err
	}
	now, err := s.DraftProject(ctx, tx, p.ID)
	if err != nil {
		return err
	}
	place, err := findNamespace(ctx, tx, now.NamespaceID)
	if err != nil {
		return err
	}
	if place.Kind == GroupNamespace {
		have, err := s.groupLevel(ctx, tx, by, place.ID)
		if err != nil {
			return err
		}
		if err := place.mayHoldProjectOf(by, have); err != nil {
			return err
		}
	} else if err := mayKeep(ctx, tx, by, place); err != nil {
		return err
	}
	p.NamespaceID, p.Path, p.Avatar, p.Storage = now.NamespaceID, now.Path, now.Avatar, now.Storage
	if p.Visibility.width() > place.Visibility.width() {
		p.Visibility = place.Visibility
	}
	if err := p.putInto(place, nil); err != nil {
		return err
	}
	if err := CheckDraft(p).Err(); err != nil {
		return err
	}
	p.UpdatedAt, p.LastActivityAt = s.Now(), s.Now()
	if err := showProject(ctx, tx, p); err != nil {
		return db.NotFound(err, "Project")
	}
	if err := saveProject(ctx, tx, p); err != nil {
		return err
	}
	if err := topic.Save(ctx, tx, p.ID, p.Topics, s.Now()); err != nil {
		return err
	}
	if err := dropRedirect(ctx, tx, p.FullPath); err != nil {
		return err
	}
	if place.UserID != nil {
		if err := saveOwner(ctx, tx, p.ID, *place.UserID, s.Now()); err != nil {
			return err
		}
	}
	if p.CreatorID != nil {
		if err := s.Events.Changed.Publish(ctx, tx, Event{Kind: ProjectCreated, ProjectID: p.ID, UserID: *p.CreatorID, Name: p.Name}); err != nil {
			return err
		}
	}
	return s.record(ctx, tx, by, "project_imported", p.Entity(), audit.Target{}, audit.Details{Add: "project", Message: message})
}

// mayKeep checks that an actor may have another project in the namespace of a user. The
// draft is already counted among its projects, so the limit is not checked again.
func mayKeep(ctx context.Context, tx *db.Tx, by actor.Actor, place *Namespace) error {
	if !by.Is(*place.UserID) && !by.Admin {
		return errs.NotFound("Namespace")
	}
	external, _, _, err := projectLimit(ctx, tx, *place.UserID, place.ID)
	if err != nil {
		return db.NotFound(err, "User")
	}
	if external {
		return errExternal()
	}
	return nil
}

// CheckDraft returns the fields of a project that ShowProject would reject.
func CheckDraft(p *Project) errs.Fields {
	wrong := errs.Fields{}
	p.check(wrong)
	p.Settings.checkFeatures(wrong)
	return wrong
}

// CheckGroupDraft returns the settings of a group that BeginDraft would reject.
func CheckGroupDraft(g *GroupSettings) errs.Fields {
	wrong := errs.Fields{}
	g.check(wrong)
	if !g.WikiAccessLevel.ofWiki() {
		wrong.Set("wiki_access_level", "is not included in the list")
	}
	return wrong
}

// checkFeatures validates the access levels of features. For changes other than
// imports, interfaces validate them.
func (s *Settings) checkFeatures(wrong errs.Fields) {
	for name, f := range map[string]Feature{
		"forking_access_level": s.Forking, "wiki_access_level": s.Wiki, "snippets_access_level": s.Snippets, "pages_access_level": s.Pages, "analytics_access_level": s.Analytics,
		"container_registry_access_level": s.ContainerRegistry, "package_registry_access_level": s.PackageRegistry,
		"security_and_compliance_access_level": s.SecurityAndCompliance, "releases_access_level": s.Releases, "environments_access_level": s.Environments,
		"feature_flags_access_level": s.FeatureFlags, "infrastructure_access_level": s.Infrastructure, "monitor_access_level": s.Monitor,
		"model_experiments_access_level": s.ModelExperiments, "model_registry_access_level": s.ModelRegistry, "requirements_access_level": s.Requirements,
	} {
		everyone := f == Everyone && (name == "pages_access_level" || name == "package_registry_access_level")
		if f != Disabled && f != MembersOnly && f != Enabled && !everyone {
			wrong.Set(name, "is not included in the list")
		}
	}
}

// DropProject deletes a draft and everything in it, in the background. Its path is
// available at once.
func (s *Service) DropProject(ctx context.Context, tx *db.Tx, id int64) error {
	p, err := findDraftProject(ctx, tx, id)
	if errors.Is(err, db.ErrNoRows) {
		return nil // deleted already
	}
	if err == nil {
		err = freeDraftPath(ctx, tx, p.ID, deletedSuffix(p.ID))
	}
	if err == nil {
		err = s.Queue.Add(ctx, tx, deleteWork{id})
	}
	if err != nil {
		return fmt.Errorf("drop draft of project %d: %w", id, err)
	}
	return nil
}
