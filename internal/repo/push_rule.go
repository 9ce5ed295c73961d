package repo

import (
	"context"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// PushRule is the push rule of a project: conditions on pushed commits.
type PushRule struct {
	ID        int64
	ProjectID int64
	PushRules
	CreatedAt time.Time
}

// PushRules are the conditions. They are stored as JSON. Patterns are RE2; an
// empty pattern is not checked.
type PushRules struct {
	CommitMessage         string // every message must match
	CommitMessageNegative string // no message may match
	BranchName            string // of new branches
	AuthorEmail           string // of authors and committers
	FileName              string // no new file may match
	MaxFileSize           int64  // MiB; 0: no limit
	DenyDeleteTag         bool   // tags cannot be deleted by a push
	MemberCheck           bool   // authors must be users
	PreventSecrets        bool   // reject files that usually contain secrets
	CommitterCheck        bool   // the committer's email must be a confirmed one of the pusher
	CommitterNameCheck    bool   // the author's name must be that of the pusher
	RejectUnsigned        bool
	RejectNonDCO          bool
}

// PushRuleChange has the changes of a push rule; nil keeps the value.
type PushRuleChange struct {
	CommitMessage         *string
	CommitMessageNegative *string
	BranchName            *string
	AuthorEmail           *string
	FileName              *string
	MaxFileSize           *int64
	DenyDeleteTag         *bool
	MemberCheck           *bool
	PreventSecrets        *bool
	CommitterCheck        *bool
	CommitterNameCheck    *bool
	RejectUnsigned        *bool
	RejectNonDCO          *bool
}

// maxPattern is the maximum length of a pattern, in characters.
const maxPattern = 511

// apply sets the given fields. InvalidField if a pattern is not valid.
func (c PushRuleChange) apply(r *PushRules) error {
	wrong := errs.Fields{}
	pattern := func(to *string, from *string, name string) {
		if from == nil {
			return
		}
		*to = *from
		if utf8.RuneCountInString(*from) > maxPattern {
			wrong.Add(name, "is too long (maximum is %d characters)", maxPattern)
		} else if _, err := regexp.Compile(*from); err != nil {
			wrong.Add(name, "must be valid RE2 syntax")
		}
	}
	pattern(&r.CommitMessage, c.CommitMessage, "commit_message_regex")
	pattern(&r.CommitMessageNegative, c.CommitMessageNegative, "commit_message_negative_regex")
	pattern(&r.BranchName, c.BranchName, "branch_name_regex")
	pattern(&r.AuthorEmail, c.AuthorEmail, "author_email_regex")
	pattern(&r.FileName, c.FileName, "file_name_regex")
	if c.MaxFileSize != nil {
		r.MaxFileSize = *c.MaxFileSize
		if r.MaxFileSize < 0 || r.MaxFileSize > 1<<30 {
			wrong.Set("max_file_size", "must be greater than or equal to 0")
		}
	}
	for _, b := range []struct{ to, from *bool }{
		{&r.DenyDeleteTag, c.DenyDeleteTag}, {&r.MemberCheck, c.MemberCheck}, {&r.PreventSecrets, c.PreventSecrets},
		{&r.CommitterCheck, c.CommitterCheck}, {&r.CommitterNameCheck, c.CommitterNameCheck},
		{&r.RejectUnsigned, c.RejectUnsigned}, {&r.RejectNonDCO, c.RejectNonDCO},
	} {
		if b.from != nil {
			*b.to = *b.from
		}
	}
	return wrong.Err()
}

// PushRule returns the push rule of a project, nil if there is none, for
// Maintainers. NotFound.
func (s *Service) PushRule(ctx context.Context, by actor.Actor, ref project.Ref) (*PushRule, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return nil, err
	}
	r, err := s.pushRule(ctx, s.DB, p.ID)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	return r, err
}

func (s *Service) pushRule(ctx context.Context, q db.Q, projectID int64) (*PushRule, error) {
	r, err := findPushRule(ctx, q, projectID)
	if err != nil {
		return nil, fmt.Errorf("find push rule: %w", db.NotFound(err, "Push Rule"))
	}
	return r, nil
}

// CreatePushRule creates the push rule of a project, for Maintainers and above.
// Unprocessable if there is one; InvalidField.
func (s *Service) CreatePushRule(ctx context.Context, by actor.Actor, ref project.Ref, c PushRuleChange) (*PushRule, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return nil, err
	}
	made := &PushRule{ProjectID: p.ID, CreatedAt: s.Now()}
	if err := c.apply(&made.PushRules); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertPushRule(ctx, tx, made); err != nil {
			return err
		}
		return s.recordPushRule(ctx, tx, by, p, made, "push_rule_created", audit.Details{Add: "push_rule"})
	})
	if db.IsUnique(err, "push_rules_project_id") {
		return nil, errs.Unprocessable("Project push rule exists")
	}
	if err != nil {
		return nil, fmt.Errorf("create push rule: %w", err)
	}
	return made, nil
}

// ChangePushRule changes the push rule of a project, for Maintainers and above.
// NotFound, InvalidField.
func (s *Service) ChangePushRule(ctx context.Context, by actor.Actor, ref project.Ref, c PushRuleChange) (*PushRule, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return nil, err
	}
	var r *PushRule
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil {
			return err
		}
		if r, err = s.pushRule(ctx, tx, p.ID); err != nil {
			return err
		}
		if err := c.apply(&r.PushRules); err != nil {
			return err
		}
		if err := savePushRule(ctx, tx, r); err != nil {
			return err
		}
		return s.recordPushRule(ctx, tx, by, p, r, "push_rule_updated", audit.Details{Change: "push_rule"})
	})
	if err != nil {
		return nil, fmt.Errorf("change push rule: %w", err)
	}
	return r, nil
}

// SavePushRule changes the push rule of a project, or creates it, for
// Maintainers and above. InvalidField.
func (s *Service) SavePushRule(ctx context.Context, by actor.Actor, ref project.Ref, c PushRuleChange) error {
	rule, err := s.PushRule(ctx, by, ref)
	switch {
	case err != nil:
	case rule == nil:
		_, err = s.CreatePushRule(ctx, by, ref, c)
	default:
		_, err = s.ChangePushRule(ctx, by, ref, c)
	}
	return err
}

// DeletePushRule deletes the push rule of a project, for Maintainers and above.
// NotFound.
func (s *Service) DeletePushRule(ctx context.Context, by actor.Actor, ref project.Ref) error {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		r, err := s.pushRule(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if err := deletePushRule(ctx, tx, r.ID); err != nil {
			return err
		}
		return s.recordPushRule(ctx, tx, by, p, r, "push_rule_removed", audit.Details{Remove: "push_rule"})
	})
	if err != nil {
		return fmt.Errorf("delete push rule: %w", err)
	}
	return nil
}

func (s *Service) recordPushRule(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, r *PushRule, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: entity(p), Target: audit.Target{Type: "PushRule", ID: r.ID, Details: p.FullPath}, Details: d,
	})
}
