package runners

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/secret"
	"svc/internal/user"
)

// Type decides which jobs a runner takes: all, those of a group, or those of projects.
type Type string

// The types of runners.
const (
	InstanceType Type = "instance_type"
	GroupType    Type = "group_type"
	ProjectType  Type = "project_type"
)

// Runner is a runner: one token, used by one or more runner managers.
type Runner struct {
	ID              int64
	Type            Type
	GroupID         *int64 // of a group runner
	Description     string
	Paused          bool
	Locked          bool // it cannot be assigned to other projects
	RunUntagged     bool
	ProtectedOnly   bool // takes only jobs of protected refs
	Tags            []string
	MaximumTimeout  *int64 // seconds
	MaintenanceNote string
	CreatorID       *int64
	TokenExpiresAt  *time.Time
	ContactedAt     *time.Time
	CreatedAt       time.Time
	UpdatedAt       time.Time

	// Read by Service.Get and the lists.
	Creator        *user.User
	Manager        *Manager // the one with the last contact
	Busy           bool     // it has a job
	OwnerProjectID int64    // the project that owns a project runner, else 0

	// Read only by Service.Get.
	Projects []*project.Project
	Group    *project.Namespace

	Secret string // the token, only when it was just created
}

// Status is the status of a runner by its last contact.
type Status string

// The statuses of runners.
const (
	Online         Status = "online"
	Offline        Status = "offline"
	Stale          Status = "stale"
	NeverContacted Status = "never_contacted"
)

const (
	// OnlineFor is how long a runner is online after its last contact.
	OnlineFor  = 2 * time.Hour
	staleAfter = 7 * 24 * time.Hour
)

// Status returns the status by the last contact.
func (r *Runner) Status(now time.Time) Status {
	return statusOf(r.ContactedAt, r.CreatedAt, now)
}

func statusOf(contacted *time.Time, created, now time.Time) Status {
	last := created
	if contacted != nil {
		last = *contacted
	}
	switch {
	case now.Sub(last) >= staleAfter:
		return Stale
	case contacted == nil:
		return NeverContacted
	case now.Sub(last) < OnlineFor:
		return Online
	}
	return Offline
}

// Serves reports whether the runner takes jobs with these tags.
func (r *Runner) Serves(tags []string) bool {
	if len(tags) == 0 {
		return r.RunUntagged
	}
	for _, tag := range tags {
		if !slices.Contains(r.Tags, tag) {
			return false
		}
	}
	return true
}

// Change lists changes to a runner; nil leaves the default or the current value.
type Change struct {
	Description     *string
	Paused          *bool
	Locked          *bool
	RunUntagged     *bool
	ProtectedOnly   *bool
	Tags            *[]string
	MaximumTimeout  **int64
	MaintenanceNote *string
}

func (c *Change) apply(r *Runner) {
	patch.Set(&r.Description, c.Description)
	patch.Set(&r.Paused, c.Paused)
	patch.Set(&r.Locked, c.Locked)
	patch.Set(&r.RunUntagged, c.RunUntagged)
	patch.Set(&r.ProtectedOnly, c.ProtectedOnly)
	patch.Set(&r.MaximumTimeout, c.MaximumTimeout)
	patch.Set(&r.MaintenanceNote, c.MaintenanceNote)
	if c.Tags != nil {
		var tags []string
		for _, tag := range *c.Tags {
			if tag = strings.TrimSpace(tag); tag != "" {
				tags = append(tags, tag)
			}
		}
		r.Tags = slices.Compact(slices.Sorted(slices.Values(tags)))
	}
}

const (
	maxNote        = 1024
	maxTags        = 50
	maxTagLength   = 255
	leastTimeout   = 600 // seconds
	maxDescription = 1024
)

