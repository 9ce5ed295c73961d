// Package schedule implements pipeline schedules: their cron rules, variables and
// owners. Package ci creates the pipelines.
package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/ci/flow"
	"svc/internal/ci/variable"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB        *db.DB
	Queue     *queue.Queue
	Users     *user.Service
	Projects  *project.Service
	Repos     *repo.Service
	Variables *variable.Service
	Now       func() time.Time
}

// Service manages pipeline schedules.
type Service struct{ Deps }

// New returns the service and runs schedules when they are due.
func New(d Deps) *Service {
	s := &Service{d}
	d.Queue.Every("ci_schedules", 30*time.Second, s.RunDue)
	return s
}

// UserDeleted deactivates the schedules of a deleted user.
func (s *Service) UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	return deactivate(ctx, tx, d.UserID)
}

// Schedule runs pipelines at certain times.
type Schedule struct {
	ID             int64
	ProjectID      int64
	OwnerID        *int64 // whose pipelines they are; nil if the user was deleted
	Description    string
	Ref            string // full name
	Cron           string
	Timezone       string
	Active         bool
	NextRunAt      *time.Time
	LastPipelineID *int64
	CreatedAt      time.Time
	UpdatedAt      time.Time

	variables string // sealed

	// Set by the operations of Service.
	Owner        *user.User
	LastPipeline *Pipeline        // nil if there is none
	Variables    []variable.Given // for its owner and Maintainers only
	CanEdit      bool             // the actor may change it
}

// Pipeline is a pipeline of a schedule.
type Pipeline struct {
	ID       int64
	SHA, Ref string
	Status   flow.Status
}

// Change has the new values of a schedule. Nil leaves the default or the current value.
type Change struct {
	Description *string
	Ref         *string
	Cron        *string
	Timezone    *string
	Active      *bool
	Variables   *[]variable.Given // replace all variables
}

// List lists the schedules of a project, for users who can see its pipelines.
func (s *Service) List(ctx context.Context, by actor.Actor, in project.Ref, active *bool, p db.Paging) (db.Page[*Schedule], error) {
	proj, err := s.Projects.RequireView(ctx, by, in, project.BuildsPart)
	if err != nil {
		return db.Page[*Schedule]{}, err
	}
	page, err := list(ctx, s.DB, proj.ID, active, p)
	if err != nil {
		return page, fmt.Errorf("list schedules: %w", err)
	}
	return page, s.fill(ctx, page.Items)
}

// Get returns a schedule, for users who can see pipelines, with its variables for its
// owner and for Maintainers. NotFound.
func (s *Service) Get(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Schedule, error) {
	proj, err := s.Projects.RequireView(ctx, by, in, project.BuildsPart)
	if err != nil {
		return nil, err
	}
	sch, err := find(ctx, s.DB, proj.ID, id)
	if err != nil {
		return nil, err
	}
	sch.CanEdit = proj.MayChange(by, project.BuildsPart, project.Developer) && mayEdit(by, proj, sch)
	if mayManage(by, proj, sch) {
		if sch.Variables, err = s.shownVariables(sch); err != nil {
			return nil, err
		}
	}
	return sch, s.fill(ctx, []*Schedule{sch})
}

// Create creates a schedule that is owned by the actor, for Developers who may run
// pipelines on its ref. Invalid.
func (s *Service) Create(ctx context.Context, by actor.Actor, in project.Ref, c Change) (*Schedule, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return nil, err
	}
	at := s.Now()
	sch := &Schedule{ProjectID: proj.ID, OwnerID: &by.ID, Timezone: "UTC", Active: true, CreatedAt: at, UpdatedAt: at}
	if err := s.apply(ctx, by, proj, sch, c); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insert(ctx, tx, sch); err != nil {
			return err
		}
		// Encryption is bound to the ID.
		if err := s.replaceVariables(sch, c.Variables); err != nil {
			return err
		}
		if sch.variables != "" {
			if err := save(ctx, tx, sch, sch.UpdatedAt); err != nil {
				return err
			}
		}
		return s.record(ctx, tx, by, proj, sch, "pipeline_schedule_created", audit.Details{Add: "pipeline schedule"})
	})
	if err != nil {
		return nil, fmt.Errorf("create schedule: %w", err)
	}
	if sch.Variables, err = s.shownVariables(sch); err != nil {
		return nil, err
	}
	return sch, s.fill(ctx, []*Schedule{sch})
}

// Update changes a schedule, for its owner. NotFound; Forbidden; Invalid.
func (s *Service) Update(ctx context.Context, by actor.Actor, in project.Ref, id int64, c Change) (*Schedule, error) {
	return s.change(ctx, by, in, id, mayEdit, audit.Details{Change: "pipeline schedule"}, func(proj *project.Project, sch *Schedule) error {
		if err := s.apply(ctx, by, proj, sch, c); err != nil {
			return err
		}
		return s.replaceVariables(sch, c.Variables)
	})
}

