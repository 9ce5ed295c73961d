package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/gitremote"
	"svc/internal/project"
	"svc/internal/repo"
)

const (
	pullInterval = 30 * time.Minute // between scheduled updates of pull mirrors
	pullJitter   = 5 * time.Minute
	// maxPullFailures is the number of consecutive failures after which a pull
	// mirror is no longer updated on schedule, until a user starts an update.
	maxPullFailures = 14
)

// HardFailed reports whether a mirror is no longer updated on schedule because it
// has failed too often.
func (m *Mirror) HardFailed() bool { return m.Direction == Pull && m.Failures >= maxPullFailures }

// nextPull returns the time of the next scheduled update of a pull mirror; nil if
// the mirror has failed too often.
func (m *Mirror) nextPull(now time.Time) *time.Time {
	if m.HardFailed() {
		return nil
	}
	wait := pullInterval << min(max(m.Failures-1, 0), 4)
	at := now.Add(wait + rand.N(pullJitter))
	return &at
}

// PullMirror returns the pull mirror of a project to Maintainers. NotFound.
func (s *Service) PullMirror(ctx context.Context, by actor.Actor, ref project.Ref) (*Mirror, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return nil, err
	}
	m, err := findPullMirror(ctx, s.DB, p.ID)
	return m, db.NotFound(err, "Pull mirror")
}

// PullMirrors returns the enabled pull mirrors of projects that the caller may see,
// by project ID.
func (s *Service) PullMirrors(ctx context.Context, projectIDs ...int64) (map[int64]*Mirror, error) {
	list, err := findPullMirrors(ctx, s.DB, projectIDs)
	if err != nil {
		return nil, fmt.Errorf("find pull mirrors: %w", err)
	}
	found := map[int64]*Mirror{}
	for _, m := range list {
		found[m.ProjectID] = m
	}
	return found, nil
}

// SavePullMirror sets up or changes the pull mirror of a project, for Maintainers;
// the setting may limit new mirrors to administrators. The actor becomes the author
// of the pushes. A mirror that becomes enabled is updated immediately. Invalid if a
// field is not valid; Forbidden if the project is archived.
func (s *Service) SavePullMirror(ctx context.Context, by actor.Actor, ref project.Ref, f Fields) (*Mirror, error) {
	p, err := s.change(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	var id int64
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil {
			return err
		}
		m, err := findPullMirror(ctx, tx, p.ID)
		if errors.Is(err, db.ErrNoRows) {
			m, err = s.newPullMirror(ctx, tx, by, p, f)
		} else if err == nil {
			if err := s.mirrorUser(ctx, by, m, f); err != nil {
				return err
			}
			err = s.update(ctx, tx, by, p, m, f)
		}
		if err != nil {
			return err
		}
		id = m.ID
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("save pull mirror of project %d: %w", p.ID, err)
	}
	return s.find(ctx, id)
}

// newPullMirror adds the pull mirror of a project.
func (s *Service) newPullMirror(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, f Fields) (*Mirror, error) {
	if f.URL == nil || strings.TrimSpace(*f.URL) == "" {
		return nil, errs.InvalidField("url", "can't be blank")
	}
	if err := s.requireAvailable(ctx, by); err != nil {
		return nil, err
	}
	m := &Mirror{ProjectID: p.ID, Direction: Pull, AuthMethod: ByPassword, KeepDiverged: true, Status: StatusNone, CreatedAt: s.Now()}
	if err := s.mirrorUser(ctx, by, m, f); err != nil {
		return nil, err
	}
	if err := s.apply(ctx, m, f); err != nil {
		return nil, err
	}
	return m, s.insert(ctx, tx, by, p, m, f)
}

// mirrorUser sets the author of pulled changes: the actor, or the user that an
// administrator chose.
func (s *Service) mirrorUser(ctx context.Context, by actor.Actor, m *Mirror, f Fields) error {
	m.UserID = userID(by)
	if f.UserID == nil {
		return nil
	}
	if !by.Admin {
		return errs.Forbidden("Only administrators can choose the user of a mirror.")
	}
	if _, err := s.Users.As(ctx, *f.UserID); err != nil {
		return errs.InvalidField("mirror_user_id", "is not an active user").Because(err)
	}
	m.UserID = f.UserID
	return nil
}

// SetProjectMirror changes the pull mirror of a project through the project API, for
// Maintainers. InvalidField if the project has no pull mirror and the fields set
// options without enabling one, or enable one without a URL. Other errors are those
// of SavePullMirror.
func (s *Service) SetProjectMirror(ctx context.Context, by actor.Actor, ref project.Ref, f Fields) error {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return err
	}
	_, err = findPullMirror(ctx, s.DB, p.ID)
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return err
	}
	if err != nil && (f.Enabled == nil || !*f.Enabled) {
		if f.asks() {
			return errs.InvalidField("mirror", "must be true to set up a pull mirror")
		}
		return nil
	}
	if err != nil && f.URL == nil {
		return errs.InvalidField("import_url", "can't be blank if mirror is true")
	}
	_, err = s.SavePullMirror(ctx, by, ref, f)
	return err
}