// check validates the attributes; the error lists everything that is invalid.
func (r *Runner) check() error {
	var wrong []string
	if utf8.RuneCountInString(r.MaintenanceNote) > maxNote {
		wrong = append(wrong, fmt.Sprintf("Maintenance note is too long (maximum is %d characters)", maxNote))
	}
	if utf8.RuneCountInString(r.Description) > maxDescription {
		wrong = append(wrong, fmt.Sprintf("Description is too long (maximum is %d characters)", maxDescription))
	}
	if r.MaximumTimeout != nil && *r.MaximumTimeout < leastTimeout {
		wrong = append(wrong, "Maximum timeout needs to be at least 10 minutes")
	}
	if len(r.Tags) == 0 && !r.RunUntagged {
		wrong = append(wrong, "Tags list can not be empty when runner is not allowed to pick untagged jobs")
	}
	if len(r.Tags) > maxTags {
		wrong = append(wrong, fmt.Sprintf("Tags list is too long (maximum is %d tags)", maxTags))
	}
	if slices.ContainsFunc(r.Tags, func(tag string) bool { return len(tag) > maxTagLength || strings.ContainsAny(tag, "\n\r") }) {
		wrong = append(wrong, "Tags list has a tag that is too long or has a line break")
	}
	if len(wrong) > 0 {
		return errs.Invalid("%s", strings.Join(wrong, ", "))
	}
	return nil
}

// tokenPrefix is the prefix of tokens of runners that were created in the API or
// on a page; the public runner checks it.
const tokenPrefix = "glrt-"

// NewRunner lists the attributes of a new runner.
type NewRunner struct {
	Type    Type
	Group   project.Ref // of a group runner
	Project project.Ref // of a project runner
	Change
}

// Create creates a runner; its token is in Secret. For administrators, and Owners of the
// group or project; Forbidden or NotFound for others, Invalid if an attribute is invalid.
func (s *Service) Create(ctx context.Context, by actor.Actor, n NewRunner) (*Runner, error) {
	at := s.Now()
	r := &Runner{Type: n.Type, RunUntagged: true, CreatedAt: at, UpdatedAt: at, Secret: secret.Token(tokenPrefix)}
	if by.ID > 0 {
		r.CreatorID = &by.ID
	}
	home, err := s.resolveOwner(ctx, by, n)
	if err != nil {
		return nil, err
	}
	n.apply(r)
	if err := r.check(); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.insert(ctx, tx, r, home); err != nil {
			return err
		}
		return s.record(ctx, tx, by, r, home.entity, "ci_runner_created", audit.Details{Add: "runner"})
	})
	if err != nil {
		return nil, fmt.Errorf("create runner: %w", err)
	}
	return r, nil
}

// resolvedOwner is the owner of a new runner.
type resolvedOwner struct {
	groupID   *int64
	projectID *int64
	entity    audit.Entity
}

func (s *Service) resolveOwner(ctx context.Context, by actor.Actor, n NewRunner) (resolvedOwner, error) {
	switch n.Type {
	case GroupType:
		g, err := s.Projects.RequireGroup(ctx, by, n.Group, project.Owner)
		if err != nil {
			return resolvedOwner{}, insufficient(err)
		}
		return resolvedOwner{groupID: &g.ID, entity: g.Entity()}, nil
	case ProjectType:
		p, err := s.Projects.RequireChange(ctx, by, n.Project, project.SettingsPart, project.Owner)
		if err != nil {
			return resolvedOwner{}, insufficient(err)
		}
		return resolvedOwner{projectID: &p.ID, entity: p.Entity()}, nil
	}
	if err := by.RequireAdmin(); err != nil {
		return resolvedOwner{}, insufficient(err)
	}
	return resolvedOwner{entity: audit.Instance()}, nil
}

// insufficient adds the reason of the API to a Forbidden error.
func insufficient(err error) error {
	if errs.Is(err, errs.KindForbidden) {
		return errs.Forbidden("Insufficient permissions").Because(err)
	}
	return err
}

func (s *Service) insert(ctx context.Context, tx *db.Tx, r *Runner, home resolvedOwner) error {
	r.GroupID = home.groupID
	if err := insertRow(ctx, tx, r); err != nil {
		return err
	}
	if home.projectID == nil {
		return nil
	}
	return insertProject(ctx, tx, r.ID, *home.projectID)
}

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, r *Runner, in audit.Entity, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: in, Target: audit.Target{Type: "Ci::Runner", ID: r.ID, Details: r.name()}, Details: d,
	})
}

