package project

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/picture"
	"svc/internal/project/topic"
	"svc/internal/setting"
	"svc/internal/user"
)

// NewProject has the fields of a new project. Either Name or Path is required.
type NewProject struct {
	Name        string
	Path        string
	NamespaceID *int64 // default: that of the actor
	For         *int64 // user in whose namespace it is created; administrators only
	Visibility  *Visibility
	// Branch is the initial default branch. The default is that of the nearest
	// ancestor group or of the instance.
	Branch string
	Fields

	// ForkOf is the project to fork, which the actor may read. Begin adds the
	// background job that copies the repository, in the transaction that creates the
	// project.
	ForkOf *int64
	// ImportURL is the URL of the repository that is copied, without credentials.
	ImportURL string
	Begin     func(ctx context.Context, tx *db.Tx, made *Project) error
}

// Fields are attributes that can be set when a project is created or changed. A
// nil field keeps the current value or the default.
type Fields struct {
	Description   *string
	DefaultBranch *string
	Topics        *[]string

	Issues        *Feature
	Repository    *Feature
	MergeRequests *Feature
	Builds        *Feature

	Storage  *string // administrators only
	Settings func(*Settings)

	Avatar       *picture.File
	RemoveAvatar bool // only if Avatar is nil
}

// Create creates a project in a group, subject to its project creation level, or
// in the actor's own namespace, up to their project limit. NotFound if the actor
// cannot see the namespace; Forbidden if they may not create projects there, and
// in the namespace of an external user; Invalid, also if the path is taken.
func (s *Service) Create(ctx context.Context, by actor.Actor, n NewProject) (*Project, error) {
	if err := s.forUser(ctx, by, &n); err != nil {
		return nil, err
	}
	place, err := s.placeFor(ctx, by, n.NamespaceID)
	if err != nil {
		return nil, err
	}
	if err := n.Avatar.Check(); err != nil {
		return nil, err
	}
	p := s.newProject(by, n)
	p.Settings.LFSEnabled = place.Kind == UserNamespace || place.Settings.LFSEnabled // default, may be overridden by the fields
	if err := s.apply(by, p, n.Fields); err != nil {
		return nil, err
	}
	wrong := errs.Fields{}
	checkPath(wrong, p.Path, false)
	checkName(wrong, p.Name)
	p.check(wrong)
	if n.Visibility != nil {
		n.Visibility.check(wrong)
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if err := s.chooseStorage(ctx, p); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.insert(ctx, tx, by, p, place.ID, n.Visibility); err != nil || n.Begin == nil {
			return err
		}
		return n.Begin(ctx, tx, p)
	})
	if err != nil {
		return nil, fmt.Errorf("create project: %w", err)
	}
	if err := s.setAvatar(ctx, by, p.ID, n.Avatar, false); err != nil {
		return nil, err
	}
	return s.Get(ctx, by, RefTo(p.ID))
}

func (s *Service) newProject(by actor.Actor, n NewProject) *Project {
	now := s.Now()
	p := &Project{
		Path: n.Path, Name: n.Name, InitialBranch: n.Branch, Visibility: Private, Import: ImportNone, ForkedFromID: n.ForkOf,
		Issues: Enabled, Repository: Enabled, MergeRequests: Enabled, Builds: Enabled, Settings: defaultSettings(),
		LastActivityAt: now, CreatedAt: now, UpdatedAt: now,
	}
	if n.ForkOf != nil || n.ImportURL != "" {
		p.Import = ImportScheduled
	}
	if n.ImportURL != "" {
		p.ImportType, p.ImportURL = FromGit, n.ImportURL
	}
	if p.Path == "" {
		p.Path = PathFrom(n.Name)
	}
	if p.Name == "" {
		p.Name = n.Path
	}
	switch {
	case n.For != nil:
		p.CreatorID = n.For
	case by.ID > 0:
		p.CreatorID = &by.ID
	}
	return p
}

// forUser sets the namespace of a project that an administrator creates for
// another user, unless it is given.
func (s *Service) forUser(ctx context.Context, by actor.Actor, n *NewProject) error {
	if n.For == nil {
		return nil
	}
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	u, err := s.Users.Find(ctx, by, user.Ref(fmt.Sprint(*n.For)))
	if err == nil && n.NamespaceID == nil {
		n.NamespaceID = &u.NamespaceID
	}
	return err
}

