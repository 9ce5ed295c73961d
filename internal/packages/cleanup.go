package packages

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/re2"
)

// Policy is the cleanup policy of a project. Of the files with one name in a
// package the newest are kept.
type Policy struct {
	Keep      int // 0 keeps all
	NextRunAt *time.Time
}

// KeepChoices are the values of Policy.Keep.
func KeepChoices() []int { return []int{0, 1, 10, 20, 30, 40, 50} }

// cleanupEvery is the interval of the cleanup of a project.
const cleanupEvery = 12 * time.Hour

// Policy returns the cleanup policy of a project. Maintainers only.
func (s *Service) Policy(ctx context.Context, by actor.Actor, ref project.Ref) (Policy, error) {
	p, err := s.configure(ctx, by, ref)
	if err != nil {
		return Policy{}, err
	}
	found, err := findPolicy(ctx, s.DB, p.ID)
	if err != nil {
		return Policy{}, fmt.Errorf("package cleanup policy: %w", err)
	}
	return found, nil
}

// SetPolicy changes the cleanup policy of a project. Maintainers only. Invalid if
// the number is not among KeepChoices.
func (s *Service) SetPolicy(ctx context.Context, by actor.Actor, ref project.Ref, keep int) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.PackagePart, project.Maintainer)
	if err != nil {
		return err
	}
	if !slices.Contains(KeepChoices(), keep) {
		return errs.InvalidField("keep_n_duplicated_package_files", "is invalid")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := savePolicy(ctx, tx, p.ID, keep, s.Now().Add(cleanupEvery)); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "package_registry_cleanup_policy_updated", Entity: p.Entity(),
			Details: audit.Details{Change: "keep_n_duplicated_package_files", To: fmt.Sprint(keep)},
		})
	})
	if err != nil {
		return fmt.Errorf("set package cleanup policy: %w", err)
	}
	return nil
}

// duplicate is a file name of a package with more files than its project keeps.
type duplicate struct {
	packageID int64
	name      string
}

// Cleanup applies the cleanup policies that are due.
func (s *Service) Cleanup(ctx context.Context) error {
	for {
		projectID, keep, err := nextPolicy(ctx, s.DB, s.Now())
		if err != nil {
			return fmt.Errorf("package cleanup: %w", err)
		}
		if projectID == 0 {
			return nil
		}
		if err := s.cleanProject(ctx, projectID, keep); err != nil {
			return fmt.Errorf("package cleanup of project %d: %w", projectID, err)
		}
		if err := setNextRun(ctx, s.DB, projectID, s.Now().Add(cleanupEvery)); err != nil {
			return fmt.Errorf("package cleanup: %w", err)
		}
	}
}

// cleanProject applies a policy to the packages of a project, some at a time.
func (s *Service) cleanProject(ctx context.Context, projectID int64, keep int) error {
	var after int64
	for {
		ids, err := packagesAfter(ctx, s.DB, projectID, after, sweptAtOnce)
		if err != nil || len(ids) == 0 {
			return err
		}
		after = ids[len(ids)-1]
		for {
			list, err := findDuplicates(ctx, s.DB, ids, keep, sweptAtOnce)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				break
			}
			for _, d := range list {
				if err := s.cleanFile(ctx, d, keep); err != nil {
					return err
				}
			}
		}
	}
}

// cleanFile deletes all but the newest files of a name.
func (s *Service) cleanFile(ctx context.Context, d duplicate, keep int) error {
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "packages", d.packageID); err != nil {
			return err
		}
		old, err := olderFiles(ctx, tx, d.packageID, d.name, keep, sweptAtOnce)
		if err != nil {
			return err
		}
		for _, f := range old {
			if err := s.deleteFile(ctx, tx, f); err != nil {
				return err
			}
		}
		return nil
	})
}

// Settings are the rules of a group for the packages of its projects. A project
// follows the nearest group that has rules.
type Settings struct {
	GenericDuplicatesAllowed bool
	GenericDuplicateExcept   string // a regular expression of names for which the opposite applies
}

// maxExpression is the length of a regular expression in bytes.
const maxExpression = 255

// GroupSettings returns the package rules of a group. Maintainers only.
func (s *Service) GroupSettings(ctx context.Context, by actor.Actor, ref project.Ref) (Settings, error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Maintainer)
	if err != nil {
		return Settings{}, err
	}
	found, err := findSettings(ctx, s.DB, g.ID)
	if err != nil {
		return Settings{}, fmt.Errorf("package settings: %w", err)
	}
	return found, nil
}

// SetGroupSettings changes the package rules of a group. Maintainers only. Invalid
// if the expression is not valid.
func (s *Service) SetGroupSettings(ctx context.Context, by actor.Actor, ref project.Ref, next Settings) error {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Maintainer)
	if err != nil {
		return err
	}
	if len(next.GenericDuplicateExcept) > maxExpression {
		return errs.InvalidField("generic_duplicate_exception_regex", "is too long (maximum is %d characters)", maxExpression)
	}
	if _, err := compile(next.GenericDuplicateExcept); err != nil {
		return errs.InvalidField("generic_duplicate_exception_regex", "is not a valid regular expression")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := saveSettings(ctx, tx, g.ID, next); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "package_registry_settings_updated", Entity: audit.Entity{Type: audit.GroupEntity, ID: g.ID, Path: g.FullPath},
			Details: audit.Details{Change: "generic_duplicates_allowed", To: fmt.Sprint(next.GenericDuplicatesAllowed)},
		})
	})
	if err != nil {
		return fmt.Errorf("package settings of group %d: %w", g.ID, err)
	}
	return nil
}

// compile returns the expression for whole names; nil for none.
func compile(expression string) (*regexp.Regexp, error) {
	if expression == "" {
		return nil, nil
	}
	return re2.Compile(`\A(?:` + expression + `)\z`)
}

// allows reports whether a generic package may get a file that it has.
func (t Settings) allows(k *Package) (bool, error) {
	except, err := compile(t.GenericDuplicateExcept)
	if err != nil {
		return false, err
	}
	if except != nil && (except.MatchString(k.Name) || except.MatchString(k.Version)) {
		return !t.GenericDuplicatesAllowed, nil
	}
	return t.GenericDuplicatesAllowed, nil
}
