package ci

import (
	"context"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/secret"
	"svc/internal/user"
)

// Trigger is a token with which programs start pipelines, in the name of the
// one who made it.
type Trigger struct {
	ID          int64
	ProjectID   int64
	OwnerID     int64
	Description string
	Token       string // whole for its owner, its beginning for others
	LastUsed    *time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time

	// Read by Service.Trigger and the like.
	Owner *user.User
}

// Triggers lists the trigger tokens of a project, for its Maintainers.
func (s *Service) Triggers(ctx context.Context, by actor.Actor, in project.Ref, p db.Paging) (db.Page[*Trigger], error) {
	proj, err := s.Projects.Require(ctx, by, in, project.Maintainer)
	if err != nil {
		return db.Page[*Trigger]{}, err
	}
	var where db.Where
	where.And("t.project_id = ?", proj.ID)
	page, err := db.List(ctx, s.DB, db.Query[*Trigger]{
		Columns: triggerColumns, From: "pipeline_triggers t", Where: where, Order: []db.Order{{Name: "t.id"}}, Scan: scanTrigger,
		Keys: func(t *Trigger) []any { return []any{t.ID} },
	}, p)
	if err != nil {
		return page, fmt.Errorf("list triggers: %w", err)
	}
	return page, s.fillTriggers(ctx, by, page.Items)
}

// Trigger returns one trigger token to Maintainers; NotFound.
func (s *Service) Trigger(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Trigger, error) {
	proj, err := s.Projects.Require(ctx, by, in, project.Maintainer)
	if err != nil {
		return nil, err
	}
	t, err := findTrigger(ctx, s.DB, proj.ID, id)
	if err != nil {
		return nil, err
	}
	return t, s.fillTriggers(ctx, by, []*Trigger{t})
}

// CreateTrigger makes a trigger token in the name of a Maintainer.
func (s *Service) CreateTrigger(ctx context.Context, by actor.Actor, in project.Ref, description string) (*Trigger, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.SettingsPart, project.Maintainer)
	if err != nil {
		return nil, err
	}
	if len([]rune(description)) > 255 {
		return nil, errs.InvalidField("description", "is too long (maximum is 255 characters)")
	}
	at := s.Now()
	token := secret.Token(s.Site.Name + "ptt-")
	t := &Trigger{ProjectID: proj.ID, OwnerID: by.ID, Description: description, CreatedAt: at, UpdatedAt: at}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		err := tx.QueryRowContext(ctx, `
			INSERT INTO pipeline_triggers (project_id, owner_id, description, token, digest, created_at, updated_at) VALUES (?, ?, ?, '', ?, ?, ?) RETURNING id`,
			t.ProjectID, t.OwnerID, t.Description, []byte(secret.Digest(token)), at, at).Scan(&t.ID)
		if err != nil {
			return err
		}
		t.Token = s.Keys.Seal([]byte(token), triggerPlace(t.ID))
		if err := db.ExecOne(ctx, tx, `UPDATE pipeline_triggers SET token = ? WHERE id = ?`, t.Token, t.ID); err != nil {
			return err
		}
		return s.recordTrigger(ctx, tx, by, proj, t, "pipeline_trigger_created", audit.Details{Add: "pipeline trigger"})
	})
	if err != nil {
		return nil, fmt.Errorf("create trigger: %w", err)
	}
	return t, s.fillTriggers(ctx, by, []*Trigger{t})
}

// UpdateTrigger changes the description of a trigger token, for its owner among
// the Maintainers. NotFound; Forbidden.
func (s *Service) UpdateTrigger(ctx context.Context, by actor.Actor, in project.Ref, id int64, description *string) (*Trigger, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.SettingsPart, project.Maintainer)
	if err != nil {
		return nil, err
	}
	var t *Trigger
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if t, err = findTrigger(ctx, tx, proj.ID, id); err != nil {
			return err
		}
		if !by.Admin && !by.Is(t.OwnerID) {
			return errs.Forbidden("")
		}
		was := t.Description
		patch.Set(&t.Description, description)
		t.UpdatedAt = s.Now()
		if err := db.ExecOne(ctx, tx, `UPDATE pipeline_triggers SET description = ?, updated_at = ? WHERE id = ?`, t.Description, t.UpdatedAt, id); err != nil {
			return err
		}
		return s.recordTrigger(ctx, tx, by, proj, t, "pipeline_trigger_updated", audit.Details{Change: "description", From: was, To: t.Description})
	})
	if err != nil {
		return nil, fmt.Errorf("update trigger %d: %w", id, err)
	}
	return t, s.fillTriggers(ctx, by, []*Trigger{t})
}

// DeleteTrigger removes a trigger token, for Maintainers. NotFound;
// Precondition when it changed since the given time.
func (s *Service) DeleteTrigger(ctx context.Context, by actor.Actor, in project.Ref, id int64, unmodifiedSince *time.Time) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.SettingsPart, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		t, err := findTrigger(ctx, tx, proj.ID, id)
		if err != nil {
			return err
		}
		if err := errs.ChangedSince(t.UpdatedAt, unmodifiedSince); err != nil {
			return err
		}
		if err := db.ExecOne(ctx, tx, `DELETE FROM pipeline_triggers WHERE id = ?`, id); err != nil {
			return db.NotFound(err, "Trigger")
		}
		return s.recordTrigger(ctx, tx, by, proj, t, "pipeline_trigger_deleted", audit.Details{Remove: "pipeline trigger"})
	})
	if err != nil {
		return fmt.Errorf("delete trigger %d: %w", id, err)
	}
	return nil
}