// defaultStorage is a storage that always exists.
const defaultStorage = "default"

// NewStorage chooses the storage of a new repository by the weights that
// administrators gave to the storages.
func (s *Service) NewStorage(ctx context.Context) (string, error) {
	set, err := s.Settings.Current(ctx)
	if err != nil {
		return "", err
	}
	return cmp.Or(set.StorageWeights.Pick(s.Storages, rand.IntN), defaultStorage), nil
}

// CheckStorageWeights refuses settings with a weight of a storage that does not
// exist.
func (s *Service) CheckStorageWeights(_ context.Context, _ *db.Tx, _ actor.Actor, was, now setting.Settings) error {
	for name := range now.StorageWeights {
		if _, had := was.StorageWeights[name]; !had && !s.hasStorage(name) {
			return errs.InvalidField("repository_storages_weighted", "the storage %q does not exist", name)
		}
	}
	return nil
}

// chooseStorage sets the storage of a new project, unless one was given. A fork is
// stored where its source is, so that copying its objects is cheap.
func (s *Service) chooseStorage(ctx context.Context, p *Project) (err error) {
	switch {
	case p.Storage != "":
	case p.ForkedFromID != nil:
		p.Storage, err = findStorage(ctx, s.DB, *p.ForkedFromID)
	default:
		p.Storage, err = s.NewStorage(ctx)
	}
	return err
}

func (s *Service) insert(ctx context.Context, tx *db.Tx, by actor.Actor, p *Project, namespaceID int64, v *Visibility) error {
	if err := tx.Lock(ctx, "namespaces", namespaceID); err != nil {
		return err
	}
	place, err := findNamespace(ctx, tx, namespaceID)
	if err != nil {
		return err
	}
	if err := s.underLimit(ctx, tx, place); err != nil {
		return err
	}
	if err := p.putInto(place, v); err != nil {
		return err
	}
	if err := s.underOrigin(ctx, tx, p, p.ForkedFromID); err != nil {
		return err
	}
	if err := requireFree(ctx, tx, p.FullPath); err != nil {
		return err
	}
	if p.InitialBranch == "" && p.ForkedFromID == nil {
		if p.InitialBranch, err = branchOf(ctx, tx, place.ID); err != nil {
			return err
		}
	}
	if err := insertProject(ctx, tx, p); err != nil {
		return err
	}
	if err := dropRedirect(ctx, tx, p.FullPath); err != nil {
		return err
	}
	if p.Topics != nil {
		if err := topic.Save(ctx, tx, p.ID, p.Topics, p.CreatedAt); err != nil {
			return err
		}
	}
	if place.UserID != nil {
		owner := by
		owner.ID = *place.UserID
		if err := s.addOwner(ctx, tx, owner, source{project: p}); err != nil {
			return err
		}
	}
	if p.CreatorID != nil {
		if err := s.Events.Changed.Publish(ctx, tx, Event{Kind: ProjectCreated, ProjectID: p.ID, UserID: *p.CreatorID, Name: p.Name}); err != nil {
			return err
		}
	}
	return s.record(ctx, tx, by, "project_created", p.Entity(), audit.Target{}, audit.Details{Add: "project"})
}

// placeFor returns the namespace of a new project and checks permissions.
func (s *Service) placeFor(ctx context.Context, by actor.Actor, id *int64) (*Namespace, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	if id == nil {
		n, err := findUserNamespace(ctx, s.DB, by.ID)
		return n, db.NotFound(err, "Namespace")
	}
	n, err := findNamespace(ctx, s.DB, *id)
	if err != nil {
		return nil, err
	}
	if n.Kind == UserNamespace {
		if !by.Is(*n.UserID) && !by.Admin {
			return nil, errs.NotFound("Namespace")
		}
		return n, nil
	}
	return n, s.mayAddTo(ctx, by, n)
}

// mayAddTo checks whether the actor may create projects in a group.
func (s *Service) mayAddTo(ctx context.Context, by actor.Actor, n *Namespace) error {
	_, have, err := s.requireGroup(ctx, s.DB, by, RefTo(n.ID), NoAccess)
	if err != nil {
		return errs.NotFound("Namespace").Because(err)
	}
	return n.mayHoldProjectOf(by, have)
}