// TakeOwnership makes the actor the owner of a schedule, for Maintainers. NotFound.
func (s *Service) TakeOwnership(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Schedule, error) {
	if _, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Maintainer); err != nil {
		return nil, err
	}
	return s.change(ctx, by, in, id, mayManage, audit.Details{Change: "owner", To: by.Username}, func(_ *project.Project, sch *Schedule) error {
		sch.OwnerID = &by.ID
		return nil
	})
}

// Delete deletes a schedule, for its owner and Maintainers. NotFound; Forbidden;
// Precondition if it changed since the given time.
func (s *Service) Delete(ctx context.Context, by actor.Actor, in project.Ref, id int64, unmodifiedSince *time.Time) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		sch, err := find(ctx, tx, proj.ID, id)
		if err != nil {
			return err
		}
		if !mayManage(by, proj, sch) {
			return errs.Forbidden("")
		}
		if err := errs.ChangedSince(sch.UpdatedAt, unmodifiedSince); err != nil {
			return err
		}
		if err := remove(ctx, tx, id); err != nil {
			return err
		}
		return s.record(ctx, tx, by, proj, sch, "pipeline_schedule_deleted", audit.Details{Remove: "pipeline schedule"})
	})
	if err != nil {
		return fmt.Errorf("delete schedule %d: %w", id, err)
	}
	return nil
}

// Play runs a schedule now as the actor, for Developers who may run pipelines on its
// ref. NotFound; Forbidden.
func (s *Service) Play(ctx context.Context, by actor.Actor, in project.Ref, id int64) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return err
	}
	sch, err := find(ctx, s.DB, proj.ID, id)
	if err != nil {
		return err
	}
	src, err := s.Repos.Source(ctx, by, in)
	if err != nil {
		return err
	}
	name, tag := shortName(sch.Ref)
	may, err := src.MayRun(ctx, name, tag)
	if err != nil {
		return err
	}
	if !may {
		return errs.Forbidden("")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		return s.Queue.Add(ctx, tx, Work{ScheduleID: id, UserID: by.ID, At: s.Now()}, queue.In(lane))
	})
	if err != nil {
		return fmt.Errorf("play schedule %d: %w", id, err)
	}
	return nil
}

// SetVariable adds a variable to a schedule or, with must, changes one that exists, for
// its owner. NotFound; Forbidden; Invalid.
func (s *Service) SetVariable(ctx context.Context, by actor.Actor, in project.Ref, id int64, v variable.Given, must bool) (*variable.Given, error) {
	if err := variable.Check([]variable.Given{v}); err != nil {
		return nil, err
	}
	_, err := s.change(ctx, by, in, id, mayEdit, audit.Details{Change: "variables"}, func(proj *project.Project, sch *Schedule) error {
		if !variable.MayGive(by, proj) {
			return errs.Forbidden(variable.NotAllowed)
		}
		list, err := s.VariablesOf(sch)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(o variable.Given) bool { return o.Key == v.Key })
		switch {
		case i < 0 && must:
			return errs.NotFound("Pipeline Schedule Variable")
		case i >= 0 && !must:
			return errs.InvalidField("key", "has already been taken")
		case i < 0:
			list = append(list, v)
		default:
			if v.Type == "" {
				v.Type = list[i].Type
			}
			list[i] = v
		}
		sch.variables, err = s.Variables.Seal(list, sealPlace(sch.ID))
		return err
	})
	return &v, err
}

// DeleteVariable deletes a variable of a schedule, for its owner. NotFound; Forbidden.
func (s *Service) DeleteVariable(ctx context.Context, by actor.Actor, in project.Ref, id int64, key string) (*variable.Given, error) {
	var gone variable.Given
	_, err := s.change(ctx, by, in, id, mayEdit, audit.Details{Change: "variables"}, func(_ *project.Project, sch *Schedule) error {
		list, err := s.VariablesOf(sch)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(o variable.Given) bool { return o.Key == key })
		if i < 0 {
			return errs.NotFound("Pipeline Schedule Variable")
		}
		gone = list[i]
		sch.variables, err = s.Variables.Seal(slices.Delete(list, i, i+1), sealPlace(sch.ID))
		return err
	})
	return &gone, err
}

// change reads a schedule, checks that the actor may change it, and saves and records
// the change.
func (s *Service) change(ctx context.Context, by actor.Actor, in project.Ref, id int64, may func(actor.Actor, *project.Project, *Schedule) bool,
	d audit.Details, change func(*project.Project, *Schedule) error) (*Schedule, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return nil, err
	}
	sch, err := find(ctx, s.DB, proj.ID, id)
	if err != nil {
		return nil, err
	}
	if !may(by, proj, sch) {
		return nil, errs.Forbidden("")
	}
	was := sch.UpdatedAt
	// The ref is resolved by git, which must not run in a transaction. So the change is
	// applied first, and saved unless another user has changed the schedule meanwhile.
	if err := change(proj, sch); err != nil {
		return nil, err
	}
	sch.UpdatedAt = s.Now()
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := save(ctx, tx, sch, was); err != nil {
			return err
		}
		return s.record(ctx, tx, by, proj, sch, "pipeline_schedule_updated", d)
	})
	if err != nil {
		return nil, fmt.Errorf("change schedule %d: %w", id, err)
	}
	if sch.Variables, err = s.shownVariables(sch); err != nil {
		return nil, err
	}
	return sch, s.fill(ctx, []*Schedule{sch})
}

