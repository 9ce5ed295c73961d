package ci

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/ci/variable"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/user"
)

// Schedule makes a pipeline at certain times.
type Schedule struct {
	ID             int64
	ProjectID      int64
	OwnerID        *int64 // in whose name it runs; nil when they are gone
	Description    string
	Ref            string // in full
	Cron           string
	Timezone       string
	Active         bool
	NextRunAt      *time.Time
	LastPipelineID *int64
	CreatedAt      time.Time
	UpdatedAt      time.Time

	variables string // sealed

	// Read by Service.Schedule and the like.
	Owner        *user.User
	LastPipeline *Pipeline
	Variables    []variable.Given // for its owner and Maintainers only
	CanEdit      bool             // the one who asks
}

// ScheduleChange is what is set in a schedule; nil leaves the default or the
// present value.
type ScheduleChange struct {
	Description *string
	Ref         *string
	Cron        *string
	Timezone    *string
	Active      *bool
	Variables   *[]variable.Given // instead of all that it had
}

// Schedules lists the schedules of a project, for those who see its pipelines.
func (s *Service) Schedules(ctx context.Context, by actor.Actor, in project.Ref, active *bool, p db.Paging) (db.Page[*Schedule], error) {
	proj, err := s.seePipelines(ctx, by, in)
	if err != nil {
		return db.Page[*Schedule]{}, err
	}
	page, err := listSchedules(ctx, s.DB, proj.ID, active, p)
	if err != nil {
		return page, fmt.Errorf("list schedules: %w", err)
	}
	return page, s.fillSchedules(ctx, page.Items)
}

// Schedule returns one schedule to those who list them, with its variables to
// its owner and to Maintainers; NotFound.
func (s *Service) Schedule(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Schedule, error) {
	proj, err := s.seePipelines(ctx, by, in)
	if err != nil {
		return nil, err
	}
	sch, err := findSchedule(ctx, s.DB, proj.ID, id)
	if err != nil {
		return nil, err
	}
	sch.CanEdit = CanRun(by, proj) && ownsSchedule(by, proj, sch)
	if keepsSchedule(by, proj, sch) {
		if sch.Variables, err = s.shownVariables(sch); err != nil {
			return nil, err
		}
	}
	return sch, s.fillSchedules(ctx, []*Schedule{sch})
}

// SchedulePipelines lists the pipelines that a schedule has made, for those who
// see them; NotFound.
func (s *Service) SchedulePipelines(ctx context.Context, by actor.Actor, in project.Ref, id int64, p db.Paging) (*project.Project, db.Page[*Pipeline], error) {
	proj, err := s.seePipelines(ctx, by, in)
	if err != nil {
		return nil, db.Page[*Pipeline]{}, err
	}
	if _, err := findSchedule(ctx, s.DB, proj.ID, id); err != nil {
		return nil, db.Page[*Pipeline]{}, err
	}
	var where db.Where
	where.And("p.schedule_id = ?", id)
	page, err := db.List(ctx, s.DB, db.Query[*Pipeline]{
		Columns: pipelineColumns, From: "pipelines p", Where: where, Order: []db.Order{{Name: "p.id"}}, Scan: scanPipeline,
		Keys: func(p *Pipeline) []any { return []any{p.ID} },
	}, p)
	return proj, page, err
}

// CreateSchedule makes a schedule in the name of the actor, for Developers and
// above who may run pipelines on its ref. Invalid.
func (s *Service) CreateSchedule(ctx context.Context, by actor.Actor, in project.Ref, c ScheduleChange) (*Schedule, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return nil, err
	}
	at := s.Now()
	sch := &Schedule{ProjectID: proj.ID, OwnerID: &by.ID, Timezone: "UTC", Active: true, CreatedAt: at, UpdatedAt: at}
	if err := s.applySchedule(ctx, by, proj, sch, c); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertSchedule(ctx, tx, sch); err != nil {
			return err
		}
		// What is sealed is bound to the id.
		if err := s.giveVariables(sch, c.Variables); err != nil {
			return err
		}
		if sch.variables != "" {
			if err := saveSchedule(ctx, tx, sch, sch.UpdatedAt); err != nil {
				return err
			}
		}
		return s.recordSchedule(ctx, tx, by, proj, sch, "pipeline_schedule_created", audit.Details{Add: "pipeline schedule"})
	})
	if err != nil {
		return nil, fmt.Errorf("create schedule: %w", err)
	}
	if sch.Variables, err = s.shownVariables(sch); err != nil {
		return nil, err
	}
	return sch, s.fillSchedules(ctx, []*Schedule{sch})
}

