package storagemove

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"svc/internal/git"
	"svc/internal/repo"
)

// copy copies a repository and verifies the copy.
func (m *Service) copy(ctx context.Context, mv *Move, p repo.Located) error {
	m.Step("copy")
	from, to, err := m.ends(mv, p)
	if err != nil {
		return err
	}
	if err := m.discard(ctx, mv, location{mv.Destination, p.Path}); err != nil { // from a previous attempt
		return err
	}
	began := m.Repos.Now()
	_, err = m.Repos.Git.Copy(ctx, from, to.Path())
	if errors.Is(err, git.ErrNoRepository) {
		return nil // nothing was written to it yet
	}
	if err != nil {
		return err
	}
	m.Step("verify")
	if err := m.verify(ctx, mv, from, to); err != nil {
		return err
	}
	size, err := to.Size(ctx)
	if err != nil {
		return err
	}
	m.Log.InfoContext(ctx, "storage move: repository copied and verified", "move", mv.ID, "repository", p.Path, "bytes", size, "duration", m.Repos.Now().Sub(began))
	return nil
}

// ends returns the old and new directory of a repository. It checks again that they
// are not the same directory, for example through a link, because one of them
// will be removed.
func (m *Service) ends(mv *Move, p repo.Located) (from, to git.Repo, err error) {
	source, ok := m.Repos.Storages[p.Storage]
	target, there := m.Repos.Storages[mv.Destination]
	if !ok || !there {
		return from, to, fmt.Errorf("one of the storages %s and %s is not configured", p.Storage, mv.Destination)
	}
	from, to = m.Repos.Git.Repo(filepath.Join(source, p.Path)), m.Repos.Git.Repo(filepath.Join(target, p.Path))
	if sameDir(source, target) || sameDir(from.Path(), to.Path()) {
		return from, to, fmt.Errorf("%s and %s are the same directory", from.Path(), to.Path())
	}
	return from, to, nil
}

// verify checks a copy. Errors that the original already had are accepted.
func (m *Service) verify(ctx context.Context, mv *Move, from, to git.Repo) error {
	differs, err := from.Differs(ctx, to)
	if err == nil && differs != "" {
		err = fmt.Errorf("the copy is not the same: %s", differs)
	}
	if err != nil {
		return err
	}
	problems, err := to.Fsck(ctx)
	if err != nil || len(problems) == 0 {
		return err
	}
	before, err := from.Fsck(ctx)
	if err != nil {
		return err
	}
	known := map[git.Problem]bool{}
	for _, p := range before {
		known[p] = true
	}
	for _, p := range problems {
		if !known[p] {
			return fmt.Errorf("the copy is incomplete: %s", p.Text)
		}
	}
	m.Log.WarnContext(ctx, "the copy of a repository is incomplete", "move", mv.ID, "repository", from.Path(), "problems", len(problems))
	return nil
}