func (r *Runner) name() string {
	if r.Description != "" {
		return r.Description
	}
	return fmt.Sprintf("#%d", r.ID)
}

// Get returns a runner: an instance runner to all users, others to actors who may
// manage them. NotFound or Forbidden.
func (s *Service) Get(ctx context.Context, by actor.Actor, id int64) (*Runner, error) {
	r, err := s.visible(ctx, by, id)
	if err != nil {
		return nil, err
	}
	return r, s.fill(ctx, by, r)
}

func (s *Service) visible(ctx context.Context, by actor.Actor, id int64) (*Runner, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	r, err := find(ctx, s.DB, id)
	if err != nil {
		return nil, err
	}
	if r.Type == InstanceType || by.Auditor {
		return r, nil
	}
	return r, s.mayManage(ctx, by, r)
}

// Manageable returns a runner that the actor may manage. NotFound or Forbidden.
func (s *Service) Manageable(ctx context.Context, by actor.Actor, id int64) (*Runner, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	r, err := find(ctx, s.DB, id)
	if err != nil {
		return nil, err
	}
	return r, s.mayManage(ctx, by, r)
}

// mayManage returns Forbidden unless the actor is an administrator, an Owner of
// the group of the runner, or a Maintainer of one of its projects.
func (s *Service) mayManage(ctx context.Context, by actor.Actor, r *Runner) error {
	if by.Admin {
		return nil
	}
	own, err := s.isOwn(ctx, by, r)
	if err != nil {
		return fmt.Errorf("access to runner %d: %w", r.ID, err)
	}
	if own {
		return nil
	}
	return errs.Forbidden("No access granted")
}

// isOwn reports what manageable selects for one runner, without the other groups and
// projects of the actor.
func (s *Service) isOwn(ctx context.Context, by actor.Actor, r *Runner) (bool, error) {
	if r.GroupID != nil {
		_, err := s.Projects.RequireGroup(ctx, by, project.RefTo(*r.GroupID), project.Owner)
		if errs.IsRefusal(err) {
			return false, nil
		}
		return err == nil, err
	}
	ids, err := ProjectIDs(ctx, s.DB, r.ID)
	if err != nil {
		return false, err
	}
	for some := range slices.Chunk(ids, 500) {
		if ok, err := s.Projects.HasLevelInOne(ctx, by, some, project.Maintainer); err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

// fill reads the related data of one runner.
func (s *Service) fill(ctx context.Context, by actor.Actor, r *Runner) error {
	if err := s.fillAll(ctx, []*Runner{r}); err != nil {
		return err
	}
	if r.Type == GroupType {
		g, err := s.Projects.RequireGroup(ctx, by, project.RefTo(*r.GroupID), project.NoAccess)
		if err != nil && !errs.IsRefusal(err) {
			return err
		}
		if err == nil {
			r.Group = g
		}
	}
	ids, err := ProjectIDs(ctx, s.DB, r.ID)
	if err != nil {
		return err
	}
	for _, id := range ids {
		p, err := s.Projects.Require(ctx, by, project.RefTo(id), project.NoAccess)
		if err != nil && !errs.IsRefusal(err) {
			return err
		}
		if err == nil { // a project that the actor cannot see is left out
			r.Projects = append(r.Projects, p)
		}
	}
	return nil
}

// fillAll reads the related data of runners in lists.
func (s *Service) fillAll(ctx context.Context, list []*Runner) error {
	var users, ids []int64
	for _, r := range list {
		ids = append(ids, r.ID)
		if r.CreatorID != nil {
			users = append(users, *r.CreatorID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	known, err := s.Users.FindAll(ctx, users)
	if err != nil {
		return err
	}
	managers, err := latestManagers(ctx, s.DB, ids)
	if err != nil {
		return err
	}
	busy, err := busyRunners(ctx, s.DB, ids)
	if err != nil {
		return err
	}
	homes, err := ownerProjects(ctx, s.DB, ids)
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.CreatorID != nil {
			r.Creator = known[*r.CreatorID]
		}
		r.Manager, r.Busy, r.OwnerProjectID = managers[r.ID], busy[r.ID], homes[r.ID]
	}
	return nil
}