// UpdateSchedule changes a schedule, for its owner. NotFound; Forbidden;
// Invalid.
func (s *Service) UpdateSchedule(ctx context.Context, by actor.Actor, in project.Ref, id int64, c ScheduleChange) (*Schedule, error) {
	return s.changeSchedule(ctx, by, in, id, ownsSchedule, audit.Details{Change: "pipeline schedule"}, func(proj *project.Project, sch *Schedule) error {
		if err := s.applySchedule(ctx, by, proj, sch, c); err != nil {
			return err
		}
		return s.giveVariables(sch, c.Variables)
	})
}

// TakeSchedule makes the actor the owner of a schedule, for Maintainers.
// NotFound.
func (s *Service) TakeSchedule(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Schedule, error) {
	if _, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Maintainer); err != nil {
		return nil, err
	}
	return s.changeSchedule(ctx, by, in, id, keepsSchedule, audit.Details{Change: "owner", To: by.Username}, func(_ *project.Project, sch *Schedule) error {
		sch.OwnerID = &by.ID
		return nil
	})
}

// DeleteSchedule removes a schedule, for its owner and Maintainers. NotFound;
// Forbidden; Precondition when it changed since the given time.
func (s *Service) DeleteSchedule(ctx context.Context, by actor.Actor, in project.Ref, id int64, unmodifiedSince *time.Time) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		sch, err := findSchedule(ctx, tx, proj.ID, id)
		if err != nil {
			return err
		}
		if !keepsSchedule(by, proj, sch) {
			return errs.Forbidden("")
		}
		if err := errs.ChangedSince(sch.UpdatedAt, unmodifiedSince); err != nil {
			return err
		}
		if err := db.ExecOne(ctx, tx, `DELETE FROM pipeline_schedules WHERE id = ?`, id); err != nil {
			return db.NotFound(err, "Pipeline Schedule")
		}
		return s.recordSchedule(ctx, tx, by, proj, sch, "pipeline_schedule_deleted", audit.Details{Remove: "pipeline schedule"})
	})
	if err != nil {
		return fmt.Errorf("delete schedule %d: %w", id, err)
	}
	return nil
}

// PlaySchedule makes the pipeline of a schedule now, in the name of the actor:
// for Developers and above who may run pipelines on its ref. NotFound;
// Forbidden.
func (s *Service) PlaySchedule(ctx context.Context, by actor.Actor, in project.Ref, id int64) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return err
	}
	sch, err := findSchedule(ctx, s.DB, proj.ID, id)
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
		return s.Queue.Add(ctx, tx, scheduleWork{ScheduleID: id, UserID: by.ID, At: s.Now()}, queue.In(lane))
	})
	if err != nil {
		return fmt.Errorf("play schedule %d: %w", id, err)
	}
	return nil
}

// SetScheduleVariable adds a variable to a schedule, or changes one when must
// says that it is there; for its owner. NotFound; Forbidden; Invalid.
func (s *Service) SetScheduleVariable(ctx context.Context, by actor.Actor, in project.Ref, id int64, v variable.Given, must bool) (*variable.Given, error) {
	if err := variable.Check([]variable.Given{v}); err != nil {
		return nil, err
	}
	_, err := s.changeSchedule(ctx, by, in, id, ownsSchedule, audit.Details{Change: "variables"}, func(proj *project.Project, sch *Schedule) error {
		if !variable.MayGive(by, proj) {
			return errs.Forbidden(variable.NotAllowed)
		}
		list, err := s.scheduleVariables(sch)
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
		sch.variables, err = s.Variables.Seal(list, schedulePlace(sch.ID))
		return err
	})
	return &v, err
}

// DeleteScheduleVariable removes a variable of a schedule, for its owner;
// NotFound; Forbidden.
func (s *Service) DeleteScheduleVariable(ctx context.Context, by actor.Actor, in project.Ref, id int64, key string) (*variable.Given, error) {
	var gone variable.Given
	_, err := s.changeSchedule(ctx, by, in, id, ownsSchedule, audit.Details{Change: "variables"}, func(_ *project.Project, sch *Schedule) error {
		list, err := s.scheduleVariables(sch)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(o variable.Given) bool { return o.Key == key })
		if i < 0 {
			return errs.NotFound("Pipeline Schedule Variable")
		}
		gone = list[i]
		sch.variables, err = s.Variables.Seal(slices.Delete(list, i, i+1), schedulePlace(sch.ID))
		return err
	})
	return &gone, err
}