// asks reports whether the fields set any option of a pull mirror.
func (f Fields) asks() bool {
	on := func(b *bool) bool { return b != nil && *b }
	return f.URL != nil || f.UserID != nil || on(f.TriggerPipelines) || on(f.OnlyProtected) || f.KeepDiverged != nil && !*f.KeepDiverged ||
		f.BranchRegex != nil && *f.BranchRegex != ""
}

// mirrorImport sets up the pull mirror of a project that is being imported.
func (s *Service) mirrorImport(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, from Source) error {
	f, enabled := *from.Mirror, true
	f.URL, f.Enabled = &from.URL, &enabled
	if from.User != "" || from.Password != "" {
		f.User, f.Password = &from.User, &from.Password
	}
	if len(from.HostKeys) > 0 {
		f.HostKeys = &from.HostKeys
	}
	_, err := s.newPullMirror(ctx, tx, by, p, f)
	return err
}

// withPullMirror calls f with the pull mirror of a project, in a transaction that
// locks the project. NotFound if it has none.
func (s *Service) withPullMirror(ctx context.Context, p *project.Project, f func(tx *db.Tx, m *Mirror) error) error {
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil {
			return err
		}
		m, err := findPullMirror(ctx, tx, p.ID)
		if err != nil {
			return db.NotFound(err, "Pull mirror")
		}
		return f(tx, m)
	})
}

// StartPull starts an update of the pull mirror of a project, for Maintainers:
// immediately, or five minutes after the start of its latest update. NotFound if it
// has none; Invalid if the mirror is disabled.
func (s *Service) StartPull(ctx context.Context, by actor.Actor, ref project.Ref) error {
	p, err := s.change(ctx, by, ref)
	if err != nil {
		return err
	}
	err = s.withPullMirror(ctx, p, func(tx *db.Tx, m *Mirror) error {
		if !m.Enabled {
			return errs.Invalid("The project is not mirrored.")
		}
		if err := resetFailures(ctx, tx, m.ID); err != nil {
			return err
		}
		return s.schedule(ctx, tx, m)
	})
	if err != nil {
		return fmt.Errorf("start pull mirror of project %d: %w", p.ID, err)
	}
	return nil
}

// DeletePullMirror removes the pull mirror of a project, for Maintainers. The
// repository is not changed. NotFound.
func (s *Service) DeletePullMirror(ctx context.Context, by actor.Actor, ref project.Ref) error {
	p, err := s.change(ctx, by, ref)
	if err != nil {
		return err
	}
	err = s.withPullMirror(ctx, p, func(tx *db.Tx, m *Mirror) error {
		return s.remove(ctx, tx, by, p, m)
	})
	if err != nil {
		return fmt.Errorf("delete pull mirror of project %d: %w", p.ID, err)
	}
	return nil
}

// pull fetches the branches and tags of a remote into a project, as pushes of the
// user who set up the mirror. Refs that were deleted on the remote are kept.
func (s *Service) pull(ctx context.Context, m *Mirror, p *project.Project, remote *gitremote.Remote) error {
	if m.UserID == nil {
		return errs.Invalid("The user who set up the mirror was deleted. A maintainer must save the mirror again.")
	}
	by, err := s.Users.As(ctx, *m.UserID)
	if err != nil {
		return errs.Invalid("The account of the user who set up the mirror is not active. A maintainer must save the mirror again.").Because(err)
	}
	if _, err := s.change(ctx, by, project.RefTo(p.ID)); err != nil {
		return errs.Invalid("The user who set up the mirror no longer has the Maintainer role. A maintainer must save the mirror again.").Because(err)
	}
	branch, err := s.branchFilter(ctx, m)
	if err != nil {
		return err
	}
	theirs, err := remote.Refs(ctx)
	if err != nil {
		return err
	}
	var refs []git.Ref
	for _, ref := range repo.Importable(theirs.List) {
		if wanted(ref.Name, branch) {
			refs = append(refs, ref)
		}
	}
	skipped, err := s.Repos.Pull(ctx, by, p, repo.Incoming{
		Refs: refs, Head: theirs.Head, MaxSize: func(ctx context.Context) (int64, error) { return s.LFS.Room(ctx, p) },
		Pack: func(ctx context.Context, want, have []git.OID) (io.ReadCloser, error) {
			return remote.Pack(ctx, theirs, want, have)
		},
		Check: func(ctx context.Context, r git.Repo, changes []*git.RefChange) error {
			return s.takeLFS(ctx, p, remote, r, changes, &tracker{})
		},
	}, repo.PullOptions{Overwrite: !m.KeepDiverged, Pipelines: m.TriggerPipelines})
	if err != nil {
		return err
	}
	if len(skipped) > 0 {
		return diverged(skipped)
	}
	return nil
}
