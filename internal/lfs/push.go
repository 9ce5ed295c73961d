package lfs

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// MissingObjects is the message for a push of pointers to objects that the project does
// not have.
const MissingObjects = `LFS objects are missing. Ensure LFS is properly set up or try a manual "git lfs push --all".`

// maxPointers is the maximum number of pointers that are looked up for one push.
const maxPointers = 200_000

// CheckPush refuses changes of a push that add pointers to missing objects or change files
// that other users have locked, and all changes if the repository exceeds its size limit.
func (s *Service) CheckPush(ctx context.Context, by actor.Actor, p *project.Project, push *git.Push) error {
	var open []*git.RefChange
	for _, c := range push.Changes {
		if c.Refused == "" && c.New != git.ZeroOID {
			open = append(open, c)
		}
	}
	if len(open) == 0 || by.ID == actor.SystemID {
		return nil
	}
	enabled, err := s.Enabled(ctx, p)
	if err != nil {
		return err
	}
	why, err := s.refuseSize(ctx, p)
	if err == nil && why == "" && enabled {
		why, err = s.refuseLocked(ctx, by, p, push.Repo, open)
	}
	if err == nil && why == "" && enabled && push.Pointers {
		why, err = s.refuseMissing(ctx, p, push.Repo, open)
	}
	for _, c := range open {
		c.Refused = why
	}
	return err
}

// refuseSize refuses pushes to a repository that has exceeded its size limit.
func (s *Service) refuseSize(ctx context.Context, p *project.Project) (string, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil || settings.RepositoryMegabytes == 0 {
		return "", err
	}
	size, err := s.occupied(ctx, p)
	if quota := int64(settings.RepositoryMegabytes) << 20; err == nil && size > quota {
		return overQuota(size, quota), nil
	}
	return "", err
}

func newIDs(changes []*git.RefChange) []git.OID {
	ids := make([]git.OID, len(changes))
	for i, c := range changes {
		ids[i] = c.New
	}
	return ids
}

// pointers returns the LFS pointers in new commits, by object ID. errTooMany if there are
// too many.
func pointers(ctx context.Context, r git.Repo, in git.SmallBlobs) (map[string]Pointer, error) {
	found := map[string]Pointer{}
	in.Min, in.Max = minPointer, MaxPointer
	err := r.EachSmallBlob(ctx, in, func(_ git.OID, content []byte) error {
		if pointer, ok := ParsePointer(content); ok {
			found[pointer.OID] = pointer
		}
		if len(found) > maxPointers {
			return errTooMany
		}
		return nil
	})
	if err != nil && err != errTooMany {
		err = fmt.Errorf("find LFS pointers: %w", err)
	}
	return found, err
}

// refuseMissing refuses pointers to objects that the project does not have.
func (s *Service) refuseMissing(ctx context.Context, p *project.Project, r git.Repo, changes []*git.RefChange) (string, error) {
	found, err := pointers(ctx, r, git.SmallBlobs{From: newIDs(changes), NotRefs: true})
	if err == errTooMany {
		return "The push has too many LFS pointers to check. Push fewer commits at a time.", nil
	}
	if err != nil || len(found) == 0 {
		return "", err
	}
	have, err := findHeld(ctx, s.DB, p.ID, keys(found))
	if err != nil {
		return "", fmt.Errorf("find LFS objects: %w", err)
	}
	if len(have) < len(found) {
		return MissingObjects, nil
	}
	// Objects that this push starts to refer to must not be removed meanwhile.
	var old []int64
	for _, h := range have {
		if s.Now().Sub(h.usedAt) > touchAge {
			old = append(old, h.id)
		}
	}
	return "", touch(ctx, s.DB, p.ID, old, s.Now())
}

// Missing returns the objects that new commits of an import refer to and that the project
// does not have, in the order of their IDs. Invalid if there are too many.
func (s *Service) Missing(ctx context.Context, p *project.Project, r git.Repo, changes []*git.RefChange) ([]Pointer, error) {
	return s.missing(ctx, p, r, git.SmallBlobs{From: newIDs(changes), NotRefs: true, Upkeep: true})
}

// MissingOf is Missing for all commits of a repository that was just filled.
func (s *Service) MissingOf(ctx context.Context, p *project.Project, r git.Repo) ([]Pointer, error) {
	return s.missing(ctx, p, r, git.SmallBlobs{Upkeep: true})
}

func (s *Service) missing(ctx context.Context, p *project.Project, r git.Repo, in git.SmallBlobs) ([]Pointer, error) {
	found, err := pointers(ctx, r, in)
	if err == errTooMany {
		return nil, errs.Invalid("The repository has more than %d LFS objects.", maxPointers)
	}
	if err != nil {
		return nil, err
	}
	oids := keys(found)
	have, err := findHeld(ctx, s.DB, p.ID, oids)
	if err != nil {
		return nil, fmt.Errorf("find LFS objects: %w", err)
	}
	var list []Pointer
	for _, oid := range oids {
		if _, ok := have[oid]; !ok {
			list = append(list, found[oid])
		}
	}
	return list, nil
}

// refuseLocked refuses changes to files that other users have locked.
func (s *Service) refuseLocked(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, changes []*git.RefChange) (string, error) {
	user := by.ID
	if by.Deploy != nil {
		user = 0
	}
	some, err := othersLock(ctx, s.DB, p.ID, user)
	if err != nil || !some {
		return "", err
	}
	why := ""
	var paths []string
	look := func() error {
		locks, err := findLocksOf(ctx, s.DB, p.ID, user, paths)
		if err == nil && len(locks) > 0 {
			why, err = fmt.Sprintf("The path '%s' is locked in Git LFS by %s", locks[0].Path, locks[0].Owner), errTooMany
		}
		paths = paths[:0]
		return err
	}
	err = r.ChangedPaths(ctx, newIDs(changes), func(path string) error {
		if paths = append(paths, path); len(paths) < inStatement {
			return nil
		}
		return look()
	})
	if err == nil && len(paths) > 0 {
		err = look()
	}
	if err == errTooMany {
		return why, nil
	}
	return "", err
}