// changeSchedule reads a schedule under a lock, has it changed by those who may,
// and saves and records it.
func (s *Service) changeSchedule(ctx context.Context, by actor.Actor, in project.Ref, id int64, may func(actor.Actor, *project.Project, *Schedule) bool,
	d audit.Details, change func(*project.Project, *Schedule) error) (*Schedule, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return nil, err
	}
	sch, err := findSchedule(ctx, s.DB, proj.ID, id)
	if err != nil {
		return nil, err
	}
	if !may(by, proj, sch) {
		return nil, errs.Forbidden("")
	}
	was := sch.UpdatedAt
	// The ref is looked up in git, which no transaction may wait for: so the change
	// is made first, and saved if no one else was quicker.
	if err := change(proj, sch); err != nil {
		return nil, err
	}
	sch.UpdatedAt = s.Now()
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := saveSchedule(ctx, tx, sch, was); err != nil {
			return err
		}
		return s.recordSchedule(ctx, tx, by, proj, sch, "pipeline_schedule_updated", d)
	})
	if err != nil {
		return nil, fmt.Errorf("change schedule %d: %w", id, err)
	}
	if sch.Variables, err = s.shownVariables(sch); err != nil {
		return nil, err
	}
	return sch, s.fillSchedules(ctx, []*Schedule{sch})
}

// keepsSchedule reports whether a user may see all of a schedule, delete it and
// make it their own.
func keepsSchedule(by actor.Actor, p *project.Project, sch *Schedule) bool {
	return p.Access.Level() >= project.Maintainer || ownsSchedule(by, p, sch)
}

// ownsSchedule reports whether a user may change a schedule: its pipelines run in
// the name of its owner, so no one else says what they do. Maintainers make it
// their own first.
func ownsSchedule(by actor.Actor, p *project.Project, sch *Schedule) bool {
	return by.Admin || sch.OwnerID != nil && by.Is(*sch.OwnerID) && p.Access.Level() >= project.Developer
}

// applySchedule sets what is given, and says what cannot be.
func (s *Service) applySchedule(ctx context.Context, by actor.Actor, p *project.Project, sch *Schedule, c ScheduleChange) error {
	patch.Set(&sch.Description, c.Description)
	patch.Set(&sch.Cron, c.Cron)
	patch.Set(&sch.Timezone, c.Timezone)
	patch.Set(&sch.Active, c.Active)
	wrong := map[string][]string{}
	if strings.TrimSpace(sch.Description) == "" {
		wrong["description"] = []string{"can't be blank"}
	}
	rule, err := parseCron(sch.Cron)
	if err != nil {
		wrong["cron"] = []string{"syntax is invalid"}
	}
	zone, err := time.LoadLocation(sch.Timezone)
	if err != nil || sch.Timezone == "Local" {
		wrong["cron_timezone"] = []string{"syntax is invalid"}
	}
	if len(wrong) > 0 {
		return &errs.Error{Kind: errs.KindInvalid, Fields: wrong}
	}
	if err := checkScheduleVariables(by, p, c.Variables); err != nil {
		return err
	}
	if c.Ref != nil {
		if err := s.scheduleRef(ctx, by, p, sch, *c.Ref); err != nil {
			return err
		}
	}
	sch.NextRunAt = nil
	if next, ok := rule.next(s.Now().In(zone)); ok && sch.Active {
		sch.NextRunAt = &next
	}
	return nil
}

func (s *Service) scheduleRef(ctx context.Context, by actor.Actor, p *project.Project, sch *Schedule, name string) error {
	src, err := s.Repos.Source(ctx, by, project.RefTo(p.ID))
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

func schedulePlace(id int64) string { return fmt.Sprintf("pipeline_schedules/variables/%d", id) }

func (s *Service) scheduleVariables(sch *Schedule) ([]variable.Given, error) {
	return s.Variables.Open(sch.variables, schedulePlace(sch.ID))
}

func (s *Service) recordSchedule(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, sch *Schedule, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: projectEntity(p), Target: audit.Target{Type: "Ci::PipelineSchedule", ID: sch.ID, Details: sch.Description}, Details: d,
	})
}

func (s *Service) fillSchedules(ctx context.Context, list []*Schedule) error {
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
