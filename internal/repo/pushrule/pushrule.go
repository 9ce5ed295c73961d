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

// Rule is the push rule of a project or group: conditions on pushed commits. A group's
// rule is copied to new projects of the group and its subgroups; existing projects are
// not affected.
type Rule struct {
	ID      int64
	OwnerID int64 // of the project or group
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

// owner is the project or group of a push rule.
type owner struct {
	kind
	id     int64
	path   string
	entity audit.Entity
}

// owner returns a project to Maintainers and a group to Owners. NotFound, Forbidden.
func (s *Service) owner(ctx context.Context, by actor.Actor, at project.Place) (owner, error) {
	if at.Group {
		g, err := s.Projects.RequireGroup(ctx, by, at.Ref, project.Owner)
		if err != nil {
			return owner{}, err
		}
		return owner{ofGroup, g.ID, g.FullPath, g.Entity()}, nil
	}
	p, err := s.Projects.Require(ctx, by, at.Ref, project.Maintainer)
	if err != nil {
		return owner{}, err
	}
	return owner{ofProject, p.ID, p.FullPath, p.Entity()}, nil
}

// Rule returns the push rule of a project or group, nil if there is none. All
// operations on rules are for Maintainers of the project or Owners of the group.
// NotFound, Forbidden.
func (s *Service) Rule(ctx context.Context, by actor.Actor, at project.Place) (*Rule, error) {
	o, err := s.owner(ctx, by, at)
	if err != nil {
		return nil, err
	}
	r, err := o.found(ctx, s.DB)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	return r, err
}

// found returns the rule. NotFound.
func (o owner) found(ctx context.Context, q db.Q) (*Rule, error) {
	r, err := o.find(ctx, q, o.id)
	if err != nil {
		return nil, fmt.Errorf("find push rule: %w", db.NotFound(err, "Push Rule"))
	}
	return r, nil
}

// CreateRule creates the push rule of a project or group. Unprocessable if there is
// one; InvalidField.
func (s *Service) CreateRule(ctx context.Context, by actor.Actor, at project.Place, c Change) (*Rule, error) {
	o, err := s.owner(ctx, by, at)
	if err != nil {
		return nil, err
	}
	return s.create(ctx, by, o, c)
}

func (s *Service) create(ctx context.Context, by actor.Actor, o owner, c Change) (*Rule, error) {
	made := &Rule{OwnerID: o.id, CreatedAt: s.Now()}
	if err := c.apply(&made.Rules); err != nil {
		return nil, err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := o.insert(ctx, tx, made); err != nil {
			return err
		}
		return s.record(ctx, tx, by, o, made, "push_rule_created", audit.Details{Add: "push_rule"})
	})
	if db.IsUnique(err, o.unique()) {
		return nil, errs.Unprocessable(o.exists)
	}
	if err != nil {
		return nil, fmt.Errorf("create push rule: %w", err)
	}
	return made, nil
}

// ChangeRule changes the push rule of a project or group. NotFound, InvalidField.
func (s *Service) ChangeRule(ctx context.Context, by actor.Actor, at project.Place, c Change) (*Rule, error) {
	o, err := s.owner(ctx, by, at)
	if err != nil {
		return nil, err
	}
	return s.change(ctx, by, o, c)
}

func (s *Service) change(ctx context.Context, by actor.Actor, o owner, c Change) (*Rule, error) {
	var r *Rule
	err := s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		if err := tx.Lock(ctx, o.owners, o.id); err != nil {
			return err
		}
		if r, err = o.found(ctx, tx); err != nil {
			return err
		}
		if err := c.apply(&r.Rules); err != nil {
			return err
		}
		if err := o.save(ctx, tx, r); err != nil {
			return err
		}
		return s.record(ctx, tx, by, o, r, "push_rule_updated", audit.Details{Change: "push_rule"})
	})
	if err != nil {
		return nil, fmt.Errorf("change push rule: %w", err)
	}
	return r, nil
}

// SaveRule changes the push rule of a project or group, or creates it. InvalidField.
func (s *Service) SaveRule(ctx context.Context, by actor.Actor, at project.Place, c Change) error {
	o, err := s.owner(ctx, by, at)
	if err != nil {
		return err
	}
	if _, err = s.change(ctx, by, o, c); errs.Is(err, errs.KindNotFound) {
		_, err = s.create(ctx, by, o, c)
	}
	return err
}

// DeleteRule deletes the push rule of a project or group. Projects keep their copies
// of a group's rule. NotFound.
func (s *Service) DeleteRule(ctx context.Context, by actor.Actor, at project.Place) error {
	o, err := s.owner(ctx, by, at)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		r, err := o.found(ctx, tx)
		if err != nil {
			return err
		}
		if err := o.delete(ctx, tx, r.ID); err != nil {
			return db.NotFound(err, "Push Rule")
		}
		return s.record(ctx, tx, by, o, r, "push_rule_removed", audit.Details{Remove: "push_rule"})
	})
	if err != nil {
		return fmt.Errorf("delete push rule: %w", err)
	}
	return nil
}

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, o owner, r *Rule, event string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: event, Entity: o.entity, Target: audit.Target{Type: o.target, ID: r.ID, Details: o.path}, Details: d,
	})
}

// ProjectChanged copies the push rule of the nearest group that has one to a new
// project.
func (s *Service) ProjectChanged(ctx context.Context, tx *db.Tx, e project.Event) error {
	if e.Kind != project.ProjectCreated {
		return nil
	}
	if err := inheritRule(ctx, tx, e.ProjectID, s.Now()); err != nil {
		return fmt.Errorf("push rule of new project: %w", err)
	}
	return nil
}

// RulesOf returns the rules of a project for an export; nil for none. Maintainers only,
// which the caller has required.
func (s *Service) RulesOf(ctx context.Context, projectID int64) (*Rules, error) {
	r, err := ofProject.find(ctx, s.DB, projectID)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find push rule: %w", err)
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
	r, err := ofProject.find(ctx, tx, projectID)
	if errors.Is(err, db.ErrNoRows) {
		return ofProject.insert(ctx, tx, &Rule{OwnerID: projectID, Rules: rules, CreatedAt: s.Now()})
	}
	if err != nil {
		return err
	}
	r.Rules = rules
	return ofProject.save(ctx, tx, r)
}
