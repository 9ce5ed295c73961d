package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// The functions in this file read and write the repository of a project for exports
// and imports. They do not check permissions: the caller requires Maintainer for
// exports, and imports into a draft.

// keepRefs is the prefix of the refs that keep the heads of merge requests reachable.
const keepRefs = internalRefs + "keep/"

// copiedRef reports whether an export contains a ref that is not a branch, tag or note: the
// current and earlier heads of merge requests, which comments refer to.
func copiedRef(ref string) bool {
	if id, ok := strings.CutPrefix(ref, keepRefs); ok {
		oid, ok := git.ParseOID(id)
		return ok && string(oid) == id
	}
	rest, ok := strings.CutPrefix(ref, MergeRefs)
	if !ok {
		return false
	}
	number, name, _ := strings.Cut(rest, "/")
	iid, err := strconv.ParseInt(number, 10, 64)
	return err == nil && iid > 0 && strconv.FormatInt(iid, 10) == number && name == "head"
}

// BundleProject writes the repository of a project as a git bundle, with the heads of
// merge requests. It returns false and writes nothing if the repository is empty.
func (s *Service) BundleProject(ctx context.Context, p *project.Project, w io.Writer) (bool, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return false, err
	}
	prefixes := []string{git.Heads, git.Tags, NoteRefs, MergeRefs, keepRefs}
	err = r.BundleRefs(ctx, w, prefixes, func(ref string) bool {
		return !strings.HasPrefix(ref, MergeRefs) && !strings.HasPrefix(ref, keepRefs) || copiedRef(ref)
	})
	if errors.Is(err, git.ErrNotFound) || errors.Is(err, git.ErrNoRepository) {
		return false, nil
	}
	if errors.Is(err, git.ErrTooLarge) {
		return false, errs.Invalid("The repository has too many refs for an export.").Because(err)
	}
	return err == nil, passing(err)
}

// FillProject replaces the repository of a draft of a project with that of a git
// bundle, without events. branch becomes the default branch, unless it is empty.
// NotFound if the project is not a draft; Invalid if the file is not a complete bundle, or has
// refs that no export has.
func (s *Service) FillProject(ctx context.Context, p *project.Project, branch string, bundle io.Reader) error {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return err
	}
	if _, err := s.Projects.DraftProject(ctx, s.DB, p.ID); err != nil { // another attempt may have finished
		return err
	}
	if err := Discard(ctx, r); err != nil { // from an attempt that was interrupted
		return fmt.Errorf("remove repository of draft %d: %w", p.ID, err)
	}
	if r, err = s.ensure(ctx, p); err != nil {
		return err
	}
	fresh := &project.Project{}
	return s.unbundle(ctx, r, branch, func(limits git.BundleLimits) error {
		return r.UnbundleRefs(ctx, bundle, limits, func(c *git.RefChange) string {
			id, keeps := strings.CutPrefix(c.Ref, keepRefs)
			switch {
			case keeps && id != string(c.New):
				return "it keeps another commit"
			case copiedRef(c.Ref):
				return ""
			}
			return refuseRef(fresh, c)
		})
	})
}

// HasBranch reports whether the repository of a draft of a project has a branch.
func (s *Service) HasBranch(ctx context.Context, p *project.Project, branch string) (bool, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil || branch == "" {
		return false, err
	}
	_, err = r.Ref(ctx, git.Heads+branch)
	if errors.Is(err, git.ErrNotFound) || errors.Is(err, git.ErrBadRef) {
		return false, nil
	}
	return err == nil, err
}

// DiscardProject removes the repository of a draft of a project whose import starts
// again.
func (s *Service) DiscardProject(ctx context.Context, p *project.Project) error {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return err
	}
	if err := Discard(ctx, r); err != nil {
		return fmt.Errorf("remove repository of draft %d: %w", p.ID, err)
	}
	return nil
}

// Filled adds the background job that measures a repository, in the transaction that
// makes the project visible.
func (s *Service) Filled(ctx context.Context, tx *db.Tx, p *project.Project) error {
	return s.addTidying(ctx, tx, p.ID)
}

// PutProtected inserts a protected branch or tag into a draft of a project. Actions
// without entries are for Maintainers. Invalid; Conflict.
func PutProtected(ctx context.Context, tx *db.Tx, p *Protected) error {
	if p.Kind != BranchRef && p.Kind != TagRef {
		return errs.InvalidField("kind", "is not included in the list")
	}
	if err := checkPattern(p.Kind, p.Name); err != nil || len(p.Name) > maxPatternBytes {
		return errs.InvalidField("name", "is invalid").Because(err)
	}
	if len(p.Access) > maxEntries {
		return errs.InvalidField("access_levels", "are too many (maximum is %d)", maxEntries)
	}
	for _, a := range p.Access {
		if !slices.Contains(withDefaults(p.Kind, []RefAccess{a}), a) {
			return errs.InvalidField("access_levels", "have an unknown action")
		}
		if !slices.Contains([]project.Level{project.NoAccess, project.Developer, project.Maintainer, AdminLevel}, a.Level) {
			return errs.InvalidField("access_levels", "have a level that is not included in the list")
		}
	}
	p.Access = withDefaults(p.Kind, p.Access)
	n, err := countProtected(ctx, tx, ruleOwner{projectID: p.ProjectID}, p.Kind)
	if err != nil {
		return err
	}
	if n >= maxRules {
		return errs.Invalid("there are more than %d protected branches or tags", maxRules)
	}
	err = insertProtected(ctx, tx, p)
	if db.IsUnique(err, "protected_refs_project_id_kind_name") {
		return errs.InvalidField("name", "has already been taken")
	}
	return err
}

// The limits of an imported rule.
const (
	maxPatternBytes = 1024
	maxEntries      = 1000
)