// mayHoldProjectOf checks the project creation level of a group for an actor with
// the level have.
func (n *Namespace) mayHoldProjectOf(by actor.Actor, have Level) error {
	need := map[string]Level{"owner": Owner, "maintainer": Maintainer, "developer": Developer}[n.Settings.ProjectCreationLevel]
	if need == NoAccess && !by.Admin {
		return errs.Forbidden("") // noone or administrator
	}
	return enough(by, have, need)
}

func errExternal() error {
	return errs.Forbidden("External users cannot have projects in their personal namespace.")
}

// underLimit returns an error if the project limit of a user is reached, or the
// user is external.
func (s *Service) underLimit(ctx context.Context, q db.Q, place *Namespace) error {
	if place.UserID == nil {
		return nil
	}
	external, limit, have, err := projectLimit(ctx, q, *place.UserID, place.ID)
	if err != nil {
		return db.NotFound(err, "User")
	}
	if external {
		return errExternal()
	}
	if have < limit {
		return nil
	}
	if limit == 0 {
		return errs.InvalidField("limit_reached", "You cannot create projects in your personal namespace. Contact your administrator.")
	}
	return errs.InvalidField("limit_reached", "Your project limit is %d projects! Please contact your administrator to increase it", limit)
}

// putInto sets the namespace and the visibility of a project. Invalid if the
// project would be more visible than its group.
func (p *Project) putInto(place *Namespace, v *Visibility) error {
	p.NamespaceID, p.Namespace, p.FullPath = place.ID, *place, place.FullPath+"/"+p.Path
	if v != nil {
		p.Visibility = *v
	}
	if p.Visibility.width() > place.Visibility.width() {
		return errs.InvalidField("visibility_level", "%s is not allowed in a %s group.", p.Visibility, place.Visibility)
	}
	return nil
}

// apply sets the given fields.
func (s *Service) apply(by actor.Actor, p *Project, f Fields) error {
	patch.Set(&p.Description, f.Description)
	patch.Set(&p.Issues, f.Issues)
	patch.Set(&p.Repository, f.Repository)
	patch.Set(&p.MergeRequests, f.MergeRequests)
	patch.Set(&p.Builds, f.Builds)
	if f.Topics != nil {
		p.Topics = cleanTopics(*f.Topics)
	}
	if f.Storage != nil && by.Admin {
		if !s.hasStorage(*f.Storage) {
			return errs.InvalidField("repository_storage", "is not included in the list")
		}
		p.Storage = *f.Storage
	}
	if f.Settings != nil {
		f.Settings(&p.Settings)
	}
	return nil
}

func (s *Service) hasStorage(name string) bool {
	return len(s.Storages) == 0 || slices.Contains(s.Storages, name)
}

// check validates the fields of a project.
func (p *Project) check(wrong errs.Fields) {
	checkDescription(wrong, p.Description, 2000)
	p.Settings.check(wrong)
	if len(p.Topics) > 20 {
		wrong.Set("topics", "are too many (maximum is 20)")
	}
	if slices.ContainsFunc(p.Topics, func(name string) bool { return len(name) > 255 }) {
		wrong.Set("topics", "is too long (maximum is 255 characters)")
	}
	for name, f := range map[string]Feature{
		"repository_access_level": p.Repository, "builds_access_level": p.Builds, "issues_access_level": p.Issues,
		"merge_requests_access_level": p.MergeRequests, "forking_access_level": p.Settings.Forking,
	} {
		if f != Disabled && f != MembersOnly && f != Enabled {
			wrong.Set(name, "is not included in the list")
		}
	}
	p.Visibility.check(wrong)
	// Features that depend on the repository must not be more visible than it.
	for name, f := range map[string]Feature{"merge_requests_access_level": p.MergeRequests, "builds_access_level": p.Builds} {
		if f.width() > p.Repository.width() {
			wrong.Set(name, "cannot have higher visibility level than repository access level")
		}
	}
}

func (f Feature) width() int {
	switch f {
	case Disabled:
		return 0
	case MembersOnly:
		return 1
	}
	return 2
}
