package packages

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/glob"
	"svc/internal/packages/pypi"
	"svc/internal/project"
)

// Rule is a protection rule: who may publish and delete packages whose names match a
// pattern. A level of 0 means the level that projects without rules require.
type Rule struct {
	ID          int64
	ProjectID   int64
	Type        Type
	Pattern     string // of names; * stands for any characters
	PushLevel   project.Level
	DeleteLevel project.Level
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Limits of protection rules.
const (
	maxRules   = 200
	maxPattern = 255
)

// Rules lists the protection rules of a project. Maintainers only.
func (s *Service) Rules(ctx context.Context, by actor.Actor, ref project.Ref, pg db.Paging) (db.Page[*Rule], error) {
	p, err := s.configure(ctx, by, ref)
	if err != nil {
		return db.Page[*Rule]{}, err
	}
	page, err := listRules(ctx, s.DB, p.ID, pg)
	if err != nil {
		return page, fmt.Errorf("list package protection rules: %w", err)
	}
	return page, nil
}

// configure returns a project to those who may see its protection rules.
func (s *Service) configure(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	p, err := s.Projects.RequireView(ctx, by, ref, project.PackagePart)
	if err != nil {
		return nil, err
	}
	return p, p.Enough(by, project.Maintainer)
}

// CreateRule adds a protection rule. Maintainers only. Unprocessable if the rule is
// not valid.
func (s *Service) CreateRule(ctx context.Context, by actor.Actor, ref project.Ref, r Rule) (*Rule, error) {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.PackagePart, project.Maintainer)
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	r.ProjectID, r.CreatedAt, r.UpdatedAt = p.ID, s.Now(), s.Now()
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil {
			return err
		}
		n, err := countRules(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if n >= maxRules {
			return errs.Unprocessable("A project may have %d package protection rules", maxRules)
		}
		if err := insertRule(ctx, tx, &r); err != nil {
			return err
		}
		return s.recordRule(ctx, tx, by, p, "package_registry_protection_rule_created", &r, audit.Details{Add: "package_protection_rule", To: r.Pattern})
	})
	if err != nil {
		return nil, fmt.Errorf("create package protection rule: %w", err)
	}
	return &r, nil
}

// UpdateRule changes a protection rule. Maintainers only. NotFound; Unprocessable if
// the rule is not valid.
func (s *Service) UpdateRule(ctx context.Context, by actor.Actor, ref project.Ref, id int64, change func(*Rule)) (*Rule, error) {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.PackagePart, project.Maintainer)
	if err != nil {
		return nil, err
	}
	var r *Rule
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "package_protection_rules", id); err != nil {
			return err
		}
		if r, err = findRule(ctx, tx, p.ID, id); err != nil {
			return err
		}
		change(r)
		if err := r.check(); err != nil {
			return err
		}
		r.UpdatedAt = s.Now()
		if err := saveRule(ctx, tx, r); err != nil {
			return err
		}
		return s.recordRule(ctx, tx, by, p, "package_registry_protection_rule_updated", r, audit.Details{Change: "package_protection_rule", To: r.Pattern})
	})
	if err != nil {
		return nil, fmt.Errorf("update package protection rule %d: %w", id, err)
	}
	return r, nil
}

// DeleteRule deletes a protection rule. Maintainers only. NotFound.
func (s *Service) DeleteRule(ctx context.Context, by actor.Actor, ref project.Ref, id int64) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.PackagePart, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		r, err := findRule(ctx, tx, p.ID, id)
		if err != nil {
			return err
		}
		if err := deleteRule(ctx, tx, id); err != nil {
			return err
		}
		return s.recordRule(ctx, tx, by, p, "package_registry_protection_rule_deleted", r, audit.Details{Remove: "package_protection_rule", From: r.Pattern})
	})
	if err != nil {
		return fmt.Errorf("delete package protection rule %d: %w", id, err)
	}
	return nil
}

func (s *Service) recordRule(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, event string, r *Rule, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: event, Entity: p.Entity(), Target: audit.Target{Type: "PackageProtectionRule", ID: r.ID, Details: r.Pattern}, Details: d,
	})
}

// PushLevels are the levels that a rule may require to publish.
func PushLevels() []project.Level {
	return []project.Level{project.Maintainer, project.Owner, AdminLevel}
}

// DeleteLevels are the levels that a rule may require to delete.
func DeleteLevels() []project.Level { return []project.Level{project.Owner, AdminLevel} }

func (r *Rule) check() error {
	switch {
	case strings.TrimSpace(r.Pattern) == "":
		return errs.Unprocessable("Package name pattern can't be blank")
	case len(r.Pattern) > maxPattern:
		return errs.Unprocessable("Package name pattern is too long (maximum is %d characters)", maxPattern)
	case strings.ContainsFunc(r.Pattern, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		return errs.Unprocessable("Package name pattern must be a valid package name with optional wildcard characters")
	case !slices.Contains(Types(), r.Type):
		return errs.Unprocessable("Package type is not included in the list")
	case r.PushLevel != 0 && !slices.Contains(PushLevels(), r.PushLevel):
		return errs.Unprocessable("Minimum access level for push is not included in the list")
	case r.DeleteLevel != 0 && !slices.Contains(DeleteLevels(), r.DeleteLevel):
		return errs.Unprocessable("Minimum access level for delete is not included in the list")
	case r.PushLevel == 0 && r.DeleteLevel == 0:
		return errs.Unprocessable("A rule must have at least a minimum access role for push or delete.")
	}
	return nil
}

// mayPush refuses to publish a protected package.
func (s *Service) mayPush(ctx context.Context, q db.Q, by actor.Actor, p *project.Project, t Type, name string) error {
	need, err := s.needed(ctx, q, p, t, name, func(r *Rule) project.Level { return r.PushLevel })
	if err == nil && need > level(by, p) {
		return errs.Forbidden("Package protected.")
	}
	return err
}

// mayDelete refuses to delete a protected package.
func (s *Service) mayDelete(ctx context.Context, q db.Q, by actor.Actor, p *project.Project, k *Package) error {
	need, err := s.needed(ctx, q, p, k.Type, k.Name, func(r *Rule) project.Level { return r.DeleteLevel })
	if err == nil && need > level(by, p) {
		return errs.Forbidden("Package is deletion protected.")
	}
	return err
}

// needed returns the highest level that the rules of a package require.
func (s *Service) needed(ctx context.Context, q db.Q, p *project.Project, t Type, name string, of func(*Rule) project.Level) (project.Level, error) {
	rules, err := rulesOf(ctx, q, p.ID, t)
	if err != nil {
		return 0, err
	}
	var need project.Level
	for _, r := range rules {
		if matches(t.canonical(r.Pattern), t.canonical(name)) {
			need = max(need, of(r))
		}
	}
	return need, nil
}

// canonical returns a name, or a pattern of names, in the form in which clients of the
// format compare names. In PyPI, one name has several spellings.
func (t Type) canonical(name string) string {
	if t == PyPI {
		return pypi.Normalize(name)
	}
	return name
}

// matches reports whether a name matches a pattern in which * stands for any
// characters, regardless of case.
func matches(pattern, name string) bool {
	return glob.Wild(strings.ToLower(pattern), strings.ToLower(name))
}
