package project

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
)

// Statistics are the storage statistics of a project.
type Statistics struct {
	RepositorySize int64 // bytes
	CommitCount    int64 // of the default branch
	WikiSize       int64 // bytes
	SnippetsSize   int64 // bytes
	PackagesSize   int64 // bytes; set on request only, see packages
	ArtifactsSize  int64 // bytes; set on request only, see ci
	LFSSize        int64 // bytes; set on request only, see lfs
}

// Storage returns the total size in bytes.
func (s Statistics) Storage() int64 {
	return s.RepositorySize + s.WikiSize + s.SnippetsSize + s.ArtifactsSize + s.PackagesSize + s.LFSSize
}

// RepositorySize returns the size of the repository of a project in bytes, as of its
// last measurement.
func (s *Service) RepositorySize(ctx context.Context, id int64) (int64, error) {
	found, err := findStatistics(ctx, s.DB, []int64{id})
	if err != nil {
		return 0, fmt.Errorf("statistics of project %d: %w", id, err)
	}
	return found[id].RepositorySize, nil
}

// GroupStatistics returns the statistics of groups, including their subgroups,
// without commit counts. It returns nothing if the actor is not an administrator.
func (s *Service) GroupStatistics(ctx context.Context, by actor.Actor, ids []int64) (map[int64]Statistics, error) {
	if !by.Admin || len(ids) == 0 {
		return nil, nil
	}
	found, err := sumStatistics(ctx, s.DB, ids)
	if err != nil {
		return nil, fmt.Errorf("statistics of groups: %w", err)
	}
	for _, id := range ids {
		if _, ok := found[id]; !ok { // a group without projects has statistics too
			found[id] = Statistics{}
		}
	}
	return found, nil
}

// Pushed updates the last activity of a project in the transaction of a push. If
// branch is not empty, it becomes the default branch unless there is one. readme
// is the path of the README, if it has changed.
func (s *Service) Pushed(ctx context.Context, tx *db.Tx, id int64, branch string, readme *string, at time.Time) error {
	err := savePushed(ctx, tx, id, branch, at)
	if err == nil && readme != nil {
		err = saveReadme(ctx, tx, id, *readme)
	}
	if err != nil {
		return fmt.Errorf("push to project %d: %w", id, err)
	}
	return nil
}

// Imported records the end of copying a repository: its default branch, or the
// failure.
func (s *Service) Imported(ctx context.Context, id int64, branch, failure string) error {
	status := ImportFinished
	if failure != "" {
		status = ImportFailed
	}
	if err := saveImported(ctx, s.DB, id, status, failure, branch, s.Now()); err != nil {
		return fmt.Errorf("import of project %d: %w", id, err)
	}
	return nil
}

// ImportChanged records the state of an import by URL in the transaction of the
// change. failure is the message for the user.
func (s *Service) ImportChanged(ctx context.Context, tx *db.Tx, id int64, status ImportStatus, failure string) error {
	if err := saveImportStatus(ctx, tx, id, status, failure); err != nil {
		return fmt.Errorf("import of project %d: %w", id, err)
	}
	return nil
}

// ImportState returns a project with the state of its import, in a transaction
// that has locked it. NotFound.
func (s *Service) ImportState(ctx context.Context, tx *db.Tx, id int64) (*Project, error) {
	return findProject(ctx, tx, id)
}

// ImportAgain records that an import by URL is restarted. The URL has no
// credentials.
func (s *Service) ImportAgain(ctx context.Context, tx *db.Tx, id int64, url string) error {
	if err := saveImportAgain(ctx, tx, id, url); err != nil {
		return fmt.Errorf("import of project %d: %w", id, err)
	}
	return nil
}

// Contents describes the files of the default branch.
type Contents struct {
	Readme    string             // path of the README
	Languages map[string]float64 // shares in percent
}

// Languages returns the names of the languages of the default branch, the largest
// first, as of the last Measured. The caller checks access.
func (s *Service) Languages(ctx context.Context, id int64) ([]string, error) {
	names, err := findLanguages(ctx, s.DB, id)
	if err != nil {
		return nil, fmt.Errorf("languages of project %d: %w", id, err)
	}
	return names, nil
}

// Measured saves the statistics and contents of a project.
func (s *Service) Measured(ctx context.Context, id int64, m Statistics, found Contents) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", id); err != nil {
			return err
		}
		if err := saveStatistics(ctx, tx, id, m, s.Now()); err != nil {
			return err
		}
		if err := saveReadme(ctx, tx, id, found.Readme); err != nil {
			return err
		}
		return saveLanguages(ctx, tx, id, found.Languages)
	})
	if err != nil {
		return fmt.Errorf("statistics of project %d: %w", id, err)
	}
	return nil
}

// MeasuredAuxRepos saves the sizes of the wiki and the snippets of a project.
func (s *Service) MeasuredAuxRepos(ctx context.Context, id, wiki, snippets int64) error {
	if err := saveAuxRepoSizes(ctx, s.DB, id, wiki, snippets, s.Now()); err != nil {
		return fmt.Errorf("statistics of project %d: %w", id, err)
	}
	return nil
}

// ActiveSince returns the IDs of projects with activity since a time, in ascending
// order, after one of them.
func (s *Service) ActiveSince(ctx context.Context, since time.Time, after int64, limit int) ([]int64, error) {
	ids, err := findActive(ctx, s.DB, since, after, limit)
	if err != nil {
		return nil, fmt.Errorf("find active projects: %w", err)
	}
	return ids, nil
}

// Placed records the storage of the repository of a project, and whether it is
// read-only because it is being moved. NotFound.
func (s *Service) Placed(ctx context.Context, tx *db.Tx, id int64, storage string, readOnly bool) error {
	if err := savePlace(ctx, tx, id, storage, readOnly); err != nil {
		return fmt.Errorf("place of project %d: %w", id, err)
	}
	return nil
}

// Importing reports whether the repository of a project is still being imported.
func (s *Service) Importing(ctx context.Context, q db.Q, id int64) (bool, error) {
	p, err := findProject(ctx, q, id)
	if err != nil {
		return false, fmt.Errorf("find project %d: %w", id, err)
	}
	return p.Import.Pending(), nil
}