// TriggerPipeline makes a pipeline for anyone who has a trigger token of the
// project, in the name of its owner, or the token of a job that the project
// lets in. NotFound for any other token; Invalid.
func (s *Service) TriggerPipeline(ctx context.Context, in project.Ref, token, ip string, n NewPipeline) (*project.Project, *Pipeline, error) {
	if strings.HasPrefix(token, s.Site.Name+"cbt-") {
		return s.triggerByJob(ctx, in, token, ip, n)
	}
	t, err := scanTrigger(s.DB.QueryRowContext(ctx, `
		SELECT `+triggerColumns+` FROM pipeline_triggers t WHERE t.digest = ?`, []byte(secret.Digest(token))))
	if err != nil {
		return nil, nil, db.NotFound(err, "")
	}
	by, err := s.Users.As(ctx, t.OwnerID)
	if err != nil {
		return nil, nil, err
	}
	limit.Identify(ctx, by.Account())
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.NoAccess)
	if err != nil {
		return nil, nil, err
	}
	if proj.ID != t.ProjectID {
		return nil, nil, errs.NotFound("")
	}
	m, err := s.propose(ctx, by, proj, n, FromTrigger)
	if err != nil {
		return nil, nil, err
	}
	m.pipeline.facts.TriggerToken = shortToken(token)
	p, err := s.create(ctx, m, false)
	if err != nil {
		return nil, nil, err
	}
	if _, err := s.DB.ExecContext(ctx, `UPDATE pipeline_triggers SET last_used = ? WHERE id = ?`, s.Now(), t.ID); err != nil {
		return nil, nil, fmt.Errorf("use of trigger %d: %w", t.ID, err)
	}
	return proj, p, s.fillPipelines(ctx, []*Pipeline{p})
}

// triggerByJob is TriggerPipeline with the token of a job that runs, in the
// name of the one who started it.
func (s *Service) triggerByJob(ctx context.Context, in project.Ref, token, ip string, n NewPipeline) (*project.Project, *Pipeline, error) {
	by, err := s.JobActor(ctx, token, ip)
	if errs.Is(err, errs.KindUnauthorized) {
		return nil, nil, errs.NotFound("").Because(err)
	}
	if err != nil {
		return nil, nil, err
	}
	limit.Identify(ctx, by.Account())
	as, proj, err := s.JobOpens(ctx, by, in)
	if err != nil {
		return nil, nil, err
	}
	if as.Anonymous() { // a public project that does not accept the token
		return nil, nil, errs.NotFound("Project")
	}
	if err := proj.Change(as, project.BuildsPart, project.Developer); err != nil {
		return nil, nil, err
	}
	j, err := findAnyJob(ctx, s.DB, by.Job.ID)
	if err != nil {
		return nil, nil, err
	}
	m, err := s.propose(ctx, as, proj, n, FromPipeline)
	if err != nil {
		return nil, nil, err
	}
	m.pipeline.facts.Upstream = &upstream{ProjectID: j.ProjectID, PipelineID: j.PipelineID, JobID: j.ID}
	p, err := s.create(ctx, m, false)
	if err != nil {
		return nil, nil, err
	}
	return proj, p, s.fillPipelines(ctx, []*Pipeline{p})
}

// shortToken is the prefix by which users recognize a token.
func shortToken(token string) string {
	_, rest, ok := strings.Cut(token, "-")
	if !ok {
		rest = token
	}
	return rest[:min(4, len(rest))]
}

func triggerPlace(id int64) string { return fmt.Sprintf("pipeline_triggers/token/%d", id) }

// fillTriggers reads what triggers show of others, and opens the tokens.
func (s *Service) fillTriggers(ctx context.Context, by actor.Actor, list []*Trigger) error {
	var userIDs []int64
	for _, t := range list {
		userIDs = append(userIDs, t.OwnerID)
	}
	users, err := s.Users.FindAll(ctx, userIDs)
	if err != nil {
		return err
	}
	for _, t := range list {
		t.Owner = users[t.OwnerID]
		plain, err := s.Keys.Open(t.Token, triggerPlace(t.ID))
		if err != nil {
			return fmt.Errorf("token of trigger %d: %w", t.ID, err)
		}
		if t.Token = string(plain); !by.Is(t.OwnerID) || !by.ReadsSecrets() {
			t.Token = shortToken(t.Token)
		}
	}
	return nil
}

func (s *Service) recordTrigger(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, t *Trigger, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: p.Entity(), Target: audit.Target{Type: "Ci::Trigger", ID: t.ID, Details: t.Description}, Details: d,
	})
}

const triggerColumns = `t.id, t.project_id, t.owner_id, t.description, t.token, t.last_used, t.created_at, t.updated_at`

func scanTrigger(s db.Scanner) (*Trigger, error) {
	t := &Trigger{}
	err := s.Scan(&t.ID, &t.ProjectID, &t.OwnerID, &t.Description, &t.Token, db.NullTime(&t.LastUsed), db.Time(&t.CreatedAt), db.Time(&t.UpdatedAt))
	if err != nil {
		return nil, err
	}
	return t, nil
}

func findTrigger(ctx context.Context, q db.Q, projectID, id int64) (*Trigger, error) {
	t, err := scanTrigger(q.QueryRowContext(ctx, `SELECT `+triggerColumns+` FROM pipeline_triggers t WHERE t.id = ? AND t.project_id = ?`, id, projectID))
	return t, db.NotFound(err, "Trigger")
}