// mayManage reports whether a user may see the variables of a schedule, delete it and
// take its ownership.
func mayManage(by actor.Actor, p *project.Project, sch *Schedule) bool {
	return p.Access.Level() >= project.Maintainer || mayEdit(by, p, sch)
}

// mayEdit reports whether a user may change a schedule. Its pipelines run as its owner,
// so only the owner decides what they do; Maintainers take ownership first.
func mayEdit(by actor.Actor, p *project.Project, sch *Schedule) bool {
	return by.Admin || sch.OwnerID != nil && by.Is(*sch.OwnerID) && p.Access.Level() >= project.Developer
}

// CheckRule returns Invalid if a description, cron rule or time zone is not valid for a
// schedule.
func CheckRule(description, cron, timezone string) error {
	_, _, err := checkRule(description, cron, timezone)
	return err
}

func checkRule(description, text, timezone string) (*cron, *time.Location, error) {
	wrong := errs.Fields{}
	if strings.TrimSpace(description) == "" {
		wrong.Set("description", "can't be blank")
	}
	rule, err := parseCron(text)
	if err != nil {
		wrong.Set("cron", "syntax is invalid")
	}
	zone, err := time.LoadLocation(timezone)
	if err != nil || timezone == "Local" {
		wrong.Set("cron_timezone", "syntax is invalid")
	}
	return rule, zone, wrong.Err()
}

// apply applies a change. Invalid.
func (s *Service) apply(ctx context.Context, by actor.Actor, p *project.Project, sch *Schedule, c Change) error {
	patch.Set(&sch.Description, c.Description)
	patch.Set(&sch.Cron, c.Cron)
	patch.Set(&sch.Timezone, c.Timezone)
	patch.Set(&sch.Active, c.Active)
	rule, zone, err := checkRule(sch.Description, sch.Cron, sch.Timezone)
	if err != nil {
		return err
	}
	if err := checkVariables(by, p, c.Variables); err != nil {
		return err
	}
	if c.Ref != nil {
		if err := s.setRef(ctx, by, p, sch, *c.Ref); err != nil {
			return err
		}
	}
	sch.NextRunAt = nil
	if next, ok := rule.next(s.Now().In(zone)); ok && sch.Active {
		sch.NextRunAt = &next
	}
	return nil
}

func (s *Service) setRef(ctx context.Context, by actor.Actor, p *project.Project, sch *Schedule, name string) error {
	src, err := s.Repos.SourceOf(by, p)
	if err != nil {
		return err
	}
	ref, err := src.Find(ctx, name)
	if errs.Is(err, errs.KindNotFound) {
		return errs.InvalidField("ref", "is ambiguous or does not exist")
	}
	if err != nil {
		return err
	}
	may, err := src.MayRun(ctx, ref.Name, ref.Tag)
	if err != nil {
		return err
	}
	if !may {
		return errs.InvalidField("base", "The current user is not authorized to create the pipeline schedule")
	}
	sch.Ref = ref.Full()
	return nil
}

func shortName(full string) (name string, tag bool) {
	if name, ok := strings.CutPrefix(full, git.Tags); ok {
		return name, true
	}
	return strings.TrimPrefix(full, git.Heads), false
}

func sealPlace(id int64) string { return fmt.Sprintf("pipeline_schedules/variables/%d", id) }

// VariablesOf returns the variables of a schedule.
func (s *Service) VariablesOf(sch *Schedule) ([]variable.Given, error) {
	return s.Variables.Open(sch.variables, sealPlace(sch.ID))
}

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, sch *Schedule, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: p.Entity(), Target: audit.Target{Type: "Ci::PipelineSchedule", ID: sch.ID, Details: sch.Description}, Details: d,
	})
}

// fill sets the owners and last pipelines of schedules.
func (s *Service) fill(ctx context.Context, list []*Schedule) error {
	var userIDs, ids []int64
	for _, sch := range list {
		if sch.OwnerID != nil {
			userIDs = append(userIDs, *sch.OwnerID)
		}
		if sch.LastPipelineID != nil {
			ids = append(ids, *sch.LastPipelineID)
		}
	}
	users, err := s.Users.FindAll(ctx, userIDs)
	if err != nil {
		return err
	}
	pipelines, err := findPipelines(ctx, s.DB, ids)
	if err != nil {
		return err
	}
	for _, sch := range list {
		if sch.OwnerID != nil {
			sch.Owner = users[*sch.OwnerID]
		}
		for _, p := range pipelines {
			if sch.LastPipelineID != nil && p.ID == *sch.LastPipelineID {
				sch.LastPipeline = p
			}
		}
	}
	return nil
}
