// Package pushrule implements push rules: conditions on the commits that users push to a
// project, and the push rules of groups, which new projects copy.
package pushrule

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/re2"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Projects *project.Service
	Now      func() time.Time
}

// Service implements the operations on push rules.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{d} }

// Rule is the push rule of a project: conditions on pushed commits.
type Rule struct {
	ID        int64
	ProjectID int64
	Rules
	CreatedAt time.Time
}

// Rules are the conditions. They are stored as JSON. Patterns are RE2; an
// empty pattern is not checked.
type Rules struct {
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

// Change has the changes of a push rule; nil keeps the value.
type Change struct {
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
func (c Change) apply(r *Rules) error {
	wrong := errs.Fields{}
	pattern := func(to *string, from *string, name string) {
		if from == nil {
			return
		}
		*to = *from
		if utf8.RuneCountInString(*from) > maxPattern {
			wrong.Add(name, "is too long (maximum is %d characters)", maxPattern)
		} else if _, err := re2.Compile(*from); errors.Is(err, re2.ErrLarge) {
			wrong.Add(name, "has too many repetitions")
		} else if err != nil {
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

// Rule returns the push rule of a project, nil if there is none, for
// Maintainers. NotFound.
func (s *Service) Rule(ctx context.Context, by actor.Actor, ref project.Ref) (*Rule, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return nil, err
	}
	r, err := s.find(ctx, s.DB, p.ID)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	return r, err
}

func (s *Service) find(ctx context.Context, q db.Q, projectID int64) (*Rule, error) {
	r, err := findRule(ctx, q, projectID)
	if err != nil {
		return nil, fmt.Errorf("find push rule: %w", db.NotFound(err, "Push Rule"))
	}
	return r, nil
}

// CreateRule creates the push rule of a project, for Maintainers and above.
// Unprocessable if there is one; InvalidField.
func (s *Service) CreateRule(ctx context.Context, by actor.Actor, ref project.Ref, c Change) (*Rule, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return nil, err
	}
	made := &Rule{ProjectID: p.ID, CreatedAt: s.Now()}
	if err := c.apply(&made.Rules); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertRule(ctx, tx, made); err != nil {
			return err
		}
		return s.recordRule(ctx, tx, by, p, made, "push_rule_created", audit.Details{Add: "push_rule"})
	})
	if db.IsUnique(err, "push_rules_project_id") {
		return nil, errs.Unprocessable("Project push rule exists")
	}
	if err != nil {
		return nil, fmt.Errorf("create push rule: %w", err)
	}
	return made, nil
}

// ChangeRule changes the push rule of a project, for Maintainers and above.
// NotFound, InvalidField.
func (s *Service) ChangeRule(ctx context.Context, by actor.Actor, ref project.Ref, c Change) (*Rule, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return nil, err
	}
	var r *Rule
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil {
			return err
		}
		if r, err = s.find(ctx, tx, p.ID); err != nil {
			return err
		}
		if err := c.apply(&r.Rules); err != nil {
			return err
		}
		if err := saveRule(ctx, tx, r); err != nil {
			return err
		}
		return s.recordRule(ctx, tx, by, p, r, "push_rule_updated", audit.Details{Change: "push_rule"})
	})
	if err != nil {
		return nil, fmt.Errorf("change push rule: %w", err)
	}
	return r, nil
}

// SaveRule changes the push rule of a project, or creates it, for
// Maintainers and above. InvalidField.
func (s *Service) SaveRule(ctx context.Context, by actor.Actor, ref project.Ref, c Change) error {
	rule, err := s.Rule(ctx, by, ref)
	switch {
	case err != nil:
	case rule == nil:
		_, err = s.CreateRule(ctx, by, ref, c)
	default:
		_, err = s.ChangeRule(ctx, by, ref, c)
	}
	return err
}

// DeleteRule deletes the push rule of a project, for Maintainers and above.
// NotFound.
func (s *Service) DeleteRule(ctx context.Context, by actor.Actor, ref project.Ref) error {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		r, err := s.find(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if err := deleteRule(ctx, tx, r.ID); err != nil {
			return err
		}
		return s.recordRule(ctx, tx, by, p, r, "push_rule_removed", audit.Details{Remove: "push_rule"})
	})
	if err != nil {
		return fmt.Errorf("delete push rule: %w", err)
	}
	return nil
}

func (s *Service) recordRule(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, r *Rule, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: p.Entity(), Target: audit.Target{Type: "PushRule", ID: r.ID, Details: p.FullPath}, Details: d,
	})
}

// RulesOf returns the rules of a project for an export; nil for none. Maintainers only,
// which the caller has required.
func (s *Service) RulesOf(ctx context.Context, projectID int64) (*Rules, error) {
	r, err := s.find(ctx, s.DB, projectID)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &r.Rules, nil
}

// Check returns Invalid for rules that cannot be stored.
func (r Rules) Check() error {
	return Change{
		CommitMessage: &r.CommitMessage, CommitMessageNegative: &r.CommitMessageNegative, BranchName: &r.BranchName, AuthorEmail: &r.AuthorEmail,
		FileName: &r.FileName, MaxFileSize: &r.MaxFileSize,
	}.apply(&r)
}

// Put sets the rules of an imported project, instead of those of its group. InvalidField.
func (s *Service) Put(ctx context.Context, tx *db.Tx, projectID int64, rules Rules) error {
	if err := rules.Check(); err != nil {
		return err
	}
	r, err := findRule(ctx, tx, projectID)
	if errors.Is(err, db.ErrNoRows) {
		return insertRule(ctx, tx, &Rule{ProjectID: projectID, Rules: rules, CreatedAt: s.Now()})
	}
	if err != nil {
		return err
	}
	r.Rules = rules
	return saveRule(ctx, tx, r)
}
